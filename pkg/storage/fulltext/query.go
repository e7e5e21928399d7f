// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// wanted is a word of a query. A document has it if it has all its terms, which are what the index holds of the word.
type wanted struct {
	text   string
	terms  []string
	weight float64
}

// Weights of the words of a query. Those that mostly hold sentences together count less than those that name things, and count
// little even where so few documents are stored that their frequency does not show it.
const (
	weightWord  = 1.0
	weightLink  = 0.3 // letters of which at least one mostly stands for a particle
	weightKana  = 0.3 // Hiragana: endings, particles, and a few names of things
	weightShort = 0.2 // a pair of such letters, or a single one
	weightPart  = 0.3 // three letters of an alphabet, which may be parts of two words
)

// script is how the words of a script are separated in a query.
type script int

const (
	spaced   script = iota // by spaces
	ideogram               // Chinese characters: most words have one or two
	syllable               // Hangul
	hiragana
	katakana // loan words, which end where another script begins
	alphabet // Thai, Lao, Khmer and Burmese: several letters make a syllable
)

// prolonged is the mark of a long vowel, which is in the middle of words of Katakana. The index holds it as a word of its own, and
// the letters at its sides as single ones.
const prolonged = 'ー'

func scriptOf(r rune) script {
	switch {
	case !unspaced(r) && r != prolonged:
		return spaced
	case unicode.Is(unicode.Han, r):
		return ideogram
	case unicode.Is(unicode.Hangul, r):
		return syllable
	case unicode.Is(unicode.Hiragana, r):
		return hiragana
	case unicode.Is(unicode.Katakana, r) || r == prolonged:
		return katakana
	}
	return alphabet
}

// Particles: letters that rarely belong to the word before them.
const (
	particles  = "はがをのにへともでやかねよ"                     // after a Japanese word
	connectors = "的了吗呢吧啊么是在和就都也很这那哪我你他她它们有不把被给让请多几个" // in Chinese
)

// Vowels of Thai and Lao that are letters of their own: those that follow their consonant, and those that precede it.
const (
	following = "ะาำๅະາຳ"
	preceding = "เแโใไເແໂໃໄ"
)

// asked returns the different words of a query. Texts without spaces are divided where the script changes. Within a script, words
// overlap where nothing shows their ends: pairs of Chinese characters or Hangul, and runs of three and of four letters, which a
// document has if it has all pairs in them. So a document is found by a word and not because a pair happens to occur in it.
func asked(text string) []wanted {
	q := asking{seen: map[string]bool{}}
	var run []rune
	for _, r := range norm.NFKC.String(text) + " " {
		if len(run) > 0 && scriptOf(run[0]) != scriptOf(r) && (r != prolonged || scriptOf(run[0]) != hiragana) {
			q.run(run, r)
			run = run[:0]
		}
		if scriptOf(r) != spaced {
			run = append(run, r)
		}
	}
	eachWord(text, func(w string) {
		if first := []rune(w)[0]; scriptOf(first) == spaced {
			q.add(w, []string{w}, weightWord)
		}
	}, func(string) {})
	if len(q.words) == 0 { // only particles
		eachWord(text, func(w string) { q.add(w, []string{w}, weightWord) }, func(string) {})
	}
	return q.words
}

// asking collects the words of a query.
type asking struct {
	words []wanted
	seen  map[string]bool
}

func (q *asking) add(text string, terms []string, weight float64) {
	if !q.seen[text] {
		q.seen[text] = true
		q.words = append(q.words, wanted{text, terms, weight})
	}
}

// run adds the words of a run of letters of one script; next is the letter after it.
func (q *asking) run(run []rune, next rune) {
	switch scriptOf(run[0]) {
	case spaced:
	case ideogram:
		q.ideograms(run)
		if last := run[len(run)-1]; scriptOf(next) == hiragana && !strings.ContainsRune(particles, next) {
			q.add(string([]rune{last, next}), []string{string([]rune{last, next})}, weightWord) // the stem of a verb
		}
	case syllable:
		q.windows(run, 2, weightWord)
	case hiragana:
		if len(run) > 2 {
			q.windows(run, 3, weightKana)
		} else if len(run) == 2 {
			q.windows(run, 2, weightShort)
		}
	case katakana:
		q.windows(run, 4, weightWord)
	case alphabet:
		q.syllables(run, 3, weightPart)
		q.syllables(run, 4, weightWord)
		q.syllables(run, 6, weightWord)
	}
}

// syllables is windows for parts that do not begin or end in the middle of a syllable.
func (q *asking) syllables(run []rune, letters int, weight float64) {
	if len(run) <= letters {
		q.windows(run, letters, weight)
		return
	}
	for i := range len(run) - letters + 1 {
		part := run[i : i+letters]
		if !unicode.IsMark(part[0]) && !strings.ContainsRune(following, part[0]) && !strings.ContainsRune(preceding, part[letters-1]) {
			q.windows(part, letters, weight)
		}
	}
}

// ideograms adds the pairs of a run, and the letters that stand alone between connectors.
func (q *asking) ideograms(run []rune) {
	connects := func(i int) bool { return i < 0 || i >= len(run) || strings.ContainsRune(connectors, run[i]) }
	for i, r := range run {
		if i > 0 {
			weight := weightWord
			if connects(i-1) || connects(i) {
				weight = weightLink
			}
			q.windows(run[i-1:i+1], 2, weight)
		}
		if connects(i-1) && connects(i+1) && (!connects(i) || len(run) == 1) {
			q.add(string(r), []string{string(r)}, weightWord)
		}
	}
}

// windows adds all parts of a run that have a number of letters, or the run if it is shorter.
func (q *asking) windows(run []rune, letters int, weight float64) {
	for i := range max(1, len(run)-letters+1) {
		part := run[i:min(i+letters, len(run))]
		terms := termsOf(part)
		if len(part) == 1 {
			weight = min(weight, weightShort)
		}
		q.add(string(part), terms, weight)
	}
}

// termsOf returns what the index holds of some letters, also where they are in the middle of others.
func termsOf(letters []rune) (terms []string) {
	for i, r := range letters {
		if i > 0 && r != prolonged && letters[i-1] != prolonged {
			terms = append(terms, string(letters[i-1:i+1]))
			continue
		}
		pairs := i+1 < len(letters) && r != prolonged && letters[i+1] != prolonged
		if !pairs {
			terms = append(terms, string(r))
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// few returns the words of a query that have at most limit terms together, and these terms. Of more, the words that count most are
// kept, and the longest of these: short words are common.
func few(words []wanted, limit int) (kept []wanted, terms []string) {
	order := slices.Clone(words)
	slices.SortStableFunc(order, func(a, b wanted) int {
		if a.weight != b.weight {
			if a.weight > b.weight {
				return -1
			}
			return 1
		}
		return len(b.text) - len(a.text)
	})
	have := map[string]bool{}
	for _, w := range order {
		var more []string
		for _, t := range w.terms {
			if !have[t] {
				more = append(more, t)
			}
		}
		if len(terms)+len(more) > limit {
			continue
		}
		for _, t := range more {
			have[t] = true
		}
		terms, kept = append(terms, more...), append(kept, w)
	}
	slices.Sort(terms) // seeks in the order of the keys are cheaper
	return kept, terms
}
