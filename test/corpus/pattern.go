// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
)

// Pattern makes a text that a regular expression matches, or an empty text if the expression is not valid. The same
// seed gives the same text. Repetitions without an end are short.
func Pattern(pattern string, seed uint64) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	source{rand.New(rand.NewPCG(seed, 34))}.match(re, &b)
	return b.String()
}

// match appends a text that re matches.
func (r source) match(re *syntax.Regexp, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			b.WriteRune(c)
		}
	case syntax.OpCharClass:
		b.WriteByte(r.in(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(alnum[r.IntN(len(alnum))])
	case syntax.OpCapture:
		r.match(re.Sub[0], b)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			r.match(sub, b)
		}
	case syntax.OpAlternate:
		r.match(re.Sub[r.IntN(len(re.Sub))], b)
	case syntax.OpQuest:
		r.repeat(re.Sub[0], 0, 1, b)
	case syntax.OpStar:
		r.repeat(re.Sub[0], 0, 3, b)
	case syntax.OpPlus:
		r.repeat(re.Sub[0], 1, 8, b)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 || most > re.Min+40 {
			most = re.Min + 8
		}
		r.repeat(re.Sub[0], re.Min, most, b)
	}
}

func (r source) repeat(re *syntax.Regexp, least, most int, b *strings.Builder) {
	for range least + r.IntN(most-least+1) {
		r.match(re, b)
	}
}

// in returns a byte of a class: mostly a letter or a digit, if the class has any.
func (r source) in(ranges []rune) byte {
	var common, signs []byte
	for c := byte(' '); c < 0x7f; c++ {
		for i := 0; i < len(ranges); i += 2 {
			if rune(c) < ranges[i] || rune(c) > ranges[i+1] {
				continue
			}
			if strings.IndexByte(alnum, c) >= 0 {
				common = append(common, c)
			} else {
				signs = append(signs, c)
			}
		}
	}
	if len(common) > 0 && (len(signs) == 0 || r.IntN(12) > 0) {
		return common[r.IntN(len(common))]
	}
	if len(signs) > 0 {
		return signs[r.IntN(len(signs))]
	}
	return '\n'
}
