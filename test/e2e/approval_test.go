// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/kit"
)

// applyGated makes an agent that may run programs only if a person approves in time.
func applyGated(t *testing.T, s place, name, timeout string, more ...string) {
	t.Helper()
	tools := `{"name":"code_exec"}`
	for _, name := range more {
		tools += fmt.Sprintf(`,{"name":%q}`, name)
	}
	s.MustShell(t, fmt.Sprintf(`kubectl create -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"Agent","metadata":{"name":%q},"spec":{"providerRef":{"name":"model"},`+
		`"tools":[%s],"coordination":{"approvalRequiredTools":["code_exec"],"approvalTimeout":%q}}}'`, name, tools, timeout))
}

func applyGatedTask(t *testing.T, s place, name, agent, prompt, timeout string) {
	t.Helper()
	s.MustShell(t, fmt.Sprintf(`kubectl create -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},"spec":{"type":"ai","agentRef":{"name":%q},"prompt":%q,"timeout":%q}}'`,
		name, agent, prompt, timeout))
}

// awaitParked waits until the task is parked and returns the approval that it waits for.
func awaitParked(t *testing.T, s place, task string) v1alpha1.Approval {
	t.Helper()
	s.MustShell(t, "kubectl wait --for=condition=WaitingForApproval --timeout=300s task/"+task)
	var list v1alpha1.ApprovalList
	getJSON(t, s, "approvals --field-selector spec.taskName="+task+",status.state=pending", &list)
	if len(list.Items) != 1 {
		t.Fatalf("%d approvals of %s are pending", len(list.Items), task)
	}
	var parked v1alpha1.Task
	getJSON(t, s, "task "+task, &parked)
	c := meta.FindStatusCondition(parked.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	if c == nil || c.Reason != v1alpha1.ReasonApprovalPending || c.Message != parked.Status.Message ||
		!strings.Contains(c.Message, list.Items[0].Name) || !strings.Contains(c.Message, list.Items[0].Spec.TargetTool) {
		t.Errorf("task %s says %+v, message %q", task, c, parked.Status.Message)
	}
	return list.Items[0]
}

// awaitPending returns the name of the first approval that a field selector selects.
func awaitPending(t *testing.T, s place, selector string) string {
	t.Helper()
	const kind = "approval.core.platform.ai/"
	asked := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "approvals", "--field-selector", selector, "--watch", "--output", "name")
	line := asked.Await(t, kind)
	_ = asked.Stop() // a signal ended it
	return line[strings.Index(line, kind)+len(kind):]
}

func decide(t *testing.T, s place, a v1alpha1.Approval, decision, reason string) {
	t.Helper()
	s.MustShell(t, fmt.Sprintf(`kubectl create --raw %s/decision -f - <<< '{"kind":"ApprovalDecision","apiVersion":"core.platform.ai/v1alpha1","spec":{"decision":%q,"reason":%q}}'`,
		native(s, "approvals/"+a.Name), decision, reason))
}

// ended waits for the end of a task and returns it with its result and the types of its events.
func ended(t *testing.T, s place, name string) (task v1alpha1.Task, result string, types []v1alpha1.EventType) {
	t.Helper()
	s.MustShell(t, "kubectl wait --for=condition=Complete --timeout=300s task/"+name)
	getJSON(t, s, "task "+name, &task)
	if c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionWaitingForApproval); c != nil && c.Status != "False" {
		t.Errorf("task %s has ended and still says %+v", name, c)
	}
	if task.Status.Phase == v1alpha1.TaskSucceeded {
		result = s.MustShell(t, "kubectl get --raw "+native(s, "tasks/"+name+"/result"))
	}
	var events v1alpha1.ExecutionEventList
	getJSON(t, s, "executionevents --field-selector taskName="+name, &events)
	for _, e := range events.Items {
		types = append(types, e.Type)
	}
	return task, result, types
}

// told returns the events of approvals and calls, in order.
func told(types []v1alpha1.EventType) string {
	var out []string
	for _, e := range types {
		if strings.HasPrefix(string(e), "Approval") || strings.HasPrefix(string(e), "ToolCall") {
			out = append(out, string(e))
		}
	}
	return strings.Join(out, " ")
}

const approvedCall = "ApprovalRequested ApprovalApproved ToolCallStarted ApprovalExecutionUpdated ToolCallCompleted ApprovalExecutionUpdated"

// killWorker kills the worker of an attempt without notice, wherever it runs on this machine.
func killWorker(t *testing.T, s place, task string, attempt int) {
	t.Helper()
	var got v1alpha1.Task
	getJSON(t, s, "task "+task, &got)
	if killRun(t, runspec.EnvTaskUID+"="+string(got.UID), runspec.EnvAttempt+"="+strconv.Itoa(attempt)) == 0 {
		t.Fatalf("attempt %d of %s has no process", attempt, task)
	}
}

// killRun kills the worker and the programs that have the given variables in their environment, and returns how many it killed.
func killRun(t *testing.T, variables ...string) (killed int) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{} // of the run's processes
	for _, file := range processes {
		env, err := os.ReadFile(file)
		lacks := func(v string) bool { return !bytes.Contains(env, []byte(v+"\x00")) }
		if err != nil || slices.ContainsFunc(variables, lacks) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if parents[pid], err = strconv.Atoi(string(fields[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, programs := range []bool{false, true} { // the worker first, or it would see its program end
		for pid, parent := range parents {
			if _, child := parents[parent]; child == programs && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	return killed
}

// TestApprovalsAndCrashes: an approval ends with the worker that requested it, and
// the outcome of an approved call whose worker died is unknown.
func TestApprovalsAndCrashes(t *testing.T) { everywhere(t, approvalsAndCrashes) }

func approvalsAndCrashes(t *testing.T, s place) {
	applyTeam(t, s, startModel(t, s, "../scriptedmodel/scripts/approval.yaml"))
	applyGated(t, s, "gated", "1h")
	s.MustShell(t, `kubectl create -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"crashes"},"spec":{"type":"ai","agentRef":{"name":"gated"},"prompt":"run-slow","retryPolicy":{"maxRetries":2,"initialDelay":"1s"}}}'`)
	events := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "executionevents", "--watch", "--field-selector", "taskName=crashes")
	next := func() v1alpha1.Approval { // of the next attempt
		t.Helper()
		// The events of an attempt's end precede the status that reports it, so the status may still be that of the last approval.
		name := awaitPending(t, s, "spec.taskName=crashes,status.state=pending")
		// Of an object by name kubectl hides what changes between its get and its watch; of a list it does not.
		status := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "tasks", "--field-selector=metadata.name=crashes", "--watch", "--output", `jsonpath={.status.message}{"\n"}`)
		status.Await(t, name)
		_ = status.Stop() // a signal ended it
		return awaitParked(t, s, "crashes")
	}
	first := next()
	killWorker(t, s, "crashes", 1)
	events.Await(t, "ApprovalCancelled")
	second := next()
	decide(t, s, second, "approve", "")
	events.Await(t, "ToolCallStarted")
	killWorker(t, s, "crashes", 2)
	events.Await(t, "approved call of code_exec: unknown")
	third := next()
	for _, want := range []struct {
		v1alpha1.Approval
		state   v1alpha1.ApprovalState
		outcome v1alpha1.ApprovalOutcome
	}{
		{first, v1alpha1.ApprovalCancelled, ""}, {second, v1alpha1.ApprovalApproved, v1alpha1.ApprovalUnknown}, {third, v1alpha1.ApprovalPending, ""},
	} {
		var got v1alpha1.Approval
		getJSON(t, s, "approval "+want.Name, &got)
		if got.Status.State != want.state || got.Status.ExecutionOutcome != want.outcome {
			t.Errorf("attempt %d: %+v", got.Spec.Binding.TaskAttempt, got.Status)
		}
	}
}

// TestApprovals has tasks wait for people, who decide with kubectl.
func TestApprovals(t *testing.T) { everywhere(t, approvals) }

func approvals(t *testing.T, s place) {
	applyTeam(t, s, startModel(t, s, "../scriptedmodel/scripts/approval.yaml"))
	applyGated(t, s, "gated", "1h")
	applyGated(t, s, "hasty", "1s")
	applyGated(t, s, "asking", "1h", "request_approval")
	applyGatedTask(t, s, "expires", "hasty", "run-it", "5m")
	for task, prompt := range map[string]string{"approved": "run-it", "declined": "run-it", "cancelled": "run-it", "deleted": "run-it", "restarted": "run-it", "twice": "run-twice"} {
		applyGatedTask(t, s, task, "gated", prompt, "5m")
	}
	applyGatedTask(t, s, "asks", "asking", "ask-first", "5m")

	t.Run("approved", func(t *testing.T) {
		a := awaitParked(t, s, "approved")
		if a.Spec.Action != "I run the program that you asked for." || a.Spec.RequestedBy == "" || !strings.Contains(string(a.Spec.TargetArgsPreview.Raw), "echo ran") {
			t.Errorf("approval %+v", a.Spec)
		}
		decide(t, s, a, "approve", "go on")
		task, result, types := ended(t, s, "approved")
		if task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, `It printed: ran\n`) || strings.Count(result, "ran") != 1 {
			t.Errorf("%s %q, result %s", task.Status.Phase, task.Status.Message, result)
		}
		if got := told(types); got != approvedCall {
			t.Errorf("events %s", got)
		}
		getJSON(t, s, "approval "+a.Name, &a)
		if a.Status.State != v1alpha1.ApprovalApproved || a.Status.ExecutionOutcome != v1alpha1.ApprovalSucceeded || a.Status.DecisionReason != "go on" {
			t.Errorf("status %+v", a.Status)
		}
	})
	t.Run("declined", func(t *testing.T) {
		decide(t, s, awaitParked(t, s, "declined"), "decline", "not on a friday")
		task, result, types := ended(t, s, "declined")
		if task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, "It was not run (approval_declined): the reason given: not on a friday") {
			t.Errorf("%s %q, result %s", task.Status.Phase, task.Status.Message, result)
		}
		if got := told(types); got != "ApprovalRequested ApprovalDeclined" {
			t.Errorf("events %s", got)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		awaitParked(t, s, "cancelled")
		s.MustShell(t, "kubectl create --raw "+native(s, "tasks/cancelled/cancel")+` -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskCancellation"}'`)
		task, _, types := ended(t, s, "cancelled")
		end := slices.Index(types, v1alpha1.EventTaskCancelled)
		if task.Status.Phase != v1alpha1.TaskCancelled || end < 0 || slices.Index(types[:end], v1alpha1.EventApprovalCancelled) < 0 {
			t.Errorf("%s, events %v", task.Status.Phase, types)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		a := awaitParked(t, s, "deleted")
		s.MustShell(t, "kubectl delete task deleted --timeout=300s")
		// What a task has left is deleted after it.
		s.MustShell(t, "kubectl wait --for=delete --timeout=300s approval/"+a.Name)
	})
	t.Run("two equal calls need two approvals", func(t *testing.T) {
		first := awaitParked(t, s, "twice")
		decide(t, s, first, "approve", "")
		name := awaitPending(t, s, "spec.taskName=twice,status.state=pending")
		if name == first.Name {
			t.Fatalf("asked for %s again", name)
		}
		var second v1alpha1.Approval
		getJSON(t, s, "approval "+name, &second)
		if second.Spec.TargetArgsDigest != first.Spec.TargetArgsDigest || second.Spec.TargetSpecDigest == first.Spec.TargetSpecDigest {
			t.Errorf("first %+v, second %+v", first.Spec, second.Spec)
		}
		decide(t, s, second, "approve", "")
		if task, result, _ := ended(t, s, "twice"); task.Status.Phase != v1alpha1.TaskSucceeded || strings.Count(result, "twice") != 2 {
			t.Errorf("%s %q, result %s", task.Status.Phase, task.Status.Message, result)
		}
	})
	t.Run("asked for beforehand", func(t *testing.T) {
		a := awaitParked(t, s, "asks")
		if a.Spec.Action != "Print a word" || a.Spec.Severity != v1alpha1.SeverityCritical || a.Spec.TargetTool != "code_exec" {
			t.Errorf("approval %+v", a.Spec)
		}
		decide(t, s, a, "approve", "")
		task, result, types := ended(t, s, "asks")
		if task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, `It printed: asked`) {
			t.Errorf("%s %q, result %s", task.Status.Phase, task.Status.Message, result)
		}
		if got := told(types); strings.Count(got, "ApprovalRequested") != 1 {
			t.Errorf("events %s", got)
		}
	})
	t.Run("expires", func(t *testing.T) {
		task, result, types := ended(t, s, "expires")
		if task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, "It was not run (approval_expired)") {
			t.Errorf("%s %q, result %s", task.Status.Phase, task.Status.Message, result)
		}
		if got := told(types); got != "ApprovalRequested ApprovalExpired" {
			t.Errorf("events %s", got)
		}
	})
	t.Run("goes on after a restart", func(t *testing.T) {
		a := awaitParked(t, s, "restarted")
		s.RestartServer(t)
		if again := awaitParked(t, s, "restarted"); again.Name != a.Name {
			t.Errorf("it waits for %s and not %s", again.Name, a.Name)
		}
		decide(t, s, a, "approve", "")
		task, result, types := ended(t, s, "restarted")
		if task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Attempts != 1 || strings.Count(result, "ran") != 1 || told(types) != approvedCall {
			t.Errorf("%s %q, attempts %d, result %s, events %s", task.Status.Phase, task.Status.Message, task.Status.Attempts, result, told(types))
		}
	})
}

// TestApprovalDemo decides on the approval of the quick start's task.
func TestApprovalDemo(t *testing.T) {
	t.Parallel()
	everywhere(t, approvalDemo)
}

func approvalDemo(t *testing.T, s place) {
	applyTeam(t, s, startModel(t, s, "../scriptedmodel/scripts/demo.yaml"))
	s.MustShell(t, "kubectl apply -f ../../artifacts/demo/approval.yaml")
	a := awaitParked(t, s, "rotate")
	for line, want := range map[string]string{"kubectl get task rotate": "WaitingForApproval", "kubectl get approvals": "I rotate the log"} {
		if got := s.MustShell(t, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
	decide(t, s, a, "approve", "")
	if task, result, _ := ended(t, s, "rotate"); task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, `service.log\nservice.log.1`) {
		t.Errorf("%s %q: %s", task.Status.Phase, task.Status.Message, result)
	}
}
