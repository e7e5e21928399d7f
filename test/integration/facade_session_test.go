// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

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
	"github.com/platform-ai/platform/test/kit/standalone"
)

// Every native target of the table is offered by the server, with the verb that the row uses.
func TestRESTTargetsAreServed(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	lists := must[[]*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerPreferredResources())
	served := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			for _, verb := range r.Verbs {
				served[verb+" "+r.Name] = true
			}
		}
	}
	// Subresources are not among the preferred ones.
	ours := must[*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String()))
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
	sessions := clientOf(t, s).Sessions("default")
	for name, kind := range map[string]v1alpha1.SessionType{"talk": v1alpha1.SessionTypeChat, "work": v1alpha1.SessionTypeTask, "door": v1alpha1.SessionTypeGateway} {
		must[*v1alpha1.Session](t)(sessions.Create(t.Context(), &v1alpha1.Session{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind},
		}, metav1.CreateOptions{}))
	}
	var messages v1alpha1.SessionTranscript
	for i := range 700 {
		messages.Items = append(messages.Items, v1alpha1.SessionMessage{Role: v1alpha1.RoleUser, Content: fmt.Sprintf("message %d\nof <many>", i)})
	}
	must[*v1alpha1.SessionTranscript](t)(sessions.AppendMessages(t.Context(), "talk", &messages, metav1.CreateOptions{}))

	c := restAs(t, s, "default", "ed", "edit")
	list := decode[struct {
		Items    []map[string]any
		Metadata map[string]any
	}](t, c.get("/api/v1/sessions").want(t, 200, `"metadata":{}`))
	if len(list.Items) != 2 || list.Items[0]["id"] != "talk" || list.Items[0]["sessionType"] != "chat" || list.Items[0]["messageCount"] != 700.0 || list.Items[0]["createdAt"] == nil || list.Items[0]["updatedAt"] == nil || list.Items[1]["name"] != "work" {
		t.Errorf("sessions: %v", list.Items)
	}
	type page struct {
		Items    []struct{ ID, SessionType string }
		Metadata struct{ Continue string }
	}
	one := decode[page](t, c.get("/api/v1/sessions?limit=1").want(t, 200))
	if len(one.Items) != 1 || one.Items[0].ID != "talk" || one.Items[0].SessionType != "chat" || one.Metadata.Continue == "" {
		t.Errorf("the first page: %+v", one)
	}
	two := decode[page](t, c.get("/api/v1/sessions?limit=9&continue="+url.QueryEscape(one.Metadata.Continue)).want(t, 200, `"metadata":{}`))
	if len(two.Items) != 1 || two.Items[0].ID != "work" {
		t.Errorf("the second page: %+v", two)
	}
	c.get("/api/v1/sessions?limit=0").problem(t, 400, "limit: must be a number and at least 1")
	talk := decode[struct {
		Name, Namespace, Transcript, ActiveTask string
		MessageCount                            int
	}](t, c.get("/api/v1/sessions/talk").want(t, 200))
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
	c.get("/api/v1/sessions/work").want(t, 200, `"transcript":""`)
	c.get("/api/v1/sessions/door").problem(t, 404, `sessions.core.platform.ai "door" not found`)
	c.get("/api/v1/sessions/nosuch").problem(t, 404, `sessions.core.platform.ai "nosuch" not found`)
	c.do("DELETE", "/api/v1/sessions/door", "").problem(t, 404, "not found")
	if a := c.do("DELETE", "/api/v1/sessions/work", ""); a.code != 204 || a.body != "" {
		t.Errorf("delete: %d %s", a.code, a.body)
	}
	c.do("DELETE", "/api/v1/sessions/work", "").problem(t, 404, "not found")
	busy := must[*v1alpha1.Session](t)(sessions.Get(t.Context(), "talk", metav1.GetOptions{}))
	holder, _ := restTask(t, s, "holder")
	busy.Status.ActiveTask, busy.Status.ActiveTaskUID = holder.Name, holder.UID
	must[*v1alpha1.Session](t)(sessions.UpdateStatus(t.Context(), busy, metav1.UpdateOptions{}))
	c.do("DELETE", "/api/v1/sessions/talk", "").problem(t, 409, "task holder holds it")
	c.get("/api/v1/sessions/talk").want(t, 200, `"activeTask":"holder"`)
	c.get("/api/v1/sessions/talk/events").want(t, 200, `"streamType":"session"`, `"events":[]`)
	c.get("/api/v1/sessions/talk/events/counts?buckets=3").want(t, 200, `"streamType":"session"`, `"total":0`)
	c.get("/api/v1/sessions/talk/events/counts?after=1").problem(t, 400, "after")
	c.get("/api/v1/sessions/nosuch/events/counts").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/sessions/nosuch/stream").problem(t, 404, "not found")
}

func TestRESTApprovals(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := as(t, s, "")
	w := newWaiting(t, s, admin, "a", "test.platform.ai/hold")
	other := newWaiting(t, s, admin, "b")
	first, second := w.ask(`{"n":1}`), w.ask(`{"n":2}`)
	foreign := other.ask(`{"n":1}`)
	c := restAs(t, s, "default", "ap", "platform-approver")
	type list struct {
		Namespace, TaskName, TaskUID, TaskPhase string
		TaskDeleting                            bool
		Approvals                               []map[string]any
	}
	l := decode[list](t, c.get("/api/v1/tasks/a/approvals").want(t, 200))
	if l.Namespace != "default" || l.TaskName != "a" || l.TaskUID != string(w.task.UID) || l.TaskDeleting || len(l.Approvals) != 2 {
		t.Fatalf("approvals: %+v", l)
	}
	for _, row := range l.Approvals {
		if row["status"] != "pending" || row["action"] != "delete it" || row["targetTool"] != "exec" || row["toolCallID"] != "call" || row["taskUID"] != l.TaskUID || row["createdAt"] == nil || len(row["targetArgsDigest"].(string)) != 64 || row["id"] != first && row["id"] != second {
			t.Errorf("row: %v", row)
		}
	}
	decision := func(id string) string { return "/api/v1/tasks/a/approvals/" + id + "/decision" }
	d := decode[map[string]any](t, c.post(decision(first), `{"decision":"approve","reason":"it is fine"}`).want(t, 200))
	if d["id"] != first || d["status"] != "approved" || d["decisionReason"] != "it is fine" || d["decisionActor"] != "system:serviceaccount:default:ap" || d["decisionSeq"] != 3.0 || d["decisionTime"] == nil {
		t.Errorf("decision: %v", d)
	}
	again := decode[map[string]any](t, c.post(decision(first), `{"decision":"APPROVED"}`).want(t, 200))
	if again["decisionReason"] != "it is fine" || again["decisionSeq"] != 3.0 {
		t.Errorf("the same decision again: %v", again)
	}
	c.post(decision(first), `{"decision":"decline"}`).problem(t, 409, "approved")
	c.post(decision(foreign), `{"decision":"approve"}`).problem(t, 404, "not found")
	c.post(decision("nosuch"), `{"decision":"approve"}`).problem(t, 404, "not found")
	c.get("/api/v1/tasks/nosuch/approvals").problem(t, 404, "not found")
	for body, text := range map[string]string{
		`{}`:                                    "decision: is required",
		`{"decision":"maybe"}`:                  "decision: must be approve",
		`{"decision":"approve","colour":"red"}`: `unknown field "colour"`,
		`{"decision":"approve","reason":"` + strings.Repeat("x", 1025) + `"}`: "reason",
		`{"decision":7}`: "decision",
	} {
		c.post(decision(second), body).problem(t, 400, text)
	}
	restAs(t, s, "default", "vi", "view").post(decision(second), `{"decision":"approve"}`).problem(t, 403, "approvals/decision")

	if err := admin.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.post(decision(second), `{"decision":"approve"}`).problem(t, 410, "being deleted")
	if l := decode[list](t, c.get("/api/v1/tasks/a/approvals").want(t, 200)); !l.TaskDeleting {
		t.Errorf("approvals of a task that goes: %+v", l)
	}
	ended := must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), "b", metav1.GetOptions{}))
	ended.Status.Phase = v1alpha1.TaskFailed
	must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}))
	c.post("/api/v1/tasks/b/approvals/"+foreign+"/decision", `{"decision":"approve"}`).problem(t, 409, "has ended")
}

func TestRESTTrace(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := restTask(t, s, "a")
	for _, e := range []string{
		`{"type":"ToolCallStarted","toolName":"exec","toolCallID":"1"}`, `{"type":"ToolCallCompleted","toolName":"exec","toolCallID":"1"}`,
	} {
		worker.post("/internal/v1/events/default/task/a", e).want(t, 201)
	}
	c := restAs(t, s, "default", "vi", "view")
	tr := decode[map[string]any](t, c.get("/api/v1/tasks/a/trace").want(t, 200))
	calls, _ := tr["toolCalls"].([]any)
	timeline, _ := tr["timeline"].([]any)
	if tr["latestSeq"] != 2.0 || len(calls) != 1 || len(timeline) != 2 || tr["kind"] != nil || tr["apiVersion"] != nil || tr["metadata"] != nil {
		t.Errorf("trace: %v", tr)
	}
	part := decode[struct {
		Metadata struct{ Continue string }
		Timeline []any
	}](t, c.get("/api/v1/tasks/a/trace?limit=1").want(t, 200))
	if len(part.Timeline) != 1 || part.Metadata.Continue == "" {
		t.Errorf("part of a trace: %+v", part)
	}
	c.get("/api/v1/tasks/a/trace?limit=1&continue="+part.Metadata.Continue).want(t, 200, "ToolCallCompleted")
	c.get("/api/v1/tasks/a/trace?limit=x").problem(t, 400, "limit")
	c.get("/api/v1/tasks/nosuch/trace").problem(t, 404, "not found")
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
		must[*rbacv1.ClusterRole](t)(s.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))
	}
	sessions := clientOf(t, s).Sessions("default")
	for name, kind := range map[string]v1alpha1.SessionType{"talk": v1alpha1.SessionTypeChat, "work": v1alpha1.SessionTypeTask, "door": v1alpha1.SessionTypeGateway} {
		must[*v1alpha1.Session](t)(sessions.Create(t.Context(), &v1alpha1.Session{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind},
		}, metav1.CreateOptions{}))
	}
	memory := must[*v1alpha1.Memory](t)(clientOf(t, s).Memories("default").Create(t.Context(), &v1alpha1.Memory{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mem-"}, Spec: v1alpha1.MemorySpec{Content: "c"},
	}, metav1.CreateOptions{}))
	admin, deleter, reader := restAs(t, s, "default", "adm", "admin"), restAs(t, s, "default", "del", "deleter"), restAs(t, s, "default", "rea", "reader")
	admin.do("DELETE", "/api/v1/sessions/door", "").problem(t, 404, "not found")
	admin.do("DELETE", "/api/v1/chat/work", "").problem(t, 404, "not found")
	reader.do("DELETE", "/api/v1/chat/talk", "").problem(t, 403, "cannot delete")
	deleter.do("DELETE", "/api/v1/chat/talk", "").want(t, 204)
	deleter.do("DELETE", "/api/v1/chat/talk", "").problem(t, 404, "not found")
	deleter.do("DELETE", "/api/v1/sessions/work", "").want(t, 204)
	deleter.do("DELETE", "/api/v1/memories/"+memory.Name, "").want(t, 204)
	admin.do("DELETE", "/api/v1/memories/"+memory.Name, "").problem(t, 404, "not found")
}
