// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runners"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// leaving leaves a process in a session of its own running, prints more than a result may hold, and prints a key.
const leaving = `setsid sleep 1000 >/dev/null 2>&1 & head -c 3000000 /dev/zero | tr '\0' x; echo; echo ` + providerKey

// maxConforming is the largest result text that the API server accepts, in bytes.
const maxConforming = 10 << 20

// example holds the tasks with which the rules of runners are tested for one runner.
type example struct {
	// loud runs leaving, and succeeds.
	loud v1alpha1.TaskSpec
	// stuck works until it is stopped. Once it does, there is a file "begun" in the work folder, or a model has been asked.
	stuck v1alpha1.TaskSpec
	// broken fails.
	broken v1alpha1.TaskSpec
}

// examples returns one example for each runner.
func examples() map[v1alpha1.TaskType]example {
	command := func(text string) v1alpha1.TaskSpec {
		return v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"bash", "-c", text}}
	}
	prompt := func(text string) v1alpha1.TaskSpec {
		return v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: text, AI: &v1alpha1.TaskAI{
			ProviderRef: &v1alpha1.NamespacedReference{Name: "p"}, Tools: []string{"code_exec"},
		}}
	}
	coding := func(text string) v1alpha1.TaskSpec {
		return v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAgent, Prompt: text, AgentRef: &v1alpha1.NamespacedReference{Name: "coder"}}
	}
	return map[v1alpha1.TaskType]example{
		v1alpha1.TaskTypeContainer: {
			loud: command(leaving), stuck: command("setsid sleep 1000 & head -c 20000000 /dev/zero | tr '\\0' x; touch begun; wait"), broken: command("head -c 20000000 /dev/zero | tr '\\0' x; exit 3"),
		},
		v1alpha1.TaskTypeAgent: {loud: coding("loud"), stuck: coding("stuck"), broken: coding("broken")},
		v1alpha1.TaskTypeAI:    {loud: prompt("loud"), stuck: prompt("stuck"), broken: prompt("broken")},
	}
}

// codingAgent is a coding agent for the examples. The ids of its client's requests count from 1.
const codingAgent = `#!/bin/bash
said() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; }
while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}' ;;
*loud*)
  said "$( (` + leaving + `) | tr '\n' ' ')"
  echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}' ;;
*stuck*) setsid sleep 1000 & said waiting; touch begun ;;
*broken*) setsid sleep 1000 & exit 3 ;;
esac; done`

// vendor serves a model for the examples. It sends on begun when it is asked "stuck".
func vendor(t *testing.T, begun chan<- struct{}) *httptest.Server {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"language": "bash", "code": leaving})
	if err != nil {
		t.Fatal(err)
	}
	turns := fmt.Sprintf(`{"turns": [
		{"match": {"turn": 1, "contains": "loud"}, "reply": {"toolCalls": [{"name": "code_exec", "arguments": %s}]}},
		{"match": {"turn": 2}, "reply": {"text": "it said %s"}},
		{"match": {"contains": "stuck"}, "reply": {"text": "wait"}, "fault": {"stall": true}},
		{"match": {"contains": "broken"}, "fault": {"status": 401, "message": "no such key"}}]}`, arguments, providerKey)
	s, err := script.Parse([]byte(turns))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(s, io.Discard)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("stuck")) {
			begun <- struct{}{}
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// trial is one run of an example.
type trial struct {
	*worker
	run   *runner.Run
	begun chan struct{}

	mu   sync.Mutex
	sent bytes.Buffer // bodies of all requests to the API
}

func try(t *testing.T, spec v1alpha1.TaskSpec) *trial {
	t.Helper()
	x := &trial{begun: make(chan struct{}, 1)}
	provider := &v1alpha1.Provider{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Provider"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", BaseURL: vendor(t, x.begun).URL + "/v1"},
	}
	agent := &v1alpha1.Agent{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Agent"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "coder"},
		Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}},
	}
	program := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(program, []byte(codingAgent), 0o700); err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			if strings.Contains(r.URL.Path, "/agents/") {
				_ = json.NewEncoder(w).Encode(agent)
				return
			}
			_ = json.NewEncoder(w).Encode(provider)
			return
		}
		body, _ := io.ReadAll(r.Body) // what is created is answered as it is
		x.mu.Lock()
		defer x.mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/toolcalls") { // policies see the exact arguments; nobody stores them
			x.sent.Write(body)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}))
	t.Cleanup(api.Close)
	made := newTestWorker(t, func(c *Config) {
		c.ServerURL, c.HostCommands, c.Agents.Given = api.URL, true, agentprogram.Given{v1alpha1.RuntimeCodex: program}
		c.Credentials.ProviderKeys = map[string]string{"ns/p": providerKey}
	})
	a, err := newAPI(made.config, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	x.worker = newWorker(made.config, a, clock.RealClock{})
	task := theTask()
	task.UID, task.Spec = uuid.NewUUID(), spec
	x.run = x.given(task)
	x.log.out.start(t.Context())
	x.events.out.start(t.Context())
	return x
}

// processes returns the commands of the processes that the run started and that still exist.
func (x *trial) processes() []string {
	mark := []byte("PLATFORM_TASK_UID=" + string(x.run.Task.UID) + "\x00")
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	var left []string
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, mark) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			left = append(left, string(bytes.ReplaceAll(command, []byte{0}, []byte(" "))))
		}
	}
	return left
}

// over fails if a process of the run is left, or if a secret was written.
func (x *trial) over(t *testing.T) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %q", left)
		}
	}()
	kit.Await(t, "no process is left", func() bool { // the kernel takes a moment for killed ones
		left = x.processes()
		return len(left) == 0
	})
	x.closeOutboxes(t.Context())
	x.mu.Lock()
	defer x.mu.Unlock()
	if said := logged(x.worker) + x.sent.String(); strings.Contains(said, providerKey) {
		t.Errorf("a key was recorded: %.2000s", said)
	}
}

// TestConformance: every runner follows the rules of package runner.
func TestConformance(t *testing.T) {
	list := examples()
	for kind, r := range runners.All() {
		example, ok := list[kind]
		if !ok {
			t.Errorf("there is no example for the runner of type %s: add one", kind)
			continue
		}
		t.Run(string(kind), func(t *testing.T) { conforms(t, r, example) })
	}
}

func conforms(t *testing.T, r runner.Runner, e example) {
	reasons, err := os.ReadFile("../../artifacts/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("loud", func(t *testing.T) {
		x := try(t, e.loud)
		result, err := r.Run(t.Context(), x.run)
		if err != nil || result.Text == "" || len(result.Text) > maxConforming {
			t.Errorf("%v, and %d bytes of result", err, len(result.Text))
		}
		x.over(t)
	})
	t.Run("stuck", func(t *testing.T) {
		x := try(t, e.stuck)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			defer stop()
			kit.Await(t, "the work has begun, or is over", func() bool {
				select {
				case <-x.begun:
					return true
				case <-ctx.Done():
					return true
				default:
				}
				_, err := os.Stat(filepath.Join(x.run.WorkDir, "begun"))
				return err == nil
			})
		}()
		result, err := r.Run(ctx, x.run)
		if f, ok := errors.AsType[*runner.Error](err); !ok || f.Reason != v1alpha1.ReasonWorkerStopped || len(result.Text) > maxConforming {
			t.Errorf("stopped, it ends with %v, and %d bytes of result", err, len(result.Text))
		}
		x.over(t)
	})
	t.Run("broken", func(t *testing.T) {
		x := try(t, e.broken)
		result, err := r.Run(t.Context(), x.run)
		f, ok := errors.AsType[*runner.Error](err)
		if len(result.Text) > maxConforming {
			t.Errorf("%d bytes of result", len(result.Text))
		}
		if !ok || !strings.Contains(string(reasons), "`"+f.Reason+"`") {
			t.Errorf("it fails with %v, which has no documented reason", err)
		}
		x.over(t)
	})
}
