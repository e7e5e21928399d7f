// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// surelyInRange is a number of digits: a number without an exponent that has fewer is within the range of a double.
const surelyInRange = 300

// Numbers returns an error that names the first number of a JSON text beyond the range of a double (1.8e308). Of a text that
// is not JSON it says nothing.
func Numbers(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = endOfString(raw, i)
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(raw) && isNumber(raw[end]) {
				end++
			}
			if tooLarge(raw[i:end]) {
				return fmt.Errorf("%sthe number %.24s is out of range: at most 1.7976931348623157e308 is allowed", where(raw), raw[i:end])
			}
			i = end - 1
		}
	}
	return nil
}

// endOfString returns the position of the quote that ends the string which begins at i.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		n := bytes.IndexAny(raw[i:], `"\\`)
		if n < 0 {
			return len(raw)
		}
		if i += n; raw[i] == '"' {
			return i
		}
		i++ // the escaped byte
	}
	return i
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

func tooLarge(number []byte) bool {
	if len(number) < surelyInRange && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return errors.Is(err, strconv.ErrRange)
}

// maxPath limits the path in a message, in bytes.
const maxPath = 512

// where returns the path of the first number that is out of range, for the beginning of a message; empty at the top. Of a long path
// it has the end.
func where(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	path, found := search(d)
	if !found || len(path) == 0 {
		return ""
	}
	slices.Reverse(path)
	text := strings.Join(path, ".")
	if len(text) > maxPath {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxPath:], "")
	}
	return text + ": "
}

// search looks through the decoder's next value for a number that is out of range, and returns its path, the last step first.
func search(d *json.Decoder) (path []string, found bool) {
	t, err := d.Token()
	if err != nil {
		return nil, false
	}
	switch v := t.(type) {
	case json.Number:
		return nil, tooLarge([]byte(v))
	case json.Delim:
		for i := 0; d.More(); i++ {
			var key json.Token // nil in a list
			if v == '{' {
				if key, err = d.Token(); err != nil {
					return nil, false
				}
			}
			path, found = search(d)
			switch {
			case found && key == nil:
				return append(path, strconv.Itoa(i)), true
			case found:
				return append(path, fmt.Sprintf("%.64v", key)), true
			}
		}
		_, _ = d.Token() // the closing bracket
	}
	return nil, false
}
