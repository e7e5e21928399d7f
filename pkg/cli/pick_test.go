// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestApproveWaits: with --wait a command waits until something is asked or the task has ended, and without it says at once that nothing
// is asked.
func TestApproveWaits(t *testing.T) {
	lists, status := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/approvals") {
			_, _ = io.WriteString(w, `{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"report","uid":"u"},"status":{`+status+`}}`)
			return
		}
		item := ""
		if lists++; lists > 2 { // a list of the task and one of its tree for each look
			item = `{"metadata":{"name":"not-its-id"},"spec":{"taskName":"child"},"status":{"state":"pending"}}`
		}
		_, _ = io.WriteString(w, `{"kind":"ApprovalList","apiVersion":"core.platform.ai/v1alpha1","items":[`+item+`]}`)
	}))
	t.Cleanup(s.Close)
	run := func(args ...string) string {
		lists = 0
		var b strings.Builder
		Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", s.URL, "task", "approve", "report", "--yes"}, args...), Streams{In: strings.NewReader(""), Out: &b, Err: &b})
		return b.String()
	}
	if got := run(); !strings.Contains(got, "task report waits for no approval") || lists != 2 {
		t.Errorf("%d lists: %s", lists, got)
	}
	// What it finds is refused, because its id is not that of its call.
	if got := run("--wait", "10m"); !strings.Contains(got, "no decision was made") || lists != 3 {
		t.Errorf("%d lists: %s", lists, got)
	}
	status = `"phase":"Failed"`
	if got := run("--wait", "10m"); !strings.Contains(got, "task report waits for no approval: it has ended (Failed)") || lists != 2 {
		t.Errorf("%d lists: %s", lists, got)
	}
	status = `"phase":"Succeeded","hasChildren":true` // a task that was detached may still ask
	if got := run("--wait", "10m"); !strings.Contains(got, "no decision was made") || lists != 3 {
		t.Errorf("%d lists: %s", lists, got)
	}
}
