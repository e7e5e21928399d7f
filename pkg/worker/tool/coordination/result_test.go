// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResults: a coordinator reads a structured result in parts and without its diff, and everything else as a text.
func TestResults(t *testing.T) {
	long := strings.Repeat("ä", maxResult)
	for name, tc := range map[string]struct {
		text string
		want row
	}{
		"text":           {"done", row{Result: "done"}},
		"some object":    {`{"diff":"d","n":1}`, row{Result: `{"diff":"d","n":1}`}},
		"other version":  {`{"version":2,"diff":"d"}`, row{Result: `{"version":2,"diff":"d"}`}},
		"a text version": {`{"version":"1","diff":"d"}`, row{Result: `{"version":"1","diff":"d"}`}},
		"structured": {
			`{"version":1,"summary":"s","baseSHA":"b","diff":"d","verdict":"CHANGES_NEEDED","feedback":"f","files":["a","b"],"pushBranch":"p","metadata":{"k":"v"},"data":{"n":1},"artifacts":[1]}`,
			row{
				Result: `{"artifacts":[1],"baseSHA":"b","data":{"n":1},"feedback":"f","files":["a","b"],"metadata":{"k":"v"},"pushBranch":"p","summary":"s","verdict":"CHANGES_NEEDED","version":1}`,
				structured: structured{
					Summary: "s", BaseSHA: "b", Verdict: "CHANGES_NEEDED", Feedback: "f", Files: []string{"a", "b"}, PushBranch: "p",
					Data: json.RawMessage(`{"n":1}`), Artifacts: json.RawMessage(`[1]`),
				},
			},
		},
		"a field of another type": {`{"version":1,"summary":7,"diff":"d"}`, row{Result: `{"summary":7,"version":1}`}},
		"long":                    {long, row{Result: long[:maxResult], ResultTruncated: true}},
		"cut within a character":  {"x" + long, row{Result: ("x" + long)[:maxResult-1], ResultTruncated: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var got row
			got.read(tc.text)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	var got row
	got.read(`{"version":1,"summary":"` + strings.Repeat("s", maxSummary+1) + `","data":"` + strings.Repeat("d", maxData) + `","diff":"` + strings.Repeat("+", maxResult) + `"}`)
	if len(got.Summary) != maxSummary || got.Data != nil || got.ResultTruncated || strings.Contains(got.Result, "+") {
		t.Errorf("a large result: %d bytes of summary, %d of data, truncated %t", len(got.Summary), len(got.Data), got.ResultTruncated)
	}
}
