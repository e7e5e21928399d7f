// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord is the length at which words are cut, in bytes.
	maxWord = 64
	// minStem is the length from which a final s is removed, in bytes.
	minStem = 4
)

// unspaced reports whether a letter belongs to a script that is written without spaces, or whose words are hard to
// separate. Such text is indexed by pairs of letters.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// eachWord calls f with the words of a text, without regard to case, accents and compatibility forms. English plurals
// equal their singulars. Text in an unspaced script gives its pairs of letters; single is then called with each single
// letter, and f with the letter of a run that has only one.
func eachWord(text string, f, single func(string)) {
	var word strings.Builder
	var run []rune
	flush := func() {
		if word.Len() > 0 {
			f(stem(word.String()))
			word.Reset()
		}
		for i, r := range run {
			single(string(r))
			if i > 0 {
				f(string(run[i-1 : i+1]))
			}
		}
		if len(run) == 1 {
			f(string(run))
		}
		run = run[:0]
	}
	for _, r := range norm.NFKC.String(text) {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r):
			flush()
		case unspaced(r):
			if word.Len() > 0 {
				flush()
			}
			run = append(run, r)
		default:
			if len(run) > 0 {
				flush()
			}
			if r = plain(r); word.Len()+utf8.RuneLen(r) <= maxWord {
				word.WriteRune(r)
			}
		}
	}
	flush()
}

// plain returns a letter in lower case and without its accents.
func plain(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	r = unicode.ToLower(r)
	if unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
		first, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		return first
	}
	return r
}

// stem removes the s of an English plural or verb.
func stem(w string) string {
	if len(w) < minStem || w[len(w)-1] != 's' || w[len(w)-2] == 's' {
		return w
	}
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	return w[:len(w)-1]
}

// words counts the words of a text that is stored: at most limit different ones. n is their number, repetitions
// included.
func words(text string, limit int) (counts map[string]int, n int) {
	counts = map[string]int{}
	take := func(w string) {
		if _, has := counts[w]; has || len(counts) < limit {
			counts[w]++
		}
	}
	eachWord(text, func(w string) { n++; take(w) }, func(w string) {
		if _, has := counts[w]; !has {
			take(w)
		}
	})
	return counts, n
}
