// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// agentTask creates a task of type agent without a repository.
func (p *publishing) agentTask(name, agent, prompt string) {
	p.t.Helper()
	p.Run(name, func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, prompt, &v1alpha1.NamespacedReference{Name: agent}
	})
}

// waiting returns the approval of a task that waits for a decision, and what the task says meanwhile.
func (p *publishing) waiting(task string) v1alpha1.Approval {
	p.t.Helper()
	now, _ := p.Await(task, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	})
	list := kit.Must[*v1alpha1.ApprovalList](p.t)(p.API().Approvals("default").List(p.t.Context(), metav1.ListOptions{FieldSelector: "spec.taskName=" + task + ",status.state=pending"}))
	if len(list.Items) != 1 || !strings.Contains(now.Status.Message, list.Items[0].Name) {
		p.t.Fatalf("%d approvals wait; %s", len(list.Items), now.Status.Message)
	}
	return list.Items[0]
}

// TestCodingAgentAsks: people approve one call of a coding agent and decline another one, a policy denies a third one, and what the
// worker writes for the agent is held by the same policy. No approval is left when the task is cancelled.
func TestCodingAgentAsks(t *testing.T) {
	p := newCoding(t)
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec: v1alpha1.AgentSpec{
			Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Coordination: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"Bash"}},
		},
	}, metav1.CreateOptions{}))
	policy := host.Policy("kept", "object.spec.kind != 'edit' || !('path' in object.spec.strings) || !object.spec.strings['path'].endsWith('kept.txt')", "kept.txt stays as it is")
	policy.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	host.Install(t, p.Kubernetes(t), policy, host.Deny("kept"))
	p.Run("probe", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef, s.Schedule = v1alpha1.TaskTypeAgent, nil, "x", &v1alpha1.NamespacedReference{Name: "guarded"}, "@yearly"
	})
	kit.Await(t, "the policy in force", func() bool {
		c, err := p.API().ToolCalls("default").Create(t.Context(), &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
			TaskName: "probe", ToolName: "Edit", Kind: "edit", Arguments: &apiextensionsv1.JSON{Raw: []byte(`{"path":"kept.txt"}`)},
		}}, metav1.CreateOptions{DryRun: []string{"All"}})
		return err == nil && c.Status.Verdict == v1alpha1.ToolCallDenied && c.Spec.Source == v1alpha1.ToolSourceAgent
	})

	p.agentTask("asks", "guarded", strings.Join([]string{
		"do: permit execute make", "do: permit execute rm -rf .", `do: permit-json edit {"path":"kept.txt"}`, "do: write kept.txt x", "do: write free.txt x", "do: shell ls; echo bye",
	}, "\n"))
	people := p.As(t, "boss", "platform-approver")
	decide := func(a v1alpha1.Approval, word, why string) {
		t.Helper()
		kit.Must[*v1alpha1.Approval](t)(people.Approvals("default").Decide(t.Context(), a.Name, &v1alpha1.ApprovalDecision{
			Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: why},
		}, metav1.CreateOptions{}))
	}
	first := p.waiting("asks")
	if s := first.Spec; s.TargetTool != "execute" || string(s.TargetArgsPreview.Raw) != `{"command":"make"}` || !first.Status.ArgumentsExact || s.Action != "make" {
		t.Errorf("people are asked about %+v", s)
	}
	decide(first, "approve", "go on")
	var second v1alpha1.Approval
	kit.Await(t, "the second request", func() bool {
		list := kit.Must[*v1alpha1.ApprovalList](t)(p.API().Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.taskName=asks,status.state=pending"}))
		if len(list.Items) == 1 {
			second = list.Items[0]
		}
		return second.Name != ""
	})
	decide(second, "decline", "keep the files")
	p.AwaitPhase("asks", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("asks"); !strings.HasPrefix(got, "noerror -32602{}") || !strings.Contains(got, "free.txt\n") || strings.Contains(got, "kept.txt") || !strings.HasSuffix(got, "bye\n") {
		t.Errorf("it answered %q", got)
	}

	var got []string
	for _, e := range kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=asks"})).Items {
		if !strings.HasPrefix(string(e.Type), "ToolCall") && !strings.HasPrefix(string(e.Type), "Approval") {
			continue
		}
		var c struct {
			ApprovalID, Verdict string
			Outcome             string `json:"executionOutcome"`
		}
		if err := json.Unmarshal(e.Content.Raw, &c); err != nil {
			t.Error(err)
		}
		line := string(e.Type) + " " + e.ToolName + " " + c.Verdict + c.Outcome
		if c.ApprovalID != "" {
			line += map[string]string{first.Name: " 1", second.Name: " 2"}[c.ApprovalID]
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"ApprovalRequested execute  1", "ApprovalApproved execute  1",
		"ToolCallStarted execute  1", "ApprovalExecutionUpdated execute running 1", "ToolCallCompleted execute  1", "ApprovalExecutionUpdated execute succeeded 1",
		"ApprovalRequested execute  2", "ApprovalDeclined execute  2",
		"ToolCallJudged edit Denied", "ToolCallJudged write Denied",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	calls := kit.Must[*v1alpha1.TaskCallList](t)(p.Tasks().GetCalls(t.Context(), "asks", metav1.GetOptions{})).Calls
	if len(calls) != 5 || calls[0].Kind == "" {
		t.Errorf("kept are %+v", calls)
	}

	p.agentTask("left", "guarded", "do: permit execute make")
	left := p.waiting("left")
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "left", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	p.AwaitPhase("left", v1alpha1.TaskCancelled)
	if a := kit.Must[*v1alpha1.Approval](t)(p.API().Approvals("default").Get(t.Context(), left.Name, metav1.GetOptions{})); a.Status.State != v1alpha1.ApprovalCancelled {
		t.Errorf("the approval of a cancelled task is %s", a.Status.State)
	}
	if began := p.EventsOf("left", v1alpha1.EventToolCallStarted); len(began) > 0 {
		t.Errorf("it began %+v", began)
	}
}
