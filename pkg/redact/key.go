// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strings"
)

// keyLimit bounds how much of a key is examined, in bytes. Longer runs of key bytes are digests or encoded
// data, not names.
const keyLimit = 96

// secretKind is what a key implies about its value. A larger kind is stronger evidence of a secret.
type secretKind uint8

const (
	notSecret secretKind = iota
	// secretRandom is a name with many uses: a value under it is a secret if it is a long mixture of
	// letters and digits.
	secretRandom
	// secretOpaque names a vendor or the key of a service: a value under it is a secret if it can only be a
	// key.
	secretOpaque
	// secretKeyed is a name that ends in key: a value under it is a secret if it can be a key.
	secretKeyed
	// secretCount is a token count: a number under it is not a secret.
	secretCount
	secretValue
	// secretHeader is a header whose value reaches to the end of the line.
	secretHeader
)

// countKeys are the normalised names whose numbers are kept: the ten names in the first lines, which must
// always be kept, and the names under which vendors report usage and limits.
var countKeys = setOf(`
	prompttokens completiontokens inputtokens outputtokens cachedinputtokens
	totaltokens totaltokencount tokencount cachedtokens reasoningtokens

	tokens maxtokens maxoutputtokens maxcompletiontokens maxinputtokens maxnewtokens maxtotaltokens
	cachereadinputtokens cachecreationinputtokens cachewriteinputtokens cachewritetokens cachereadtokens cachecreationtokens
	ephemeral5minputtokens ephemeral1hinputtokens
	audiotokens texttokens imagetokens videotokens acceptedpredictiontokens rejectedpredictiontokens
	contexttokens tokensused usedtokens estimatedtokens budgettokens thinkingtokens newtokens numtokens
	promptTokenCount candidatestokencount thoughtstokencount cachedcontenttokencount tooluseprompttokencount
	inputtokencount outputtokencount tokenspersecond tokensperminute tokenspersec
	tokenbudget tokenlimit tokensleft tokensremaining remainingtokens tokensin tokensout
	xratelimitlimittokens xratelimitremainingtokens
`)

// detailKeys are the normalised names of objects that hold only counts.
var detailKeys = setOf(`
	prompttokensdetails completiontokensdetails inputtokensdetails outputtokensdetails
	inputtokendetails outputtokendetails promptTokensDetails candidatestokensdetails cachetokensdetails
`)

// setOf returns the words of a text as a set, in lower case.
func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		set[w] = true
	}
	return set
}

// keyKind classifies a key by its normalised form.
func keyKind(key string) secretKind {
	if len(key) < 3 || !mayName(key) {
		return notSecret
	}
	var buf [2 * keyLimit]byte
	n := normalize(buf[:0], key)
	kind := findWord(n)
	switch {
	case kind == secretValue && countKeys[string(n)]:
		return secretCount
	case kind == secretKeyed:
		if aboutKey(key) {
			return notSecret
		}
	case kind > notSecret && kind < secretCount:
		if about(n) {
			return notSecret
		}
	}
	return kind
}

// normalize appends key in lower case without '-', '_', '.' and spaces. If the key does not fit, it appends
// the end of the key.
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

// findWord returns the strongest kind that a word in the normalised key implies. For example, accesstoken,
// refreshtoken, txntoken and transactiontoken contain token, and clientsecret contains secret.
func findWord(n []byte) secretKind {
	found := notSecret
	for i := 0; i+1 < len(n); i++ {
		for _, w := range keyWords.starting(n[i], n[i+1]) {
			rest := len(n) - i - len(w.text)
			if w.kind < found || rest < 0 || w.atEnd && rest > 0 || w.least > len(n) || string(n[i:i+len(w.text)]) != w.text {
				continue
			}
			kind := w.kind
			if kind == secretHeader && rest > 0 {
				kind = secretValue
			}
			found = max(found, kind)
		}
	}
	return found
}

// keyWord is a word and the kind that it gives to a key that contains it.
type keyWord struct {
	text  string
	kind  secretKind
	atEnd bool // only the end of a key counts
	least int  // minimum length of the key
}

// wordTable holds words by their first two letters.
type wordTable struct {
	index [1 << 10]uint8
	lists [][]keyWord
}

func (t *wordTable) starting(a, b byte) []keyWord {
	return t.lists[t.index[int(a&31)<<5|int(b&31)]]
}

func (t *wordTable) add(w keyWord) {
	at := &t.index[int(w.text[0]&31)<<5|int(w.text[1]&31)]
	if *at == 0 {
		*at = uint8(len(t.lists))
		t.lists = append(t.lists, nil)
	}
	t.lists[*at] = append(t.lists[*at], w)
}

// keyWords are the words that make a key name a secret.
var keyWords = func() *wordTable {
	t := &wordTable{lists: make([][]keyWord, 1)}
	add := func(kind secretKind, atEnd bool, least int, words string) {
		for w := range strings.FieldsSeq(words) {
			t.add(keyWord{w, kind, atEnd, least})
		}
	}
	// The words that must always be recognised.
	add(secretHeader, false, 0, "authorization cookie txntoken transactiontoken")
	add(secretValue, false, 0, "apikey token secret password passwd pwd credential privatekey")
	// Other names of the same things.
	add(secretValue, false, 0, "accesskey accountkey passphrase clientkeydata passcode")
	add(secretValue, true, 0, `dbpass smtppass mysqlpass pgpass userpass rootpass adminpass mailpass ftppass
		redispass authpass proxypass emailpass sshpass bindpass keypass storepass dbpassword`)
	add(secretOpaque, true, 0, `appkey applicationkey authkey encryptionkey signingkey masterkey licensekey consumerkey
		servicekey storagekey sharedkey deploykey functionskey subscriptionkey writekey adminkey ingestkey
		integrationkey webhookkey globalkey sendkey userkey clientkey pat sig xamzsignature xgoogsignature
		creds bearer jwt`)
	add(secretOpaque, false, 0, `adafruit adobe airtable algolia alibaba asana atlassian confluence jira beamer bitbucket
		bittrex cloudflare codecov cohere coinbase confluent contentful datadog droneci dropbox etsy facebook
		fastly finicity finnhub flickr freshbooks gitter heroku hubspot intercom artifactory jfrog kraken kucoin
		launchdarkly linkedin mailchimp mailgun mapbox mattermost messagebird meraki netlify newrelic nytimes
		okta plaid privateai rapidapi sendbird sentry snyk sonar squarespace sumologic telegram travisci twitch
		twitter typeform yandex zendesk contribsys gitlabsession discord looker`)
	add(secretKeyed, true, 5, "key")
	add(secretRandom, true, 4, "key auth access")
	return t
}()

// about reports whether a normalised key names a property of a key or a service rather than a secret.
func about(n []byte) bool {
	for _, w := range aboutWords {
		if bytes.Contains(n, w) {
			return true
		}
	}
	return bytes.HasSuffix(n, []byte("id"))
}

var aboutWords = bytes.Fields([]byte(`
	public pub cache primary foreign partition sort finger print hash digest commit version revision
	url uri image checksum build release branch host file path name ref trace span request dedup
	idempoten object bucket route index keyid webhookid config
`))

// aboutKey reports whether a word of a key that ends in "key" makes it the key of something rather than a secret:
// primaryKey, cache_key.
func aboutKey(key string) bool {
	for end := len(key); end > 0; {
		for end > 0 && !is(key[end-1], alnum) {
			end--
		}
		from := end
		for from > 0 && is(key[from-1], alnum) {
			from--
			if is(key[from], capital) && !is(key[from], digit) && (from == 0 || !is(key[from-1], capital)) {
				break // camelCase
			}
		}
		if from < end && keysOf[strings.ToLower(key[from:end])] {
			return true
		}
		end = from
	}
	return false
}

// keysOf are the words of aboutKey.
var keysOf = setOf(`public pub cache primary foreign partition sort fingerprint hash digest commit version revision url uri
	image checksum build release branch host file path name ref trace span request dedup idempotency idempotent object
	bucket route routing index lookup group label field column row query event map dict translation i18n locale message
	menu hot keyboard shortcut monkey turkey topic header order unique composite registry metric tag lock attribute
	property annotation node json yaml`)

// harmless are values that state that there is no secret, or that name a type.
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

// placeholder reports whether v only names the source of a secret: $VAR, ${VAR}, $(cmd), ${{ … }}, %VAR%,
// <your-key>, {{ .Var }} or stars.
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
	case v[0] == '%' && len(v) <= 4:
		return v[1:] != "" && is(v[len(v)-1], alnum) && !is(v[len(v)-1], capital) // a formatting verb: %s, %+v
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

// suspicious reports whether a value under a key of one of the weaker kinds is
// a secret.
func suspicious(kind secretKind, key, v string) bool {
	if len(key) >= 4 && strings.EqualFold(key[len(key)-4:], "auth") && userAndPassword(v) {
		return true
	}
	switch kind {
	case secretKeyed:
		return keyLike(v)
	case secretOpaque:
		return opaque(v)
	}
	if len(key) == 3 {
		return len(v) >= 20 && !strings.ContainsAny(v, "./") && keyLike(v)
	}
	return kind == secretRandom && random(v)
}

// opaque reports whether v is one word of 15 characters or more with letters and digits, or a UUID. Vendors
// issue keys of this form.
func opaque(v string) bool {
	v = strings.TrimRight(v, closers)
	if len(v) < 15 || len(v) > 400 || !all(v, tokenByte) && strings.IndexByte(v, '%') < 0 || strings.HasPrefix(v, "/") {
		return false
	}
	longest, letters, digits := 0, 0, 0
	for i := 0; i < len(v); i++ {
		from := i
		for ; i < len(v) && is(v[i], alnum); i++ {
			if is(v[i], digit) {
				digits++
			} else {
				letters++
			}
		}
		longest = max(longest, i-from)
	}
	return letters > 0 && digits > 1 && (longest >= 15 || len(v) == 36 && longest == 12)
}

// keyLike reports whether v can be a key: one word of 10 characters or more that mixes letters and digits, a UUID, a long
// number, or letters that no language puts together.
func keyLike(v string) bool {
	v = strings.TrimRight(v, closers+"=")
	if len(v) >= 40 && len(v) <= 4096 && all(v, base64Byte) && changes(v)*100 >= 38*len(v) {
		return true
	}
	if len(v) < 10 || len(v) > 400 || v[0] == '/' || strings.ContainsAny(v, "()[]{}<>@#\\") || strings.Contains(v, "://") || strings.HasPrefix(v, "sha") {
		return false
	}
	if opaque(v) {
		return true
	}
	mixed := 0
	for i := 0; i < len(v); i++ {
		from := i
		i = run(v, i, alnum)
		if part := v[from:i]; len(part) >= 10 && (mixes(part) || len(part) >= 16 && (all(part, digit) || unspeakable(part))) {
			return true
		} else if len(part) >= 4 && len(part) < 10 && irregular(part) && strings.ContainsAny(part, "0123456789") {
			mixed++
		}
	}
	if mixed > 1 && len(v) >= 16 {
		return true
	}
	return len(v) >= 20 && !strings.ContainsAny(v, "./") && random(v)
}

// mixes reports whether a word has two digits or more, and letters before or between them.
func mixes(part string) bool {
	digits, turns := 0, 0
	for i := range len(part) {
		if is(part[i], digit) {
			digits++
		}
		if i > 0 && is(part[i], digit) != is(part[i-1], digit) {
			turns++
		}
	}
	return digits > 1 && (turns > 1 || digits > 2 && turns == 1 && digits < len(part)-2)
}

// unspeakable reports whether letters have too few vowels, or change between small letters and capitals too often, to be
// words.
func unspeakable(part string) bool {
	vowels := 0
	for i := range len(part) {
		switch part[i] | 0x20 {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			vowels++
		}
	}
	return vowels*100 < len(part)*27 || changes(part)*20 >= len(part)*9
}

// random reports whether v is one word of 20 characters or more with small letters, capitals and digits
// throughout.
func random(v string) bool {
	v = strings.TrimRight(v, closers+"=")
	if len(v) < 20 || len(v) > 400 || !all(v, tokenByte) {
		return false
	}
	if strings.ContainsAny(v, "./") {
		return false // a name, or a path
	}
	digits, capitals, small := 0, 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case is(c, digit):
			digits++
		case is(c, capital):
			capitals++
		case is(c, alnum):
			small++
		}
	}
	return digits > 1 && capitals > 1 && small > 1 && changes(v)*4 >= len(v)
}

// changes returns how often v changes between small letters, capitals, digits and signs. In random text
// that happens at every second character or more often.
func changes(v string) int {
	n := 0
	last := class(0)
	for i := range len(v) {
		kind := classes[v[i]] & (digit | capital | alnum)
		if kind != last {
			n++
		}
		last = kind
	}
	return n
}
