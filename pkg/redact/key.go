// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// keyLimit bounds the part of a key that is looked at, in bytes. Longer runs of
// key bytes are digests or encoded data, not names.
const keyLimit = 96

// secretKind tells what a key says about its value.
type secretKind uint8

const (
	notSecret secretKind = iota
	secretValue
	// secretHeader is a header whose value reaches to the end of the line.
	secretHeader
	// secretCount is a token count: a number under it is no secret.
	secretCount
)

// countKeys are the normalised names whose numbers stay: the ten of the
// contract and the names by which vendors report cache use and limits.
var countKeys = map[string]bool{
	"prompttokens": true, "completiontokens": true, "inputtokens": true, "outputtokens": true,
	"cachedinputtokens": true, "totaltokens": true, "totaltokencount": true, "tokencount": true,
	"cachedtokens": true, "reasoningtokens": true,
	"tokens": true, "maxtokens": true, "maxoutputtokens": true, "maxcompletiontokens": true,
	"cachereadinputtokens": true, "cachecreationinputtokens": true, "cachewritetokens": true,
	"audiotokens": true, "acceptedpredictiontokens": true, "rejectedpredictiontokens": true,
	"maxtotaltokens": true, "contexttokens": true, "tokensused": true,
	"estimatedtokens": true, "budgettokens": true, "thinkingtokens": true,
}

// detailKeys are the normalised names of objects that hold only counts.
var detailKeys = map[string]bool{
	"prompttokensdetails": true, "completiontokensdetails": true,
	"inputtokensdetails": true, "outputtokensdetails": true, "inputtokendetails": true,
	"outputtokendetails": true,
}

// keyKind classifies a key by its normalised form.
func keyKind(key string) secretKind {
	if len(key) < 3 {
		return notSecret
	}
	var buf [2 * keyLimit]byte
	n := normalize(buf[:0], key)
	switch findWord(n) {
	case notSecret:
		return notSecret
	case secretHeader:
		return secretHeader
	}
	if countKeys[string(n)] {
		return secretCount
	}
	return secretValue
}

// normalize appends key in lower case without '-', '_', '.' and spaces; of a
// key that does not fit, the end.
func normalize(b []byte, key string) []byte {
	if len(key) > cap(b) {
		key = key[len(key)-cap(b):]
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c == '-' || c == '_' || c == '.' || c == ' ' || c == '\t':
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	return b
}

// findWord reports whether the normalised key contains one of the words that
// make a key secret. accesstoken, refreshtoken, txntoken and transactiontoken
// contain token, clientsecret contains secret.
func findWord(n []byte) secretKind {
	found := notSecret
	for i := range n {
		var words []string
		switch n[i] {
		case 'a':
			words = wordsA
		case 'c':
			words = wordsC
		case 'p':
			words = wordsP
		case 's':
			words = wordsS
		case 't':
			words = wordsT
		default:
			continue
		}
		for _, w := range words {
			if len(n)-i < len(w) || string(n[i:i+len(w)]) != w {
				continue
			}
			if len(n)-i == len(w) && headerWords[w] {
				return secretHeader
			}
			found = secretValue
		}
	}
	return found
}

var (
	wordsA = []string{"apikey", "authorization", "accesskey", "accountkey"}
	wordsC = []string{"credential", "cookie"}
	wordsP = []string{"password", "passwd", "pwd", "privatekey", "passphrase"}
	wordsS = []string{"secret"}
	wordsT = []string{"token", "txntoken", "transactiontoken"}

	// headerWords end the names of headers whose whole value goes.
	headerWords = map[string]bool{
		"authorization": true, "cookie": true, "txntoken": true, "transactiontoken": true,
	}
)

// harmless are values that say that there is no secret, or name a type.
var harmless = map[string]bool{
	"null": true, "nil": true, "none": true, "undefined": true, "true": true, "false": true,
	"string": true, "str": true, "string;": true, "str;": true,
}

// isNumber reports whether v is a decimal number.
func isNumber(v string) bool {
	v = strings.TrimPrefix(v, "-")
	digits := false
	for i := range len(v) {
		switch c := v[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return digits
}

// placeholder reports whether v only names where a secret comes from: $VAR,
// ${VAR}, $(cmd), ${{ … }}, %VAR%, <your-key>, {{ .Var }} or stars.
func placeholder(v string) bool {
	switch {
	case len(v) < 2:
		return false
	case strings.HasPrefix(v, "${") || strings.HasPrefix(v, "$(") || strings.HasPrefix(v, "{{"):
		return true
	case v[0] == '$':
		return allUpper(v[1:])
	case v[0] == '%' && v[len(v)-1] == '%':
		return allUpper(v[1 : len(v)-1])
	case v[0] == '<' && v[len(v)-1] == '>':
		return true
	}
	return strings.Trim(v, "*") == "" || strings.Trim(v, "x") == "" || strings.Trim(v, ".") == ""
}

func allUpper(v string) bool {
	for i := range len(v) {
		c := v[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return v != ""
}
