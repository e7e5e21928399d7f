// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignore decides which files of a folder git would ignore, by the .gitignore files in it (https://git-scm.com/docs/gitignore).
// It reads no other source of patterns: neither the configuration of a user nor .git/info/exclude.
//
// go-git has such a package. It differs from git for patterns with "**" in the middle, with escapes and with "[!…]", so that files would
// be published which git leaves out.
package ignore

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxPatterns is how many patterns of one file are read.
const maxPatterns = 10_000

// Rules are the patterns that hold in a folder: its own, and those of the folders above it. The zero Rules ignore nothing.
type Rules struct {
	above *Rules
	// at is the folder of the patterns, with a slash at its end; empty for the top.
	at       string
	patterns []pattern
}

// pattern is one line of a file.
type pattern struct {
	// literal is the whole name of what is matched, if it has no special character; otherwise glob matches.
	literal string
	glob    *regexp.Regexp
	// anchored patterns are compared with the path from the folder of the file, others with the last name alone.
	anchored, again, folders bool
}

// In returns the rules that hold in a folder whose .gitignore has this content.
func (r *Rules) In(folder string, content []byte) *Rules {
	below := &Rules{above: r}
	if folder != "" {
		below.at = folder + "/"
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	for line := range strings.Lines(string(content)) {
		if p, ok := parse(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")); ok && len(below.patterns) < maxPatterns {
			below.patterns = append(below.patterns, p)
		}
	}
	if len(below.patterns) == 0 {
		return r
	}
	return below
}

// Ignored reports whether a file or folder is ignored, provided that no folder above it is.
func (r *Rules) Ignored(name string, folder bool) bool {
	for ; r != nil; r = r.above {
		for _, p := range slices.Backward(r.patterns) {
			if p.matches(strings.TrimPrefix(name, r.at), folder) {
				return !p.again
			}
		}
	}
	return false
}

func (p pattern) matches(name string, folder bool) bool {
	if p.folders && !folder {
		return false
	}
	if !p.anchored {
		name = path.Base(name)
	}
	if p.glob != nil {
		return p.glob.MatchString(byByte(name))
	}
	return name == p.literal
}

// parse returns the pattern of a line, and ok false if there is none.
func parse(line string) (p pattern, ok bool) {
	line = trimSpaces(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return p, false
	}
	line, p.again = strings.CutPrefix(line, "!")
	line, p.folders = strings.CutSuffix(line, "/")
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	if !strings.ContainsAny(line, `*?[\`) {
		p.literal = line
		return p, true
	}
	text, ok := translate(line, p.anchored)
	if !ok {
		return p, false
	}
	var err error
	p.glob, err = regexp.Compile("(?s)^" + byByte(text) + "$")
	return p, err == nil
}

// byByte returns a text whose characters are the bytes of another, which git compares whatever the encoding is.
func byByte(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// trimSpaces removes spaces from the end, unless a backslash precedes them.
func trimSpaces(line string) string {
	for strings.HasSuffix(line, " ") {
		before := strings.TrimSuffix(line, " ")
		if escapes := len(before) - len(strings.TrimRight(before, `\`)); escapes%2 == 1 {
			return line
		}
		line = before
	}
	return line
}

// translate returns the regular expression of a glob, which matches bytes; ok is false for one that matches nothing, as git has it.
func translate(glob string, anchored bool) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(glob); {
		rest := glob[i:]
		atStart := i == 0 || glob[i-1] == '/'
		switch {
		case anchored && atStart && strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			i += 3
		case anchored && atStart && rest == "**":
			out.WriteString(".*")
			i += 2
		case rest[0] == '*':
			out.WriteString("[^/]*")
			i += len(rest) - len(strings.TrimLeft(rest, "*"))
		case rest[0] == '?':
			out.WriteString("[^/]")
			i++
		case rest[0] == '[':
			set, n := class(rest)
			if n == 0 {
				return "", false
			}
			out.WriteString(set)
			i += n
		case rest[0] == '\\':
			if len(rest) == 1 {
				return "", false
			}
			out.WriteString(literal(rest[1]))
			i += 2
		default:
			out.WriteString(literal(rest[0]))
			i++
		}
	}
	return out.String(), true
}

// class returns the regular expression of a bracket expression at the beginning of a glob, and its length; 0 if it has no end.
func class(glob string) (text string, length int) {
	i := 1
	negated := i < len(glob) && (glob[i] == '!' || glob[i] == '^')
	if negated {
		i++
	}
	var out strings.Builder
	for first := true; ; first = false {
		switch {
		case i >= len(glob):
			return "", 0
		case glob[i] == ']' && !first:
			if negated {
				return "[^/" + out.String() + "]", i + 1
			}
			return "[" + out.String() + "]", i + 1
		case strings.HasPrefix(glob[i:], "[:"):
			name, _, ok := strings.Cut(glob[i+2:], ":]")
			if !ok {
				return "", 0
			}
			out.WriteString("[:" + name + ":]")
			i += len(name) + 4
			continue
		case glob[i] == '\\':
			if i++; i >= len(glob) {
				return "", 0
			}
		}
		member, n := members(glob[i:])
		out.WriteString(member)
		i += n
	}
}

// members returns the regular expression of the character or range at the beginning of the inside of brackets, and its length.
func members(inside string) (text string, length int) {
	from := inside[0]
	if len(inside) < 3 || inside[1] != '-' || inside[2] == ']' {
		return quoted(from), 1
	}
	n := 2
	if inside[n] == '\\' && len(inside) > n+1 {
		n++
	}
	to := inside[n]
	if from > to { // the range has its first character alone
		return quoted(from), n + 1
	}
	return quoted(from) + "-" + quoted(to), n + 1
}

// quoted returns a byte for use within brackets of a regular expression.
func quoted(c byte) string {
	if strings.IndexByte(`\]^-[`, c) >= 0 {
		return `\` + string(rune(c))
	}
	return string([]byte{c})
}

// literal returns a byte for use outside of brackets.
func literal(c byte) string {
	if c >= utf8.RuneSelf {
		return string([]byte{c})
	}
	return regexp.QuoteMeta(string(rune(c)))
}
