// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// shelf is a Reader for the objects of plantest.
type shelf map[string]any

func newShelf() shelf {
	s := shelf{}
	for _, o := range plantest.Objects() {
		switch o := o.(type) {
		case *v1alpha1.Agent:
			s["agent "+o.Namespace+"/"+o.Name] = o
		case *v1alpha1.Provider:
			s["provider "+o.Namespace+"/"+o.Name] = o
		case *v1alpha1.Skill:
			s["skill "+o.Namespace+"/"+o.Name] = o
		case *v1alpha1.AgentRuntime:
			s["runtime "+o.Namespace+"/"+o.Name] = o
		case *v1alpha1.Tool:
			s["tool "+o.Namespace+"/"+o.Name] = o
		default:
			panic(fmt.Sprintf("%T", o))
		}
	}
	for _, o := range plantest.Secrets() {
		s["secret "+o.Namespace+"/"+o.Name] = o
	}
	for _, o := range plantest.ConfigMaps() {
		s["map "+o.Namespace+"/"+o.Name] = o
	}
	return s
}

var errAway = errors.New("away")

func read[T any](s shelf, kind string, key types.NamespacedName) (*T, error) {
	if s == nil {
		return nil, errAway
	}
	o, ok := s[kind+" "+key.String()].(*T)
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	return o, nil
}

func (s shelf) Agent(_ context.Context, k types.NamespacedName) (*v1alpha1.Agent, error) {
	return read[v1alpha1.Agent](s, "agent", k)
}

func (s shelf) Provider(_ context.Context, k types.NamespacedName) (*v1alpha1.Provider, error) {
	return read[v1alpha1.Provider](s, "provider", k)
}

func (s shelf) Providers(_ context.Context, namespace string) ([]v1alpha1.Provider, error) {
	var list []v1alpha1.Provider
	for _, o := range s {
		if p, ok := o.(*v1alpha1.Provider); ok && p.Namespace == namespace {
			list = append(list, *p)
		}
	}
	return list, nil
}

func (s shelf) Skill(_ context.Context, k types.NamespacedName) (*v1alpha1.Skill, error) {
	return read[v1alpha1.Skill](s, "skill", k)
}

func (s shelf) Tool(_ context.Context, k types.NamespacedName) (*v1alpha1.Tool, error) {
	return read[v1alpha1.Tool](s, "tool", k)
}

func (s shelf) ConnectorProviders(_ context.Context, namespace string) ([]v1alpha1.ConnectorProvider, error) {
	if s == nil {
		return nil, errAway
	}
	var list []v1alpha1.ConnectorProvider
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if p, ok := s[key].(*v1alpha1.ConnectorProvider); ok && p.Namespace == namespace {
			list = append(list, *p)
		}
	}
	return list, nil
}

func (s shelf) Connection(_ context.Context, k types.NamespacedName) (*v1alpha1.Connection, error) {
	return read[v1alpha1.Connection](s, "connection", k)
}

func (s shelf) AgentRuntime(_ context.Context, k types.NamespacedName) (*v1alpha1.AgentRuntime, error) {
	return read[v1alpha1.AgentRuntime](s, "runtime", k)
}

func (s shelf) ConfigMapKey(_ context.Context, k types.NamespacedName, name string) (string, bool, error) {
	m, err := read[corev1.ConfigMap](s, "map", k)
	if err != nil {
		return "", false, err
	}
	text, ok := m.Data[name]
	return text, ok, nil
}

func (s shelf) HasSecret(_ context.Context, secret plan.Secret) (bool, egress.Hosts, error) {
	o, err := read[corev1.Secret](s, "secret", types.NamespacedName{Namespace: secret.Namespace, Name: secret.Ref.Name})
	if err != nil {
		return false, egress.Hosts{}, err
	}
	return secret.Use == plan.ForMount || len(o.Data[secret.Ref.Key]) > 0, plan.HostsOf(o.Annotations), nil
}

// decided returns a decision in short form: the reason, and "?" if the missing object may still be created.
func decided(err error) string {
	refused, ok := errors.AsType[*refusal.Error](err)
	switch {
	case err == nil:
		return "runs"
	case !ok:
		return err.Error()
	case refused.Message == "":
		return "no message"
	}
	return refused.Reason + map[bool]string{true: "?"}[refused.Missing]
}

// TestCases runs every case of plantest, and checks what the task alone shows.
func TestCases(t *testing.T) {
	for _, tc := range plantest.Cases() {
		want := "runs"
		if tc.Reason != "" {
			want = tc.Reason + map[bool]string{true: "?"}[tc.Missing]
		}
		place := plan.Place{NoPodFields: "no pods here"}
		_, err := plan.Make(t.Context(), newShelf(), place, tc.Task)
		if got := decided(err); got != want {
			t.Errorf("%s: %s, want %s: %v", tc.Name, got, want, err)
		}
		if written := plan.OfTask(tc.Task); (len(written) > 0) != tc.Written || tc.Written && (written[0].Reason != tc.Reason || written[0].Field == "") {
			t.Errorf("%s: when it is written: %+v", tc.Name, written)
		}
	}
}

// TestPlaces checks decisions that depend on the place.
func TestPlaces(t *testing.T) {
	image := func(s *v1alpha1.TaskSpec) { s.Image = "alpine" }
	code := plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{"code_exec"} })
	mount := func(s *v1alpha1.TaskSpec) { s.SecretRef = &v1alpha1.NamespacedReference{Name: "keys"} }
	other := plantest.With(func(ai *v1alpha1.TaskAI) {
		ai.ProviderRef = &v1alpha1.NamespacedReference{Namespace: plantest.Other, Name: "openai"}
	})
	noModel := plantest.With(func(ai *v1alpha1.TaskAI) {
		ai.ProviderRef = &v1alpha1.NamespacedReference{Namespace: plantest.Other, Name: "no-model"}
	})
	delegated := func(network v1alpha1.SandboxNetwork) *v1alpha1.Task {
		task := plantest.Container()
		task.Status.Delegation = &v1alpha1.TaskDelegation{Network: network}
		return task
	}
	coding := func(agent string, change func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
		return plantest.AI(plantest.ByAgent(agent), func(s *v1alpha1.TaskSpec) {
			s.Type, s.AI = v1alpha1.TaskTypeAgent, nil
			change(s)
		})
	}
	as := func(*v1alpha1.TaskSpec) {}
	here := plan.Place{Runtime: func(t v1alpha1.AgentRuntimeType) string {
		return map[bool]string{false: "not installed"}[t == v1alpha1.RuntimeClaude]
	}}
	noAgents := plan.Place{Runtime: func(v1alpha1.AgentRuntimeType) string { return "install it" }}
	lacks := func(tool string) string { return map[string]string{"code_exec": "no interpreter"}[tool] }
	for name, tc := range map[string]struct {
		place plan.Place
		task  *v1alpha1.Task
		want  string
	}{
		"no containers":               {plan.Place{NoContainers: "no"}, plantest.Container(), v1alpha1.ReasonHostCommandsNotAllowed},
		"no containers, and an ai":    {plan.Place{NoContainers: "no"}, plantest.AI(), "runs"},
		"no images":                   {plan.Place{NoImages: "no"}, plantest.Container(image), v1alpha1.ReasonImageNotUsed},
		"no images, and none":         {plan.Place{NoImages: "no"}, plantest.Container(), "runs"},
		"images":                      {plan.Place{}, plantest.Container(image), "runs"},
		"no programs":                 {plan.Place{NoPrograms: "no"}, plantest.Container(), v1alpha1.ReasonSandboxUnavailable},
		"no programs for a tool":      {plan.Place{NoPrograms: "no"}, plantest.AI(code), v1alpha1.ReasonSandboxUnavailable},
		"no programs, no tool":        {plan.Place{NoPrograms: "no"}, plantest.AI(), "runs"},
		"no network":                  {plan.Place{NoNetwork: "no"}, delegated(v1alpha1.SandboxNetworkPublic), v1alpha1.ReasonSandboxUnavailable},
		"no network, and none":        {plan.Place{NoNetwork: "no"}, delegated(v1alpha1.SandboxNetworkNone), "runs"},
		"no interpreter":              {plan.Place{Lacks: lacks}, plantest.AI(code), v1alpha1.ReasonToolUnavailable},
		"interpreter not needed":      {plan.Place{Lacks: lacks}, plantest.AI(), "runs"},
		"no coding agents":            {plan.Place{}, coding("runtime", as), v1alpha1.ReasonRuntimeNotAvailable},
		"coding agent":                {here, coding("runtime", as), "runs"},
		"another coding agent":        {noAgents, coding("runtime", as), v1alpha1.ReasonRuntimeNotAvailable},
		"agent without a runtime":     {here, coding("plain", as), v1alpha1.ReasonIncompatibleAgent},
		"agent without a sandbox":     {plan.Place{Runtime: here.Runtime, NoPrograms: "no"}, coding("runtime", as), v1alpha1.ReasonSandboxUnavailable},
		"agent in a session":          {here, coding("runtime", func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s"} }), "runs"},
		"agent that continues a task": {here, coding("runtime", func(s *v1alpha1.TaskSpec) { s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: "x"} }), v1alpha1.ReasonNotSupported},
		"agent without a prompt":      {here, coding("runtime", func(s *v1alpha1.TaskSpec) { s.Prompt = "" }), v1alpha1.ReasonNoPrompt},
		"agent on a repository of another kind": {here, coding("runtime", func(s *v1alpha1.TaskSpec) {
			s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "git@example.com:x"}
		}), v1alpha1.ReasonNotSupported},
		"agent that cannot push": {here, coding("runtime", func(s *v1alpha1.TaskSpec) {
			s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "https://example.com/x", Intent: v1alpha1.WorkspaceWrite}
		}), v1alpha1.ReasonNotSupported},
		"at a runtime": {plan.Place{NoPrograms: "no", NoNetwork: "no"}, coding("at-house", as), "runs"},
		"at one that an administrator only trusts": {here, coding("at-untrusted", as), v1alpha1.ReasonRuntimeNotAvailable},
		"at one that was not asked again":          {here, coding("at-changed", as), v1alpha1.ReasonRuntimeNotAvailable + "?"},
		"at one that is not ready":                 {here, coding("at-unready", as), v1alpha1.ReasonRuntimeNotAvailable + "?"},
		"at one of the former protocol":            {here, coding("at-old", as), v1alpha1.ReasonRuntimeNotAvailable},
		"at one with short leases":                 {here, coding("at-hasty", as), v1alpha1.ReasonRuntimeNotAvailable},
		"at one with short requests":               {here, coding("at-narrow", as), v1alpha1.ReasonRuntimeNotAvailable},
		"at one without its key":                   {here, coding("at-keyless", as), v1alpha1.ReasonSecretKeyNotFound + "?"},
		"at one that does not exist":               {here, coding("at-nowhere", as), v1alpha1.ReasonAgentRuntimeNotFound + "?"},
		"at a runtime, in a session":               {here, coding("at-house", func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s"} }), "runs"},
		"at a runtime that a host rule excludes":   {plan.Place{RequireHosts: true}, coding("at-house", as), v1alpha1.ReasonSecretHostNotAllowed},
		"no mounts":                                {plan.Place{NoMounts: "no"}, plantest.AI(mount), v1alpha1.ReasonRefused},
		"mounts":                                   {plan.Place{}, plantest.AI(mount), "runs"},
		"other namespaces":                         {plan.Place{OtherNamespaces: true}, plantest.AI(other), "runs"},
		"secret of a pod":                          {plan.Place{OtherNamespaces: true, Pods: true}, plantest.AI(other), v1alpha1.ReasonRefused},
		"no model":                                 {plan.Place{OtherNamespaces: true}, plantest.AI(noModel), v1alpha1.ReasonNoModel},
	} {
		_, err := plan.Make(t.Context(), newShelf(), tc.place, tc.task)
		if got := decided(err); got != tc.want {
			t.Errorf("%s: %s, want %s: %v", name, got, tc.want, err)
		}
	}
	if _, err := plan.Make(t.Context(), shelf(nil), plan.Place{}, plantest.AI()); decided(err) == "runs" || !errors.Is(err, errAway) {
		t.Errorf("a reader that cannot read: %v", err)
	}
}

// TestNoSearchService: a run goes on without web_search where there is no service for it, and a note says so.
func TestNoSearchService(t *testing.T) {
	for lacks, note := range map[string]string{"": "", "no service": "tools: web_search cannot work here, and runs leave it out: no service"} {
		place := plan.Place{Lacks: func(tool string) string { return map[string]string{builtin.WebSearch.Name: lacks}[tool] }}
		p, err := plan.Make(t.Context(), newShelf(), place, plantest.AI(plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{builtin.WebSearch.Name, "file_read"} })))
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(p.Tools, func(t plan.Tool) bool { return t.Name == name })
		}
		if has(builtin.WebSearch.Name) != (lacks == "") || !has("file_read") || strings.Join(p.Notes, "") != note {
			t.Errorf("%q is lacking: %+v, %q", lacks, p.Tools, p.Notes)
		}
	}
}

// TestPlan checks what a task runs with.
func TestPlan(t *testing.T) {
	task := plantest.AI(plantest.ByAgent("full"), func(s *v1alpha1.TaskSpec) {
		s.Prompt = " "
		s.AI = &v1alpha1.TaskAI{
			Prompt: "of ai", Temperature: new(0.5), MaxTokens: new(int32(7)), Tools: []string{"open", "weather", "unknown"},
			Skills: []v1alpha1.SkillReference{{Name: "skill"}},
		}
	})
	p, err := plan.Make(t.Context(), newShelf(), plan.Place{}, task)
	if err != nil {
		t.Fatal(err)
	}
	var candidates, tools, secrets []string
	for _, c := range p.Candidates {
		candidates = append(candidates, c.Provider.Name+" "+c.Model)
	}
	for _, tl := range p.Tools {
		tools = append(tools, fmt.Sprintf("%s %v", tl.Name, tl.Object != nil))
	}
	for _, s := range p.Secrets {
		secrets = append(secrets, fmt.Sprintf("%s %s %s %s", s.Use, s.For, s.Ref.Name, s.Ref.Key))
	}
	configMaps := []plan.ConfigMap{{NamespacedName: types.NamespacedName{Namespace: plantest.Namespace, Name: "texts"}, Key: "text", Value: "of a ConfigMap"}}
	for what, d := range map[string]string{
		"configmaps": cmp.Diff(configMaps, p.ConfigMaps),
		"candidates": cmp.Diff([]string{"openai agent-model", "azure model", "openai cheap"}, candidates),
		"tools":      cmp.Diff([]string{"weather true", "file_read false", "open true", "recall_memory false", "remember false", "propose_memory false", "search_transcript false"}, tools),
		"secrets":    cmp.Diff([]string{"Provider n/openai keys api-key", "Provider n/azure keys api-key", "Tool n/weather keys token"}, secrets),
		"system":     cmp.Diff("# Skill: skill\n\nof a Skill\n\nof a ConfigMap\n\n# Skill: skill\n\nof a Skill\n\nof a ConfigMap", p.System()),
	} {
		if d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	if p.Prompt != "of ai" || p.MaxTokens != 7 || *p.Temperature != 0.5 || p.MaxIterations != 10 || !p.MayPark || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "unknown") {
		t.Errorf("%+v", p)
	}
}

// TestMayPark: a run with tools may have to wait for people, since a policy can hold back any call.
func TestMayPark(t *testing.T) {
	ask := plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{"request_approval"} })
	for name, tc := range map[string]struct {
		task  *v1alpha1.Task
		gated []string
		want  bool
	}{
		"plain":               {plantest.AI(), nil, true}, // it has the tools of memory
		"tool of the task":    {plantest.AI(ask), nil, true},
		"tool of the agent":   {plantest.AI(plantest.ByAgent("asks")), nil, true},
		"tools that are kept": {plantest.AI(plantest.ByAgent("gated")), []string{"open"}, true},
		"tools of any kind":   {plantest.AI(plantest.ByAgent("full")), nil, true},
	} {
		p, err := plan.Make(t.Context(), newShelf(), plan.Place{}, tc.task)
		if err != nil || p.MayPark != tc.want || cmp.Diff(tc.gated, p.Gated) != "" {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
}

// TestApprovals checks which tools need approval, and which agents may ask by themselves.
func TestApprovals(t *testing.T) {
	for name, tc := range map[string]struct {
		c     *v1alpha1.AgentCoordination
		off   bool
		above []string
		gated []string
		asks  bool
	}{
		"no coordination":        {},
		"gated":                  {c: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"drop", "request_approval"}}, gated: []string{"drop"}},
		"autonomous":             {c: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}, asks: true},
		"autonomous, turned off": {c: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}, off: true},
		"not autonomous":         {c: &v1alpha1.AgentCoordination{Enabled: true}},
		"gated above":            {above: []string{"drop", "request_approval"}, gated: []string{"drop"}},
		"gated here and above":   {c: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"open", "drop"}}, above: []string{"drop", "burn"}, gated: []string{"open", "drop", "burn"}},
	} {
		task := plantest.AI()
		if tc.off {
			task.Annotations = map[string]string{v1alpha1.AnnotationDisableCoordination: "true"}
		}
		if tc.above != nil {
			task.Status.Delegation = &v1alpha1.TaskDelegation{ApprovalRequiredTools: tc.above}
		}
		u := plan.UsesOf(task, &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Coordination: tc.c}})
		asks := slices.ContainsFunc(u.Tools, func(k types.NamespacedName) bool { return k.Name == builtin.RequestApproval.Name })
		if !slices.Equal(u.Gated, tc.gated) || asks != tc.asks {
			t.Errorf("%s: %v %t", name, u.Gated, asks)
		}
	}
}

// TestSwitchedOff: an agent that lists a tool as not enabled does not get it automatically. A task can still name it.
func TestSwitchedOff(t *testing.T) {
	a := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Tools: []v1alpha1.AgentTool{{Name: "remember", Enabled: new(false)}, {Name: "recall_memory", Enabled: new(true)}}}}
	names := func(t *v1alpha1.Task) (list []string) {
		for _, key := range plan.UsesOf(t, a).Tools {
			list = append(list, key.Name)
		}
		return list
	}
	got := names(plantest.AI())
	if slices.Contains(got, "remember") || !slices.Contains(got, "recall_memory") || !slices.Contains(got, "propose_memory") {
		t.Errorf("tools %v", got)
	}
	if got := names(plantest.AI(plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{"remember"} }))); !slices.Contains(got, "remember") {
		t.Errorf("tools of a task that names it: %v", got)
	}
}
