// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package taskresult_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/taskresult"
)

// TestParse: only an object with version 1 has parts. A member of the wrong type and an unknown
// verdict are left out; the other members stay.
func TestParse(t *testing.T) {
	for _, text := range []string{"done", `{"diff":"d"}`, `{"version":2}`, `{"version":"1"}`, `{"version":1`, `[{"version":1}]`, ""} {
		if got := taskresult.Parse(text); got != nil {
			t.Errorf("%s: %+v, want plain text", text, got)
		}
	}
	for text, want := range map[string]v1alpha1.TaskStructuredResult{
		` {"version": 1}` + "\n": {},
		`{"version":1,"summary":"s","verdict":"CHANGES_NEEDED","feedback":"f","files":["a"],"baseSHA":"b","headSHA":"h","diff":"d","pushBranch":"p","pushError":"e",
			"data":[1],"metadata":{"k":"v"},"artifacts":[{"filename":"x","contentType":"text/plain","size":3,"description":"y"}],"more":1}`: {
			Summary: "s", Verdict: v1alpha1.VerdictChangesNeeded, Feedback: "f", Files: []string{"a"}, BaseSHA: "b", HeadSHA: "h", Diff: "d", PushBranch: "p", PushError: "e",
			Data: &apiextensionsv1.JSON{Raw: []byte(`[1]`)}, Metadata: &apiextensionsv1.JSON{Raw: []byte(`{"k":"v"}`)},
			Artifacts: []v1alpha1.TaskResultArtifact{{Filename: "x", ContentType: "text/plain", Size: 3, Description: "y"}},
		},
		`{"version":1,"summary":7,"verdict":"MAYBE","feedback":"f","files":["a",2],"artifacts":[1],"data":null}`: {Feedback: "f"},
	} {
		want.Version = 1
		if diff := cmp.Diff(&want, taskresult.Parse(text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestWithoutDiff: only the diff of a structured result is left out.
func TestWithoutDiff(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":1,"diff":"d","a":{"diff":1}}`: `{"a":{"diff":1},"version":1}`,
		`{"version": 1, "a": 2}`:                  `{"version": 1, "a": 2}`,
		`{"diff":"d"}`:                            `{"diff":"d"}`,
		"diff":                                    "diff",
	} {
		if got := taskresult.WithoutDiff(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"version":1,"summary":"s","files":["a"],"data":{"x":[1]},"diff":"d"}`)
	f.Fuzz(func(t *testing.T, text string) {
		parts, rest := taskresult.Parse(text), taskresult.WithoutDiff(text)
		if again := taskresult.Parse(rest); (parts == nil) != (again == nil) || again != nil && again.Diff != "" {
			t.Errorf("%q: %+v, and without its diff %+v", text, parts, again)
		}
	})
}
