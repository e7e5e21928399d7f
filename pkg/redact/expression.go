// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strings"
)

// place is where an assignment stands: the key is s[ks:ke], the separator is at i, and the value is s[from:to].
type place struct{ ks, ke, i, from, to int }

// notAValue reports whether the value of p is source code or prose rather than a secret: an expression, a type, the
// number of something, the next word of a sentence.
func (x *scanner) notAValue(kind secretKind, p place) bool {
	s := x.s
	key, v := s[p.ks:p.ke], s[p.from:p.to]
	quote := p.from > 0 && isQuote(s[p.from-1])
	mixed := len(v) > 10 && !quote && mixture(v)
	if mixed && !all(v, digit) {
		return false
	}
	if kind == secretPass && !quote {
		return s[p.i] == ':' && key == "PASS" || source(v) || strings.ContainsAny(v, "[({") || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,-") == ""
	}
	switch {
	case aboutTail(key) && plainValue(v), version(v) && !endsInPassword(key):
		return true
	case quote:
		return len(v) < 2 || prompt(v) || template(v) || ownName(key, v) || route(s, p.ks, v)
	case mixed:
		return false
	case source(v):
		return !dottedValue(s, p)
	}
	spaced := s[p.i] == ':' || p.ke < p.i && is(s[p.i-1], blank)
	if (spaced || key[len(key)-1]|0x20 == 's') && smallNumber(v) {
		return !endsInPassword(key)
	}
	return identifier(v) && x.wordOfCode(kind, p, spaced)
}

// wordOfCode reports whether the identifier under the key of p is a name in a program or a word in a sentence. spaced is set if a
// colon or blanks separate the two.
func (x *scanner) wordOfCode(kind secretKind, p place, spaced bool) bool {
	s := x.s
	key, v := s[p.ks:p.ke], s[p.from:p.to]
	if spaced && plural(key) && len(v) <= 12 && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz") == "" {
		return true // a number of them, or what may be done with them
	}
	if !secretAtEnd(key) && kind != secretHeader && (!x.namedAtEnd || !strings.EqualFold(key, "value")) || len(v) == 1 && s[p.i] == ':' && p.to < len(s) && s[p.to] == ',' {
		return true
	}
	switch {
	case goesOn(s, v, p.to):
		return true
	case !spaced:
		return closes(s, p.to) && keyKind(v) >= secretCount // f(password=password)
	case s[p.i] == ':' && sentence(s, p.to):
		return true
	case strings.IndexByte(key, '.') > 0 && s[p.i] == '=' || keyKind(v) >= secretCount && s[p.i] == '=':
		return true // this.token = token
	}
	return closes(s, p.to) || commented(s, p.ks)
}

// dottedValue reports whether v is words with dots between them after a key or a header, as a session or a password can be, and
// where no code has the members of an object: on the rest of a line, and without a word of programs or of secrets in them.
func dottedValue(s string, p place) bool {
	v := s[p.from:p.to]
	if s[p.i] != ':' && (p.i == 0 || p.to < len(s) && is(s[p.to], blank) || is(s[p.i-1], blank) || p.i+1 < p.from) || strings.ContainsAny(v, "([{<|&*!") || !expression(v) ||
		strings.IndexByte(s[p.ks:p.ke], '.') > 0 && s[p.i] == '=' {
		return false
	}
	if end := run(s, p.to, blank); closes(s, p.to) || goesOn(s, v, p.to) || commented(s, p.ks) || end < len(s) && !is(s[end], lineEnd) && !isQuote(s[end]) && s[end] != '\\' {
		return false
	}
	return strangeDots(v)
}

// strangeDots reports whether none of the words of a value with dots is one of programs or names a secret.
func strangeDots(v string) bool {
	for part := range strings.SplitSeq(v, ".") {
		if programWords[part] || keyKind(part) != notSecret {
			return false
		}
	}
	return true
}

// programWords are the names of objects whose members programs assign.
var programWords = setOfExact(`this self req request res resp response ctx context config cfg conf opts options process os env props state
	params args data user settings app input body query headers header event node spec status result auth
	client store row item obj object opt test cls module exports window document console math Math`)

// source reports whether a value without quotes is a word or an expression of a programming language, or a comment.
func source(v string) bool {
	name := v
	if end := strings.IndexAny(v, "<|"); end > 0 {
		name = v[:end]
	}
	if codeWords[name] || harmless[name] || expression(v) || v[0] == '&' && strings.IndexByte(v, '{') > 2 {
		return true
	}
	if pointed, _, _ := strings.Cut(v[1:], ")"); v[0] == '*' && len(pointed) > 1 && identifier(pointed) {
		return true
	}
	for _, start := range []string{"*(", "/*", "//", "/^"} {
		if strings.HasPrefix(v, start) {
			return true
		}
	}
	return false
}

// codeWords are words of programming languages that may follow an assignment, and the names of common types.
var codeWords = setOfExact(`function new await async yield this self super return void typeof lambda class iota struct func fn
	interface map chan unsafe const let var not int int32 int64 uint8 uint32 uint64 float float32 float64 bool boolean
	number object any Any String Str Boolean Object Number Buffer Uint8Array bytes byte rune error Error char usize
	Option Optional Vec List Dict Union Callable Secret Token value values Array ReadonlyArray Promise Record Map Set Partial
	Readonly`)

func setOfExact(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// aboutSecret are words after the name of a secret that make the key one of a property of the secret.
var aboutSecret = strings.Fields(`type name url uri path file dir ref list attr config provider location endpoint format kind
	class size count length limit ttl lifetime expir index manager policy style delimiter separator prefix suffix field
	param label scope audience issuer stdin version method mode status spec`)

// aboutTail reports whether the key names a property of a secret: TokenURL, secret_name.
func aboutTail(key string) bool {
	var buf [2 * keyLimit]byte
	n := string(normalize(buf[:0], key))
	for _, w := range secretWords {
		if strings.HasSuffix(n, w) {
			return false
		}
	}
	at := -1
	for _, w := range secretWords {
		if i := strings.LastIndex(n, w); i >= 0 {
			at = max(at, i+len(w))
		}
	}
	if at < 0 {
		return false
	}
	for _, w := range aboutSecret {
		if strings.Contains(n[at:], w) {
			return true
		}
	}
	return false
}

// secretWords are the words of keyWords that name a secret wherever they stand in a key.
var secretWords = strings.Fields(`authorization cookie token apikey secret password passwd pwd credential privatekey
	accesskey accountkey passphrase passcode masterkey signingkey encryptionkey decryptionkey hmackey sharedkey authkey psk totpseed otpseed
	mfaseed seedphrase mnemonic walletseed connectionstring connstring passwort kennwort contrasena motdepasse wachtwoord losenord senha haslo`)

// secretAtEnd reports whether the key ends in a word that names a secret, and not in what the secret is used for.
func secretAtEnd(key string) bool {
	var buf [2 * keyLimit]byte
	n := string(normalize(buf[:0], key))
	if n == "key" || n == "passe" || foreignName(key) {
		return true // the word before it is not a part of it: private key
	}
	one := strings.TrimSuffix(n, "s")
	for _, w := range secretWords {
		if strings.HasSuffix(n, w) || strings.HasSuffix(one, w) {
			return true
		}
	}
	return keyKind(key[max(0, len(key)-12):]) >= secretValue && strings.HasSuffix(n, "pass")
}

func endsInPassword(key string) bool {
	var buf [2 * keyLimit]byte
	n := string(normalize(buf[:0], key))
	return strings.HasSuffix(n, "password") || strings.HasSuffix(n, "passwd") || strings.HasSuffix(n, "pwd") || strings.HasSuffix(n, "pass") ||
		strings.HasSuffix(n, "passphrase") || strings.HasSuffix(n, "passcode") || n == "token" || n == "secret"
}

// plainValue reports whether v is a word, a path, a URL or a name of several words: it has no word of letters and
// digits.
func plainValue(v string) bool {
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r >= 0x80 || !is(byte(r), alnum) }) {
		if len(part) >= 8 && irregular(part) && (strings.ContainsAny(part, "0123456789") || changes(part)*5 >= len(part)*2) {
			return false
		}
	}
	return true
}

// identifier reports whether v is a word without digits, except for one or two at its end.
func identifier(v string) bool {
	w := strings.TrimRight(v, "0123456789")
	if len(v)-len(w) > 2 || w == "" || len(v) > 64 || len(w) >= 12 && strings.IndexByte(w, '_') < 0 && changes(w)*20 >= len(w)*9 && !camel(w) {
		return false
	}
	for i := range len(w) {
		if c := w[i]; !is(c, alnum) && c != '_' && c != '$' && (c != '-' || i == 0) || is(c, digit) {
			return false
		}
	}
	return true
}

// mixture reports whether v has only letters and digits, and more digits than a word of a program.
func mixture(v string) bool {
	digits := 0
	for i := range len(v) {
		switch {
		case is(v[i], digit):
			digits++
		case !is(v[i], alnum):
			return false
		}
	}
	return digits > 2
}

// camel reports whether two small letters follow each capital of a word, as in dotDotDotToken.
func camel(w string) bool {
	for i := range len(w) {
		if w[i] >= 'A' && w[i] <= 'Z' && (i+2 >= len(w) || w[i+1] < 'a' || w[i+1] > 'z' || w[i+2] < 'a' || w[i+2] > 'z') {
			return false
		}
	}
	return true
}

// expression reports whether v is the start of a call or of an index, members of an object or a composite of a package's type:
// name(…, name[…, a.b, a.B{….
func expression(v string) bool {
	end := strings.IndexAny(v, "([{")
	if end < 0 || v[end] == '{' {
		if end < 0 {
			end = len(v)
		}
		if strings.IndexByte(v[:end], '.') < 0 {
			return false
		}
	} else if end == 0 || end == 1 && v[end] == '(' {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimLeft(v[:end], "!&*"), ".") {
		if !identifier(strings.TrimPrefix(part, "#")) {
			return false
		}
	}
	return true
}

// plural reports whether the key names several tokens or secrets.
func plural(key string) bool {
	n := len(key)
	return n >= 6 && strings.EqualFold(key[n-6:], "tokens") || n >= 7 && strings.EqualFold(key[n-7:], "secrets")
}

// smallNumber reports whether v is a number of a few digits.
func smallNumber(v string) bool {
	if strings.HasPrefix(v, "0x") {
		return len(v) <= 10 && all(v[2:], hex)
	}
	return len(v) <= 5 && all(v, digit)
}

// ownName reports whether a string repeats the end of the name of its variable: InvalidToken = "invalidToken", or ends in
// the name after a slash.
func ownName(key, v string) bool {
	if len(v) < 8 || len(v) > 2*keyLimit {
		return false
	}
	var a, b [2 * keyLimit]byte
	if at := strings.LastIndexByte(v, '/'); at > 0 && v[at+1:] == key {
		return true // the name in a path
	}
	return len(v) <= len(key)+4 && bytes.HasSuffix(normalize(a[:0], key), normalize(b[:0], v))
}

// route reports whether a string is a path of words under a path of words: "/forgot-password": "pages/passwords#update".
func route(s string, ks int, v string) bool {
	return ks > 0 && s[ks-1] == '/' && strings.IndexByte(v, '/') >= 0 && plainValue(v)
}

// prompt reports whether a string asks for a secret or names one: "Password: ", "token".
func prompt(v string) bool {
	w := strings.TrimRight(v, ": ")
	if len(w) < len(v) && plainValue(w) {
		return true
	}
	switch strings.ToLower(v) {
	case "same-origin", "include", "omit": // the credentials of a browser's request
		return true
	case "token", "password", "secret", "bearer", "basic", "credentials", "apikey", "api_key", "passwd", "pwd", "authorization", "cookie":
		return true
	}
	selector := len(v) > 1 && v[0] == '#' && strings.Trim(v[1:], "abcdefghijklmnopqrstuvwxyz-_") == "" && keyKind(v[1:]) >= secretValue
	return strings.Trim(v, "X") == "" || keyName(v) || selector // of a page's element
}

// keyName reports whether a string is the name of a variable or of a header with a secret: API_TOKEN, X-Api-Key.
func keyName(v string) bool {
	parts := strings.Split(v, "-")
	header := len(parts) > 1
	for _, p := range parts {
		header = header && p != "" && is(p[0], capital) && strings.Trim(p[1:], "abcdefghijklmnopqrstuvwxyz") == ""
	}
	variable := strings.IndexByte(v, '_') > 0 && strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	return (header || variable) && keyKind(v) >= secretRandom
}

// template reports whether the secret in v is filled in by a program: "Bearer ${token}".
func template(v string) bool {
	for _, open := range [...]string{"${", "#{", "{{", "$("} {
		at := strings.Index(v, open)
		if at < 0 {
			continue
		}
		end := strings.LastIndexAny(v, "})")
		return end > at && plainValue(v[:at]) && plainValue(v[end:])
	}
	return false
}
