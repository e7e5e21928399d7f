// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// paths are the paths of gaps; "!" marks those that are refused.
func paths(gaps []Gap) string {
	var list []string
	for _, g := range gaps {
		mark := map[bool]string{true: "!"}[g.Refused]
		list = append(list, mark+g.Path)
		if !strings.HasPrefix(g.Text, "not supported yet: ") || !strings.Contains(g.String(), g.Path) {
			list = append(list, "bad text "+g.String())
		}
	}
	return strings.Join(list, " ")
}

func TestGapsOfTasks(t *testing.T) {
	for _, tc := range []struct {
		name string
		task v1alpha1.Task
		want string
	}{
		{"plain", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Priority: new(int32(500))}}, ""},
		{"to read", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{
			Intent: v1alpha1.WorkspaceRead, GitRepo: "https://example.com/r", Branch: "main", Ref: "v1", SubPath: "a", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "s"},
		}}}, ""},
		{"to write", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceWrite, PushBranch: "x"}}}, ""},
		{"to open a pull request", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceWrite, CreatePR: true, PRTitle: "t"}}}, ""},
		{"to say how a pull request is", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceWrite, PRTitle: "t"}}}, "spec.workspace.createPR"},
		{"to publish", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Workspace: &v1alpha1.TaskWorkspace{PushBranch: "x"}}}, "!spec.workspace"},
		{"of an identity", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Workspace: &v1alpha1.TaskWorkspace{SourceRepository: &v1alpha1.RepositoryIdentity{}}}}, "!spec.workspace.sourceRepository"},
		{"of a runtime", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAgent, Workspace: &v1alpha1.TaskWorkspace{}, Priority: new(int32(1))}}, ""},
		{"priority", v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Priority: new(int32(600))}}, ""},
	} {
		if got := paths(Task(&tc.task)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestGapsOfAgents(t *testing.T) {
	both := &v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}}
	for _, tc := range []struct {
		name string
		spec *v1alpha1.AgentSpec
		want string
	}{
		{"approvals", &v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{
			ApprovalRequiredTools: []string{"x"}, MaxDepth: new(int32(3)), MaxConcurrentChildren: new(int32(5)),
		}, Session: &v1alpha1.AgentSession{MaxMessages: new(int32(50))}}, ""},
		{"coordination", both, ""},
		{"session", &v1alpha1.AgentSpec{Session: &v1alpha1.AgentSession{TTL: v1alpha1.DurationOf(1), MaxMessages: new(int32(9))}}, "spec.session.ttl"},
		{"others", &v1alpha1.AgentSpec{Model: &v1alpha1.AgentModel{ContextWindow: new(int32(9))}, Runtime: &v1alpha1.AgentCodingRuntime{RuntimeRef: &v1alpha1.LocalReference{Name: "r"}}}, ""},
	} {
		if got := paths(Agent(tc.spec)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct {
		task v1alpha1.Task
		want string
	}{
		{v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}, ""},
		{v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAgent}}, ""},
	} {
		if got := paths(AgentOf(&tc.task, both)); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}

func TestGapsOfProvidersAndTools(t *testing.T) {
	s := &v1alpha1.ToolSpec{BrokeredToolClass: v1alpha1.ToolClassRead, MCP: &v1alpha1.ToolMCP{Workspace: &v1alpha1.ToolMCPWorkspace{}, SubstrateActor: &v1alpha1.ToolSubstrateActor{}}, HTTP: &v1alpha1.ToolHTTP{OutboundAccessPolicyRef: &v1alpha1.LocalReference{}}}
	if got := paths(Tool(s)); got != "spec.mcp.workspace spec.mcp.substrateActor spec.http.outboundAccessPolicyRef spec.brokeredToolClass" {
		t.Error(got)
	}
}

func TestLocal(t *testing.T) {
	one := resource.MustParse("1")
	p := v1alpha1.ExecutionPlacement{RuntimeClassName: new("x"), NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{}}, Affinity: &corev1.Affinity{}}
	r := &corev1.ResourceRequirements{
		Claims:   []corev1.ResourceClaim{{Name: "gpu"}},
		Requests: corev1.ResourceList{corev1.ResourceMemory: one},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: one, corev1.ResourceCPU: one, "example.com/gpu": one},
	}
	got := Local("spec", p, r)
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], ": ")
	}
	want := []string{"spec.execution.runtimeClassName", "spec.execution.nodeSelector", "spec.execution.tolerations", "spec.execution.affinity", "spec.resources.requests", "spec.resources.claims", "spec.resources.limits[cpu]", "spec.resources.limits[example.com/gpu]"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := Local("spec", v1alpha1.ExecutionPlacement{}, &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: one}}); got != nil {
		t.Errorf("a limit of memory is enforced: %v", got)
	}
}
