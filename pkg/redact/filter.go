// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

// The sets in this file are looked up before a matcher is called. A byte pair that is not in the set cannot be a
// part of what the matcher looks for, and most text stops here.

// pairSet is a set of pairs of bytes.
type pairSet [1 << 10]uint64

func (p *pairSet) add(a, b byte) {
	k := uint(a)<<8 | uint(b)
	p[k>>6] |= 1 << (k & 63)
}

func (p *pairSet) has(a, b byte) bool {
	k := uint(a)<<8 | uint(b)
	return p[k>>6]>>(k&63)&1 != 0
}

// wordEnds are the last two bytes of the words that afterWord knows.
var wordEnds = func() *pairSet {
	p := &pairSet{}
	for _, end := range [...]string{"er", "ic", "rd", "by", "al"} { // bearer, basic, password, identified by, unseal
		a, b := end[0], end[1]
		for _, c := range [...][2]byte{{a, b}, {a, b - 0x20}, {a - 0x20, b}, {a - 0x20, b - 0x20}} {
			p.add(c[0], c[1])
		}
	}
	for c := range 256 { // -String, after ConvertTo-SecureString
		p.add(byte(c), 'g')
		p.add(byte(c), 'G')
	}
	for _, list := range programs {
		for _, of := range list {
			p.add(of.name[len(of.name)-2], of.name[len(of.name)-1])
		}
	}
	return p
}()

// markEnds are the two bytes before the last mark of the prefixes in marks.
var markEnds = func() (t [3]pairSet) {
	for _, f := range forms {
		switch {
		case f.anchor > 2:
			t[markOf(f.prefix[f.anchor-1])].add(f.prefix[f.anchor-3], f.prefix[f.anchor-2])
		case f.anchor == 2:
			for c := range 256 {
				t[markOf(f.prefix[1])].add(byte(c), f.prefix[0])
			}
		}
	}
	return t
}()

// startPairs are the first two bytes of the prefixes in starts.
var startPairs = func() *pairSet {
	p := &pairSet{}
	for _, f := range forms {
		if f.startsWord() {
			p.add(f.prefix[0], f.prefix[1])
		}
	}
	return p
}()

// shortStarts are the first two bytes of the forms that may contain a mark within the first bytes of the secret.
var shortStarts = func() *pairSet {
	p := &pairSet{}
	for _, f := range forms {
		if f.startsWord() && (len(f.rest) > 0 || is('-', f.of) || is('_', f.of) || is('.', f.of)) {
			p.add(f.prefix[0], f.prefix[1])
		}
	}
	return p
}()

// trigramSet is a set of three letters in a row, of five bits each.
type trigramSet [1 << 10]uint32

func trigram(a, b, c byte) uint { return uint(a&31)<<10 | uint(b&31)<<5 | uint(c&31) }

func (t *trigramSet) add(h uint) { t[h>>5] |= 1 << (h & 31) }

func (t *trigramSet) has(h uint) bool { return t[h>>5]>>(h&31)&1 != 0 }

// keyTrigrams are the first three letters of each of keyWords.
var keyTrigrams = func() *trigramSet {
	t := &trigramSet{}
	for _, list := range keyWords.lists {
		for _, w := range list {
			t.add(trigram(w.text[0], w.text[1], w.text[2]))
		}
	}
	return t
}()

// mayName reports whether key can contain one of keyWords or of foreignNames. If it cannot, keyKind need not look for them.
func mayName(key string) bool {
	h := uint(0)
	for i := range len(key) {
		c := key[i]
		switch c {
		case '-', '_', '.', ' ', '\t':
			continue
		}
		if c >= 0x80 {
			return true
		}
		h = (h<<5 | uint(c&31)) & (1<<15 - 1)
		if keyTrigrams.has(h) {
			return true
		}
	}
	return false
}
