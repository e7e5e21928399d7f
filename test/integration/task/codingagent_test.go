// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// newCoding returns a server that publishes, where the scripted agent is the program of codex, and no other one is installed. Its Agent
// is "coder".
func newCoding(t *testing.T) *publishing {
	t.Helper()
	agent := kit.Bin(t, "scriptedagent")
	t.Setenv("PATH", "/usr/bin:/bin")
	p := newPublishing(t, "codex="+agent)
	for name, kind := range map[string]v1alpha1.AgentRuntimeType{"coder": v1alpha1.RuntimeCodex, "absent": v1alpha1.RuntimeOpenCode} {
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: kind}, SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: "Be brief."}},
		}, metav1.CreateOptions{}))
	}
	return p
}

// code creates a task of an agent on the repository.
func (p *publishing) code(name, agent, prompt string, intent v1alpha1.WorkspaceIntent) *v1alpha1.Task {
	p.t.Helper()
	return p.Run(name, func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, prompt, &v1alpha1.NamespacedReference{Name: agent}
		s.Workspace = &v1alpha1.TaskWorkspace{
			GitRepo: p.host.Location("shop"), Branch: "main", Intent: intent, ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"},
		}
		if intent == v1alpha1.WorkspaceWrite {
			s.Workspace.PublicationReadCredentialRef, s.Workspace.PublicationCredentialRef = s.Workspace.ReadCredentialRef, &v1alpha1.WorkspaceCredentialReference{Name: "pusher"}
		}
	})
}

// TestCodingAgent: a coding agent reads a repository and answers, changes one and its branch is verified, and leaves nothing when its
// task is cancelled. Its home folder is not the repository, and it has none of the credentials.
func TestCodingAgent(t *testing.T) {
	p := newCoding(t)
	p.code("reads", "coder", "do: plan look+,answer\ndo: tool read README\ndo: read README.md", v1alpha1.WorkspaceRead)
	p.code("sees", "coder", "do: shell env; git config -l; ls -a; cat /proc/self/environ", v1alpha1.WorkspaceRead)
	p.code("writes", "coder", "do: write docs/plan.md sell less\\n\ndo: touch new.txt fresh\ndo: diff new.txt\ndo: say changed", v1alpha1.WorkspaceWrite)
	p.code("idles", "coder", "do: say there is nothing to do", v1alpha1.WorkspaceWrite)
	p.code("breaks", "coder", "do: touch new.txt x\ndo: tool-open execute\ndo: exit 3", v1alpha1.WorkspaceWrite)
	p.code("lacks", "absent", "hello", v1alpha1.WorkspaceRead)
	p.code("waits", "coder", "do: shell setsid sleep 1000 >/dev/null 2>&1 &\ndo: await-cancel waiting", v1alpha1.WorkspaceRead)

	p.AwaitPhase("reads", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("reads"); got != "a shop\n" {
		t.Errorf("it answered %q", got)
	}
	for _, typ := range []v1alpha1.EventType{
		v1alpha1.EventAgentRuntimeStarted, v1alpha1.EventAgentRuntimeCommandStarted, v1alpha1.EventAgentRuntimeCompleted, v1alpha1.EventModelMessage,
		v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventPlanUpdated,
	} {
		if events := p.EventsOf("reads", typ); len(events) != 1 {
			t.Errorf("%d events %s", len(events), typ)
		}
	}
	if plan := p.EventsOf("reads", v1alpha1.EventPlanUpdated)[0]; !strings.Contains(plan.ContentText, "- [x] look\n- [ ] answer") {
		t.Errorf("plan %+v", plan)
	}

	p.AwaitPhase("sees", v1alpha1.TaskSucceeded)
	if seen := p.ResultOf("sees"); !strings.Contains(seen, "/agent\n") || strings.Contains(seen, repositoryToken) || strings.Contains(seen, pushToken) || strings.Contains(seen, "TOKEN") {
		t.Errorf("it sees %s", seen)
	}

	d := p.AwaitPhase("writes", v1alpha1.TaskSucceeded).Status.Delivery
	if d == nil || d.State != v1alpha1.DeliveryVerifiedExact {
		t.Fatalf("delivery %+v", d)
	}
	if got := p.host.Git(t, "shop", "", "diff", "--name-only", "main", d.Branch); got != "docs/plan.md\nnew.txt" {
		t.Errorf("changed %q", got)
	}
	if got := p.host.Git(t, "shop", "", "show", d.Branch+":docs/plan.md"); got != "sell less" {
		t.Errorf("the plan is %q", got)
	}

	for name, reason := range map[string]string{"idles": v1alpha1.ReasonNoChanges, "breaks": v1alpha1.ReasonAgentFailed, "lacks": v1alpha1.ReasonRuntimeNotAvailable} {
		task := p.AwaitPhase(name, v1alpha1.TaskFailed)
		if c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != reason {
			t.Errorf("%s: %+v, %s", name, c, task.Status.Message)
		}
	}
	if failed := p.task("lacks").Status.Message; !strings.Contains(failed, "npm install -g opencode-ai") || !strings.Contains(failed, "--agent-runtime opencode=PATH") {
		t.Errorf("a missing program: %s", failed)
	}

	waits := p.task("waits")
	kit.Await(t, "the agent is at work", func() bool {
		return len(p.EventsOf("waits", v1alpha1.EventAgentRuntimeCommandStarted)) > 0 && len(processesOf(waits)) > 1
	})
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "waits", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	p.AwaitPhase("waits", v1alpha1.TaskCancelled)
	kit.Await(t, "no process of the run is left", func() bool { return len(processesOf(waits)) == 0 })
	kit.Await(t, "the end of the agent is recorded", func() bool { return len(p.EventsOf("waits", v1alpha1.EventAgentRuntimeCancelled)) == 1 })
}

// processesOf returns the processes with the variables of a task's run.
func processesOf(task *v1alpha1.Task) []string {
	var list []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("PLATFORM_TASK_UID="+string(task.UID)+"\x00")) {
			list = append(list, path)
		}
	}
	return list
}

// TestCodingAgentNumber: the kernel gives the number of a process of a coding agent to a stranger. The end of the run does not end that one.
func TestCodingAgentNumber(t *testing.T) {
	p := newCoding(t)
	task := p.code("numbers", "coder", "do: shell for i in 1 2 3 4 5 6 7 8; do sh -c 'echo $$'; done > list; mv list numbers\ndo: await-cancel waiting", v1alpha1.WorkspaceRead)
	var numbers []string
	kit.Await(t, "the agent has started processes, which have ended", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.DataDir, "runs", string(task.UID), "*", "*", "numbers"))
		if len(files) == 1 {
			numbers = strings.Fields(string(kit.Must[[]byte](t)(os.ReadFile(files[0]))))
		}
		return len(files) == 1
	})
	var stranger *exec.Cmd
	kit.Await(t, "a stranger has the number of one of them", func() bool {
		for _, number := range numbers {
			if stranger = numbered(t, kit.Must[int](t)(strconv.Atoi(number))); stranger != nil {
				return true
			}
		}
		return false
	})
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "numbers", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	p.AwaitPhase("numbers", v1alpha1.TaskCancelled)
	kit.Await(t, "no process of the run is left", func() bool { return len(processesOf(task)) == 0 })
	select {
	case err := <-ended:
		t.Errorf("the stranger was ended: %v", err)
	default:
		_ = stranger.Process.Kill()
		if err := <-ended; err == nil {
			t.Error("the stranger had ended by itself")
		}
	}
}

// numbered starts a process with a number; nil if another process was faster.
func numbered(t *testing.T, pid int) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
		t.Skipf("the number of a process cannot be chosen here, which root may do: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if cmd.Process.Pid == pid {
		return cmd
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil
}
