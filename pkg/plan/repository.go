// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// ofWorkspace returns why a task's repository can be fetched nowhere, judged by the task alone.
func ofWorkspace(t *v1alpha1.Task) *refusal.Error {
	w := t.Spec.Workspace
	if w == nil || t.Spec.Type == v1alpha1.TaskTypeAgent {
		return nil
	}
	if w.GitRepo == "" {
		return &refusal.Error{Reason: v1alpha1.ReasonNotSupported, Field: "spec.workspace.gitRepo", Message: "spec.workspace.gitRepo: a workspace needs a repository"}
	}
	if u, err := url.Parse(w.GitRepo); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return &refusal.Error{
			Reason: v1alpha1.ReasonNotSupported, Field: "spec.workspace.gitRepo",
			Message: "spec.workspace.gitRepo: not supported yet: repositories are fetched with https or http; use such an address, and a token in spec.workspace.readCredentialRef",
		}
	}
	return nil
}

// repository checks whether the task's repository can be fetched, and needs the credential for it.
func (m *maker) repository(ctx context.Context, t *v1alpha1.Task) error {
	w := t.Spec.Workspace
	if w == nil || m.place.Started || t.Spec.Type == v1alpha1.TaskTypeAgent { // the lack of a runtime matters more
		return nil
	}
	if m.place.NoRepositories != "" {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace: %s", m.place.NoRepositories)
	}
	ref := w.ReadCredentialRef
	if ref == nil {
		return nil
	}
	to, err := url.Parse(w.GitRepo)
	if err != nil {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace.gitRepo: %v", err)
	}
	return m.need(ctx, Secret{
		Use: ForRepository, For: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, Namespace: t.Namespace,
		Ref: v1alpha1.KeyReference{Name: ref.Name, Key: ref.Key},
	}, to)
}
