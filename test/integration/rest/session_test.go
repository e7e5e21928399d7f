// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// Every native target of the table is offered by the server, with the verb that the row uses.
func TestRESTTargetsAreServed(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	lists := kit.Must[[]*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerPreferredResources())
	served := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			for _, verb := range r.Verbs {
				served[verb+" "+r.Name] = true
			}
		}
	}
	// Subresources are not among the preferred ones.
	ours := kit.Must[*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String()))
	for _, r := range ours.APIResources {
		for _, verb := range r.Verbs {
			served[verb+" "+r.Name] = true
		}
	}
	for _, row := range facade.Rows() {
		for _, target := range row.Targets() {
			if !served[target] {
				t.Errorf("%s %s needs %s, which is not served", row.Method, row.Path, target)
			}
		}
	}
}

func TestRESTSessions(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	sessions := s.Core(t).Sessions("default")
	for name, kind := range map[string]v1alpha1.SessionType{"talk": v1alpha1.SessionTypeChat, "work": v1alpha1.SessionTypeTask, "door": v1alpha1.SessionTypeGateway} {
		kit.Must[*v1alpha1.Session](t)(sessions.Create(t.Context(), &v1alpha1.Session{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind},
		}, metav1.CreateOptions{}))
	}
	var messages v1alpha1.SessionTranscript
	for i := range 700 {
		messages.Items = append(messages.Items, v1alpha1.SessionMessage{Role: v1alpha1.RoleUser, Content: fmt.Sprintf("message %d\nof <many>", i)})
	}
	kit.Must[*v1alpha1.SessionTranscript](t)(sessions.AppendMessages(t.Context(), "talk", &messages, metav1.CreateOptions{}))

	c := s.REST(t, "default", "ed", "edit")
	list := host.Decode[struct {
		Items    []map[string]any
		Metadata map[string]any
	}](t, c.Get("/api/v1/sessions").Want(t, 200, `"metadata":{}`))
	if len(list.Items) != 2 || list.Items[0]["id"] != "talk" || list.Items[0]["sessionType"] != "chat" || list.Items[0]["messageCount"] != 700.0 || list.Items[0]["createdAt"] == nil || list.Items[0]["updatedAt"] == nil || list.Items[1]["name"] != "work" {
		t.Errorf("sessions: %v", list.Items)
	}
	type page struct {
		Items    []struct{ ID, SessionType string }
		Metadata struct{ Continue string }
	}
	one := host.Decode[page](t, c.Get("/api/v1/sessions?limit=1").Want(t, 200))
	if len(one.Items) != 1 || one.Items[0].ID != "talk" || one.Items[0].SessionType != "chat" || one.Metadata.Continue == "" {
		t.Errorf("the first page: %+v", one)
	}
	two := host.Decode[page](t, c.Get("/api/v1/sessions?limit=9&continue="+url.QueryEscape(one.Metadata.Continue)).Want(t, 200, `"metadata":{}`))
	if len(two.Items) != 1 || two.Items[0].ID != "work" {
		t.Errorf("the second page: %+v", two)
	}
	c.Get("/api/v1/sessions?limit=0").Problem(t, 400, "limit: must be a number and at least 1")
	talk := host.Decode[struct {
		Name, Namespace, Transcript, ActiveTask string
		MessageCount                            int
	}](t, c.Get("/api/v1/sessions/talk").Want(t, 200))
	lines := slices.Collect(strings.Lines(talk.Transcript))
	if talk.Name != "talk" || talk.Namespace != "default" || talk.MessageCount != 700 || len(lines) != 700 {
		t.Fatalf("session %s has %d messages, %d lines", talk.Name, talk.MessageCount, len(lines))
	}
	for i, line := range lines {
		var m v1alpha1.SessionMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Content != messages.Items[i].Content || m.Role != v1alpha1.RoleUser {
			t.Fatalf("line %d: %v %+v", i, err, m)
		}
	}
	c.Get("/api/v1/sessions/work").Want(t, 200, `"transcript":""`)
	c.Get("/api/v1/sessions/door").Problem(t, 404, `sessions.core.platform.ai "door" not found`)
	c.Get("/api/v1/sessions/nosuch").Problem(t, 404, `sessions.core.platform.ai "nosuch" not found`)
	c.Do("DELETE", "/api/v1/sessions/door", "").Problem(t, 404, "not found")
	if a := c.Do("DELETE", "/api/v1/sessions/work", ""); a.Code != 204 || a.Body != "" {
		t.Errorf("delete: %d %s", a.Code, a.Body)
	}
	c.Do("DELETE", "/api/v1/sessions/work", "").Problem(t, 404, "not found")
	busy := kit.Must[*v1alpha1.Session](t)(sessions.Get(t.Context(), "talk", metav1.GetOptions{}))
	holder, _ := s.RESTTask(t, "holder")
	busy.Status.ActiveTask, busy.Status.ActiveTaskUID = holder.Name, holder.UID
	kit.Must[*v1alpha1.Session](t)(sessions.UpdateStatus(t.Context(), busy, metav1.UpdateOptions{}))
	c.Do("DELETE", "/api/v1/sessions/talk", "").Problem(t, 409, "task holder holds it")
	c.Get("/api/v1/sessions/talk").Want(t, 200, `"activeTask":"holder"`)
	c.Get("/api/v1/sessions/talk/events").Want(t, 200, `"streamType":"session"`, `"events":[]`)
	c.Get("/api/v1/sessions/talk/events/counts?buckets=3").Want(t, 200, `"streamType":"session"`, `"total":0`)
	c.Get("/api/v1/sessions/talk/events/counts?after=1").Problem(t, 400, "after")
	c.Get("/api/v1/sessions/nosuch/events/counts").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/sessions/nosuch/stream").Problem(t, 404, "not found")
}

func TestRESTApprovals(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	w := standalone.NewWaiting(t, s, admin, "a", "test.platform.ai/hold")
	other := standalone.NewWaiting(t, s, admin, "b")
	first, second := w.Ask(`{"n":1}`), w.Ask(`{"n":2}`)
	foreign := other.Ask(`{"n":1}`)
	c := s.REST(t, "default", "ap", "platform-approver")
	type list struct {
		Namespace, TaskName, TaskUID, TaskPhase string
		TaskDeleting                            bool
		Approvals                               []map[string]any
	}
	l := host.Decode[list](t, c.Get("/api/v1/tasks/a/approvals").Want(t, 200))
	if l.Namespace != "default" || l.TaskName != "a" || l.TaskUID != string(w.Task.UID) || l.TaskDeleting || len(l.Approvals) != 2 {
		t.Fatalf("approvals: %+v", l)
	}
	for _, row := range l.Approvals {
		if row["status"] != "pending" || row["action"] != "delete it" || row["targetTool"] != "exec" || row["toolCallID"] != "call" || row["taskUID"] != l.TaskUID || row["createdAt"] == nil || len(row["targetArgsDigest"].(string)) != 64 || row["id"] != first && row["id"] != second {
			t.Errorf("row: %v", row)
		}
	}
	decision := func(id string) string { return "/api/v1/tasks/a/approvals/" + id + "/decision" }
	d := host.Decode[map[string]any](t, c.Post(decision(first), `{"decision":"approve","reason":"it is fine"}`).Want(t, 200))
	if d["id"] != first || d["status"] != "approved" || d["decisionReason"] != "it is fine" || d["decisionActor"] != "system:serviceaccount:default:ap" || d["decisionSeq"] != 3.0 || d["decisionTime"] == nil {
		t.Errorf("decision: %v", d)
	}
	again := host.Decode[map[string]any](t, c.Post(decision(first), `{"decision":"APPROVED"}`).Want(t, 200))
	if again["decisionReason"] != "it is fine" || again["decisionSeq"] != 3.0 {
		t.Errorf("the same decision again: %v", again)
	}
	c.Post(decision(first), `{"decision":"decline"}`).Problem(t, 409, "approved")
	c.Post(decision(foreign), `{"decision":"approve"}`).Problem(t, 404, "not found")
	c.Post(decision("nosuch"), `{"decision":"approve"}`).Problem(t, 404, "not found")
	c.Get("/api/v1/tasks/nosuch/approvals").Problem(t, 404, "not found")
	for body, text := range map[string]string{
		`{}`:                                    "decision: is required",
		`{"decision":"maybe"}`:                  "decision: must be approve",
		`{"decision":"approve","colour":"red"}`: `unknown field "colour"`,
		`{"decision":"approve","reason":"` + strings.Repeat("x", 1025) + `"}`: "reason",
		`{"decision":7}`: "decision",
	} {
		c.Post(decision(second), body).Problem(t, 400, text)
	}
	s.REST(t, "default", "vi", "view").Post(decision(second), `{"decision":"approve"}`).Problem(t, 403, "approvals/decision")

	if err := admin.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Post(decision(second), `{"decision":"approve"}`).Problem(t, 410, "being deleted")
	if l := host.Decode[list](t, c.Get("/api/v1/tasks/a/approvals").Want(t, 200)); !l.TaskDeleting {
		t.Errorf("approvals of a task that goes: %+v", l)
	}
	ended := kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), "b", metav1.GetOptions{}))
	ended.Status.Phase = v1alpha1.TaskFailed
	kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}))
	c.Post("/api/v1/tasks/b/approvals/"+foreign+"/decision", `{"decision":"approve"}`).Problem(t, 409, "has ended")
}

func TestRESTTrace(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "a")
	for _, e := range []string{
		`{"type":"ToolCallStarted","toolName":"exec","toolCallID":"1"}`, `{"type":"ToolCallCompleted","toolName":"exec","toolCallID":"1"}`,
	} {
		worker.Post("/internal/v1/events/default/task/a", e).Want(t, 201)
	}
	c := s.REST(t, "default", "vi", "view")
	tr := host.Decode[map[string]any](t, c.Get("/api/v1/tasks/a/trace").Want(t, 200))
	calls, _ := tr["toolCalls"].([]any)
	timeline, _ := tr["timeline"].([]any)
	if tr["latestSeq"] != 2.0 || len(calls) != 1 || len(timeline) != 2 || tr["kind"] != nil || tr["apiVersion"] != nil || tr["metadata"] != nil {
		t.Errorf("trace: %v", tr)
	}
	part := host.Decode[struct {
		Metadata struct{ Continue string }
		Timeline []any
	}](t, c.Get("/api/v1/tasks/a/trace?limit=1").Want(t, 200))
	if len(part.Timeline) != 1 || part.Metadata.Continue == "" {
		t.Errorf("part of a trace: %+v", part)
	}
	c.Get("/api/v1/tasks/a/trace?limit=1&continue="+part.Metadata.Continue).Want(t, 200, "ToolCallCompleted")
	c.Get("/api/v1/tasks/a/trace?limit=x").Problem(t, 400, "limit")
	c.Get("/api/v1/tasks/nosuch/trace").Problem(t, 404, "not found")
}

// TestRESTDeletes: who may delete and not read deletes. Who may read does not find what REST hides.
func TestRESTDeletes(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"deleter": {
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"sessions"}, Verbs: []string{"delete"}},
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memories/discard"}, Verbs: []string{"create"}},
		},
		"reader": {{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"sessions"}, Verbs: []string{"get"}}},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		kit.Must[*rbacv1.ClusterRole](t)(s.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))
	}
	sessions := s.Core(t).Sessions("default")
	for name, kind := range map[string]v1alpha1.SessionType{"talk": v1alpha1.SessionTypeChat, "work": v1alpha1.SessionTypeTask, "door": v1alpha1.SessionTypeGateway} {
		kit.Must[*v1alpha1.Session](t)(sessions.Create(t.Context(), &v1alpha1.Session{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind},
		}, metav1.CreateOptions{}))
	}
	memory := kit.Must[*v1alpha1.Memory](t)(s.Core(t).Memories("default").Create(t.Context(), &v1alpha1.Memory{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mem-"}, Spec: v1alpha1.MemorySpec{Content: "c"},
	}, metav1.CreateOptions{}))
	admin, deleter, reader := s.REST(t, "default", "adm", "admin"), s.REST(t, "default", "del", "deleter"), s.REST(t, "default", "rea", "reader")
	admin.Do("DELETE", "/api/v1/sessions/door", "").Problem(t, 404, "not found")
	admin.Do("DELETE", "/api/v1/chat/work", "").Problem(t, 404, "not found")
	reader.Do("DELETE", "/api/v1/chat/talk", "").Problem(t, 403, "cannot delete")
	deleter.Do("DELETE", "/api/v1/chat/talk", "").Want(t, 204)
	deleter.Do("DELETE", "/api/v1/chat/talk", "").Problem(t, 404, "not found")
	deleter.Do("DELETE", "/api/v1/sessions/work", "").Want(t, 204)
	deleter.Do("DELETE", "/api/v1/memories/"+memory.Name, "").Want(t, 204)
	admin.Do("DELETE", "/api/v1/memories/"+memory.Name, "").Problem(t, 404, "not found")
}
