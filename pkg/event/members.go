// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
)

// normalizeKey appends key in lower case without separators. It appends nothing if the key is too long.
func normalizeKey(b, key []byte) []byte {
	if len(key) > cap(b) {
		return nil
	}
	for _, c := range key {
		switch {
		case c == '-' || c == '_' || c == '.' || c == ' ':
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		default:
			b = append(b, c)
		}
	}
	return b
}

// members calls f with each member of a compact, valid JSON object.
func members(raw json.RawMessage, f func(key []byte, value json.RawMessage)) {
	for i := 1; i < len(raw) && raw[i] != '}'; {
		if raw[i] == ',' {
			i++
		}
		end := skipValue(raw, i)
		key := raw[i+1 : end-1]
		i = end + 1 // the colon
		end = skipValue(raw, i)
		f(key, raw[i:end])
		i = end
	}
}

// skipValue returns the end of the value at i of compact, valid JSON.
func skipValue(raw []byte, i int) int {
	depth := 0
	for ; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
