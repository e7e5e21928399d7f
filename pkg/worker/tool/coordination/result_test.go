// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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
			`{"version":1,"summary":"s","baseSHA":"b","diff":"d","verdict":"CHANGES_NEEDED","feedback":"f","files":["a","b"],"pushBranch":"p","metadata":{"k":"v"},"data":{"n":1},"artifacts":[{"filename":"x","size":1}]}`,
			row{
				Result: `{"artifacts":[{"filename":"x","size":1}],"baseSHA":"b","data":{"n":1},"feedback":"f","files":["a","b"],"metadata":{"k":"v"},"pushBranch":"p","summary":"s","verdict":"CHANGES_NEEDED","version":1}`,
				structured: structured{
					Summary: "s", BaseSHA: "b", Verdict: "CHANGES_NEEDED", Feedback: "f", Files: []string{"a", "b"}, PushBranch: "p",
					Data: &apiextensionsv1.JSON{Raw: []byte(`{"n":1}`)}, Artifacts: []v1alpha1.TaskResultArtifact{{Filename: "x", Size: 1}},
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
		t.Errorf("a large result: %d bytes of summary, data %v, truncated %t", len(got.Summary), got.Data != nil, got.ResultTruncated)
	}
}

// TestDelivered: what is known of a child's repository replaces what the child says.
func TestDelivered(t *testing.T) {
	child := &v1alpha1.Task{
		Spec: v1alpha1.TaskSpec{Workspace: &v1alpha1.TaskWorkspace{Branch: "main", Ref: "v1"}},
		Status: v1alpha1.TaskStatus{Delivery: &v1alpha1.TaskDelivery{
			State: v1alpha1.DeliveryVerifiedExact, StartingSHA: "base", Branch: "feature", VerifiedRemoteSHA: "head", PRReceipt: &v1alpha1.PullRequestReceipt{URL: "https://forge.example/pulls/1"},
		}},
	}
	const lies = `{"version":1,"baseSHA":"x","headSHA":"y","pushBranch":"z"}`
	for _, published := range []bool{true, false} {
		want := row{
			Result: lies, WorkspaceRef: "v1", WorkspaceBranch: "main", WorkspaceStatus: v1alpha1.DeliveryVerifiedExact, PullRequest: "https://forge.example/pulls/1",
			structured: structured{BaseSHA: "base", HeadSHA: "head", PushBranch: "feature"},
		}
		if !published {
			child.Status.Delivery = &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryConflict, StartingSHA: "base", Branch: "feature"}
			want.WorkspaceStatus, want.HeadSHA, want.PushBranch, want.PullRequest = v1alpha1.DeliveryConflict, "", "", ""
		}
		var got row
		got.read(lies)
		got.deliver(child)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
			t.Error(diff)
		}
	}
}
