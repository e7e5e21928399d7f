// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// slashes returns the length of the two slashes of a URL at j, which JSON may have escaped, or 0 if there
// are none.
func slashes(s string, j int) int {
	switch {
	case strings.HasPrefix(s[j:], "//"):
		return 2
	case strings.HasPrefix(s[j:], `\/\/`):
		return 4
	}
	return 0
}

// absolute handles a URL whose colon is at i and whose authority starts at a.
func (x *scanner) absolute(i, a int) int {
	from := x.back(i, 32, schemeEnd)
	if from == i {
		return a
	}
	return x.url(from, a, true)
}

// hook is the start of a URL whose path is a secret.
type hook struct{ host, path string }

var hooks = [...]hook{
	{"hooks.slack.com", "/services/"},
	{"hooks.slack.com", "/workflows/"},
	{"hooks.slack.com", "/triggers/"},
	{"discord.com", "/api/webhooks/"},
	{"discordapp.com", "/api/webhooks/"},
	{"webhook.office.com", "/webhookb2/"},
	{"outlook.office.com", "/webhook/"},
	{"hooks.zapier.com", "/hooks/catch/"},
	{"tines.com", "/webhook/"},
}

// webhook removes the path of a webhook that starts at i.
func (x *scanner) webhook(i int) int {
	s := x.s
	if i < 11 || s[i-1] != 'm' {
		return 0
	}
	for _, h := range hooks {
		if strings.HasPrefix(s[i:], h.path) && strings.HasSuffix(s[max(x.done, i-len(h.host)):i], h.host) {
			from := i + len(h.path)
			to := from + len(strings.TrimRight(s[from:urlStop(s, from)], ".,;:!)]}*|"))
			if to-from > 8 && !strings.HasPrefix(s[from:], Marker) {
				return x.remove(from, to)
			}
		}
	}
	return 0
}

// slash handles a scheme-relative URL, "//host/path", that starts at i.
func (x *scanner) slash(i int) int {
	s := x.s
	if end := x.googleRefresh(i); end != 0 {
		return end
	}
	if end := x.webhook(i); end != 0 {
		return end
	}
	if i < x.urlStop || i+2 >= len(s) || s[i+1] != '/' || !is(s[i+2], alnum) ||
		i > 0 && !is(s[i-1], urlEnd) && strings.IndexByte("(=[{,;|", s[i-1]) < 0 {
		return 0
	}
	end := urlStop(s, i+2)
	authority := s[i+2 : i+2+authorityLen(s[i+2:end])]
	if strings.IndexByte(authority, '.') < 0 && strings.IndexByte(authority, '@') < 0 {
		return i + 2 // a comment
	}
	return x.url(i, i+2, false)
}

// url removes the user info of the URL that starts at from and whose authority starts at a, and notes where
// its query or fragment starts. If no parser would accept the authority, the whole URL is removed, because
// it usually hides a secret.
func (x *scanner) url(from, a int, absolute bool) int {
	s := x.s
	nested := a < x.urlStop
	if !nested {
		x.urlStop, x.cut = urlStop(s, a), -1
	}
	end := a + authorityLen(s[a:x.urlStop])
	host := a
	if at := strings.LastIndexByte(s[a:end], '@'); at >= 0 {
		host = a + at + 1
	}
	if absolute && !validPort(s[host:end]) {
		to := x.urlStop
		x.cut = -1
		return x.remove(from, to)
	}
	if colon := strings.IndexByte(s[a:host], ':'); colon >= 0 && a >= x.done {
		x.found = noted(x.found, s[a+colon+1:host-1])
	}
	x.replace(a, host, "")
	if nested {
		return host // the outer URL's query is noted already
	}
	for q := end; q < x.urlStop && !x.queries; q++ {
		if s[q] == '?' || s[q] == '#' && !plainFragment(s[q+1:x.urlStop]) {
			x.cut = q
			break
		}
	}
	return host
}

// plainFragment reports whether the fragment of a URL is a name, such as that of a part of a page or of lines of a file, and
// nothing that can be a secret.
func plainFragment(v string) bool {
	if end := strings.IndexAny(v, "()]"); end >= 0 {
		v = v[:end] // the text around the URL
	}
	v = strings.TrimRight(v, ".,;:!?}*|")
	if len(v) > 200 || grouped(v) {
		return false
	}
	from := 0
	for i := 0; i <= len(v); i++ {
		if i < len(v) && is(v[i], alnum) {
			continue
		}
		if i < len(v) && strings.IndexByte("-_./!:", v[i]) < 0 || !plainPart(v[from:i]) {
			return false
		}
		from = i + 1
	}
	return true
}

// plainPart reports whether letters and digits are a word, a number, or several words in a row.
func plainPart(part string) bool {
	digits, capitals, small := count(part)
	if digits == 0 {
		return len(part) < 16 || camel(part) || changes(part)*20 < len(part)*9 && !unspeakable(part)
	}
	if at := strings.IndexAny(part, "0123456789"); at >= 4 && at+digits == run(part, at, digit) && camel(part[:at]) && camel(part[at+digits:]) {
		return true // TextEditor20241022Param
	}
	letters := capitals + small
	return letters == 0 && len(part) < 12 || len(part) < 8 || len(part) < 16 && !mixes(part)
}

// urlStop returns the end of the URL text at i. An escaped slash or ampersand
// belongs to it, and the middle of a link in Markdown, "](", does not.
func urlStop(s string, i int) int {
	for i < len(s) {
		if s[i] == ']' && strings.HasPrefix(s[i:], "](") {
			break
		}
		if is(s[i], urlEnd) {
			if s[i] != '\\' || i+1 >= len(s) || s[i+1] != '/' && s[i+1] != 'u' {
				break
			}
		}
		i++
	}
	return i
}

func authorityLen(s string) int {
	for i := range len(s) {
		switch s[i] {
		case '/', '?', '#', '\\':
			return i
		}
	}
	return len(s)
}

// validPort reports whether what follows the last colon of a host is a port,
// or a placeholder for one.
func validPort(host string) bool {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.IndexByte(host[colon:], ']') >= 0 {
		return true
	}
	port := strings.TrimRight(host[colon+1:], ".,;:!)]}*")
	if port == "" || strings.IndexByte("$%{[*", port[0]) >= 0 || strings.EqualFold(port, "port") {
		return true
	}
	for i := range len(port) {
		if c := port[i]; c < '0' || c > '9' {
			return c == ',' || c == ';' || c == ')' // the sentence continues
		}
	}
	return true
}

// tail removes the query or fragment whose mark is at i. Inside an absolute or scheme-relative URL it is
// always removed. After a path it must look like a query, because source code contains many question marks.
func (x *scanner) tail(i int) int {
	s := x.s
	if i == x.cut {
		x.cut = -1
		return x.drop(i, x.urlStop)
	}
	if s[i] == '#' && i > 0 && (s[i-1] == '.' && i >= x.urlStop || plainFragment(s[i+1:urlStop(s, i)])) {
		return 0 // a private field: this.#cache, or the part of a page
	}
	if x.queries || i < x.urlStop || i < x.plainStop || i == x.done || i+1 >= len(s) ||
		!is(s[i+1], alnum) && s[i+1] != '_' && s[i+1] != '%' ||
		!is(s[i-1], keyByte) && s[i-1] != '/' && s[i-1] != '~' {
		return 0
	}
	if !x.path(i) {
		end := queryEnd(s, i)
		if end == 0 {
			return 0
		}
		return x.drop(i, end)
	}
	end := urlStop(s, i)
	if strings.IndexByte(s[i:end], '=') < 0 && run(s, i+1, wordByte)-i <= 20 {
		x.plainStop = end
		return 0
	}
	return x.drop(i, end)
}

// path reports whether a path with a slash at its start ends before i.
func (x *scanner) path(i int) bool {
	s := x.s
	from := i
	for low := max(x.done, i-128); from > low && !is(s[from-1], urlEnd) && strings.IndexByte("(=[{,;|?:!", s[from-1]) < 0; {
		from--
	}
	return s[from] == '/'
}

// queryEnd returns the end of the query or fragment whose mark is at i, or 0 if the text after it is more
// likely the rest of an expression in source code.
func queryEnd(s string, i int) int {
	k := i + 1
	for {
		name := k
		k = run(s, k, keyByte)
		switch {
		case k == name:
			return 0
		case k < len(s) && s[k] == '=':
			value := k + 1
			if k = queryValueEnd(s, value); k == value {
				return 0
			}
		case name > i+1 || k-name < 20:
			return 0 // a short word: owner/repo#123, a?b
		}
		if k >= len(s) {
			return k
		}
		if s[k] != '&' {
			break
		}
		k++
	}
	if is(s[k], urlEnd) || strings.IndexByte(")]};|*#", s[k]) >= 0 && (k+1 == len(s) || is(s[k+1], urlEnd)) {
		return urlStop(s, k)
	}
	return 0
}

// queryValueEnd returns the end of a parameter's value at k. A colon belongs
// to it only before a slash or between digits.
func queryValueEnd(s string, k int) int {
	for from := k; k < len(s); k++ {
		switch c := s[k]; {
		case c == '=' && k == from:
			return k
		case is(c, tokenByte) || c == '%' || c == '@' || c == ',':
		case c == ':' && k > from && k+1 < len(s) && (s[k+1] == '/' || is(s[k-1], digit) && is(s[k+1], digit)):
		default:
			return k
		}
	}
	return k
}

// drop removes s[i:end] except for the punctuation at its end, which belongs to the sentence around the
// URL.
func (x *scanner) drop(i, end int) int {
	end = i + 1 + len(strings.TrimRight(x.s[i+1:end], ".,;:!?)]}*|"))
	if end == i+1 {
		return 0
	}
	return x.replace(i, end, "")
}
