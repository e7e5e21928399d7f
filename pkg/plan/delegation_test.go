// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

// chief returns an agent that may delegate, with changes.
func chief(change ...func(*v1alpha1.AgentCoordination)) *v1alpha1.Agent {
	a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: plantest.Namespace, Name: "chief"}}
	a.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: v1alpha1.AnyAgent}}}
	for _, c := range change {
		c(a.Spec.Coordination)
	}
	return a
}

func allowing(names ...v1alpha1.NamespacedReference) func(*v1alpha1.AgentCoordination) {
	return func(c *v1alpha1.AgentCoordination) { c.AllowedAgents = names }
}

// TestCheckDelegation: whether a task of an agent may have a child.
func TestCheckDelegation(t *testing.T) {
	parent := plantest.AI()
	parent.UID = "parent"
	made := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: plantest.Namespace, Name: "made", Annotations: map[string]string{v1alpha1.AnnotationCreatedByUID: "parent"},
		OwnerReferences: []metav1.OwnerReference{{UID: "parent", Controller: new(true)}},
	}}
	claimed := made.DeepCopy()
	claimed.OwnerReferences = nil
	deep := func(n int32) func(*v1alpha1.AgentCoordination) {
		return func(c *v1alpha1.AgentCoordination) { c.MaxDepth = &n }
	}
	clerk, command := plantest.AI(plantest.ByAgent("clerk")), plantest.Container()
	elsewhere := plantest.AI(plantest.ByAgent("clerk"), func(s *v1alpha1.TaskSpec) { s.AgentRef.Namespace = plantest.Other })
	const off, low, barred = v1alpha1.ReasonCoordinationDisabled, v1alpha1.ReasonDepthExceeded, v1alpha1.ReasonAgentNotAllowed
	for name, tc := range map[string]struct {
		coordinator  *v1alpha1.Agent
		child        *v1alpha1.Task
		agent        *v1alpha1.Agent
		depth        int32
		reason, text string
	}{
		"no agent":                   {nil, clerk, nil, 1, off, "the parent has no agent that may delegate"},
		"no coordination":            {&v1alpha1.Agent{}, clerk, nil, 1, off, "spec.coordination.enabled is not set"},
		"not enabled":                {chief(func(c *v1alpha1.AgentCoordination) { c.Enabled = false }), command, nil, 1, off, "spec.coordination.enabled is not set"},
		"as deep as the default":     {chief(), clerk, nil, 3, "", ""},
		"deeper than the default":    {chief(), clerk, nil, 4, low, `4 levels below the root, and agent "chief" allows 3 (spec.coordination.maxDepth)`},
		"as deep as it says":         {chief(deep(5)), clerk, nil, 5, "", ""},
		"deeper than it says":        {chief(deep(1)), command, nil, 2, low, "2 levels below the root"},
		"not at all":                 {chief(deep(0)), clerk, nil, 1, low, "allows 0"},
		"a command has no agent":     {chief(allowing(v1alpha1.NamespacedReference{Name: "x"})), command, nil, 1, "", ""},
		"a task needs an agent":      {chief(), plantest.AI(), nil, 1, barred, "a delegated task of type ai needs spec.agentRef"},
		"an empty list admits none":  {chief(allowing()), clerk, nil, 1, barred, `agent "n/clerk" may not be delegated to: spec.coordination.allowedAgents of agent "chief" is empty, which admits none`},
		"a command with none":        {chief(allowing()), command, nil, 1, "", ""},
		"made, with none":            {chief(allowing()), plantest.AI(plantest.ByAgent("made")), made, 1, "", ""},
		"all":                        {chief(), elsewhere, nil, 1, "", ""},
		"all of a namespace":         {chief(allowing(v1alpha1.NamespacedReference{Name: "*", Namespace: plantest.Other})), elsewhere, nil, 1, "", ""},
		"all of another namespace":   {chief(allowing(v1alpha1.NamespacedReference{Name: "*", Namespace: plantest.Other})), clerk, nil, 1, barred, "other/*"},
		"on the list":                {chief(allowing(v1alpha1.NamespacedReference{Name: "x"}, v1alpha1.NamespacedReference{Name: "clerk"})), clerk, nil, 1, "", ""},
		"not on the list":            {chief(allowing(v1alpha1.NamespacedReference{Name: "x"})), clerk, nil, 1, barred, `agent "n/clerk" is not among those that agent "chief" may delegate to (spec.coordination.allowedAgents): n/x`},
		"of another namespace":       {chief(allowing(v1alpha1.NamespacedReference{Name: "clerk"})), elsewhere, nil, 1, barred, `agent "other/clerk"`},
		"listed with its namespace":  {chief(allowing(v1alpha1.NamespacedReference{Name: "clerk", Namespace: plantest.Other})), elsewhere, nil, 1, "", ""},
		"listed as one word":         {chief(allowing(v1alpha1.NamespacedReference{Name: plantest.Other + "/clerk"})), elsewhere, nil, 1, "", ""},
		"made by the parent":         {chief(allowing(v1alpha1.NamespacedReference{Name: "x"})), plantest.AI(plantest.ByAgent("made")), made, 1, "", ""},
		"says it is made by it":      {chief(allowing(v1alpha1.NamespacedReference{Name: "x"})), plantest.AI(plantest.ByAgent("made")), claimed, 1, barred, `agent "n/made"`},
		"made, but too deep as well": {chief(deep(1)), plantest.AI(plantest.ByAgent("made")), made, 2, low, "allows 1"},
	} {
		r := plan.CheckDelegation(parent, tc.coordinator, tc.child, tc.agent, tc.depth)
		switch {
		case r == nil && tc.reason != "":
			t.Errorf("%s: allowed, want %s", name, tc.reason)
		case r != nil && (r.Reason != tc.reason || !strings.Contains(r.Message, tc.text)):
			t.Errorf("%s: %s: %s, want %s: %s", name, r.Reason, r.Message, tc.reason, tc.text)
		}
	}
}

// TestCheckChild: a child gets no more than its agent and its parent have.
func TestCheckChild(t *testing.T) {
	secretEnv := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}}
	}
	on := func(disk string) *v1alpha1.TaskExecutionSpec {
		return &v1alpha1.TaskExecutionSpec{ExecutionPlacement: v1alpha1.ExecutionPlacement{NodeSelector: map[string]string{"disk": disk}}}
	}
	placed := on("fast")
	large := &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	parent := plantest.AI(func(s *v1alpha1.TaskSpec) {
		s.SecretRef, s.Execution, s.Resources = &v1alpha1.NamespacedReference{Name: "s"}, placed, large
		s.Env, s.AI.Tools = []corev1.EnvVar{secretEnv("A")}, []string{"weather"}
	})
	clerk := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: plantest.Namespace, Name: "clerk"}}
	clerk.Spec.Tools = []v1alpha1.AgentTool{{Name: "open"}, {Name: "shut", Enabled: new(false)}}
	ai := func(change func(*v1alpha1.TaskAI)) func(*v1alpha1.TaskSpec) {
		return func(s *v1alpha1.TaskSpec) {
			s.AI = &v1alpha1.TaskAI{}
			change(s.AI)
		}
	}
	clerk.Spec.Runtime = &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex, DefaultAllowBash: new(false), DefaultAllowedTools: []string{"read"}}
	coder := func(own v1alpha1.TaskAgentRuntime) func(*v1alpha1.TaskSpec) {
		return func(s *v1alpha1.TaskSpec) { s.AgentRuntime = &own }
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TaskSpec)
		want   string // the field; empty if it is allowed
	}{
		"plain": {func(*v1alpha1.TaskSpec) {}, ""},
		"what the parent has": {func(s *v1alpha1.TaskSpec) {
			s.SecretRef, s.Execution, s.Resources = parent.Spec.SecretRef, placed, large
		}, ""},
		"session":        {func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s"} }, "spec.sessionRef"},
		"schedule":       {func(s *v1alpha1.TaskSpec) { s.Schedule = "@daily" }, "spec.schedule"},
		"webhook":        {func(s *v1alpha1.TaskSpec) { s.WebhookURL = "https://x.example" }, "spec.webhookURL"},
		"another Secret": {func(s *v1alpha1.TaskSpec) { s.SecretRef = &v1alpha1.NamespacedReference{Name: "other"} }, "spec.secretRef"},
		"another place": {func(s *v1alpha1.TaskSpec) {
			s.Execution = on("slow")
		}, "spec.execution"},
		"more memory": {func(s *v1alpha1.TaskSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}
		}, "spec.resources"},
		"variables":                  {func(s *v1alpha1.TaskSpec) { s.Env = []corev1.EnvVar{{Name: "X", Value: "x"}, secretEnv("A")} }, ""},
		"variable of another Secret": {func(s *v1alpha1.TaskSpec) { s.Env = []corev1.EnvVar{{Name: "X", Value: "x"}, secretEnv("B")} }, "spec.env[1].valueFrom"},
		"prompt":                     {ai(func(a *v1alpha1.TaskAI) { a.Prompt = "p" }), ""},
		"provider":                   {ai(func(a *v1alpha1.TaskAI) { a.ProviderRef = &v1alpha1.NamespacedReference{Name: "p"} }), "spec.ai"},
		"model":                      {ai(func(a *v1alpha1.TaskAI) { a.Model = "m" }), "spec.ai"},
		"skill":                      {ai(func(a *v1alpha1.TaskAI) { a.Skills = []v1alpha1.SkillReference{{Name: "s"}} }), "spec.ai"},
		"system prompt":              {ai(func(a *v1alpha1.TaskAI) { a.SystemPrompt = "p" }), "spec.ai"},
		"tool of the parent":         {ai(func(a *v1alpha1.TaskAI) { a.Tools = []string{"weather"} }), ""},
		"tool of its agent":          {ai(func(a *v1alpha1.TaskAI) { a.Tools = []string{"open", "recall_memory"} }), ""},
		"tool of nobody":             {ai(func(a *v1alpha1.TaskAI) { a.Tools = []string{"open", "code_exec"} }), "spec.ai.tools[1]"},
		"tool that is switched off":  {ai(func(a *v1alpha1.TaskAI) { a.Tools = []string{"shut"} }), "spec.ai.tools[0]"},
		"repository":                 {func(s *v1alpha1.TaskSpec) { s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://x.example/r"} }, "spec.workspace.gitRepo"},
		"fewer turns and tools":      {coder(v1alpha1.TaskAgentRuntime{MaxTurns: new(int32(3)), AllowBash: new(false), AllowedTools: []string{"READ"}}), ""},
		"commands":                   {coder(v1alpha1.TaskAgentRuntime{AllowBash: new(true)}), "spec.agentRuntime.allowBash"},
		"another tool of the agent":  {coder(v1alpha1.TaskAgentRuntime{AllowedTools: []string{"read", "edit"}}), "spec.agentRuntime.allowedTools[1]"},
	} {
		list := plan.CheckChild(parent, chief(), plantest.AI(plantest.ByAgent("clerk"), tc.change), clerk)
		switch {
		case tc.want == "" && len(list) > 0:
			t.Errorf("%s: %s: %s", name, list[0].Field, list[0].Message)
		case tc.want != "" && (len(list) != 1 || list[0].Field != tc.want || list[0].Reason != v1alpha1.ReasonRefused):
			t.Errorf("%s: %+v, want %s", name, list, tc.want)
		}
	}
}

// TestRequestDigest: what makes two requests the same.
func TestRequestDigest(t *testing.T) {
	asked := func(agent, prompt string) string {
		return plan.RequestDigest(plantest.AI(plantest.ByAgent(agent), func(s *v1alpha1.TaskSpec) { s.Prompt = prompt }))
	}
	command := func(args ...string) string {
		return plan.RequestDigest(plantest.Container(func(s *v1alpha1.TaskSpec) { s.Args = args }))
	}
	for name, pair := range map[string]struct {
		a, b string
		same bool
	}{
		"white space":    {asked("a", "do it"), asked("a", " do\n\tit "), true},
		"other agent":    {asked("a", "do it"), asked("b", "do it"), false},
		"other prompt":   {asked("a", "do it"), asked("a", "do it again"), false},
		"same command":   {command("a b"), command("a b"), true},
		"other words":    {command("a b"), command("a", "b"), false},
		"other settings": {asked("a", "x"), plan.RequestDigest(plantest.AI(plantest.ByAgent("a"), func(s *v1alpha1.TaskSpec) { s.Prompt, s.Priority = "x", new(int32(9)) })), true},
	} {
		if (pair.a == pair.b) != pair.same {
			t.Errorf("%s: the same: %t", name, !pair.same)
		}
	}
}

// TestCoordinationEnv: the variables of a run that coordinates, and of one that was delegated.
func TestCoordinationEnv(t *testing.T) {
	child := plantest.AI()
	child.Status.Delegation = &v1alpha1.TaskDelegation{Parent: "boss", Depth: 2}
	off := plantest.AI()
	off.Annotations = map[string]string{v1alpha1.AnnotationDisableCoordination: "true"}
	agent := chief(allowing(v1alpha1.NamespacedReference{Name: "a"}, v1alpha1.NamespacedReference{Name: "b", Namespace: "o"}), func(c *v1alpha1.AgentCoordination) {
		c.MaxDepth, c.MaxConcurrentChildren = new(int32(2)), new(int32(7))
	})
	const on = "PLATFORM_COORDINATION_ENABLED=true"
	for name, tc := range map[string]struct {
		task  *v1alpha1.Task
		agent *v1alpha1.Agent
		want  []string
	}{
		"plain":      {plantest.AI(), nil, nil},
		"switch off": {off, agent, nil},
		"child":      {child, &v1alpha1.Agent{}, nil},
		"defaults": {plantest.AI(), chief(), []string{
			on, "PLATFORM_COORDINATION_MAX_DEPTH=3", "PLATFORM_COORDINATION_MAX_CHILDREN=5", "PLATFORM_COORDINATION_ALLOWED_AGENTS=*", "PLATFORM_COORDINATION_DEPTH=0",
		}},
		"coordinator below": {child, agent, []string{
			on, "PLATFORM_COORDINATION_MAX_DEPTH=2", "PLATFORM_COORDINATION_MAX_CHILDREN=7",
			"PLATFORM_COORDINATION_ALLOWED_AGENTS=a,o/b", "PLATFORM_COORDINATION_DEPTH=2",
		}},
	} {
		if diff := cmp.Diff(tc.want, (&plan.Plan{Agent: tc.agent}).CoordinationEnv(tc.task)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestDeadline: a task ends with its attempt's timeout, or with its parent if that is earlier.
func TestDeadline(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	began := func(t *v1alpha1.Task) { t.Status.StartTime = &metav1.Time{Time: noon} }
	again := func(t *v1alpha1.Task) {
		meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(time.Hour))})
	}
	limit := func(t *v1alpha1.Task) { t.Spec.Timeout = v1alpha1.DurationOf(10 * time.Minute) }
	below := func(after time.Duration) func(*v1alpha1.Task) {
		return func(t *v1alpha1.Task) {
			t.Status.Delegation = &v1alpha1.TaskDelegation{Deadline: &metav1.Time{Time: noon.Add(after)}}
		}
	}
	for name, tc := range map[string]struct {
		change []func(*v1alpha1.Task)
		want   time.Duration // after noon; 0 for none
	}{
		"no limit":               {[]func(*v1alpha1.Task){began}, 0},
		"not begun":              {[]func(*v1alpha1.Task){limit}, 0},
		"timeout":                {[]func(*v1alpha1.Task){began, limit}, 10 * time.Minute},
		"timeout of the attempt": {[]func(*v1alpha1.Task){began, again, limit}, 70 * time.Minute},
		"parent":                 {[]func(*v1alpha1.Task){began, below(time.Hour)}, time.Hour},
		"parent is earlier":      {[]func(*v1alpha1.Task){began, limit, below(time.Minute)}, time.Minute},
		"parent is later":        {[]func(*v1alpha1.Task){began, limit, below(time.Hour)}, 10 * time.Minute},
	} {
		task := plantest.AI()
		for _, change := range tc.change {
			change(task)
		}
		got := plan.Deadline(task)
		if (got == nil) != (tc.want == 0) || got != nil && got.Sub(noon) != tc.want {
			t.Errorf("%s: %v, want %s after noon", name, got, tc.want)
		}
	}
}
