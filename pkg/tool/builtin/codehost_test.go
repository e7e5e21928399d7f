// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/tool"
)

// TestCodeHostParameters: the parameters of the tools for code hosts have the documented names and defaults, and no others are accepted. A
// star is on those that are required.
func TestCodeHostParameters(t *testing.T) {
	t.Parallel()
	const merge = "commit_message commit_title merge_method=squash pr_number* task_name*"
	for b, want := range map[*Tool]string{
		CreatePullRequest:    "base_branch* body head_branch* task_name* title*",
		CheckPullRequestCI:   "poll_interval=30s pr_number* repo_url task_name wait_timeout",
		ReviewPullRequest:    "pr_number* repo_url task_name",
		PostReviewComment:    "body* comments event* pr_number* repo_url task_name",
		MergePullRequest:     merge,
		AutoMergePullRequest: merge + " timeout=30m",
		ListPullRequests:     "page=1 per_page=30 repo_url task_name",
		ListIssues:           "page=1 per_page=30 repo_url task_name unassigned_only=true",
		GetIssue:             "issue_number* repo_url task_name",
		CommentOnIssue:       "body* issue_number* repo_url task_name",
		CheckPRReviewMarker:  "head_sha pr_number* repo_url task_name",
	} {
		var schema struct {
			Properties           map[string]struct{ Default any }
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(b.Schema(), &schema); err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		var got []string
		for name, p := range schema.Properties {
			if p.Default != nil {
				name += "=" + fmt.Sprint(p.Default)
			}
			if slices.Contains(schema.Required, name) {
				name += "*"
			}
			got = append(got, name)
		}
		if slices.Sort(got); strings.Join(got, " ") != want || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: %s, want %s", b.Name, strings.Join(got, " "), want)
		}
		issue := b == ListIssues || b == GetIssue || b == CommentOnIssue
		if automatic := b.Automatic == Coordinators; automatic == issue || b.Dispensable != automatic || b.In != Runs|Agents || b.Unlisted || b.Once != b.Effects.Has(Writes) {
			t.Errorf("%s: %+v", b.Name, b)
		}
	}
}

// TestCodeHostArguments: what of a review is refused before it is sent.
func TestCodeHostArguments(t *testing.T) {
	t.Parallel()
	catalogue, err := tool.NewCatalogue(tool.New[struct{}](PostReviewComment.Definition(), nil))
	if err != nil {
		t.Fatal(err)
	}
	comments := func(n int) string {
		return `,"comments":[` + strings.TrimSuffix(strings.Repeat(`{"path":"a","line":1,"body":"x"},`, n), ",") + `]`
	}
	const review = `{"pr_number":1,"event":"COMMENT","body":""`
	for arguments, fits := range map[string]bool{
		review + `}`:                 true,
		review + comments(100) + `}`: true,
		review + comments(101) + `}`: false,
		review + `,"comments":[{"path":"a","line":0,"body":"x"}]}`:                 false,
		review + `,"comments":[{"path":"a","line":1,"body":""}]}`:                  false,
		review + `,"comments":[{"path":"a","line":1}]}`:                            false,
		review + `,"side":"LEFT"}`:                                                 false,
		`{"pr_number":0,"event":"COMMENT","body":""}`:                              false,
		`{"pr_number":1,"event":"DISMISS","body":""}`:                              false,
		`{"pr_number":1,"event":"APPROVE"}`:                                        false,
		strings.Replace(review, `""`, `"`+strings.Repeat("x", 65537)+`"`, 1) + `}`: false,
		strings.Replace(review, `""`, `"`+strings.Repeat("ä", 65536)+`"`, 1) + `}`: true,
	} {
		if _, err := catalogue.Check(PostReviewComment.Name, arguments); (err == nil) != fits {
			t.Errorf("%.100s: %v", arguments, err)
		}
	}
}
