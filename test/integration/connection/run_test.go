// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/connector"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// run is a run of a task that a person has asked for.
type run struct {
	*world

	task   *v1alpha1.Task
	person *standalone.Client
	// worker is its REST client, and core its client of the API.
	worker *standalone.Client
	core   typed.CoreV1alpha1Interface
	asked  int
}

// running begins a run of a task of a person, whose tools are bound to the account that the person has now.
func (w *world) running(c *standalone.Client, name string) *run {
	w.T.Helper()
	c.Post("/api/v1/tasks", `{"name":"`+name+`","type":"ai","prompt":"Go.","ai":{"tools":["find","note"]}}`).Want(w.T, http.StatusCreated)
	tasks := w.API().Tasks("team")
	t := kit.Must[*v1alpha1.Task](w.T)(tasks.Get(w.T.Context(), name, metav1.GetOptions{}))
	token := w.WorkerToken(w.T, "team", name, t.UID)
	r := &run{world: w, person: c, worker: w.Stranger(w.T).With("Authorization", "Bearer "+token), core: host.CoreOf(w.T, w.With(token))}
	t = kit.Must[*v1alpha1.Task](w.T)(tasks.Get(w.T.Context(), name, metav1.GetOptions{}))
	t.Status.Attempts, t.Status.ConnectionBindings = 1, w.bindings(t)
	r.task = kit.Must[*v1alpha1.Task](w.T)(tasks.UpdateStatus(w.T.Context(), t, metav1.UpdateOptions{}))
	return r
}

// bindings are those that the controller gives a task now.
func (w *world) bindings(t *v1alpha1.Task) (all []v1alpha1.TaskConnectionBinding) {
	w.T.Helper()
	p := kit.Must[*v1alpha1.ConnectorProvider](w.T)(w.API().ConnectorProviders("team").Get(w.T.Context(), "provider", metav1.GetOptions{}))
	who := t.Spec.RequestedBy
	c, err := w.connections().Get(w.T.Context(), connector.Name("provider", who.Issuer, who.Subject), metav1.GetOptions{})
	for i := range p.Spec.Tools {
		b := v1alpha1.TaskConnectionBinding{Tool: p.Spec.Tools[i].Name, ConnectorProvider: p.Name, ToolDigest: connector.ToolDigest(&p.Spec.Tools[i])}
		if err == nil && c.Status.Consent != nil {
			b.Connection, b.ConnectionUID, b.GrantSequence, b.AuthorityDigest = c.Name, c.UID, c.Status.GrantSequence, c.Status.Consent.AuthorityDigest
		}
		all = append(all, b)
	}
	return all
}

// outcome is what the server answers to a call.
type outcome struct {
	Effect   string
	Result   json.RawMessage
	Replayed bool
	Failure  *v1alpha1.TaskConnectorFailure
}

// post calls a tool as the worker.
func (r *run) post(tool, arguments, approvalID string) host.Answer {
	body := fmt.Sprintf(`{"callId":"c1","arguments":%s,"approvalId":%q}`, arguments, approvalID)
	return r.worker.Post("/internal/v1/tasks/team/"+r.task.Name+"/connector-tools/"+tool, body)
}

// call calls a tool as the worker, and expects an answer.
func (r *run) call(tool, arguments, approvalID string) outcome {
	r.T.Helper()
	return host.Decode[outcome](r.T, r.post(tool, arguments, approvalID).Want(r.T, http.StatusOK))
}

// fails calls a tool, and expects a failure with a text in its message.
func (r *run) fails(tool, arguments, approvalID string, reason v1alpha1.TaskConnectorFailureReason, text string) {
	r.T.Helper()
	got := r.call(tool, arguments, approvalID)
	if got.Failure == nil || got.Failure.Reason != reason || !strings.Contains(got.Failure.Message, text) || got.Result != nil {
		r.T.Errorf("%s %s: %+v %+v, want %s with %q", tool, arguments, got, got.Failure, reason, text)
	}
}

// ask has a person asked to approve a call of note with an effect, and returns the approval.
func (r *run) ask(arguments, effect string) string {
	r.T.Helper()
	r.asked++
	c := approval.Call{
		Namespace: "team", Task: r.task.Name, TaskUID: r.task.UID, Attempt: 1, Request: r.asked, Tool: "note", Description: "Notes.",
		ID: "c1", Arguments: []byte(arguments), ArgsDigest: kit.Must[string](r.T)(approval.Digest([]byte(arguments))), Effect: effect,
	}
	e, id, err := c.Event()
	if err != nil {
		r.T.Fatal(err)
	}
	kit.Must[*v1alpha1.ExecutionEvent](r.T)(r.core.Tasks("team").AppendEvent(r.T.Context(), r.task.Name, e, metav1.CreateOptions{}))
	return id
}

// approve has the person approve.
func (r *run) approve(id string) {
	r.T.Helper()
	r.person.Post("/api/v1/tasks/"+r.task.Name+"/approvals/"+id+"/decision", `{"decision":"approve"}`).Want(r.T, http.StatusOK)
}

// approved reserves a call of note, and has it approved.
func (r *run) approved(arguments string) (approvalID, effect string) {
	r.T.Helper()
	reserved := r.call("note", arguments, "")
	if reserved.Effect == "" || reserved.Result != nil || reserved.Failure != nil {
		r.T.Fatalf("reserve: %+v %+v", reserved, reserved.Failure)
	}
	id := r.ask(arguments, reserved.Effect)
	r.approve(id)
	return id, reserved.Effect
}

func (w *world) effect(name string) *v1alpha1.ToolEffect {
	w.T.Helper()
	return kit.Must[*v1alpha1.ToolEffect](w.T)(w.API().ToolEffects("team").Get(w.T.Context(), name, metav1.GetOptions{}))
}
