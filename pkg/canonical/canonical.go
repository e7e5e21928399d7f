// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package canonical decides when two JSON texts are the same, and which a stranger may send. Texts are data: a number keeps
// all its digits, and only white space, the order of keys, escapes and the way a number is written make no difference.
//
// A text that two parsers may read differently (a key twice, half of a surrogate pair) has no canonical form. A number
// beyond the range of a double has one, but most code that reads JSON fails on it, so it is refused where others' JSON
// comes in.
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrNone is the error for input that has no canonical form: it is not one JSON value, an object
// has a duplicate key, or a text is not valid Unicode.
var ErrNone = errors.New("the JSON has no canonical form")

// Equal reports whether two JSON texts are the same value. Texts without a canonical form equal only themselves.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := Form(a)
	y, errY := Form(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Check returns an error if a stranger's JSON cannot be used as data: it has no canonical form, or a number of it is out of
// range.
func Check(raw []byte) error {
	if _, err := Form(raw); err != nil {
		return err
	}
	return Numbers(raw)
}

// Form returns raw as canonical JSON: no spaces, keys sorted by their UTF-16 code units, texts with as few escapes as JSON
// allows, numbers in their shortest form. This is the form of RFC 8785, except that numbers keep all their digits, so that
// different numbers never have the same form.
func Form(raw []byte) ([]byte, error) {
	switch {
	case !json.Valid(raw): // which also bounds the depth
		return nil, fmt.Errorf("%w: not one JSON value", ErrNone)
	case !utf8.Valid(raw) || loneSurrogate(raw):
		return nil, fmt.Errorf("%w: a string is not Unicode", ErrNone)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := read(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: not one JSON value", ErrNone)
	}
	return appendValue(make([]byte, 0, len(raw)), v)
}

// object is a JSON object, its members sorted by key.
type object []member

type member struct {
	key   string
	value any
}

// read returns the decoder's next value: an object, a []any or a token. It is written only once the whole is read: were each level
// written into the one above, a deep value would be copied once for each level.
func read(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	switch t {
	case json.Delim('{'):
		return readObject(d)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := read(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, closing(d)
	}
	return t, nil
}

func readObject(d *json.Decoder) (object, error) {
	o := object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNone, err)
		}
		v, err := read(d)
		if err != nil {
			return nil, err
		}
		o = append(o, member{fmt.Sprint(key), v})
	}
	slices.SortFunc(o, func(a, b member) int { return slices.Compare(utf16.Encode([]rune(a.key)), utf16.Encode([]rune(b.key))) })
	for i := range o {
		if i > 0 && o[i].key == o[i-1].key {
			return nil, fmt.Errorf("%w: an object has a key twice", ErrNone)
		}
	}
	return o, closing(d)
}

// closing reads the bracket at the end of an object or a list.
func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// appendValue appends the canonical form of a value that was read.
func appendValue(out []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case object:
		out = append(out, '{')
		for i, m := range v {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendValue(append(appendText(out, m.key), ':'), m.value); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	case []any:
		out = append(out, '[')
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendValue(out, e); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case string:
		return appendText(out, v), nil
	case json.Number:
		return appendNumber(out, v.String())
	case bool:
		return strconv.AppendBool(out, v), nil
	}
	return append(out, "null"...), nil
}

func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case c == '\b':
			out = append(out, `\b`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\f':
			out = append(out, `\f`...)
		case c == '\r':
			out = append(out, `\r`...)
		default:
			out = append(out, fmt.Sprintf(`\u%04x`, c)...)
		}
	}
	return append(out, '"')
}

// appendNumber appends the shortest exact form of a JSON number: 1, 1.0 and 10e-1 are the same number, and
// so are 0 and -0. Very large and very small numbers get an exponent, at the same limits as in ECMAScript.
func appendNumber(out []byte, s string) ([]byte, error) {
	s, negative := strings.CutPrefix(s, "-")
	exponent := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent > 1<<30 || exponent < -1<<30 {
			return nil, fmt.Errorf("%w: the exponent of a number is too large", ErrNone)
		}
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if short == "" {
		return append(out, '0'), nil
	}
	if negative {
		out = append(out, '-')
	}
	point := len(short) + exponent // where the decimal point stands in short
	switch {
	case exponent >= 0 && point <= 21:
		return append(append(out, short...), strings.Repeat("0", exponent)...), nil
	case point > 0 && point <= 21:
		return append(append(append(out, short[:point]...), '.'), short[point:]...), nil
	case point > -6 && point <= 0:
		return append(append(append(out, "0."...), strings.Repeat("0", -point)...), short...), nil
	}
	out = append(out, short[0])
	if len(short) > 1 {
		out = append(append(out, '.'), short[1:]...)
	}
	return append(out, fmt.Sprintf("e%+d", point-1)...), nil
}

// loneSurrogate reports whether valid JSON escapes a lone half of a UTF-16 surrogate pair. Go decodes every
// such half to the same character.
func loneSurrogate(raw []byte) bool {
	unit := func(i int) rune {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		if err != nil {
			return 0
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if r := unit(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 6
		}
		i++ // skip the escaped byte, so that it does not start another escape
	}
	return false
}
