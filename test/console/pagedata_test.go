// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// objects makes one of each kind that the page shows beside tasks.
func (f *filled) objects() {
	f.t.Helper()
	ctx, c := f.t.Context(), f.api.CoreV1alpha1()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	check := func(_ any, err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	check(c.Providers("team").Create(ctx, &v1alpha1.Provider{ObjectMeta: named("vendor"), Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, SecretRef: v1alpha1.ProviderSecretReference{Name: "vendor-key"},
	}}, metav1.CreateOptions{}))
	check(c.Agents("team").Create(ctx, &v1alpha1.Agent{ObjectMeta: named("helper"), Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "vendor"}, SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: "Be brief."},
	}}, metav1.CreateOptions{}))
	check(c.Budgets("team").Create(ctx, &v1alpha1.Budget{ObjectMeta: named("all"), Spec: v1alpha1.BudgetSpec{
		Limit: v1alpha1.BudgetLimit{Tokens: new(int64(1000))}, Window: v1alpha1.BudgetDay,
	}}, metav1.CreateOptions{}))
	check(c.Memories("team").Create(ctx, &v1alpha1.Memory{ObjectMeta: named("window"), Spec: v1alpha1.MemorySpec{
		Content: "Deployments are on Tuesdays.", Tags: []string{"deployment"},
	}}, metav1.CreateOptions{}))
	check(c.MemoryProposals("team").Create(ctx, &v1alpha1.MemoryProposal{ObjectMeta: named("staging"), Spec: v1alpha1.MemoryProposalSpec{
		Title: "Staging is rebuilt at night", Content: "Data written there is lost.",
	}}, metav1.CreateOptions{}))
	check(c.Sessions("team").Create(ctx, &v1alpha1.Session{ObjectMeta: named("talk"), Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}, metav1.CreateOptions{}))
	check(c.Sessions("team").AppendMessages(ctx, "talk", &v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{
		{ID: "1", Role: v1alpha1.RoleUser, Content: "What was said?"},
		{ID: "2", Role: v1alpha1.RoleAssistant, ToolCalls: []v1alpha1.MessageToolCall{{ID: "c", Name: "check_task", Arguments: `{"name":"plain"}`}}},
		{ID: "3", Role: v1alpha1.RoleTool, Name: "check_task", ToolCallID: "c", Content: `{"success":true}`},
		{ID: "4", Role: v1alpha1.RoleAssistant, Content: "**Nothing** of note."},
	}}, metav1.CreateOptions{}))
}
