// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

const minute, half = time.Minute, 30 * time.Second

// TestCheckWaits: what the model reads, and after which pauses the code host is asked again.
func TestCheckWaits(t *testing.T) {
	const pending, passed = `{"status":"pending"}`, `{"status":"passed"}`
	limited, away := failure(v1alpha1.CodeHostRateLimited, 60), failure(v1alpha1.CodeHostUnavailable, 0)
	for name, c := range map[string]struct {
		more    string
		answers []any
		want    string
		pauses  []time.Duration
	}{
		"once": {``, []any{pending}, `{"success":true,"data":{"attempts":1,"status":"pending","wait_timed_out":false}}`, nil},
		"nothing to wait for": {
			`,"wait_timeout":"1h"`,
			[]any{`{"status":"no_checks"}`},
			`{"success":true,"data":{"attempts":1,"status":"no_checks","wait_timed_out":false}}`, nil,
		},
		"until they have passed": {
			`,"wait_timeout":"1h"`,
			[]any{pending, pending, passed},
			`{"success":true,"data":{"attempts":3,"status":"passed","wait_timed_out":false}}`,
			[]time.Duration{half, half},
		},
		"until the time has passed": {
			`,"wait_timeout":"25s","poll_interval":"10s"`,
			[]any{pending},
			`{"success":true,"data":{"attempts":4,"status":"pending","wait_timed_out":true}}`,
			[]time.Duration{10 * time.Second, 10 * time.Second, 5 * time.Second},
		},
		"at a host that fails for a while": {
			`,"wait_timeout":"1h"`,
			[]any{away, pending, limited, passed},
			`{"success":true,"data":{"attempts":4,"status":"passed","wait_timed_out":false}}`,
			[]time.Duration{half, half, minute},
		},
		"longer than there is time": {
			`,"wait_timeout":"45s"`,
			[]any{pending, limited},
			`{"success":true,"data":{"attempts":2,"status":"pending","wait_timed_out":true}}`,
			[]time.Duration{half},
		},
		"at a host that never answers": {
			`,"wait_timeout":"1m"`,
			[]any{away},
			`{"success":false,"error":"why","errorType":"unavailable","suggestion":"go on without it, or try again later"}`,
			[]time.Duration{half, half},
		},
		"once, at a host that fails": {
			``,
			[]any{limited},
			`{"success":false,"error":"why","errorType":"unavailable","suggestion":"go on without it, or call it again after 60 seconds"}`, nil,
		},
		"for what may not be seen": {
			`,"wait_timeout":"1h"`,
			[]any{pending, failure(v1alpha1.CodeHostNotFound, 0)},
			`{"success":false,"error":"why","errorType":"not_found","suggestion":"check the name, and look for what there is before you call it again"}`,
			[]time.Duration{half},
		},
	} {
		r := start(t, c.answers...)
		got := r.call(t.Context(), builtin.CheckPullRequestCI, `{"pr_number":1`+c.more+`}`)
		if d := cmp.Diff(c.want, got) + cmp.Diff(c.pauses, r.clock.Waits()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestAutoMerge: the call is repeated until there is an outcome, for the head that was seen first.
func TestAutoMerge(t *testing.T) {
	const waits, merged = `{"outcome":"","head_sha":"a"}`, `{"outcome":"merged","head_sha":"a"}`
	away := failure(v1alpha1.CodeHostUnavailable, 0)
	for name, c := range map[string]struct {
		more    string
		answers []any
		want    string
		heads   []string
	}{
		"at once": {``, []any{merged}, `{"success":true,"data":{"head_sha":"a","outcome":"merged"}}`, []string{""}},
		"after checks, at a host that fails for a while": {
			``,
			[]any{away, waits, failure(v1alpha1.CodeHostRateLimited, 90), merged},
			`{"success":true,"data":{"head_sha":"a","outcome":"merged"}}`,
			[]string{"", "", "a", "a"},
		},
		"a push meanwhile": {
			``,
			[]any{`{"head_sha":"a"}`, failure(v1alpha1.CodeHostRefused, 0)},
			`{"success":false,"error":"why","errorType":"permission_denied","suggestion":"look at its present state before you decide what to do; do not repeat the call if nothing has changed"}`,
			[]string{"", "a"},
		},
		"checks that fail": {``, []any{`{"outcome":"ci_failed"}`}, `{"success":true,"data":{"outcome":"ci_failed"}}`, []string{""}},
		"too late": {
			`,"timeout":"45s"`,
			[]any{waits, `{"head_sha":"b"}`},
			`{"success":true,"data":{"head_sha":"b","outcome":"timeout"}}`,
			[]string{"", "a", "a"},
		},
		"a host that never answers": {
			`,"timeout":"30s"`,
			[]any{away},
			`{"success":true,"data":{"message":"why","outcome":"timeout","pr_number":1}}`,
			[]string{"", ""},
		},
		"an unknown outcome": {
			``,
			[]any{waits, failure(v1alpha1.CodeHostOutcomeUnknown, 0)},
			`{"success":false,"error":"why","errorType":"outcome_unknown","suggestion":"it may have happened: look at the present state before you call it again"}`,
			[]string{"", "a"},
		},
	} {
		r := start(t, c.answers...)
		got := r.call(t.Context(), builtin.AutoMergePullRequest, `{"pr_number":1,"task_name":"t"`+c.more+`}`)
		var heads []string
		for _, asked := range r.asked {
			heads = append(heads, asked.HeadSHA)
		}
		if d := cmp.Diff(c.want, got) + cmp.Diff(c.heads, heads); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	r := start(t, `{}`)
	if r.call(t.Context(), builtin.AutoMergePullRequest, `{"pr_number":1,"task_name":"t"}`); len(r.asked) != 61 || len(r.clock.Waits()) != 60 || r.clock.Waits()[0] != half {
		t.Errorf("%d calls in half an hour", len(r.asked))
	}
}
