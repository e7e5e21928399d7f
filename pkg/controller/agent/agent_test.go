// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/llm/vendors"
)

func in(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "n", Name: name} }

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.Task{}, activeIndex, activeAgent).Build()
}

func TestReferences(t *testing.T) {
	c := testClient(t,
		&v1alpha1.Provider{ObjectMeta: in("p"), Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI}, Status: v1alpha1.ProviderStatus{Ready: true}},
		&v1alpha1.Provider{ObjectMeta: in("unready"), Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderAzureOpenAI, BaseURL: "https://azure.example", Azure: &v1alpha1.AzureProvider{DeploymentName: "d"},
		}},
		&v1alpha1.Provider{ObjectMeta: in("unspoken"), Spec: v1alpha1.ProviderSpec{Type: "strange"}},
		&v1alpha1.Tool{ObjectMeta: in("mcp"), Spec: v1alpha1.ToolSpec{MCP: &v1alpha1.ToolMCP{}}},
		&v1alpha1.Skill{ObjectMeta: in("s")}, &v1alpha1.Skill{ObjectMeta: in("bad"), Status: v1alpha1.SkillStatus{Phase: v1alpha1.SkillError}},
		&corev1.ConfigMap{ObjectMeta: in("c"), Data: map[string]string{"k": "v"}}, &corev1.Secret{ObjectMeta: in("x")},
		&v1alpha1.Agent{ObjectMeta: in("a")},
	)
	ref := func(name string) *v1alpha1.NamespacedReference { return &v1alpha1.NamespacedReference{Name: name} }
	with := func(change func(*v1alpha1.AgentSpec)) v1alpha1.AgentSpec {
		s := v1alpha1.AgentSpec{ProviderRef: ref("p")}
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name string
		spec v1alpha1.AgentSpec
		want string
	}{
		{"good", with(func(s *v1alpha1.AgentSpec) {
			s.Skills = []v1alpha1.SkillReference{{Name: "s"}, {ConfigMapRef: &v1alpha1.KeyReference{Name: "c", Key: "k"}}}
			s.SecretRef = &v1alpha1.LocalReference{Name: "x"}
			s.SystemPrompt = &v1alpha1.AgentSystemPrompt{ConfigMapRef: &v1alpha1.KeyReference{Name: "c", Key: "k"}}
			s.Tools = []v1alpha1.AgentTool{{Name: "nobody-knows"}}
			s.Coordination = &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"nobody-knows"}}
		}), ""},
		{"coordinates", with(func(s *v1alpha1.AgentSpec) {
			s.Coordination = &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{*ref("a")}}
		}), ""},
		{"both", with(func(s *v1alpha1.AgentSpec) { s.Runtime = &v1alpha1.AgentCodingRuntime{} }), "providerRef and runtime are both set"},
		{"neither", v1alpha1.AgentSpec{}, "neither providerRef, model.provider nor runtime is set"},
		{"vendor", v1alpha1.AgentSpec{Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}}, ""},
		{"no provider", v1alpha1.AgentSpec{ProviderRef: ref("gone")}, `Provider "gone" does not exist in namespace "n"`},
		{"no provider of a vendor", v1alpha1.AgentSpec{Model: &v1alpha1.AgentModel{Provider: "other"}}, `no Provider of type "other" exists in namespace "n"`},
		{"unspoken provider", v1alpha1.AgentSpec{ProviderRef: ref("unspoken")}, `provider "unspoken": spec.type: must be ` + vendors.Types() + `, not strange`},
		{"of another namespace", v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Namespace: "x", Name: "p"}}, `Provider "p" of namespace "x" may not be used from namespace "n"`},
		{"tool", with(func(s *v1alpha1.AgentSpec) { s.Tools = []v1alpha1.AgentTool{{Name: "mcp"}} }), `tool n/mcp: spec.mcp.remote: required`},
		{"tool that is off", with(func(s *v1alpha1.AgentSpec) { s.Tools = []v1alpha1.AgentTool{{Name: "mcp", Enabled: new(false)}} }), ""},
		{"unready provider", v1alpha1.AgentSpec{ProviderRef: ref("unready")}, `Provider "unready" is not ready`},
		{"no fallback", with(func(s *v1alpha1.AgentSpec) {
			s.Model = &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("gone")}}}
		}), `Provider "gone" does not exist in namespace "n"`},
		{"no secret", with(func(s *v1alpha1.AgentSpec) { s.SecretRef = &v1alpha1.LocalReference{Name: "gone"} }), `Secret "gone" does not exist in namespace "n"`},
		{"no skill", with(func(s *v1alpha1.AgentSpec) { s.Skills = []v1alpha1.SkillReference{{Name: "gone"}} }), `Skill "gone" does not exist in namespace "n"`},
		{"bad skill", with(func(s *v1alpha1.AgentSpec) { s.Skills = []v1alpha1.SkillReference{{Name: "bad"}} }), `Skill "bad" has an error`},
		{"no key", with(func(s *v1alpha1.AgentSpec) {
			s.SystemPrompt = &v1alpha1.AgentSystemPrompt{ConfigMapRef: &v1alpha1.KeyReference{Name: "c", Key: "gone"}}
		}), `ConfigMap "c" of namespace "n" has no key "gone"`},
		{"no target", with(func(s *v1alpha1.AgentSpec) {
			s.Coordination = &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{*ref("gone")}}
		}), `Agent "gone" does not exist in namespace "n"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &v1alpha1.Agent{ObjectMeta: in("me"), Spec: tc.spec}
			r := references{reader: reader.Reader{Cached: c}}
			if err := r.do(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			cond := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
			if strings.Contains(tc.want, "not supported") && cond.Reason != v1alpha1.ReasonNotSupported {
				t.Errorf("reason %s", cond.Reason)
			}
			if a.Status.Ready != (tc.want == "") || tc.want != "" && cond.Message != tc.want {
				t.Errorf("ready = %v, %+v, want %q", a.Status.Ready, cond, tc.want)
			}
		})
	}
}

func TestActiveTasks(t *testing.T) {
	of := func(name string, ref *v1alpha1.NamespacedReference, phase v1alpha1.TaskPhase) *v1alpha1.Task {
		return &v1alpha1.Task{ObjectMeta: in(name), Spec: v1alpha1.TaskSpec{AgentRef: ref}, Status: v1alpha1.TaskStatus{Phase: phase}}
	}
	mine := &v1alpha1.NamespacedReference{Name: "a"}
	c := testClient(t,
		of("1", mine, v1alpha1.TaskRunning), of("2", mine, v1alpha1.TaskPending), of("3", mine, v1alpha1.TaskSucceeded),
		of("4", &v1alpha1.NamespacedReference{Name: "b"}, v1alpha1.TaskRunning), of("5", &v1alpha1.NamespacedReference{Namespace: "x", Name: "a"}, v1alpha1.TaskRunning), of("6", nil, v1alpha1.TaskRunning),
	)
	a := &v1alpha1.Agent{ObjectMeta: in("a")}
	if err := (active{tasks: tasksOf(c)}).do(t.Context(), a); err != nil || a.Status.ActiveTasks != 2 {
		t.Errorf("active = %d, %v", a.Status.ActiveTasks, err)
	}
}

func TestIdle(t *testing.T) {
	now := time.Unix(100000, 0)
	for _, tc := range []struct {
		name    string
		change  func(*v1alpha1.Agent)
		removed bool
		wait    time.Duration
	}{
		{"no time to live", func(a *v1alpha1.Agent) { a.Spec.TTLAfterLastTask = nil }, false, recheckReady},
		{"never used", func(*v1alpha1.Agent) {}, true, 0},
		{"used lately", func(a *v1alpha1.Agent) { a.Status.LastUsed = &metav1.Time{Time: now.Add(-time.Minute)} }, false, recheckReady},
		{"nearly", func(a *v1alpha1.Agent) { a.Status.LastUsed = &metav1.Time{Time: now.Add(-59 * time.Minute)} }, false, time.Minute},
		{"active", func(a *v1alpha1.Agent) { a.Status.ActiveTasks = 1 }, false, recheckReady},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &v1alpha1.Agent{ObjectMeta: in("a"), Spec: v1alpha1.AgentSpec{TTLAfterLastTask: v1alpha1.DurationOf(time.Hour)}}
			a.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
			a.Status.Ready = true
			tc.change(a)
			removed := false
			s := idle{now: func() time.Time { return now }, remove: func(context.Context, *v1alpha1.Agent) error { removed = true; return nil }}
			err := s.do(t.Context(), a)
			if removed != tc.removed || errors.Is(err, step.ErrDone) != tc.removed {
				t.Errorf("removed = %v, %v", removed, err)
			}
			if removed {
				return
			}
			w, _ := errors.AsType[step.Wait](recheck{now: func() time.Time { return now }}.do(t.Context(), a))
			if w.After != tc.wait {
				t.Errorf("looks again after %s, want %s", w.After, tc.wait)
			}
		})
	}
}
