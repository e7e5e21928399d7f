// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestAuditTrace: the tasks of a transaction are listed in the order of their creation, from all pages, and without those whose id
// has the same label.
func TestAuditTrace(t *testing.T) {
	task := func(name, id string, revision int64) v1alpha1.Task {
		return v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}, Spec: v1alpha1.TaskSpec{Transaction: &v1alpha1.TaskTransaction{ID: id, Subject: "ann", RequestingWorkload: "portal"}},
			Status: v1alpha1.TaskStatus{Phase: v1alpha1.TaskSucceeded, CreationRevision: revision},
		}
	}
	child := task("child", "tx/1", 9)
	child.OwnerReferences = []metav1.OwnerReference{{Name: "root", Controller: new(true)}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("labelSelector"); got != "platform.ai/transaction-id=tx_1" {
			t.Errorf("selected by %q", got)
		}
		list := v1alpha1.TaskList{TypeMeta: metav1.TypeMeta{Kind: "TaskList", APIVersion: v1alpha1.SchemeGroupVersion.String()}, Items: []v1alpha1.Task{child, task("of-another", "tx_1", 3)}}
		if list.Continue = "more"; r.URL.Query().Get("continue") == "more" {
			list.Continue, list.Items = "", []v1alpha1.Task{task("root", "tx/1", 7)}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(s.Close)
	run := func(args ...string) string {
		var b strings.Builder
		Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", s.URL, "audit", "trace", "tx/1"}, args...), Streams{In: strings.NewReader(""), Out: &b, Err: &b})
		return b.String()
	}
	var words []string
	for line := range strings.Lines(run()) {
		words = append(words, strings.Join(strings.Fields(line), " "))
	}
	const want = "NAME PHASE AGENT PARENT SUBJECT WORKLOAD AGE|root Succeeded ann portal <unknown>|child Succeeded root ann portal <unknown>"
	if got := strings.Join(words, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := run("--limit", "1", "-A"); strings.Contains(got, "child") || !strings.Contains(got, "1 more task not shown: --limit") || !strings.HasPrefix(got, "NAMESPACE   NAME") {
		t.Error(got)
	}
	if got := run("-o", "json"); strings.Count(got, `"name": "`) != 3 || !strings.Contains(got, `"kind": "TaskList"`) { // two tasks and an owner
		t.Error(got)
	}
}
