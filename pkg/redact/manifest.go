// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// block is a YAML block: the lines that are indented deeper than a key. In a diff or a quotation each line
// has a mark in its margin.
type block struct {
	indent int // of the key; negative where the key does not begin its line
	margin byte
	// escaped is set for lines inside a string literal of a program or of JSON.
	escaped bool
}

// blockAt returns the block of the key at ks.
func (x *scanner) blockAt(ks int) block {
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
	if lineStart(s, from) {
		if from+2 < ks && s[from] == '-' && (!is(s[from+1], blank) || is(s[from+2], blank)) { // a removed line in a diff
			return block{indent: run(s, from+1, blank) - from - 1, margin: '-'}
		}
		return block{indent: key - from}
	}
	if from < ks && key == from && lineStart(s, ks) {
		return block{} // at the start of a string
	}
	if strings.IndexByte("+|>", s[from-1]) >= 0 && lineStart(s, from-1) {
		return block{indent: key - from, margin: s[from-1]}
	}
	return block{indent: -1}
}

// lineStart reports whether a line starts at i, including lines inside a string.
func lineStart(s string, i int) bool {
	return i == 0 || is(s[i-1], lineEnd) || i > 1 && s[i-1] == 'n' && s[i-2] == '\\' || isQuote(s[i-1])
}

// white returns the end of the white space at k, escaped or not, including diff marks at the start of its
// lines.
func white(s string, k int) int {
	for k < len(s) {
		switch {
		case is(s[k], blank|lineEnd):
			k++
		case s[k] == '\\' && k+1 < len(s) && strings.IndexByte("nrt", s[k+1]) >= 0:
			k += 2
		case (s[k] == '+' || s[k] == '-') && k > 0 && is(s[k-1], lineEnd) && k+1 < len(s) && is(s[k+1], blank):
			k++
		default:
			return k
		}
	}
	return k
}

// text returns the start of the text of the line at k, and its indentation.
func (b block) text(s string, k int) (from, indent int) {
	if b.margin != 0 && k < len(s) && s[k] == b.margin {
		k++
	}
	from = run(s, k, blank)
	return from, from - k
}

// end returns the end of the lines of the block from the one at k on.
func (b block) end(s string, k int) int {
	end := k
	for k < len(s) {
		from, indent := b.text(s, k)
		stop := b.endOfLine(s, from)
		if from < stop {
			if indent <= b.indent {
				break
			}
			end = stop
		}
		next := b.nextLine(s, stop)
		if next == stop {
			break
		}
		k = next
	}
	return end
}

// lineEndAt returns the length of the line end at k, 0 if there is none.
func lineEndAt(s string, k int, escaped bool) int {
	switch rest := s[k:]; {
	case strings.HasPrefix(rest, "\r\n"):
		return 2
	case rest != "" && is(rest[0], lineEnd):
		return 1
	case escaped && strings.HasPrefix(rest, `\n`):
		return 2
	case escaped && strings.HasPrefix(rest, `\r\n`):
		return 4
	}
	return 0
}

// endOfLine returns the end of the line at k. An escaped line also ends where its string ends.
func (b block) endOfLine(s string, k int) int {
	for ; k < len(s) && lineEndAt(s, k, b.escaped) == 0; k++ {
		if b.escaped && s[k] == '"' {
			break
		}
		if b.escaped && s[k] == '\\' {
			k++
		}
	}
	return min(k, len(s))
}

// nextLine returns the start of the line after the one that ends at k, or k if
// there is none.
func (b block) nextLine(s string, k int) int { return k + lineEndAt(s, k, b.escaped) }

// blockScalar reports whether the rest of the line at k announces a YAML block scalar: "|", ">-" and the
// like.
func blockScalar(s string, k int) bool {
	if s[k] != '|' && s[k] != '>' {
		return false
	}
	return lineEndAt(s, afterScalar(s, k), true) > 0
}

// afterScalar returns the end of the block scalar header at k.
func afterScalar(s string, k int) int {
	for k++; k < len(s) && (s[k] == '-' || s[k] == '+' || is(s[k], digit)); k++ {
	}
	return run(s, k, blank)
}

// below removes the value on the lines below its key. The key is at ks, and k is the end of the key's line,
// or the mark of a block.
func (x *scanner) below(ks, k int) int {
	s := x.s
	b := x.blockAt(ks)
	if lineEndAt(s, k, true) == 0 {
		if b.indent < 0 {
			return 0
		}
		k = afterScalar(s, k)
		b.escaped = s[k] == '\\'
		line := b.nextLine(s, k)
		from, _ := b.text(s, line)
		return x.remove(from, b.end(s, line))
	}
	b.escaped = s[k] == '\\'
	line := b.nextLine(s, k)
	if b.indent < 0 && line < len(s) && (s[line] == '+' || s[line] == '>') {
		b.margin = s[line]
	}
	if empty, _ := b.text(s, line); lineEndAt(s, empty, b.escaped) > 0 {
		line, b.indent = b.nextLine(s, empty), -1
	}
	from, indent := b.text(s, line)
	to := b.endOfLine(s, from)
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
	scalar := b.indent >= 0 && indent > b.indent && !item
	if x.exempt(secretValue, "", v, true) || identifier(v) && codeWords[v] || expression(v) || identifier(v) && x.statement(ks) || !scalar && (len(v) < 8 || !irregular(v)) {
		return 0
	}
	return x.remove(from, from+len(v))
}

// statement reports whether the line of the key at ks begins a block of code: for token in tokens:
func (x *scanner) statement(ks int) bool {
	s := x.s
	from := ks
	for low := max(0, ks-128); from > low && !is(s[from-1], lineEnd); from-- {
	}
	from = run(s, from, blank)
	switch s[from:run(s, from, alnum)] {
	case "for", "if", "while", "with", "elif", "else", "def", "class", "case", "except", "switch", "select":
		return true
	}
	return false
}

// structure handles a key that does not name a secret itself but may say something about the values around
// it; the separator is at i.
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

// name notes the value after i if it is the name of a secret.
func (x *scanner) name(i int) {
	s := x.s
	k := run(s, i+1, blank)
	_, n := quoteAt(s, k)
	to := run(s, min(k+n, len(s)), keyByte)
	if to == k+n || to-k > keyLimit || aboutTail(s[k+n:to]) {
		return
	}
	if kind := keyKind(s[k+n : to]); kind >= secretValue || kind > notSecret && kind < secretCount {
		x.named, x.namedKind, x.namedAtEnd = to, min(kind, secretValue), secretAtEnd(s[k+n:to])
	}
}

// kindSecret reports whether the key kind at k has the value Secret.
func kindSecret(s string, k int) bool {
	k += len("kind")
	for low := min(len(s), k+12); k < low && !is(s[k], alnum|lineEnd); k++ {
	}
	return strings.HasPrefix(s[k:], "Secret") && (k+6 == len(s) || !is(s[k+6], wordByte))
}

// nearKind is how far from its data the kind of a manifest is looked for, in bytes.
const nearKind = 4096

// inSecret reports whether the manifest whose data is at k is that of a Secret.
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
	if k >= len(s) || lineEndAt(s, k, true) == 0 && s[k] != '{' || !x.inSecret(i) {
		return 0
	}
	if s[k] == '{' {
		return x.members(k + 1)
	}
	b := x.blockAt(ks)
	if b.indent < 0 {
		return 0
	}
	b.escaped = s[k] == '\\'
	end := 0
	for k = b.nextLine(s, k); k < len(s); {
		key, indent := b.text(s, k)
		stop := b.endOfLine(s, key)
		colon := key + strings.IndexByte(s[key:stop], ':')
		if indent <= b.indent || colon < key {
			break
		}
		v := run(s, colon+1, blank)
		if v < stop && blockScalar(s, v) {
			line := b.nextLine(s, stop)
			v, _ = b.text(s, line)
			stop = block{indent, b.margin, b.escaped}.end(s, line)
		}
		if v < stop && !empty(s[v:stop]) {
			x.remove(v, stop)
		}
		end = max(v, stop)
		if k = b.nextLine(s, end); k == end {
			break
		}
	}
	return end
}

// empty reports whether v has no text, or only names its source.
func empty(v string) bool {
	return v == `""` || v == "''" || v == `\"\"` || placeholder(v) && (strings.HasSuffix(v, "}") || v[0] == '<')
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
