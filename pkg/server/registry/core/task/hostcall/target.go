// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
)

// target is the repository that a call is about.
type target struct {
	hostaccess.Target
	task *v1alpha1.Task
}

// target returns the repository of a call of a task, or why there is none.
func (s *Calls) target(ctx context.Context, own *v1alpha1.Task, name string, tool operation.Tool, arguments json.RawMessage) (*target, error) {
	var a struct {
		TaskName string `json:"task_name"`
		RepoURL  string `json:"repo_url"`
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, invalid(err)
	}
	t, err := s.named(ctx, own, a.TaskName)
	if err != nil {
		return nil, err
	}
	w := t.Spec.Workspace
	if w == nil {
		w = &v1alpha1.TaskWorkspace{}
	}
	to := &target{task: t, Target: hostaccess.Target{Owner: "task " + t.Name, Namespace: t.Namespace, URL: w.PublicationURL()}}
	if tool.Issues {
		to.URL = w.GitRepo
	}
	same := func(address string) bool { return codehost.Same(a.RepoURL, address) }
	signed := slices.IndexFunc(external.Repositories(t.Spec.Transaction), same)
	switch {
	case a.RepoURL == "":
	case same(w.PublicationURL()):
		to.URL = w.PublicationURL()
	case same(w.GitRepo):
		to.URL = w.GitRepo
	case signed >= 0:
		to.URL = external.Repositories(t.Spec.Transaction)[signed]
		return to, to.sign(w, tool)
	default:
		return nil, failure(v1alpha1.CodeHostDenied, "repo_url: is not the repository of task %s", t.Name)
	}
	if w.GitRepo == "" {
		return nil, failure(v1alpha1.CodeHostInvalidArguments, "task %s has no repository (spec.workspace)", t.Name)
	}
	published := codehost.Same(to.URL, w.PublicationURL())
	switch {
	case tool.Writes && !published:
		return nil, failure(v1alpha1.CodeHostDenied, "task %s may write only to the repository that it publishes to", t.Name)
	case tool.Writes:
		if err := to.write(w); err != nil {
			return nil, err
		}
	case codehost.Same(to.URL, w.GitRepo):
		to.with(plan.ForRepository, w.ReadCredentialRef)
	default:
		to.with(plan.ForPublicationRead, w.PublicationReadCredentialRef)
	}
	if name == operation.CreatePullRequest {
		if to.Publication, err = publicationOf(t); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// write gives the target the credential for tools that write.
func (to *target) write(w *v1alpha1.TaskWorkspace) error {
	if w.ForgeCredentialRef == nil {
		return failure(v1alpha1.CodeHostDenied, "task %s has no credential for this (spec.workspace.forgeCredentialRef)", to.task.Name)
	}
	to.with(plan.ForForge, w.ForgeCredentialRef)
	return nil
}

// sign gives a target that the transaction of its task names a credential of the workspace. A credential for one code host is not sent to
// another one.
func (to *target) sign(w *v1alpha1.TaskWorkspace, tool operation.Tool) error {
	at := w.GitRepo
	if tool.Writes {
		at = w.PublicationURL()
	}
	beside := sameHost(to.URL, at)
	switch {
	case tool.Writes && !beside:
		return failure(v1alpha1.CodeHostDenied, "task %s has no credential for the code host of this repository", to.task.Name)
	case tool.Writes:
		return to.write(w)
	case beside:
		to.with(plan.ForRepository, w.ReadCredentialRef)
	}
	return nil
}

// sameHost reports whether two repositories are on one code host.
func sameHost(a, b string) bool {
	x, err := codehost.ParseAddress(a)
	if err != nil {
		return false
	}
	y, err := codehost.ParseAddress(b)
	return err == nil && x.Root == y.Root
}

// with gives the target a credential of its task; nil for none.
func (to *target) with(use plan.SecretUse, ref *v1alpha1.WorkspaceCredentialReference) {
	if ref == nil {
		return
	}
	s := plan.WorkspaceSecret(to.task, use, ref)
	to.Secret, to.Key = types.NamespacedName{Namespace: s.Namespace, Name: s.Ref.Name}, s.Ref.Key
}

// named returns the task that a call names: the caller's own, or one that it delegated.
func (s *Calls) named(ctx context.Context, own *v1alpha1.Task, name string) (*v1alpha1.Task, error) {
	if name == "" || name == own.Name {
		return own, nil
	}
	t, err := s.o.Tasks.Get(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil || t.Status.Delegation == nil || t.Status.Delegation.ParentUID != own.UID {
		return nil, failure(v1alpha1.CodeHostDenied, "task_name: %.64q is neither the task itself nor one that it created", name)
	}
	return t, nil
}

// publicationOf returns the branch that a task has published and that was seen on the code host afterwards.
func publicationOf(t *v1alpha1.Task) (*operation.Publication, error) {
	d := t.Status.Delivery
	switch {
	case !t.Status.Phase.Terminal():
		return nil, failure(v1alpha1.CodeHostRefused, "task %s is %s: wait for its end", t.Name, cmp.Or(t.Status.Phase, v1alpha1.TaskPending))
	case d == nil || d.VerifiedRemoteSHA == "" || d.State != v1alpha1.DeliveryVerifiedExact && d.State != v1alpha1.DeliveryDeliveredSuperseded:
		return nil, failure(v1alpha1.CodeHostRefused, "task %s has published no branch that was seen on the code host afterwards", t.Name)
	}
	p := &operation.Publication{Key: d.PublicationID, Generation: t.Generation, Branch: d.Branch, SHA: cmp.Or(d.SupersedingRemoteSHA, d.VerifiedRemoteSHA)}
	if o := t.Status.ExecutionOutcome; o != nil && o.RecordedAt != nil {
		p.Since = o.RecordedAt.Time
	}
	return p, nil
}
