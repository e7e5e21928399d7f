// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestRESTPlan(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "mine")
	s.RESTTask(t, "other")
	const plan = "/internal/v1/plans/default/mine"
	c := s.REST(t, "default", "vi", "view")
	c.Get("/api/v1/tasks/mine/plan").Problem(t, 404, `task "mine" has no plan`)
	c.Get("/api/v1/tasks/nosuch/plan").Problem(t, 404, "not found")
	worker.Get(plan).Problem(t, 404, "has no plan")
	if task := host.Decode[map[string]any](t, c.Get("/api/v1/tasks/mine").Want(t, 200)); task["plan"] != nil || task["kind"] != "Task" {
		t.Errorf("task: %v", task)
	}
	worker.Post(plan, `{"summary":"begun","plan_document":"# Do it\n","progress_pct":40}`).Want(t, 204)
	worker.Post(plan, `{"summary":"more","plan_document":"# Do it\n- [x] one","progress_pct":60,"goal_complete":false}`).Want(t, 204)
	for _, a := range []host.Answer{c.Get("/api/v1/tasks/mine/plan"), worker.Get(plan)} {
		got := host.Decode[map[string]any](t, a.Want(t, 200))
		if got["TaskName"] != "mine" || got["Namespace"] != "default" || got["Iteration"] != 0.0 || got["Summary"] != "more" || got["ProgressPct"] != 60.0 ||
			got["GoalComplete"] != false || got["PlanDocument"] != "# Do it\n- [x] one" || got["CreatedAt"] == nil || got["UpdatedAt"] == nil || len(got) != 9 {
			t.Errorf("plan: %v", got)
		}
	}
	task := host.Decode[map[string]any](t, c.Get("/api/v1/tasks/mine").Want(t, 200))
	if p, _ := task["plan"].(map[string]any); p["summary"] != "more" || p["progressPct"] != 60.0 || p["planDocument"] != "# Do it\n- [x] one" || p["goalComplete"] != false || p["iteration"] != 0.0 || len(p) != 5 {
		t.Errorf("task: %v", task)
	}
	if task["kind"] != "Task" || task["spec"] == nil {
		t.Errorf("the plan replaced the task: %v", task)
	}
	worker.Post(plan, `{"summary":"no document"}`).Problem(t, 400, "planDocument: is required")
	worker.Post(plan, `{"plan_document":"x","progress_pct":101}`).Problem(t, 400, "must be from 0 to 100")
	worker.Post(plan, `{"plan_document":"x","planDocument":"y"}`).Problem(t, 400, `unknown field "planDocument"`)
	worker.Post(plan, `{"plan_document":"`+strings.Repeat("x", 32769)+`"}`).Problem(t, 400, "at most 32768 characters")
	worker.Post("/internal/v1/plans/default/other", `{"plan_document":"x"}`).Problem(t, 403, "another task")
	worker.Post("/internal/v1/plans/default/nosuch", `{"plan_document":"x"}`).Problem(t, 404, "not found")
	worker.Get("/internal/v1/plans/default/other").Problem(t, 403, "another task")
	c.Post(plan, `{"plan_document":"x"}`).Problem(t, 403, "cannot create")

	// Who may read tasks but not their plans gets the task without it, as before there were plans.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"tasks"}}}}
	if _, err := s.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	narrow := s.REST(t, "default", "narrow", "narrow")
	narrow.Get("/api/v1/tasks/mine/plan").Problem(t, 403, "cannot get")
	if task := host.Decode[map[string]any](t, narrow.Get("/api/v1/tasks/mine").Want(t, 200)); task["plan"] != nil || task["spec"] == nil {
		t.Errorf("task: %v", task)
	}
}

const planScript = `
models: [scripted-1]
turns:
- name: plans
  match: {turn: 1, lastRole: user, offered: [update_plan]}
  reply:
    toolCalls:
    - name: update_plan
      arguments: {summary: Half of it, plan_document: "# Plan", progress_pct: 50}
- name: asks too much
  match: {turn: 2, lastRole: tool, contains: '"success":true'}
  reply:
    toolCalls:
    - name: update_plan
      arguments: {summary: Too much, plan_document: "# Plan", progress_pct: 500}
- name: ends
  match: {turn: 3, lastRole: tool, contains: invalid_arguments}
  reply: {text: Done.}
`

// TestPlanOfAnAgent: an agent writes a plan with a tool. It is gone when the task has ended, and its events remain.
func TestPlanOfAnAgent(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, planScript)
	p.Run("t", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt = v1alpha1.TaskTypeAI, nil, "Plan it."
		s.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"update_plan"}}
	})
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	if _, err := p.Tasks().GetPlan(t.Context(), "t", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "it is Succeeded") {
		t.Errorf("the plan of a task that ended: %v", err)
	}
	events, err := p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=t,type=PlanUpdated"})
	if err != nil || len(events.Items) != 1 || events.Items[0].ContentText != "# Plan" || events.Items[0].Summary != "plan updated, 50%: Half of it" {
		t.Errorf("events: %+v, %v", events, err)
	}
}
