// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// saidSecret is what an agent shows to its model.
const saidSecret = "ghp_0123456789abcdefghijklmnopqrstuvwxAB"

// recordedAt returns what is recorded beside the nth event of a type.
func (a *asking) recordedAt(task string, typ v1alpha1.EventType, n int) *v1alpha1.RecordedEntry {
	a.t.Helper()
	events := a.EventsOf(task, typ)
	if len(events) <= n {
		a.t.Fatalf("%s has %d events %s", task, len(events), typ)
	}
	var r v1alpha1.TaskRecording
	err := a.API().RESTClient().Get().Namespace("default").Resource("tasks").Name(task).Suffix("recording", strconv.FormatInt(events[n].Seq, 10)).Do(a.t.Context()).Into(&r)
	if err != nil || len(r.Entries) != 1 {
		a.t.Fatalf("%s, the event %d of %s: %v", typ, n, task, err)
	}
	return &r.Entries[0]
}

// records sets how much of the tasks of an agent is recorded.
func (a *asking) records(agent string, mode v1alpha1.RecordingMode) {
	a.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes its status
		o := kit.Must[*v1alpha1.Agent](a.t)(a.API().Agents("default").Get(a.t.Context(), agent, metav1.GetOptions{}))
		o.Spec.Recording = &v1alpha1.AgentRecording{Mode: mode}
		_, err := a.API().Agents("default").Update(a.t.Context(), o, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

func rolesOf(e *v1alpha1.RecordedEntry) string {
	var list []string
	for _, p := range e.Conversation {
		if list = append(list, "-"); p.Message != nil {
			list[len(list)-1] = p.Message.Role
		}
	}
	return strings.Join(list, " ")
}

// TestCodingAgentRecorded: what a coding agent says to its model and what it is answered is recorded beside the events of its requests, in
// the protocol of either vendor and whether it is a stream or not, as far as its Agent wants, and without secrets. What was said before is
// found once.
func TestCodingAgentRecorded(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	a := newAsking(t)
	turns := `"messages":[{"role":"user","content":"a token ` + saidSecret + `"},{"role":"assistant","content":"forty-two"},{"role":"user","content":"once more"}]`
	chat := "do: ask a token " + saidSecret + "\ndo: post {\"stream\":true," + turns + `,"tools":[{"type":"function","function":{"name":"dig","description":"digs","parameters":{"type":"object"}}}]}`
	messages := "do: ask a token " + saidSecret + "\ndo: post {\"stream\":true," + turns + `,"system":"be brief","tools":[{"name":"dig","description":"digs","input_schema":{"type":"object"}}]}`
	a.task("codex", "codex", chat)
	a.task("claude", "claude", messages)
	for task, roles := range map[string]string{"codex": "user assistant user", "claude": "system user assistant user"} {
		a.AwaitPhase(task, v1alpha1.TaskSucceeded)
		first, second := a.recordedAt(task, v1alpha1.EventModelRequestStarted, 0), a.recordedAt(task, v1alpha1.EventModelRequestStarted, 1)
		if rolesOf(first) != "user" || !strings.HasPrefix(first.Conversation[0].Message.Text, "a token ") || first.Tools != nil || first.Parameters.MaxTokens != 1000 {
			t.Errorf("%s, the first request: %+v", task, first)
		}
		if got := rolesOf(second); got != roles || second.Conversation[len(second.Conversation)-1].Message.Text != "once more" {
			t.Errorf("%s, the second request: %s", task, got)
		}
		if second.Tools == nil || len(second.Tools.Tools) != 1 || second.Tools.Tools[0].Name != "dig" || second.Tools.Tools[0].Parameters == nil {
			t.Errorf("%s, the tools: %+v", task, second.Tools)
		}
		for n := range 2 {
			if m := a.recordedAt(task, v1alpha1.EventModelRequestCompleted, n).Message; m == nil || m.Message == nil || m.Message.Text != "forty-two" {
				t.Errorf("%s, the answer %d: %+v", task, n, m)
			}
		}
		out, errs, code := standalone.Command(t.Context(), a.Kubeconfig, "task", "search", task, "A TOKEN")
		if code != 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, string(v1alpha1.EventModelRequestStarted)) {
			t.Errorf("platform task search %s: exit code %d\n%s%s", task, code, out, errs)
		}
		out, errs, code = standalone.Command(t.Context(), a.Kubeconfig, "task", "show", task, strconv.FormatInt(second.Seq, 10))
		if code != 0 || !strings.Contains(out, "once more") || strings.Contains(out, saidSecret) {
			t.Errorf("platform task show %s: exit code %d\n%s%s", task, code, out, errs)
		}
		raw, err := json.Marshal([]any{first, second})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), saidSecret) {
			t.Errorf("%s: a secret is recorded", task)
		}
	}

	a.records("codex", v1alpha1.RecordingDigests)
	a.task("digests", "codex", "do: ask hello")
	a.AwaitPhase("digests", v1alpha1.TaskSucceeded)
	if p := a.recordedAt("digests", v1alpha1.EventModelRequestStarted, 0).Conversation[0]; p.Omitted != "DigestsOnly" || len(p.Digest) != 64 || p.Message.Text != "" {
		t.Errorf("digests alone: %+v", p)
	}
	a.records("codex", v1alpha1.RecordingOff)
	a.task("off", "codex", "do: ask hello")
	a.AwaitPhase("off", v1alpha1.TaskSucceeded)
	off := kit.Must[*v1alpha1.TaskRecording](t)(a.Tasks().GetRecording(t.Context(), "off", metav1.GetOptions{}))
	for _, e := range off.Entries {
		if e.Type == v1alpha1.EventModelRequestStarted || e.Type == v1alpha1.EventModelRequestCompleted {
			t.Errorf("a request of an agent without a recording: %+v", e)
		}
	}
}

// TestCodingAgentRecordedLies: what an agent puts into its body is kept as far as it fits, and hinders no request.
func TestCodingAgentRecordedLies(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	a := newAsking(t)
	role := strings.Repeat("r", 1000)
	messages := []any{map[string]any{"role": role, "content": "x"}, map[string]any{"role": "user", "content": map[string]any{"strange": true}}, 7, nil, "text", []any{}}
	for i := range 9000 { // two messages in turns, which are as many ranges
		messages = append(messages, map[string]any{"role": "user", "content": strconv.Itoa(i % 2)})
	}
	lies, err := json.Marshal(map[string]any{"messages": messages, "tools": []any{map[string]any{"type": "function"}, 7}, "recording": map[string]any{"mode": "Off", "first": -1}})
	if err != nil {
		t.Fatal(err)
	}
	a.task("lies", "codex", "do: post "+string(lies)+"\ndo: ask hello")
	a.AwaitPhase("lies", v1alpha1.TaskSucceeded)
	first := a.recordedAt("lies", v1alpha1.EventModelRequestStarted, 0)
	if n := len(first.Conversation); n < 1000 || n > 9010 || first.Conversation[n-1].Omitted != "Missing" {
		t.Errorf("%d messages are recorded, %+v", n, first.Conversation[max(0, n-1):])
	}
	if p := first.Conversation[0]; p.Message == nil || len(p.Message.Role) > 64 {
		t.Errorf("a long role: %+v", p.Message)
	}
	if e := a.recordedAt("lies", v1alpha1.EventModelRequestStarted, 1); rolesOf(e) != "user" || e.Conversation[0].Message.Text != "hello" {
		t.Errorf("the next request: %+v", e)
	}
}

// TestCodingAgentRecordedRestart: a server that starts in the middle of a task goes on with the numbers of its parts, and stores nothing
// again that was said before.
func TestCodingAgentRecordedRestart(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	a := newAsking(t, standalone.OnAPort(t))
	turns := `"messages":[{"role":"user","content":"before the restart ` + saidSecret + `"}`
	a.task("goes-on", "codex", "do: post {"+turns+"]}\ndo: shell mkfifo gate; cat gate\ndo: post {"+turns+`,{"role":"assistant","content":"forty-two"},{"role":"user","content":"after it"}]}`)
	kit.Await(t, "the agent has asked", func() bool { return len(a.EventsOf("goes-on", v1alpha1.EventModelRequestCompleted)) == 1 })
	task := kit.Must[*v1alpha1.Task](t)(a.Tasks().Get(t.Context(), "goes-on", metav1.GetOptions{}))
	var gate string
	kit.Await(t, "the agent waits", func() bool {
		found, _ := filepath.Glob(filepath.Join(a.Folder(task), "*", "gate"))
		if len(found) == 0 {
			found, _ = filepath.Glob(filepath.Join(a.Folder(task), "*", "*", "gate"))
		}
		if len(found) > 0 {
			gate = found[0]
		}
		return gate != ""
	})
	a.Restart(t)
	if err := os.WriteFile(gate, []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	a.AwaitPhase("goes-on", v1alpha1.TaskSucceeded)
	first, second := a.recordedAt("goes-on", v1alpha1.EventModelRequestStarted, 0), a.recordedAt("goes-on", v1alpha1.EventModelRequestStarted, 1)
	if got := rolesOf(second); got != "user assistant user" || second.Conversation[0].Message.Text != first.Conversation[0].Message.Text || second.Conversation[2].Message.Text != "after it" {
		t.Errorf("the request after the restart: %+v", second)
	}
	for text, at := range map[string]int64{"before the restart": first.Seq, "after it": second.Seq} {
		out, errs, code := standalone.Command(t.Context(), a.Kubeconfig, "task", "search", "goes-on", text)
		if code != 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, strconv.FormatInt(at, 10)+"\t") {
			t.Errorf("%q: exit code %d\n%s%s, want the event %d alone", text, code, out, errs, at)
		}
	}
}
