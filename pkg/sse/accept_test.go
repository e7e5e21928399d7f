// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"net/http"
	"testing"
)

func TestAccepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream;q=0.5": true, "*/*": false, "": false, "text/event-streams": false,
	} {
		if Accepted(http.Header{"Accept": {header}}) != want {
			t.Errorf("Accept: %q", header)
		}
	}
}
