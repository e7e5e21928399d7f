// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// asked returns the text of each message that a model was sent last.
func asked(model *script.Server) (texts []string) {
	all := model.Exchanges()
	for _, m := range all[len(all)-1].Request.Messages {
		texts = append(texts, m.Text())
	}
	return texts
}

// TestChatPrompt: the instructions have their sections in order, once for a turn, and then those of the user.
func TestChatPrompt(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithChat(t, orchestrator)
	c := p.REST(t, "default", "editor", "platform-editor")
	c.Chat(map[string]any{"message": "hello", "systemPrompt": "Be polite."}, http.StatusOK)
	first := asked(model)[0]
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^</(\w+)>$`).FindAllStringSubmatch(first, -1) {
		sections = append(sections, m[1])
	}
	if got := strings.Join(sections, " "); got != "identity capabilities task_types available_agents available_tools rules examples user_instructions" {
		t.Errorf("sections: %s", got)
	}
	if !strings.Contains(first, "<user_instructions>\nBe polite.\n</user_instructions>") {
		t.Errorf("the user's instructions are missing: %s", first)
	}
}

// TestChatConfig: the configuration has the limits and the tools that work.
func TestChatConfig(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	got := p.REST(t, "default", "viewer", "platform-viewer").Do(http.MethodGet, "/api/v1/chat/config", "")
	var config map[string]any
	if err := json.Unmarshal([]byte(got.Body), &config); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"enabled": true, "maxIterations": 50.0, "maxDuration": "30m0s", "toolTimeout": "1m0s", "maxConcurrent": 10.0, "maxTasksPerTurn": 5.0, "maxSessionSize": 512000.0,
	} {
		if config[name] != want {
			t.Errorf("%s is %v, want %v", name, config[name], want)
		}
	}
	tools, _ := config["availableTools"].([]any)
	want := "create_ai_task create_container_task create_agent_task check_task_progress fetch_task_output wait_for_task cancel_task " +
		"list_agents list_tools list_tasks load_tools create_agent update_agent delete_agent create_tool delete_tool delete_session create_pr_monitor create_pull_request check_pull_request_ci"
	for name := range strings.FieldsSeq(want) {
		if !slices.Contains(tools, any(name)) {
			t.Errorf("tool %s is missing", name)
		}
	}
	if len(tools) != len(strings.Fields(want)) {
		t.Errorf("tools: %v", tools)
	}
}

// TestChatRefusesWithReason: what this version lacks is refused with a reason that the model reads.
func TestChatRefusesWithReason(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: monitor my PRs, offered: [create_pr_monitor]}
  reply:
    toolCalls:
    - {name: create_pr_monitor, arguments: {name: m, repo_url: "https://github.com/o/r/pull/1", schedule: "@hourly", agent_ref: lead}}
    - {name: create_pr_monitor, arguments: {name: m, repo_url: "https://github.com/o/r", schedule: "@hourly", agent_ref: none}}
    - {name: create_pr_monitor, arguments: {name: m, repo_url: "https://github.com/o/r", schedule: "@hourly", agent_ref: alone}}
    - {name: create_pr_monitor, arguments: {name: m, repo_url: "https://github.com/o/r", schedule: "@hourly", agent_ref: lead}}
    - {name: create_pull_request, arguments: {task_name: gone, head_branch: a, base_branch: b, title: x}}
    - {name: check_pull_request_ci, arguments: {pr_number: 1}}
- match: {contains: my connections, offered: [list_connections]}
  reply: {text: list_connections is offered although there are no connectors}
- match: {contains: my connections}
  reply: {text: done}
- match: {contains: in a repository}
  reply:
    toolCalls:
    - {name: create_container_task, arguments: {name: a, command: [make], workspace: {gitRepo: "https://example.com/r", pushBranch: b}}}
    - {name: create_container_task, arguments: {name: b, command: [make], prior_task: other}}
    - {name: create_container_task, arguments: {name: c, command: [make], volume: 1}}
- match: {lastRole: tool}
  reply: {text: done}`)
	for name, key := range map[string]string{"github-credentials": "other", "copilot-token": "GITHUB_TOKEN", "git-token": "token"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: "s-1234567890"}}
		kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	}
	for name, coordination := range map[string]*v1alpha1.AgentCoordination{"lead": {Enabled: true}, "alone": nil} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}, Coordination: coordination}}
		if _, err := p.API().Agents("default").Create(t.Context(), a, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c := p.REST(t, "default", "editor", "platform-editor")
	for message, want := range map[string][]string{
		"monitor my PRs":        {"repo_url: must be", "not found", "coordination", "", "not found", "task_name"},
		"list my connections":   {},
		"build in a repository": {"spec.workspace", "spec.priorTaskRef", "volume"},
	} {
		got := c.Chat(map[string]any{"message": message}, http.StatusOK)
		if len(got.ToolCalls) != len(want) || got.Message != "done" {
			t.Fatalf("%s: %+v", message, got)
		}
		for i, call := range got.ToolCalls {
			if call.Result.Success != (want[i] == "") || !strings.Contains(call.Result.Error, want[i]) {
				t.Errorf("%s: call %d: %+v, want %s", message, i+1, call.Result, want[i])
			}
		}
	}
	checkMonitor(t, p)
}

// checkMonitor checks that a monitor whose Secret is not named has got the first one that is there and has a credential.
func checkMonitor(t *testing.T, p *standalone.Platform) {
	t.Helper()
	all := kit.Must[*v1alpha1.TaskList](t)(p.API().Tasks("default").List(t.Context(), metav1.ListOptions{}))
	if len(all.Items) != 1 {
		t.Fatalf("%d tasks", len(all.Items))
	}
	want := &v1alpha1.WorkspaceCredentialReference{Name: "copilot-token", Key: "GITHUB_TOKEN"}
	if w := all.Items[0].Spec.Workspace; !reflect.DeepEqual(w.ReadCredentialRef, want) || !reflect.DeepEqual(w.ForgeCredentialRef, want) {
		t.Errorf("%+v", w)
	}
}

// TestChatCreatesAgents: an agent gets resources, or a runtime in place of a provider.
func TestChatCreatesAgents(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: create}
  reply:
    toolCalls:
    - {name: create_agent, arguments: {name: sized, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}}
    - {name: create_agent, arguments: {name: coder, runtime: {type: claude, defaultAllowBash: false, defaultAllowedTools: []}, initialPrompt: begin}}
    - {name: create_agent, arguments: {name: wrong, resources: {limits: {memory: much}}}}
- match: {regexp: "."}
  reply: {text: done}`)
	c := p.REST(t, "default", "editor", "platform-editor")
	got := c.Chat(map[string]any{"message": "create agents"}, http.StatusOK)
	if r := got.ToolCalls[2].Result; r.Success || !strings.Contains(r.Error, "resources.limits.memory") {
		t.Errorf("a wrong quantity: %+v", r)
	}
	agents := p.API().Agents("default")
	sized, err := agents.Get(t.Context(), "sized", metav1.GetOptions{})
	if err != nil || sized.Spec.Resources.Requests.Cpu().String() != "500m" || sized.Spec.Resources.Limits.Memory().String() != "1Gi" || sized.Spec.ProviderRef.Name != "default" {
		t.Errorf("%+v, %v", sized.Spec, err)
	}
	coder, err := agents.Get(t.Context(), "coder", metav1.GetOptions{})
	if err != nil || coder.Spec.ProviderRef != nil || coder.Spec.Runtime.Type != v1alpha1.RuntimeClaude || *coder.Spec.Runtime.DefaultAllowBash || coder.Spec.Runtime.DefaultAllowedTools == nil {
		t.Errorf("%+v, %v", coder.Spec, err)
	}
	data, _ := got.ToolCalls[1].Result.Data.(map[string]any)
	name, _ := data["taskName"].(string)
	task, err := p.Tasks().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || task.Spec.Type != v1alpha1.TaskTypeAgent || task.Spec.Prompt != "begin" {
		t.Errorf("its task %q: %+v, %v", name, task.Spec, err)
	}
}

const starter = `
models: [scripted-1]
turns:
- match: {contains: start it}
  reply: {toolCalls: [{name: create_container_task, arguments: {name: one, command: ["true"]}}]}
- name: wait
  match: {contains: have not ended, turn: 3}
  reply: {text: "I wait.", toolCalls: [{name: wait_for_task, arguments: {name: "{{ .Results.create_container_task.data.name }}", timeout: 60}}]}
- match: {contains: '"phase":"Cancelled"'}
  reply: {text: It was cancelled.}
- match: {lastRole: tool}
  reply: {text: It runs.}
- match: {contains: have not ended}
  reply: {text: It runs.}
`

// TestChatWaitsForItsTasks: a model that answers while a task of the turn runs is asked whether it should not wait. Its
// answer to that stands, unless it does wait.
func TestChatWaitsForItsTasks(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithChat(t, starter)
	c := p.REST(t, "default", "editor", "platform-editor")
	next, _ := openChat(c, t.Context(), map[string]any{"message": "start it"})
	text := ""
	for kind, f := next(); kind != "done"; kind, f = next() {
		switch {
		case kind == "" || kind == "error":
			t.Fatalf("the turn ended with %q %+v", kind, f.Error)
		case kind == "tool_call" && f.ToolCall.Name == "wait_for_task":
			list, err := p.Tasks().List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%d tasks, %v", len(list.Items), err)
			}
			one := &list.Items[0]
			one.Status.Phase = v1alpha1.TaskCancelled // no controller runs
			if _, err := p.Tasks().UpdateStatus(t.Context(), one, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		case kind == "message":
			text += f.Content
		}
	}
	if text != "It runs.\n\nI wait.It was cancelled." {
		t.Errorf("the text is %q", text)
	}
	if refused := model.Refused(); len(refused) > 0 {
		t.Errorf("the model refused %v", refused)
	}
}

// TestChatDoesNotWait: a model that repeats its answer has decided not to wait, and where the limit is 0 it is not asked.
func TestChatDoesNotWait(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	for limit, calls := range map[int]int64{0: 2, 3: 3} {
		p, _ := standalone.WithChat(t, strings.Replace(starter, "turn: 3", "turn: 9", 1), func(o *standalone.Options) { o.Chat.MaxPrematureEnds = limit })
		c := p.REST(t, "default", "editor", "platform-editor")
		if got := c.Chat(map[string]any{"message": "start it"}, http.StatusOK); got.Message != "It runs." || got.Usage.LLMCalls != calls {
			t.Errorf("limit %d: %+v", limit, got)
		}
	}
}

// TestChatIsToldAgain: a model that neither waits nor repeats its answer is told again, as often as the limit says, and also of
// tasks of earlier turns. Tasks that wait for their schedule, and those of other chats, do not count.
func TestChatIsToldAgain(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: start it}
  reply:
    toolCalls:
    - {name: create_container_task, arguments: {name: one, command: ["true"]}}
    - {name: create_container_task, arguments: {name: often, command: ["true"], schedule: "@yearly"}}
- match: {contains: have not ended, turn: 3}
  reply: {text: Second answer.}
- match: {contains: have not ended, turn: 4}
  reply: {text: Third answer.}
- match: {contains: have not ended, turn: 5}
  reply: {text: Fourth answer.}
- match: {regexp: "."}
  reply: {text: First answer.}
`, func(o *standalone.Options) { o.Chat.MaxPrematureEnds = 2 })
	c := p.REST(t, "default", "editor", "platform-editor")
	first := c.Chat(map[string]any{"message": "start it"}, http.StatusOK)
	if first.Usage.LLMCalls != 4 {
		t.Errorf("the first turn: %+v", first)
	}
	if other := c.Chat(map[string]any{"message": "hello"}, http.StatusOK); other.Usage.LLMCalls != 1 {
		t.Errorf("another chat: %+v", other)
	}
	next := c.Chat(map[string]any{"message": "hello", "sessionId": first.SessionID}, http.StatusOK)
	if next.Usage.LLMCalls != 3 {
		t.Errorf("the next turn: %+v", next)
	}
	all := model.Exchanges()
	messages := all[len(all)-1].Request.Messages
	if told := messages[len(messages)-1].Text(); !strings.Contains(told, "-one. ") || strings.Contains(told, "often") {
		t.Errorf("the model was told %q", told)
	}
}

// TestChatContextIsTrimmed: before each question the conversation is trimmed to the size of a session.
func TestChatContextIsTrimmed(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const size = 20_000
	fetch := "    - {name: fetch_task_output, arguments: {name: over}}\n"
	p, model := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: look, lastRole: user}
  reply:
    toolCalls:
`+strings.Repeat(fetch, 8)+`
- match: {lastRole: tool, step: 2}
  reply:
    toolCalls:
`+strings.Repeat(fetch, 8)+`
- match: {regexp: "."}
  reply: {text: "`+strings.Repeat("so it goes ", 600)+`"}
`, func(o *standalone.Options) { o.Chat.MaxSessionBytes = size })
	over(p, strings.Repeat("x", 5000))
	c := p.REST(t, "default", "editor", "platform-editor")
	session := ""
	for range 4 {
		session = c.Chat(map[string]any{"message": "say something", "sessionId": session}, http.StatusOK).SessionID
	}
	c.Chat(map[string]any{"message": "look", "sessionId": session, "systemPrompt": strings.Repeat("instructions ", 4000)}, http.StatusOK)
	for i, x := range model.Exchanges() {
		bytes := 0
		for _, m := range x.Request.Messages {
			if m.Role != "system" {
				bytes += len(m.Text())
			}
		}
		if bytes > size+1000 {
			t.Errorf("request %d has %d bytes of conversation", i+1, bytes)
		}
	}
}

// TestChatErrors: why a turn ended without an answer has a code in the stream, and a status of its own as JSON.
func TestChatErrors(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: refuse}
  fault: {status: 400, code: invalid_value, message: no such thing}
- match: {contains: too long}
  fault: {status: 400, code: context_length_exceeded, message: too long}
`)
	now := &passing{limit: 3 * time.Hour, wait: 41 * time.Second}
	slow, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: slow}
  reply: {text: I begin., toolCalls: [{name: wait_for_task, arguments: {name: forever, timeout: 41}}]}`, func(o *standalone.Options) { o.Clock, o.Chat.MaxDuration = now, now.limit })
	neverEnds(slow, "forever")
	c, cut := p.REST(t, "default", "editor", "platform-editor"), slow.Server.REST(t, "default", "editor", "platform-editor")
	for message, want := range map[string]struct {
		as     *standalone.Client
		code   string
		status int
	}{
		"refuse":   {c, "provider_error", http.StatusBadGateway},
		"too long": {c, "context_too_long", http.StatusRequestEntityTooLarge},
		"slow":     {cut, "timeout", http.StatusOK}, // with a message that explains it
	} {
		frames := chatStream(want.as, t.Context(), map[string]any{"message": message})
		last := frames[len(frames)-1]
		if last.event != "error" || last.Error == nil || last.Error.Code != want.code || last.Error.Message == "" {
			t.Errorf("%s: the last frame is %s %s", message, last.event, last.data)
		}
		got := want.as.Chat(map[string]any{"message": message}, want.status)
		if want.status == http.StatusOK && (got.Outcome != "TimedOut" || !strings.Contains(got.Message, "took as long as the server allows")) {
			t.Errorf("%s: %+v", message, got)
		}
	}
}

// neverEnds creates a task, which nothing runs.
func neverEnds(p *standalone.Platform, name string) {
	p.T.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "x", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}},
	}}
	if _, err := p.Tasks().Create(p.T.Context(), task, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
}

// TestChatHeartbeats: while nothing happens, both streams of a turn carry comments, three in the time that a client has to accept one.
func TestChatHeartbeats(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithChat(t, waitingModel, func(o *standalone.Options) {
		o.StreamWriteTimeout = 27 * time.Second
		o.Clock = quickclock.Hasty{Takes: map[time.Duration]time.Duration{9 * time.Second: 10 * time.Millisecond}}
	})
	neverEnds(p, "forever")
	c := p.REST(t, "default", "editor", "platform-editor")
	for _, body := range []string{`{"message":"wait for it"}`, `{"message":"wait for it","sessionId":"s","background":true}`} {
		awaitHeartbeat(c, http.MethodPost, "/api/v1/chat", body)
	}
	awaitHeartbeat(c, http.MethodGet, "/api/v1/chat/s/stream", "")
}

// awaitHeartbeat reads a stream until its second heartbeat.
func awaitHeartbeat(c *standalone.Client, method, path, body string) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	defer cancel()
	resp := c.Open(ctx, method, path, body)
	defer resp.Body.Close()
	beats := 0
	for in := bufio.NewScanner(resp.Body); beats < 2; {
		if !in.Scan() {
			c.T.Fatalf("%s %s: %d heartbeats, then %v", method, path, beats, in.Err())
		}
		if in.Text() == ": heartbeat" {
			beats++
		}
	}
}

// TestChatTaskTools: what the tools for tasks take and return beyond their names.
func TestChatTaskTools(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: "look at it", lastRole: user}
  reply:
    toolCalls:
    - {name: create_container_task, arguments: {name: plain, image: busybox}}
    - {name: fetch_task_output, arguments: {name: over}}
    - {name: wait_for_task, arguments: {name: over}}
    - {name: list_tasks, arguments: {limit: 5000}}
- match: {regexp: "."}
  reply: {text: done}`)
	long := strings.Repeat("ä", 2001)
	over(p, long)
	c := p.REST(t, "default", "editor", "platform-editor")
	got := c.Chat(map[string]any{"message": "look at it"}, http.StatusOK)
	if len(got.ToolCalls) != 4 {
		t.Fatalf("%+v", got)
	}
	for _, call := range got.ToolCalls {
		if !call.Result.Success {
			t.Errorf("%s: %+v", call.Name, call.Result)
		}
	}
	data := func(i int) map[string]any { m, _ := got.ToolCalls[i].Result.Data.(map[string]any); return m }
	output, _ := data(1)["output"].(string)
	if kept, mark, _ := strings.Cut(output, " "); kept != strings.Repeat("ä", 2000) || mark != "… [shortened]" {
		t.Errorf("output: %d characters and %q", utf8.RuneCountInString(kept), mark)
	}
	outcome, _ := data(2)["executionOutcome"].(map[string]any)
	if _, has := data(2)["executionWorkspace"]; outcome["attempt"] != 2.0 || !has {
		t.Errorf("wait_for_task: %v", data(2))
	}
	if list, _ := got.ToolCalls[3].Result.Data.([]any); len(list) != 2 {
		t.Errorf("list_tasks: %v", list)
	}
}

// TestChatCreatesTasks: tools that create tasks say what was asked for, and a turn creates no more of them than it may.
func TestChatCreatesTasks(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: "do it all", lastRole: user}
  reply:
    toolCalls:
    - {name: create_ai_task, arguments: {name: think, prompt: Think., sessionRef: notes, priority: 7, timeout: 20m}}
    - {name: create_agent_task, arguments: {name: code, prompt: Repair it., agentRef: coder, maxTurns: 3}}
    - {name: create_container_task, arguments: {name: third, command: ["true"]}}
    - {name: list_tools, arguments: {}}
- match: {regexp: "."}
  reply: {text: done}`, func(o *standalone.Options) { o.Chat.MaxTasksPerTurn, o.Chat.MaxPrematureEnds = 2, 0 })
	coder := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeClaude}}}
	if _, err := p.API().Agents("default").Create(t.Context(), coder, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lookup(p)
	c := p.REST(t, "default", "editor", "platform-editor")
	got := c.Chat(map[string]any{"message": "do it all"}, http.StatusOK)
	if len(got.ToolCalls) != 4 || got.Usage.TasksCreated != 2 {
		t.Fatalf("%+v", got)
	}
	made := func(i int) v1alpha1.TaskSpec {
		data, _ := got.ToolCalls[i].Result.Data.(map[string]any)
		name, _ := data["name"].(string)
		task, err := p.Tasks().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("%+v: %v", got.ToolCalls[i], err)
		}
		return task.Spec
	}
	if s := made(0); s.Type != v1alpha1.TaskTypeAI || s.Prompt != "Think." || *s.Priority != 7 || s.Timeout.Value() != 20*time.Minute ||
		s.SessionRef.Name != "notes" || !s.SessionRef.Create || s.AI.ProviderRef.Name != "default" || s.AI.Model != "scripted-1" {
		t.Errorf("create_ai_task: %+v", s)
	}
	if s := made(1); s.Type != v1alpha1.TaskTypeAgent || s.Prompt != "Repair it." || s.AgentRef.Name != "coder" || *s.AgentRuntime.MaxTurns != 3 {
		t.Errorf("create_agent_task: %+v", s)
	}
	if r := got.ToolCalls[2].Result; r.Success || r.ErrorType != "limit_reached" || !strings.Contains(r.Error, "has created 2 tasks") {
		t.Errorf("the third task: %+v", r)
	}
	if list := jsonText(t, got.ToolCalls[3].Result); !strings.Contains(list, "lookup") {
		t.Errorf("list_tools: %s", list)
	}
}

// TestChatRemoves: tools that cancel and delete do so, and say what there was to do.
func TestChatRemoves(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: "delete it all", lastRole: user}
  reply:
    toolCalls:
    - {name: cancel_task, arguments: {name: waits}}
    - {name: cancel_task, arguments: {name: over}}
    - {name: delete_session, arguments: {sessionId: old}}
    - {name: delete_tool, arguments: {name: lookup}}
    - {name: delete_session, arguments: {sessionId: mine}}
- match: {regexp: "."}
  reply: {text: done}`)
	ctx, client := t.Context(), p.API()
	over(p, "fine")
	waits := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	if _, err := p.Tasks().Create(ctx, waits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "mine"} {
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}
		if _, err := client.Sessions("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lookup(p)
	c := p.REST(t, "default", "editor", "platform-editor")
	got := c.Chat(map[string]any{"message": "delete it all", "sessionId": "mine"}, http.StatusOK)
	if len(got.ToolCalls) != 5 {
		t.Fatalf("%+v", got)
	}
	for i, says := range []string{"the cancellation was requested", "the task had ended before: it is Succeeded", "the session was deleted", "the tool was deleted", "mine is the session of this chat"} {
		if r := got.ToolCalls[i].Result; r.Success != (i < 4) || !strings.Contains(jsonText(t, r), says) {
			t.Errorf("%s: %+v, want %q", got.ToolCalls[i].Name, r, says)
		}
	}
	if now, err := p.Tasks().Get(ctx, "waits", metav1.GetOptions{}); err != nil || !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		t.Errorf("the task that was cancelled: %+v, %v", now, err)
	}
	if _, err := client.Sessions("default").Get(ctx, "old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the session that was deleted: %v", err)
	}
	if _, err := client.Tools("default").Get(ctx, "lookup", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the tool that was deleted: %v", err)
	}
}

// TestChatLoadsTools: a user whose words the server does not know gets what they ask for.
func TestChatLoadsTools(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: "lösche", lastRole: user, offered: [load_tools]}
  reply: {toolCalls: [{name: load_tools, arguments: {for: delete, words: "lösche das Werkzeug lookup"}}]}
- match: {step: 2, offered: [delete_tool]}
  reply: {toolCalls: [{name: delete_tool, arguments: {name: lookup}}]}
- match: {step: 3}
  reply: {text: Es ist weg.}`)
	lookup(p)
	got := p.REST(t, "default", "editor", "platform-editor").Chat(map[string]any{"message": "Bitte lösche das Werkzeug lookup."}, http.StatusOK)
	if len(got.ToolCalls) != 2 || !got.ToolCalls[0].Result.Success || !got.ToolCalls[1].Result.Success {
		t.Fatalf("%+v, refused %v", got, model.Refused())
	}
	if _, err := p.API().Tools("default").Get(t.Context(), "lookup", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the tool that was deleted: %v", err)
	}
}

// lookup makes a tool of that name.
func lookup(p *standalone.Platform) {
	p.T.Helper()
	lookup := &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: "lookup"}, Spec: v1alpha1.ToolSpec{Description: "looks up", HTTP: &v1alpha1.ToolHTTP{URL: "https://example.com/"}}}
	if _, err := p.API().Tools("default").Create(p.T.Context(), lookup, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
}

// over makes a task that has ended with a result.
func over(p *standalone.Platform, result string) {
	p.T.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "over"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Image: "x", Command: []string{"true"}}}
	task, err := p.Tasks().Create(p.T.Context(), task, metav1.CreateOptions{})
	if err != nil {
		p.T.Fatal(err)
	}
	if err := p.API().RESTClient().Post().AbsPath(standalone.TasksPath, "over", "result").Body([]byte(result)).Do(p.T.Context()).Error(); err != nil {
		p.T.Fatal(err)
	}
	task.Status.Phase = v1alpha1.TaskSucceeded
	task.Status.ExecutionOutcome = &v1alpha1.TaskExecutionOutcome{Phase: v1alpha1.TaskSucceeded, Attempt: 2}
	task.Status.ExecutionWorkspace = &v1alpha1.TaskExecutionWorkspaceStatus{}
	if _, err := p.Tasks().UpdateStatus(p.T.Context(), task, metav1.UpdateOptions{}); err != nil {
		p.T.Fatal(err)
	}
}

// endChat ends a session's turn, and asks again as long as it has not ended.
func endChat(c *standalone.Client, session string) {
	c.T.Helper()
	var got host.Answer
	kit.Await(c.T, "the end of the turn", func() bool {
		got = c.Do(http.MethodDelete, "/api/v1/chat/"+session, "")
		return got.Code != http.StatusConflict
	})
	got.Want(c.T, http.StatusNoContent)
}
