// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// ofPrior returns why the changes of no other task can be made before a task begins, judged by the task alone.
func ofPrior(t *v1alpha1.Task) *refusal.Error {
	ref := t.Spec.PriorTaskRef
	if ref == nil {
		return nil
	}
	refuse := func(field, format string, args ...any) *refusal.Error {
		return &refusal.Error{Reason: v1alpha1.ReasonNotSupported, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
	}
	switch {
	case t.Spec.Type == v1alpha1.TaskTypeAgent:
		return refuse("spec.priorTaskRef", "coding agents do not begin with the changes of another task; let that one publish them, and name its branch in spec.workspace.branch")
	case ref.Namespace != "" && ref.Namespace != t.Namespace:
		return refuse("spec.priorTaskRef.namespace", "must be the task's own namespace, %s", t.Namespace)
	case t.Spec.Workspace == nil:
		return refuse("spec.priorTaskRef", "needs spec.workspace, with the repository of that task")
	}
	return nil
}

// Continues returns why a task cannot begin with what another one changed, whatever becomes of that one; empty if it can. Both have what
// ofPrior wants.
func Continues(t, prior *v1alpha1.Task) string {
	own, w := t.Spec.Workspace, prior.Spec.Workspace
	switch {
	case !w.Writes():
		return fmt.Sprintf("task %s changes no repository: its spec.workspace.intent is not write", prior.Name)
	case w.GitRepo != own.GitRepo:
		return fmt.Sprintf("task %s works on %s, and this one on %s", prior.Name, w.GitRepo, own.GitRepo)
	case cmp.Or(w.SubPath, ".") != cmp.Or(own.SubPath, "."):
		return fmt.Sprintf("task %s works in the folder %q of the repository, and this one in %q (spec.workspace.subPath)", prior.Name, w.SubPath, own.SubPath)
	}
	return ""
}

// Beginning is how a task begins that continues another one.
type Beginning struct {
	// Commit is what its workspace is made from.
	Commit string
	// Apply is set if the changes of the other task are not in that commit, and are made in the workspace.
	Apply bool
}

// BeginningOf returns how a task begins that continues another one, which has ended. Where both publish to one branch, and the other one
// has, it begins with the published commit, so that its own is moved forward from there. Otherwise the branch may be anywhere, and need
// not exist any more: it begins where the other one began.
func BeginningOf(t, prior *v1alpha1.Task) (Beginning, *refusal.Error) {
	refuse := func(format string, args ...any) (Beginning, *refusal.Error) {
		return Beginning{}, refusal.New(v1alpha1.ReasonPriorTaskUnusable, "task %s: %s", prior.Name, fmt.Sprintf(format, args...))
	}
	if why := Continues(t, prior); why != "" {
		return refuse("%s", why)
	}
	d, w := prior.Status.Delivery, t.Spec.Workspace
	switch {
	case d == nil || d.StartingSHA == "":
		return refuse("it ended before it had its repository")
	case d.State == v1alpha1.DeliveryNoChange:
		return Beginning{Commit: d.StartingSHA}, nil
	case w.Writes() && w.PushBranch != "" && w.PushBranch == d.Branch && d.VerifiedRemoteSHA != "" && w.PublicationURL() == w.GitRepo && prior.Spec.Workspace.PublicationURL() == w.GitRepo:
		return Beginning{Commit: d.VerifiedRemoteSHA}, nil
	}
	return Beginning{Commit: d.StartingSHA, Apply: true}, nil
}
