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
	if w == nil || t.Spec.Type == v1alpha1.TaskTypeAgent { // which is judged when it is to start
		return nil
	}
	if w.GitRepo == "" {
		return &refusal.Error{Reason: v1alpha1.ReasonNotSupported, Field: "spec.workspace.gitRepo", Message: "spec.workspace.gitRepo: a workspace needs a repository"}
	}
	if !overHTTP(w.GitRepo) {
		return &refusal.Error{
			Reason: v1alpha1.ReasonNotSupported, Field: "spec.workspace.gitRepo",
			Message: "spec.workspace.gitRepo: not supported yet: repositories are fetched with https or http; use such an address, and a token in spec.workspace.readCredentialRef",
		}
	}
	if w.Writes() && w.PublicationCredentialRef == nil {
		return &refusal.Error{
			Reason: v1alpha1.ReasonNotSupported, Field: "spec.workspace.publicationCredentialRef",
			Message: "spec.workspace.publicationCredentialRef: with intent write the branch is pushed with the token in this Secret, so it is required",
		}
	}
	return nil
}

// overHTTP reports whether an address is one of http or https.
func overHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// repository checks whether the task's repository can be fetched, and needs the credential for it.
func (m *maker) repository(ctx context.Context, t *v1alpha1.Task) error {
	w := t.Spec.Workspace
	if w == nil || m.place.Started {
		return nil
	}
	if m.place.NoRepositories != "" {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace: %s", m.place.NoRepositories)
	}
	if w.ReadCredentialRef != nil {
		to, err := url.Parse(w.GitRepo)
		if err != nil {
			return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace.gitRepo: %v", err)
		}
		if err := m.need(ctx, WorkspaceSecret(t, ForRepository, w.ReadCredentialRef), to); err != nil {
			return err
		}
	}
	if !w.Writes() {
		return nil
	}
	return m.publication(ctx, t)
}

// WorkspaceSecret returns a credential of a task's workspace.
func WorkspaceSecret(t *v1alpha1.Task, use SecretUse, ref *v1alpha1.WorkspaceCredentialReference) Secret {
	return Secret{
		Use: use, For: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, Namespace: t.Namespace,
		Ref: v1alpha1.KeyReference{Name: ref.Name, Key: ref.Key},
	}
}

// publication checks that what the run changes could be published, before anything is paid for. The run does not get the credentials.
func (m *maker) publication(ctx context.Context, t *v1alpha1.Task) error {
	w := t.Spec.Workspace
	if m.place.NoPublication != "" {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace.intent: %s", m.place.NoPublication)
	}
	to, err := url.Parse(w.PublicationURL())
	if err != nil {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace.publicationGitRepo: %v", err)
	}
	if ref := w.PublicationReadCredentialRef; ref != nil {
		if _, err := m.may(ctx, WorkspaceSecret(t, ForPublicationRead, ref), to); err != nil {
			return err
		}
	}
	if _, err = m.may(ctx, WorkspaceSecret(t, ForPublication, w.PublicationCredentialRef), to); err != nil || !w.CreatePR {
		return err
	}
	_, err = m.may(ctx, WorkspaceSecret(t, ForForge, w.ForgeCredentialRef), APIOf(to))
	return err
}

// APIOf returns where the API of a repository's code host is: github.com has a host of its own for it.
func APIOf(repository *url.URL) *url.URL {
	if repository.Host != "github.com" {
		return repository
	}
	api := *repository
	api.Host = "api.github.com"
	return &api
}
