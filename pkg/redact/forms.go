// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	_ "embed"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
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
	// alone means that the run ends where the class does, and mixes letters and digits, because the prefix says little.
	alone bool
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

// parseForm reads a pattern, in the syntax of regular expressions: a literal, then classes of characters with a number of
// repetitions, and literals between them. A pattern that starts with a class has a literal after a fixed number of characters.
func parseForm(name, pattern string) (*known, error) {
	f := &known{name: name}
	var parts []formPart
	literal := ""
	for rest := pattern; rest != ""; {
		switch {
		case rest[0] == '[':
			p, n, err := parseRun(rest)
			if err != nil {
				return f, err
			}
			p.literal, literal, rest = literal, "", rest[n:]
			parts = append(parts, p)
		case strings.HasPrefix(rest, `\b`):
			f.alone, rest = true, rest[2:]
		case rest[0] == '\\' && len(rest) > 1 && classOf(rest[1])&alnum == 0:
			literal, rest = literal+rest[1:2], rest[2:]
		case strings.IndexByte(`\.*+?()|^${}`, rest[0]) >= 0:
			return f, fmt.Errorf("%s is neither a literal nor a class with a number of repetitions", rest)
		default:
			literal, rest = literal+rest[:1], rest[1:]
		}
	}
	if len(parts) == 0 {
		return f, fmt.Errorf("%s contains no class", pattern)
	}
	if literal != "" {
		parts = append(parts, formPart{literal: literal})
	}
	first := parts[0]
	f.prefix, f.of, f.min, f.full, f.rest = first.literal, first.of, first.least, first.most, parts[1:]
	if f.prefix == "" && (f.min != f.full || len(f.rest) == 0 || f.of != alnum && f.rest[0].literal[0] != '+') {
		return f, fmt.Errorf("%s starts with a class that is not [A-Za-z0-9]{n} and a literal, nor any {n} and a literal that begins with +", pattern)
	}
	if f.alone && (f.min != f.full || len(f.rest) > 0) {
		return f, fmt.Errorf("%s is alone, and not a literal and a class with one number of repetitions", pattern)
	}
	if f.anchor = strings.LastIndexAny(f.prefix, "-_.") + 1; f.anchor == 1 {
		return f, fmt.Errorf("the prefix %q begins with its only mark", f.prefix)
	}
	if len(f.prefix) == 1 {
		return f, fmt.Errorf("the prefix %q has only one letter", f.prefix)
	}
	return f, nil
}

// parseRun reads a class with the number of its repetitions, and returns how many bytes of the pattern that is.
func parseRun(pattern string) (p formPart, n int, err error) {
	class, rest, ok := strings.Cut(pattern, "]")
	if !ok {
		return p, 0, fmt.Errorf("%s does not end its class", pattern)
	}
	p = formPart{least: 1, most: 1}
	if p.of, err = classOfText(class + "]"); err != nil || !strings.HasPrefix(rest, "{") {
		return p, len(class) + 1, err
	}
	count, _, _ := strings.Cut(rest[1:], "}")
	least, most, ranged := strings.Cut(count, ",")
	if p.least, err = strconv.Atoi(least); err != nil {
		return p, 0, fmt.Errorf("%s: repetitions: %w", pattern, err)
	}
	switch {
	case !ranged:
		p.most = p.least
	case most == "":
		p.most = 0
	default:
		if p.most, err = strconv.Atoi(most); err != nil {
			return p, 0, fmt.Errorf("%s: repetitions: %w", pattern, err)
		}
	}
	return p, len(class) + len(count) + 3, nil
}

// classesByText holds the classes of the table as they are written. There are few, and the table is read at each start of a
// program, also of workers whose work takes less than reading it with package syntax.
var classesByText = map[string]class{}

func classOfText(text string) (class, error) {
	if k, ok := classesByText[text]; ok {
		return k, nil
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	if re.Op != syntax.OpCharClass {
		return 0, fmt.Errorf("%s is not a class of characters", text)
	}
	k, err := classNamed(re.Rune)
	if err == nil {
		classesByText[text] = k
	}
	return k, err
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

// startsWord reports whether the form has a prefix without a mark, which is the start of a word.
func (f *known) startsWord() bool {
	return f.anchor == 0 && f.prefix != "" && !strings.HasSuffix(f.prefix, "+")
}

// starts holds the forms whose prefix has no mark by the first byte of the prefix. They are looked for at the start of
// long words.
var starts = func() (t [256][]*known) {
	for _, f := range forms {
		if f.startsWord() {
			t[f.prefix[0]] = append(t[f.prefix[0]], f)
		}
	}
	return t
}()

// bodies holds the forms without a prefix. Their first run has a fixed length and ends in a literal.
var bodies = formsWhere(func(f *known) bool { return f.prefix == "" && f.of == alnum })

// sums holds the forms that have a plus before a word: at the end of the prefix, or after a first run of a fixed length.
var sums = formsWhere(func(f *known) bool {
	return strings.HasSuffix(f.prefix, "+") || f.prefix == "" && f.of != alnum
})

func formsWhere(holds func(*known) bool) (list []*known) {
	for _, f := range forms {
		if holds(f) {
			list = append(list, f)
		}
	}
	return list
}
