// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// surelyInRange is a length that no number without an exponent needs to leave the range of a double.
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

// where returns the path of the first number that is out of range, for the beginning of a message; empty at the top.
func where(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	path, found := search(d, "")
	if !found || path == "" {
		return ""
	}
	return path[1:] + ": "
}

// search looks through the decoder's next value.
func search(d *json.Decoder, path string) (string, bool) {
	t, err := d.Token()
	if err != nil {
		return "", false
	}
	switch v := t.(type) {
	case json.Number:
		return path, tooLarge([]byte(v))
	case json.Delim:
		for i := 0; d.More(); i++ {
			at := fmt.Sprintf("%s.%d", path, i)
			if v == '{' {
				key, err := d.Token()
				if err != nil {
					return "", false
				}
				at = fmt.Sprintf("%s.%.64v", path, key)
			}
			if found, ok := search(d, at); ok {
				return found, true
			}
		}
		_, _ = d.Token() // the closing bracket
	}
	return "", false
}
