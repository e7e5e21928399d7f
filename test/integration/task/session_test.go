// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// rememberScript gives answers that require the earlier conversation. It says a
// secret once, which must not come back.
const rememberScript = `
models: [scripted-1]
turns:
- name: is told
  match: {turn: 1, lastRole: user, contains: Remember}
  reply: {text: "Yes, heliotrope, and the key ghp_abcdefghijklmnopqrstuvwxyz0123456789.", usage: {input: 10, output: 5}}
- name: is asked
  match: {turn: 2, lastRole: user, contains: Which word}
  reply: {text: It was heliotrope., usage: {input: 30, output: 7}}
- name: is asked in vain
  match: {contains: Fail}
  fault: {status: 400, code: invalid_request_error, message: No}
- name: is asked without having been told
  reply: {text: I do not know.}
`

// askBrief asks an agent of its own on session "s", whose tasks read one message of it unless they say otherwise.
func askBrief(p *standalone.Platform, name, prompt string) {
	p.T.Helper()
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Session: &v1alpha1.AgentSession{MaxMessages: new(int32(1))},
	}}
	if _, err := p.API().Agents("default").Create(p.T.Context(), agent, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: name},
		SessionRef: &v1alpha1.TaskSessionReference{Name: "s", Append: new(false)},
	}}
	if _, err := p.Tasks().Create(p.T.Context(), task, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
	p.AwaitPhase(name, v1alpha1.TaskSucceeded)
}

func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithModel(t, rememberScript)
	first := p.Ask("first", "Remember the word heliotrope.", v1alpha1.TaskSessionReference{Name: "s", Create: true}, v1alpha1.TaskSucceeded)
	second := p.Ask("second", "Which word was it?", v1alpha1.TaskSessionReference{Name: "s"}, v1alpha1.TaskSucceeded)
	p.Ask("third", "Fail, please.", v1alpha1.TaskSessionReference{Name: "s"}, v1alpha1.TaskFailed)
	p.Ask("fourth", "Which word was it?", v1alpha1.TaskSessionReference{Name: "s", MaxMessages: new(int32(1)), Append: new(false)}, v1alpha1.TaskSucceeded)
	askBrief(p, "brief", "Which word was it?")
	fifth := p.Ask("fifth", "", v1alpha1.TaskSessionReference{Name: "s", PromptIncluded: true, ThroughMessageID: "task:" + string(first.UID) + ":user"}, v1alpha1.TaskSucceeded)

	var asked []string
	for _, e := range model.Exchanges() {
		var said []string
		for _, m := range e.Request.Messages {
			said = append(said, m.Role+": "+m.Text())
		}
		asked = append(asked, strings.Join(said, " | "))
	}
	want := []string{
		"system: Be short. | user: Remember the word heliotrope.",
		"system: Be short. | user: Remember the word heliotrope. | assistant: Yes, heliotrope, and the key [REDACTED]. | user: Which word was it?",
		"system: Be short. | user: Remember the word heliotrope. | assistant: Yes, heliotrope, and the key [REDACTED]. | user: Which word was it? | assistant: It was heliotrope. | user: Fail, please.",
		"system: Be short. | assistant: It was heliotrope. | user: Which word was it?",
		"assistant: It was heliotrope. | user: Which word was it?",
		"system: Be short. | user: Remember the word heliotrope.",
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("asked of the model (-want +got):\n%s", d)
	}
	if r := model.Refused(); len(r) > 0 {
		t.Errorf("the model refused %v", r)
	}

	// A failed task, and one that opted out, have added nothing.
	var got []string
	for _, m := range p.Transcript("s", 2) {
		got = append(got, fmt.Sprintf("%d %s %s %s/%s: %s", m.Order, m.ID, m.Role, m.SourceType, m.SourceRef, m.Content))
	}
	stored := []string{
		fmt.Sprintf("1 task:%s:user user task/first: Remember the word heliotrope.", first.UID),
		fmt.Sprintf("2 task:%s:assistant assistant task/first: Yes, heliotrope, and the key [REDACTED].", first.UID),
		fmt.Sprintf("3 task:%s:user user task/second: Which word was it?", second.UID),
		fmt.Sprintf("4 task:%s:assistant assistant task/second: It was heliotrope.", second.UID),
		fmt.Sprintf("5 task:%s:assistant assistant task/fifth: Yes, heliotrope, and the key [REDACTED].", fifth.UID),
	}
	if d := cmp.Diff(stored, got); d != "" {
		t.Errorf("transcript (-want +got):\n%s", d)
	}
	st := p.Session("s").Status
	used := int64(0)
	for _, name := range []string{"first", "second", "fourth", "brief", "fifth"} {
		task, err := p.Tasks().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		used += *task.Status.Usage.InputTokens
	}
	if st.MessageCount != 5 || st.InputTokens == nil || *st.InputTokens != used || st.ActiveTask != "" || st.WaitingCount != 0 || st.UpdatedAt == nil {
		t.Errorf("status %+v, want %d input tokens", st, used)
	}
}

// shown waits until the session shows a holder and a queue.
func shown(p *standalone.Platform, session, want string) {
	p.T.Helper()
	last := ""
	kit.Await(p.T, "queue "+want, func() bool {
		st := p.Session(session).Status
		last = st.ActiveTask + "|" + strings.Join(st.WaitingTasks, " ")
		return last == want && int(st.WaitingCount) == len(st.WaitingTasks)
	})
}

func awaitMessage(p *standalone.Platform, task, want string) {
	p.T.Helper()
	p.Await(task, func(t *v1alpha1.Task) bool { return t.Status.Message == want })
}

// release lets the run of a task that executes the script endless finish.
func release(p *standalone.Platform, task *v1alpha1.Task) {
	p.T.Helper()
	if err := os.WriteFile(filepath.Join(p.Folder(task), "work", "go"), nil, 0o600); err != nil {
		p.T.Fatal(err)
	}
}

func TestSessionTakesTurns(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	names := []string{"e", "d", "c", "b", "a"}
	on := func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s", Create: true} }
	order := []string{p.Run(names[0], on).Name}
	p.AwaitPhase(order[0], v1alpha1.TaskRunning)
	for _, name := range names[1:] {
		order = append(order, p.Run(name, on).Name)
	}
	next := order[1:]
	shown(p, "s", order[0]+"|"+strings.Join(next, " "))
	awaitMessage(p, order[4], fmt.Sprintf("waits for session s: task %s holds it, 3 before", order[0]))

	// A busy session is not deleted, and a crash of the server changes nothing about that.
	if err := p.Sessions().Delete(t.Context(), "s", metav1.DeleteOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "task "+order[0]+" holds it") {
		t.Errorf("delete: %v", err)
	}
	if err := p.Sessions().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("deletecollection: %v", err)
	}
	p.Restart(t)
	shown(p, "s", order[0]+"|"+strings.Join(next, " "))

	// A waiting task is cancelled; the others move up, each when the one before it ends.
	if _, err := p.Tasks().Cancel(t.Context(), order[2], &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase(order[2], v1alpha1.TaskCancelled)
	turns := []string{order[0], order[1], order[3], order[4]}
	for i, name := range turns {
		task, _ := awaitStart(p, name)
		shown(p, "s", name+"|"+strings.Join(turns[i+1:], " "))
		for _, later := range turns[i+1:] {
			if k, err := p.Tasks().Get(t.Context(), later, metav1.GetOptions{}); err != nil || k.Status.Attempts != 0 {
				t.Errorf("%s has begun beside %s: %+v, %v", later, name, k.Status, err)
			}
		}
		release(p, task)
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	shown(p, "s", "|")
	if err := p.Sessions().Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete when it is idle: %v", err)
	}
}

// A namespace is deleted even though one of its tasks holds a session.
func TestNamespaceWithABusySessionGoes(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	ctx, namespaces := t.Context(), p.Kubernetes(t).CoreV1().Namespaces()
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := p.API()
	for _, name := range []string{"a", "b"} {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, SessionRef: &v1alpha1.TaskSessionReference{Name: "s", Create: true},
		}}
		if _, err := c.Tasks("team").Create(ctx, task, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kit.Await(t, "busy session", func() bool {
		s, err := c.Sessions("team").Get(ctx, "s", metav1.GetOptions{})
		return err == nil && s.Status.ActiveTask != "" && s.Status.WaitingCount == 1
	})
	if err := namespaces.Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "end of the namespace", func() bool {
		_, err := namespaces.Get(ctx, "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// A transcript is appended to, read and refused over HTTP, and is deleted with its session.
func TestTranscriptOverHTTP(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	p := &standalone.Platform{T: t, Server: s}
	ctx, c := t.Context(), p.API()
	sess := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}
	if _, err := c.Sessions("default").Create(ctx, sess, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		m := v1alpha1.SessionMessage{ID: fmt.Sprintf("m%d", i), Role: v1alpha1.RoleUser, Content: fmt.Sprintf("message %d", i)}
		out, err := c.Sessions("default").AppendMessages(ctx, "s", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{m}}, metav1.CreateOptions{})
		if err != nil || out.Items[0].Order != int64(i+1) || out.MessageCount != int64(i+1) || out.Kind != "" && out.Kind != "SessionTranscript" {
			t.Fatalf("append: %+v, %v", out, err)
		}
	}
	if all := p.Transcript("s", 10); len(all) != 25 || all[24].Content != "message 24" {
		t.Errorf("%d messages", len(all))
	}
	first, err := c.Sessions("default").GetTranscript(ctx, "s", metav1.GetOptions{})
	if err != nil || len(first.Items) != 25 || first.MessageCount != 25 {
		t.Errorf("typed get: %+v, %v", first, err)
	}
	_, err = c.Sessions("default").AppendMessages(ctx, "s", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{{Role: "robot"}}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `items[0].role: Unsupported value: "robot"`) {
		t.Errorf("a message of a robot: %v", err)
	}
	if _, err := c.Sessions("default").GetTranscript(ctx, "ghost", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("no session: %v", err)
	}
	s.Restart(t)
	c = p.API()
	raw, err := c.RESTClient().Get().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/sessions/s/transcript").Param("newest", "1").Do(ctx).Raw()
	var page struct {
		Kind  string
		Items []struct{ Content string }
	}
	if err != nil || json.Unmarshal(raw, &page) != nil || page.Kind != "SessionTranscript" || len(page.Items) != 1 || page.Items[0].Content != "message 24" {
		t.Errorf("after a restart: %s, %v", raw, err)
	}
	if err := c.Sessions("default").Delete(ctx, "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sessions("default").Create(ctx, sess, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if all := p.Transcript("s", 10); len(all) != 0 {
		t.Errorf("a session made anew begins with %d messages", len(all))
	}
}
