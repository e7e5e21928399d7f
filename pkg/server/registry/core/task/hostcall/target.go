// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/plan"
)

// target is the repository that a call is about.
type target struct {
	task *v1alpha1.Task
	url  string
	// use and ref are the credential; ref is nil for none.
	use         plan.SecretUse
	ref         *v1alpha1.WorkspaceCredentialReference
	publication *operation.Publication
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
	if w == nil || w.GitRepo == "" {
		return nil, failure(v1alpha1.CodeHostInvalidArguments, "task %s has no repository (spec.workspace)", t.Name)
	}
	to := &target{task: t, url: w.PublicationURL()}
	if tool.Issues {
		to.url = w.GitRepo
	}
	switch {
	case a.RepoURL == "":
	case same(a.RepoURL, w.PublicationURL()):
		to.url = w.PublicationURL()
	case same(a.RepoURL, w.GitRepo):
		to.url = w.GitRepo
	default:
		return nil, failure(v1alpha1.CodeHostDenied, "repo_url: is not the repository of task %s", t.Name)
	}
	published := same(to.url, w.PublicationURL())
	switch {
	case tool.Writes && !published:
		return nil, failure(v1alpha1.CodeHostDenied, "task %s may write only to the repository that it publishes to", t.Name)
	case tool.Writes && w.ForgeCredentialRef == nil:
		return nil, failure(v1alpha1.CodeHostDenied, "task %s has no credential for this (spec.workspace.forgeCredentialRef)", t.Name)
	case tool.Writes:
		to.use, to.ref = plan.ForForge, w.ForgeCredentialRef
	case same(to.url, w.GitRepo):
		to.use, to.ref = plan.ForRepository, w.ReadCredentialRef
	default:
		to.use, to.ref = plan.ForPublicationRead, w.PublicationReadCredentialRef
	}
	if name == operation.CreatePullRequest {
		if to.publication, err = publicationOf(t); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// named returns the task that a call names: the caller's own, or one that it delegated.
func (s *Calls) named(ctx context.Context, own *v1alpha1.Task, name string) (*v1alpha1.Task, error) {
	if name == "" || name == own.Name {
		return own, nil
	}
	t, err := s.tasks.Get(ctx, name)
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

// same reports whether two addresses name one repository. Code hosts do not distinguish case in names.
func same(a, b string) bool {
	x, err := codehost.ParseAddress(a)
	if err != nil {
		return false
	}
	y, err := codehost.ParseAddress(b)
	return err == nil && x.Root.Scheme == y.Root.Scheme && strings.EqualFold(x.Root.Host, y.Root.Host) && x.Root.Path == y.Root.Path &&
		strings.EqualFold(x.Owner, y.Owner) && strings.EqualFold(x.Name, y.Name)
}

// authorize gives a remote the credential of the target, and the transport that sends it nowhere but where its Secret allows.
func (s *Calls) authorize(ctx context.Context, to *target, r *codehost.Remote) error {
	if to.ref == nil {
		return nil
	}
	if s.o.Secrets == nil {
		return failure(v1alpha1.CodeHostUnavailable, "this server cannot read Secrets")
	}
	needed := plan.WorkspaceSecret(to.task, to.use, to.ref)
	name := types.NamespacedName{Namespace: needed.Namespace, Name: needed.Ref.Name}
	secret, err := s.o.Secrets.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failure(v1alpha1.CodeHostDenied, "the Secret %q of task %s does not exist", name.Name, to.task.Name)
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failure(v1alpha1.CodeHostUnavailable, "the Secret %q of task %s cannot be read", name.Name, to.task.Name)
	}
	key := cmp.Or(needed.Ref.Key, "token")
	if r.Token = string(secret.Data[key]); r.Token == "" {
		return failure(v1alpha1.CodeHostDenied, "the Secret %q of task %s has no key %q, or nothing under it", name.Name, to.task.Name, key)
	}
	address, err := url.Parse(to.url)
	if err != nil {
		return failure(v1alpha1.CodeHostInvalidArguments, "the address of the repository of task %s is not a URL", to.task.Name)
	}
	hosts := plan.HostsOf(secret.Annotations)
	if err := plan.MaySend(name, hosts, s.o.RequireHosts, plan.APIOf(address)); err != nil {
		return failure(v1alpha1.CodeHostDenied, "%v", err)
	}
	r.Transport = hosts.Transport(r.Transport)
	return nil
}
