// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// blockScalar reports whether the rest of the line at k announces a block of
// YAML: "|", ">-" and their like.
func blockScalar(s string, k int) bool {
	if s[k] != '|' && s[k] != '>' {
		return false
	}
	for k++; k < len(s) && (s[k] == '-' || s[k] == '+' || is(s[k], digit)); k++ {
	}
	k = run(s, k, blank)
	return k < len(s) && is(s[k], lineEnd)
}

// below removes the value that stands on the lines below its key, which is at
// ks; k is the end of the key's line, or the mark of a block.
func (x *scanner) below(ks, k int) int {
	s := x.s
	indent := x.indent(ks)
	if !is(s[k], lineEnd) {
		if indent < 0 {
			return 0
		}
		from := nextLine(s, endOfLine(s, k))
		return x.remove(run(s, from, blank), blockEnd(s, from, indent))
	}
	line := nextLine(s, k)
	if line < len(s) && is(s[line], lineEnd) {
		line, indent = nextLine(s, line), -1
	}
	from := run(s, line, blank)
	to := endOfLine(s, from)
	v := strings.TrimRight(s[from:to], " \t,")
	item := strings.HasPrefix(v, "- ")
	if item {
		v = strings.TrimLeft(v[1:], " ")
	}
	from += strings.Index(s[from:to], v)
	if q, n := quoteAt(v, 0); n > 0 && len(v) > 2*n && closing(v, n, q, n) == len(v)-n {
		from, v = from+n, v[n:len(v)-n]
	} else if v == "" || strings.ContainsAny(v, " \t#(") || strings.IndexByte("{[&*!<|>%-", v[0]) >= 0 || v[len(v)-1] == ':' {
		return 0
	}
	scalar := indent >= 0 && from-line > indent && !item
	if x.exempt(secretValue, "", v, true) || !scalar && (len(v) < 8 || !irregular(v)) {
		return 0
	}
	return x.remove(from, from+len(v))
}

// indent returns the indentation of the line at whose start the key at ks
// stands, or a negative number if it stands elsewhere.
func (x *scanner) indent(ks int) int {
	s := x.s
	from := ks
	if from > 0 && isQuote(s[from-1]) {
		from--
	}
	key := from
	for low := max(0, from-128); from > low && (is(s[from-1], blank) || s[from-1] == '-'); from-- {
		if s[from-1] == '-' {
			key = from - 1
		}
	}
	if from > 0 && !is(s[from-1], lineEnd) {
		return -1
	}
	return key - from
}

func endOfLine(s string, k int) int {
	for k < len(s) && !is(s[k], lineEnd) {
		k++
	}
	return k
}

// nextLine returns the start of the line after the one that ends at k.
func nextLine(s string, k int) int {
	if strings.HasPrefix(s[k:], "\r\n") {
		return k + 2
	}
	return min(k+1, len(s))
}

// blockEnd returns the end of the lines from the one at k on that are indented
// deeper than indent.
func blockEnd(s string, k, indent int) int {
	end := k
	for k < len(s) {
		text := run(s, k, blank)
		stop := endOfLine(s, text)
		if text < stop && text-k <= indent {
			break
		}
		if text < stop {
			end = stop
		}
		k = nextLine(s, stop)
		if k == stop {
			break
		}
	}
	return end
}

// structure notes or uses what a key that is none of a secret says about those
// around it; the separator is at i.
func (x *scanner) structure(ks, ke, i int) int {
	s := x.s
	switch key := s[ks:ke]; len(key) {
	case 3, 6:
		if strings.EqualFold(key, "key") || strings.EqualFold(key, "header") {
			x.name(i)
		}
	case 4:
		switch {
		case strings.EqualFold(key, "name"):
			x.name(i)
		case key == "kind":
			if x.manifest = -1; kindSecret(s, ks) {
				x.manifest = i
			}
		case key == "data":
			return x.secretData(ks, i)
		}
	case 10:
		if key == "stringData" {
			return x.secretData(ks, i)
		}
	}
	return 0
}

// name notes the value after i when it is the name of a secret.
func (x *scanner) name(i int) {
	s := x.s
	k := run(s, i+1, blank)
	_, n := quoteAt(s, k)
	to := run(s, min(k+n, len(s)), keyByte)
	if to > k+n && to-k <= keyLimit && keyKind(s[k+n:to]) >= secretValue {
		x.named = to
	}
}

// kindSecret reports whether the key kind at k has the value Secret.
func kindSecret(s string, k int) bool {
	k += len("kind")
	for low := min(len(s), k+12); k < low && !is(s[k], alnum|lineEnd); k++ {
	}
	return strings.HasPrefix(s[k:], "Secret") && (k+6 == len(s) || !is(s[k+6], wordByte))
}

// nearKind is how far from its data the kind of a manifest is sought.
const nearKind = 4096

// inSecret reports whether the manifest with data at k is that of a Secret.
func (x *scanner) inSecret(k int) bool {
	s := x.s
	if x.manifest >= 0 && k-x.manifest < nearKind {
		return true
	}
	if x.nextManifest < k {
		x.nextManifest = k
		for {
			x.nextManifest = indexFrom(s, x.nextManifest, "kind")
			if x.nextManifest == len(s) || kindSecret(s, x.nextManifest) {
				break
			}
			x.nextManifest += len("kind")
		}
	}
	return x.nextManifest < len(s) && x.nextManifest-k < nearKind && !strings.Contains(s[k:x.nextManifest], "kind")
}

// secretData removes the values of the data of a Secret; the key is at ks and
// the separator at i.
func (x *scanner) secretData(ks, i int) int {
	s := x.s
	if s[i] != ':' {
		return 0
	}
	k := run(s, i+1, blank)
	if k >= len(s) || !is(s[k], lineEnd) && s[k] != '{' || !x.inSecret(i) {
		return 0
	}
	if s[k] == '{' {
		return x.members(k + 1)
	}
	indent := x.indent(ks)
	if indent < 0 {
		return 0
	}
	end := 0
	for k = nextLine(s, k); k < len(s); {
		key := run(s, k, blank)
		stop := endOfLine(s, key)
		colon := key + strings.IndexByte(s[key:stop], ':')
		if key-k <= indent || colon < key {
			break
		}
		v := run(s, colon+1, blank)
		if v < stop && blockScalar(s, v) {
			first := nextLine(s, stop)
			v, stop = run(s, first, blank), blockEnd(s, first, key-k)
		}
		if v < stop {
			x.remove(v, stop)
		}
		end = max(v, stop)
		k = nextLine(s, end)
	}
	return end
}

// members removes the strings of a JSON object that starts before k.
func (x *scanner) members(k int) int {
	s := x.s
	end := 0
	for {
		k = run(s, k, blank|lineEnd)
		if k < len(s) && s[k] == ',' {
			k = run(s, k+1, blank|lineEnd)
		}
		q, n := quoteAt(s, k)
		if n == 0 {
			return end
		}
		k = closing(s, k+n, q, n)
		k = run(s, min(k+n, len(s)), blank)
		if k >= len(s) || s[k] != ':' {
			return end
		}
		k = run(s, k+1, blank)
		if q, n = quoteAt(s, k); n == 0 {
			return end
		}
		to := closing(s, k+n, q, n)
		x.remove(k+n, to)
		end = min(to+n, len(s))
		k = end
	}
}

// element matches <password>VALUE<; the bracket that ends the tag is at i.
func (x *scanner) element(i int) int {
	s := x.s
	from := x.back(i, keyLimit, keyByte)
	if from == i || from <= x.done || s[from-1] != '<' || keyKind(s[from:i]) < secretValue {
		return 0
	}
	to := i + 1
	for to < len(s) && s[to] != '<' && !is(s[to], lineEnd) {
		to++
	}
	v := strings.TrimSpace(s[i+1 : to])
	if v == "" || x.exempt(secretValue, "", v, true) || to == len(s) || s[to] != '<' {
		return 0
	}
	return x.remove(i+1, to)
}
