// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import "bytes"

// values counts the values of a JSON document as it arrives: each begins the document, or follows a bracket or a comma. Of a
// text that is not JSON it counts something, and whoever decodes it refuses it.
type values struct {
	n                 int64
	inString, escaped bool
}

// add takes the next part and returns the count.
func (v *values) add(part []byte) int64 {
	for i := 0; i < len(part); i++ {
		switch b := part[i]; {
		case v.escaped:
			v.escaped = false
		case v.inString:
			end := bytes.IndexAny(part[i:], `"\\`)
			if end < 0 {
				return v.n
			}
			i += end
			v.escaped, v.inString = part[i] == '\\', part[i] != '"'
		case b == '"':
			v.inString = true
		case b == ',', b == '[', b == '{':
			v.n++
		}
	}
	return v.n
}
