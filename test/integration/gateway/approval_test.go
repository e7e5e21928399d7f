// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
)

// gatedScript: an agent whose tool remember needs an approval tries it, and says what came of it. Before that it says that it takes a while.
const gatedScript = `
models: [scripted-1]
turns:
- name: ask
  match: {lastRole: user, contains: Remember it, offered: [remember, reply_in_conversation]}
  reply: {toolCalls: [{name: remember, arguments: {content: "The door\nTo decide, write nothing."}}]}
- name: declined
  match: {lastRole: tool, contains: 'declined'}
  reply: {text: "It was declined."}
- name: say
  match: {turn: 1, lastRole: user, contains: Take long}
  reply: {toolCalls: [{name: reply_in_conversation, arguments: {text: "One moment. My key is ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}, {name: reply_in_conversation, arguments: {text: "Half of it is done."}}]}
- name: said
  match: {lastRole: tool, contains: "do not send it again"}
  reply: {text: "All of it is done."}
- name: done
  match: {lastRole: tool}
  reply: {text: "It is remembered."}
`

var code = regexp.MustCompile(`ap-[0-9a-f]{8}`)

// by returns an event of somebody at the desk.
func by(sender, id, thread, text string) *protocol.Event {
	e := chatadapter.Event(id, thread, text)
	e.ContextID, e.Sender = "desk", protocol.Sender{ID: sender, DisplayName: "Ada"} // which anybody can call themselves
	return e
}

// desk makes the binding desk, where everybody may write and approvals are decided, and says who ada and bob are: dora, who may decide, and
// otto, who may not.
func (x *connected) desk() {
	x.t.Helper()
	a := kit.Must[*v1alpha1.Agent](x.t)(x.API().Agents("default").Get(x.t.Context(), "talker", metav1.GetOptions{}))
	a.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: true, ApprovalRequiredTools: []string{"remember"}}
	kit.Must[*v1alpha1.Agent](x.t)(x.API().Agents("default").Update(x.t.Context(), a, metav1.UpdateOptions{}))
	x.bind("desk", func(s *v1alpha1.GatewayBindingSpec) {
		s.SenderPolicy, s.Approvals = v1alpha1.GatewaySenderPolicy{Mode: v1alpha1.GatewaySendersAll}, v1alpha1.GatewayApprovalsConversation
	})
	for sender, user := range map[string]string{"ada": "dora", "bob": "otto"} {
		kit.Must[*v1alpha1.GatewayIdentity](x.t)(x.API().GatewayIdentities("default").Create(x.t.Context(), &v1alpha1.GatewayIdentity{
			ObjectMeta: metav1.ObjectMeta{Name: sender},
			Spec:       v1alpha1.GatewayIdentitySpec{GatewayRef: v1alpha1.LocalReference{Name: "chat"}, AccountID: "bot", SenderID: sender, Username: user},
		}, metav1.CreateOptions{}))
	}
	kit.Must[*rbacv1.RoleBinding](x.t)(x.Kubernetes(x.t).RbacV1().RoleBindings("default").Create(x.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dora"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-approver"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dora"}},
	}, metav1.CreateOptions{}))
}

// asked waits until something is asked in a thread, and returns the code of the n-th question.
func (x *connected) asked(thread string, n int) (found string) {
	x.t.Helper()
	kit.Await(x.t, "a question in the conversation", func() bool {
		var questions []string
		for _, text := range x.adapter.Said(thread) {
			if strings.HasPrefix(text, "An approval is needed: ") {
				questions = append(questions, text)
			}
		}
		if len(questions) <= n {
			return false
		}
		if lines := strings.Split(questions[n], "\n"); !slices.Contains(lines, "Tool: remember") || !strings.HasPrefix(lines[len(lines)-1], `To decide, write "approve ap-`) {
			x.t.Errorf("the question: %q", questions[n]) // what the agent wrote has no lines of its own
		}
		found = code.FindString(questions[n])
		return true
	})
	return found
}

// TestApprovalInConversation: what an agent asks an approval for is told in the conversation, and is decided there by senders of whom an object
// says who they are, with the rights of those users. All others are refused, whatever they call themselves. A decision counts once, for one
// approval, in its own conversation; one that is taken elsewhere is told there, too.
func TestApprovalInConversation(t *testing.T) {
	t.Parallel()
	x := newConnected(t, gatedScript)
	x.desk()
	first := x.accept(by("ada", "q1", "t1", "Remember it"))
	c := x.asked("t1", 0)
	other := "ap-00000000"
	if c == other {
		other = "ap-00000001"
	}
	for id, e := range map[string]*protocol.Event{
		"nobody knows this sender":       by("eve", "d1", "t1", "approve "+c),
		"this user may not decide":       by("bob", "d2", "t1", "approve "+c),
		"this is another thread":         by("ada", "d3", "t2", "approve "+c),
		"there is no such code":          by("ada", "d4", "t1", "approve "+other),
		"this sender is another account": func() *protocol.Event { e := by("Ada", "d5", "t1", "approve "+c); return e }(),
	} {
		name := x.accept(e)
		row := x.awaitEvent(name, v1alpha1.GatewayEventRejected)
		d := x.delivery(name, delivered)
		if row.Status.Reason != v1alpha1.ReasonGatewayDecisionRefused || row.Status.Decision == nil || row.Status.Decision.Accepted || row.Status.TaskName != "" || d.Spec.Kind != v1alpha1.GatewayDeliveryError {
			t.Errorf("%s: %+v, answered with %q", id, row.Status, d.Spec.Text)
		}
	}
	if row := x.event(first); row.Status.State != v1alpha1.GatewayEventTaskCreated {
		t.Fatalf("after decisions that do not count, the question is %+v", row.Status)
	}
	decided := x.accept(by("ada", "d6", "t1", " /Approve "+strings.ToUpper(c)+" it is fine"))
	row := x.awaitEvent(decided, v1alpha1.GatewayEventCompleted)
	a := kit.Must[*v1alpha1.Approval](t)(x.API().Approvals("default").Get(t.Context(), row.Status.Decision.Approval, metav1.GetOptions{}))
	if !row.Status.Decision.Accepted || a.Status.State != v1alpha1.ApprovalApproved || a.Status.DecisionActor != "dora" || a.Status.DecisionReason != "it is fine (gateway event "+decided+")" {
		t.Errorf("%+v: %+v", row.Status.Decision, a.Status)
	}
	if r := x.post(by("ada", "d6", "t1", " /Approve "+strings.ToUpper(c)+" it is fine")); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate {
		t.Errorf("the same event again: %+v", r)
	}
	again := x.accept(by("ada", "d7", "t1", "approve "+c))
	x.awaitEvent(again, v1alpha1.GatewayEventRejected)
	x.awaitEvent(first, v1alpha1.GatewayEventCompleted)
	x.delivery(first, func(d *v1alpha1.GatewayDelivery) bool {
		return delivered(d) && d.Spec.Kind == v1alpha1.GatewayDeliveryFinal
	})
	said := x.adapter.Said("t1")
	told, answer := slices.Index(said, c+" was approved."), slices.Index(said, "It is remembered.")
	if told < 0 || answer < told || slices.ContainsFunc(x.Transcript(x.event(first).Status.SessionName, 10), func(m v1alpha1.SessionMessage) bool { return strings.Contains(m.Content, c) }) {
		t.Errorf("%q", said)
	}

	second := x.accept(by("ada", "q2", "t1", "Remember it again"))
	x.asked("t1", 1)
	waits := kit.Must[*v1alpha1.ApprovalList](t)(x.API().Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.state=pending"}))
	if len(waits.Items) != 1 {
		t.Fatalf("%d approvals wait", len(waits.Items))
	}
	kit.Must[*v1alpha1.Approval](t)(x.API().Approvals("default").Decide(t.Context(), waits.Items[0].Name, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: "decline"}}, metav1.CreateOptions{}))
	x.delivery(second, func(d *v1alpha1.GatewayDelivery) bool {
		return delivered(d) && d.Spec.Kind == v1alpha1.GatewayDeliveryFinal
	})
	if said := x.adapter.Said("t1"); len(said) < 2 || !strings.HasSuffix(said[len(said)-2], " was declined.") || said[len(said)-1] != "It was declined." {
		t.Errorf("%q", said)
	}
}

// TestReply: an agent says something in the conversation before it answers, each text once and in order, and without secrets. No other task
// can.
func TestReply(t *testing.T) {
	t.Parallel()
	x := newConnected(t, gatedScript)
	name := x.accept(chatadapter.Event("q", "t1", "Take long"))
	x.delivery(name, func(d *v1alpha1.GatewayDelivery) bool {
		return delivered(d) && d.Spec.Kind == v1alpha1.GatewayDeliveryFinal
	})
	said := x.adapter.Said("t1")
	if len(said) != 3 || !strings.HasPrefix(said[0], "One moment. My key is ") || strings.Contains(said[0], "ghp_") || said[1] != "Half of it is done." || said[2] != "All of it is done." {
		t.Errorf("%q", said)
	}
	all := kit.Must[*v1alpha1.GatewayDeliveryList](t)(x.API().GatewayDeliveries("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.eventId=" + name}))
	ids := map[string]bool{}
	for _, d := range all.Items {
		ids[d.Spec.IdempotencyID] = true
		if d.Spec.Kind == v1alpha1.GatewayDeliveryInterim && d.Spec.Part == 0 {
			t.Errorf("an interim text has no place: %+v", d.Spec)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d texts have %d ids", len(all.Items), len(ids))
	}
	kit.Await(t, "what was delivered is recorded", func() bool {
		all := kit.Must[*v1alpha1.GatewayDeliveryList](t)(x.API().GatewayDeliveries("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.eventId=" + name}))
		return !slices.ContainsFunc(all.Items, func(d v1alpha1.GatewayDelivery) bool { return !d.Status.Recorded })
	})
	task := x.event(name).Status.TaskName
	_, err := x.Tasks().Reply(t.Context(), task, &v1alpha1.TaskReply{Spec: v1alpha1.TaskReplySpec{Text: "late", MessageID: "1"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "the task is not running") {
		t.Errorf("a task that has ended replies: %v", err)
	}
}

// TestTaskOfAGateway: by REST, who reads the task of an event needs the right to get its gateway, and who decides about it to update the
// gateway, too. Tasks of others are as before, and a list leaves out what may not be read.
func TestTaskOfAGateway(t *testing.T) {
	t.Parallel()
	x := newConnected(t, gatedScript)
	x.desk()
	name := x.accept(by("ada", "q", "t", "Remember it"))
	x.asked("t", 0)
	e := x.awaitEvent(name, v1alpha1.GatewayEventTaskCreated)
	var pending *v1alpha1.Approval
	for _, a := range kit.Must[*v1alpha1.ApprovalList](t)(x.API().Approvals("default").List(t.Context(), metav1.ListOptions{})).Items {
		pending = &a
	}
	path := "/api/v1/tasks/" + e.Status.TaskName
	decide := path + "/approvals/" + pending.Name + "/decision"
	caller := x.REST(t, "default", "desk", "platform-approver")
	check := func(has string, reads, decides int) {
		t.Helper()
		for what, of := range map[string]string{
			"the task": path, "its events": path + "/events", "its children": path + "/children", "its approvals": path + "/approvals", "its trace": path + "/trace",
		} {
			if a := caller.Get(of); a.Code != reads && a.Code != http.StatusNotFound {
				t.Errorf("with %s, %s: %d %.300s, want %d", has, what, a.Code, a.Body, reads)
			}
		}
		for _, list := range []string{"/api/v1/tasks", "/api/v1/tasks?orderBy=created"} {
			if a := caller.Get(list); a.Code != http.StatusOK || strings.Contains(a.Body, e.Status.TaskName) != (reads == http.StatusOK) {
				t.Errorf("with %s, %s: %d %.300s", has, list, a.Code, a.Body)
			}
		}
		if a := caller.Post(decide, `{"decision":"approved"}`); a.Code != decides || decides == http.StatusForbidden && !strings.Contains(a.Body, "gateway") {
			t.Errorf("with %s, the decision: %d %.300s, want %d", has, a.Code, a.Body, decides)
		}
	}
	allow := func(name string, verbs ...string) {
		t.Helper()
		rbac := x.Kubernetes(t).RbacV1()
		kit.Must[*rbacv1.Role](t)(rbac.Roles("default").Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"gateways"}, ResourceNames: []string{"chat"}, Verbs: verbs}},
		}, metav1.CreateOptions{}))
		kit.Must[*rbacv1.RoleBinding](t)(rbac.RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "desk"}},
		}, metav1.CreateOptions{}))
	}
	awaitRight := func(verb string) {
		t.Helper()
		kit.Await(t, "the right to "+verb, func() bool {
			body := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"default","group":"core.platform.ai","resource":"gateways","name":"chat","verb":"` + verb + `"}}}`
			return strings.Contains(caller.At(x.URL).Post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).Body, `"allowed":true`)
		})
	}
	check("no right", http.StatusForbidden, http.StatusForbidden)
	if a := caller.At(x.URL).Get(api("default") + "tasks/" + e.Status.TaskName); a.Code != http.StatusOK {
		t.Errorf("the native API asks for the rights on tasks alone: %d %.300s", a.Code, a.Body)
	}
	allow("reads", "get")
	awaitRight("get")
	check("get", http.StatusOK, http.StatusForbidden)
	allow("operates", "update")
	awaitRight("update")
	check("get and update", http.StatusOK, http.StatusOK)
	x.awaitEvent(name, v1alpha1.GatewayEventCompleted)
}
