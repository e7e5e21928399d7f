// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Objects makes one of each kind that the page shows beside tasks, a task of its session, one with a schedule, the monitor shop, the gateway
// chat, and two proposals, one of them accepted.
func (s *Scene) Objects() {
	s.t.Helper()
	ctx, c := s.t.Context(), s.API.CoreV1alpha1()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	check := func(_ any, err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	check(c.Providers(s.namespace).Create(ctx, &v1alpha1.Provider{ObjectMeta: named("vendor"), Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, SecretRef: v1alpha1.ProviderSecretReference{Name: "vendor-key"},
	}}, metav1.CreateOptions{}))
	check(c.Agents(s.namespace).Create(ctx, &v1alpha1.Agent{ObjectMeta: named("helper"), Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "vendor"}, SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: "Be brief."},
	}}, metav1.CreateOptions{}))
	check(c.Budgets(s.namespace).Create(ctx, &v1alpha1.Budget{ObjectMeta: named("all"), Spec: v1alpha1.BudgetSpec{
		Limit: v1alpha1.BudgetLimit{Tokens: new(int64(1000))}, Window: v1alpha1.BudgetDay,
	}}, metav1.CreateOptions{}))
	check(c.Tools(s.namespace).Create(ctx, &v1alpha1.Tool{ObjectMeta: named("weather"), Spec: v1alpha1.ToolSpec{
		Description: "What the weather is somewhere.", HTTP: &v1alpha1.ToolHTTP{URL: "https://weather.example/now"},
	}}, metav1.CreateOptions{}))
	check(c.Skills(s.namespace).Create(ctx, &v1alpha1.Skill{ObjectMeta: named("letters"), Spec: v1alpha1.SkillSpec{
		Description: "Writes letters.", Content: v1alpha1.SkillContent{Inline: "# Letters\n\n| Part | Lines |\n|---|---:|\n| greeting | 1 |\n| **text** | 20 |"},
	}}, metav1.CreateOptions{}))
	check(c.Memories(s.namespace).Create(ctx, &v1alpha1.Memory{ObjectMeta: named("window"), Spec: v1alpha1.MemorySpec{
		Content: "Deployments are on Tuesdays.", Tags: []string{"deployment"},
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals(s.namespace).Create(ctx, &v1alpha1.MemoryProposal{ObjectMeta: named("staging"), Spec: v1alpha1.MemoryProposalSpec{
		Title: "Staging is rebuilt at night", Content: "Data written there is lost.",
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals(s.namespace).Create(ctx, &v1alpha1.MemoryProposal{ObjectMeta: named("accepted"), Spec: v1alpha1.MemoryProposalSpec{
		Title: "Accepted", Content: "To be applied.",
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals(s.namespace).Review(ctx, "accepted", &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{
		Status: v1alpha1.ProposalAccepted,
	}}, metav1.CreateOptions{}))
	check(c.Sessions(s.namespace).Create(ctx, &v1alpha1.Session{ObjectMeta: named("talk"), Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}, metav1.CreateOptions{}))
	check(c.Sessions(s.namespace).AppendMessages(ctx, "talk", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{
		{ID: "1", Role: v1alpha1.RoleUser, Content: "What was said?"},
		{ID: "2", Role: v1alpha1.RoleAssistant, ToolCalls: []v1alpha1.MessageToolCall{{ID: "c", Name: "check_task", Arguments: `{"name":"plain"}`}}},
		{ID: "3", Role: v1alpha1.RoleTool, Name: "check_task", ToolCallID: "c", Content: `{"success":true}`},
		{ID: "4", Role: v1alpha1.RoleAssistant, Content: "**Nothing** of note."},
	}}, metav1.CreateOptions{}))
	s.Monitor("shop", "All is said.", "https://git.example/ada/shop/pulls/7")
	s.Gateway("chat", "All is said.")
	s.create("member", v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, SessionRef: &v1alpha1.TaskSessionReference{Name: "talk"},
	})
	s.create("nightly", v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Schedule: "0 3 * * *"})
	s.Append("member", 0, 12)
	s.Keep("plain", "artifacts/report.txt", "All is well.")
	s.Keep("plain", "log", "It begins.\nIt ends.\n")
}

// Keep stores what a run leaves: its result, its log, or a file below artifacts.
func (s *Scene) Keep(task, as, text string) {
	s.t.Helper()
	err := s.API.CoreV1alpha1().RESTClient().Post().Namespace(s.namespace).Resource("tasks").Name(task).SubResource(strings.Split(as, "/")...).
		SetHeader("Content-Type", "text/plain").Body([]byte(text)).Do(s.t.Context()).Error()
	if err != nil {
		s.t.Errorf("%s of %s: %v", as, task, err)
	}
}
