// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"strings"
	"testing"
)

// TestQueries: no part of the server reads a query with (*url.URL).Query, which drops what it cannot parse. A request would act in
// another namespace, or on more objects, than its client wrote. wellformed.Query reads a query that was checked.
func TestQueries(t *testing.T) {
	for _, f := range sources(t, "pkg/server") {
		for n, line := range strings.Split(read(t, f.path), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if strings.Contains(code, "URL.Query()") {
				t.Errorf("%s:%d: URL.Query() hides a query that cannot be parsed: use wellformed.Query, or url.ParseQuery and its error", f.path, n+1)
			}
		}
	}
}
