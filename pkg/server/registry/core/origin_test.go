// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestOriginCoversTheSession: what an earlier task brought into a session from elsewhere does not become somebody's own words
// when a later task of the session proposes it.
func TestOriginCoversTheSession(t *testing.T) {
	s := start(t)
	owner := s.As("owner", nil)
	for i, tc := range []struct {
		name    string
		by      string   // who created the earlier task
		tools   []string // that it called
		id      string   // of the message, in place of the task's
		more    string   // of the later task
		gone    bool     // the earlier task was deleted
		outside bool
	}{
		{name: "own words", by: "owner"},
		{name: "memories", by: "owner", tools: []string{"recall_memory"}},
		{name: "a web page", by: "owner", tools: []string{"web_fetch"}, outside: true},
		{name: "somebody else's words", by: "mallory", outside: true},
		{name: "a task that is gone", by: "owner", gone: true, outside: true},
		{name: "a message of no task", by: "owner", id: "m1", outside: true},
		{name: "a message of a task that is not there", by: "owner", id: "task:none:assistant", outside: true},
		{name: "a chat's prompt", by: "owner", more: ", labels: {platform.ai/created-by: orchestrator}", outside: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			session := fmt.Sprintf("s%d", i)
			s.MustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: "+session+", namespace: default}\nspec: {sessionType: task}")
			create := func(by context.Context, name, more string) *v1alpha1.Task {
				obj, err := s.Decode(fmt.Sprintf("apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: %s, namespace: default%s}\nspec: {type: ai, prompt: p, sessionRef: {name: %s}}", name, more, session))
				if err != nil {
					t.Fatal(err)
				}
				made, err := s.Create(by, "tasks", obj)
				if err != nil {
					t.Fatal(err)
				}
				return made.(*v1alpha1.Task)
			}
			calls := func(worker context.Context, task string, tools ...string) {
				for _, tool := range tools {
					e := ev(v1alpha1.EventToolCallStarted)
					e.TaskName, e.ToolName, e.ToolCallID = task, tool, "call-"+tool
					if _, err := s.Create(worker, "executionevents", e); err != nil {
						t.Fatal(err)
					}
				}
			}
			earlier := create(s.As(tc.by, nil), "earlier"+session, "")
			calls(s.worker(earlier), earlier.Name, tc.tools...)
			id := tc.id
			if id == "" {
				id = "task:" + string(earlier.UID) + ":assistant"
			}
			message := fmt.Sprintf(`{"items":[{"id":%q,"role":"assistant","content":"Mallory is an administrator.","sourceType":"task","sourceRef":%q}]}`, id, earlier.Name)
			if w := s.Call(s.User(), "sessions/transcript", session, "", "POST ", []byte(message)); w.Code != http.StatusCreated {
				t.Fatal(w.Body)
			}
			if tc.gone {
				s.Remove("tasks", earlier.Name)
			}
			later := create(owner, "later"+session, tc.more)
			worker := s.worker(later)
			calls(worker, later.Name, "remember")
			obj, err := s.Create(worker, "memoryproposals", &v1alpha1.MemoryProposal{
				ObjectMeta: metav1.ObjectMeta{Name: "p" + session, Namespace: "default"},
				Spec:       v1alpha1.MemoryProposalSpec{Type: v1alpha1.ProposalMemory, Title: "who", Content: "Mallory is an administrator."},
			})
			if err != nil {
				t.Fatal(err)
			}
			if o := obj.(*v1alpha1.MemoryProposal).Status.Origin; o == nil || o.OutsideText != tc.outside || o.RequestedBy != "owner" || o.ToolCallID != "call-remember" {
				t.Errorf("origin %+v, want text from elsewhere: %v", o, tc.outside)
			}
		})
	}
}
