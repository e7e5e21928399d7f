// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	_ "embed"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// formTable describes the secrets that are recognised by their form.
//
//go:embed forms.tsv
var formTable string

// known is the form of a secret: a prefix, a run of a class, and what must follow. The lengths are those of the run.
// If both are equal, exactly that many characters must follow. A full of 0 means that the length is not known.
type known struct {
	name   string
	prefix string
	// anchor is the position after the last '-', '_' or '.' of the prefix, the bytes at which the scan calls a matcher.
	// It is 0 for a prefix without any.
	anchor int
	of     class
	min    int
	full   int
	rest   []formPart
}

// formPart is a literal and a run of a class after it. A most of 0 means that the run may be of any length.
type formPart struct {
	literal     string
	of          class
	least, most int
}

// forms are the rows of the table. Those of longer secrets come first, because a short one may be the start of a longer one.
var forms = func() []*known {
	var all []*known
	for line := range strings.Lines(formTable) {
		if line[0] == '#' {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		f, err := parseForm(fields[0], fields[len(fields)-1])
		if err != nil || len(fields) != 3 {
			panic(fmt.Sprintf("redact: row %q of forms.tsv: %v", line, err)) // the table is a part of the program
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b *known) int { return len(b.prefix) + b.min - len(a.prefix) - a.min })
	return all
}()

// parseForm reads a pattern: a literal, then classes of characters with a number of repetitions, and literals between
// them. A pattern that starts with a class has a literal after a fixed number of characters.
func parseForm(name, pattern string) (*known, error) {
	f := &known{name: name}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return f, err
	}
	literal := ""
	var parts []formPart
	for _, sub := range re.Sub {
		p := formPart{literal: literal, least: 1, most: 1}
		if sub.Op == syntax.OpLiteral {
			literal += string(sub.Rune)
			continue
		}
		if sub.Op == syntax.OpRepeat {
			p.least, p.most = sub.Min, max(sub.Max, 0)
			sub = sub.Sub[0]
		}
		if sub.Op != syntax.OpCharClass {
			return f, fmt.Errorf("%s is neither a literal nor a class with a number of repetitions", sub)
		}
		if p.of, err = classNamed(sub.Rune); err != nil {
			return f, err
		}
		parts, literal = append(parts, p), ""
	}
	if re.Op != syntax.OpConcat || len(parts) == 0 {
		return f, fmt.Errorf("%s contains no class", pattern)
	}
	if literal != "" {
		parts = append(parts, formPart{literal: literal})
	}
	first := parts[0]
	f.prefix, f.of, f.min, f.full, f.rest = first.literal, first.of, first.least, first.most, parts[1:]
	if f.prefix == "" && (f.of != alnum || f.min != f.full || len(f.rest) == 0) {
		return f, fmt.Errorf("%s starts with a class that is not [A-Za-z0-9]{n} and a literal", pattern)
	}
	if f.anchor = strings.LastIndexAny(f.prefix, "-_.") + 1; f.anchor == 1 {
		return f, fmt.Errorf("the prefix %q begins with its only mark", f.prefix)
	}
	if len(f.prefix) == 1 {
		return f, fmt.Errorf("the prefix %q has only one letter", f.prefix)
	}
	return f, nil
}

// ownClass is the next class that no test of a byte uses by name.
var ownClass = serial << 1

// classNamed returns the class that consists of the given ranges of bytes.
func classNamed(ranges []rune) (class, error) {
	var in [256]bool
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= ranges[i+1] && c < 256; c++ {
			in[c] = true
		}
	}
	for k := alnum; k < ownClass; k <<= 1 {
		c := 0
		for c < len(in) && in[c] == is(byte(c), k) {
			c++
		}
		if c == len(in) {
			return k, nil
		}
	}
	if ownClass == 0 {
		return 0, fmt.Errorf("too many classes")
	}
	k := ownClass
	for c := range in {
		if in[c] {
			classes[c] |= k
		}
	}
	ownClass <<= 1
	return k, nil
}

// marks holds the forms whose prefix has a mark, by the last mark and the byte before it.
var marks = func() (t [3][256][]*known) {
	for _, f := range forms {
		if f.anchor > 0 {
			m, before := markOf(f.prefix[f.anchor-1]), f.prefix[f.anchor-2]
			t[m][before] = append(t[m][before], f)
		}
	}
	return t
}()

func markOf(c byte) int {
	switch c {
	case '-':
		return 0
	case '_':
		return 1
	default:
		return 2
	}
}

// starts holds the forms whose prefix has no mark by the first byte of the prefix. They are looked for at the start of
// long words.
var starts = func() (t [256][]*known) {
	for _, f := range forms {
		if f.anchor == 0 && f.prefix != "" {
			t[f.prefix[0]] = append(t[f.prefix[0]], f)
		}
	}
	return t
}()

// bodies holds the forms without a prefix. Their first run has a fixed length and ends in a literal.
var bodies = func() (t []*known) {
	for _, f := range forms {
		if f.prefix == "" {
			t = append(t, f)
		}
	}
	return t
}()
