// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// What buttons say they do is done.
func TestButtonsWork(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Objects()
	ctx, c := t.Context(), f.API.CoreV1alpha1()
	no := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "no"}, Spec: v1alpha1.MemoryProposalSpec{Title: "Not this", Content: "The earth is flat."}}
	if _, err := c.MemoryProposals("team").Create(ctx, no, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	other := &v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.MemorySpec{Content: "It was so."}}
	if _, err := c.Memories("team").Create(ctx, other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := f.token("ann", "platform-operator")
	f.bind("team", "ann", "platform-approver")
	f.bind("team", "ann", "platform-editor")
	f.drive("buttons.mjs", 4, "TOKEN="+token)
	for name, want := range map[string]v1alpha1.MemoryProposalState{"staging": v1alpha1.ProposalApplied, "no": v1alpha1.ProposalArchived} {
		p, err := c.MemoryProposals("team").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Status.State != want || (name == "no" && p.Status.ReviewNote != "It is wrong.") {
			t.Errorf("proposal %s: %+v, want %s", name, p.Status, want)
		}
		if name != "staging" {
			continue
		}
		if m, err := c.Memories("team").Get(ctx, p.Status.MemoryName, metav1.GetOptions{}); err != nil || m.Spec.Content == "" {
			t.Errorf("the memory %q of the proposal: %v %v", p.Status.MemoryName, m, err)
		}
	}
	for name, want := range map[string]bool{"window": false, "other": true} {
		m, err := c.Memories("team").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Status.Disabled != want {
			t.Errorf("memory %s: %+v, want disabled %v", name, m.Status, want)
		}
	}
}

// Views are used with the keyboard alone.
func TestKeys(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Objects()
	f.Append("long", 7, 5) // not what plain said at first
	f.Task("wordy")
	f.Append("wordy", 40, 120)
	f.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old"})
	f.Ask("asks", "send a letter", map[string]string{"code": "mail"})
	token := f.token("ann", "platform-operator")
	f.bind("team", "ann", "platform-approver")
	f.drive("keys.mjs", 6, "TOKEN="+token)
}
