// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import "regexp"

// form matches a marker, whoever signed it.
var form = regexp.MustCompile(`<!-- platform:pr-review repo=[a-z0-9._/-]+ pr=[0-9]+ head_sha=[0-9a-f]+ sig=[0-9a-f]{64} -->`)

// Remove returns a text without the markers in it, whoever signed them, and how many there were.
func Remove(body string) (rest string, removed int) {
	rest = form.ReplaceAllStringFunc(body, func(string) string { removed++; return "" })
	return rest, removed
}
