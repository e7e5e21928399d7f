// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Each role, and somebody without any, is shown exactly the buttons whose requests the server would permit, and a view that may
// not be read says so.
func TestButtonsOfRoles(t *testing.T) {
	t.Parallel()
	tools(t)
	f := fill(t)
	f.objects()
	approval := f.ask("asks", "remove the old files", map[string]string{"code": "rm -r old"})
	c := f.api.CoreV1alpha1().MemoryProposals("team")
	accepted := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: "accepted"}, Spec: v1alpha1.MemoryProposalSpec{Title: "Accepted", Content: "To be applied."}}
	if _, err := c.Create(t.Context(), accepted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	review := &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{Status: v1alpha1.ProposalAccepted}}
	if _, err := c.Review(t.Context(), "accepted", review, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	roles, err := f.Kubernetes(t).RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{"nobody": f.token("nobody", "")}
	for _, r := range roles.Items {
		// The roles of this project, and the administrator's of the host. That of workers cannot be bound to anybody else.
		if strings.HasPrefix(r.Name, "platform-") && r.Name != "platform-worker" || r.Name == "admin" || r.Name == "cluster-admin" {
			tokens[r.Name] = f.token("as-"+r.Name, r.Name)
		}
	}
	if len(tokens) < 5 {
		t.Fatalf("there are only the roles %v", tokens)
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		t.Fatal(err)
	}
	f.drive("roles.mjs", 1, "TOKENS="+string(text), "APPROVAL="+approval)
}
