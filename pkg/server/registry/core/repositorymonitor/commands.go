// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// requestCommand serves POST of commands.
func (r *Resource) requestCommand(ctx context.Context, p resource.Parent[*v1alpha1.RepositoryMonitor], obj runtime.Object) (runtime.Object, error) {
	asked, ok := obj.(*v1alpha1.MonitorCommandRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a MonitorCommandRequest, not %T", obj))
	}
	m := p.Object
	if err := checkCommand(m, asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	c := repomonitor.NewCommand(m, "request-"+rand.String(10), asked.TargetKind, asked.Number, asked.Intent)
	c.Spec.Source, c.Spec.TargetSHA = v1alpha1.MonitorCommandAPI, asked.TargetSHA
	if caller, ok := request.UserFrom(ctx); ok {
		c.Spec.Sender = caller.GetName()
	}
	made, _, err := r.o.Stored.Commands.Ensure(ctx, c, p.DryRun)
	return made, err
}

// checkCommand returns what is wrong with a command.
func checkCommand(m *v1alpha1.RepositoryMonitor, a *v1alpha1.MonitorCommandRequest) error {
	var known []string
	for _, c := range repomonitor.CommandLabels(&m.Spec, a.TargetKind) {
		known = append(known, string(c.Intent))
	}
	switch {
	case a.TargetKind == v1alpha1.MonitorPullRequest && !repomonitor.On(m.Spec.Targets.PullRequests.Enabled):
		return errors.New("targetKind: the monitor looks after no pull requests (spec.targets.pullRequests.enabled)")
	case a.TargetKind == v1alpha1.MonitorIssue && !m.Spec.Targets.Issues.Enabled:
		return errors.New("targetKind: the monitor looks after no issues (spec.targets.issues.enabled)")
	case !slices.Contains(known, string(a.Intent)):
		return fmt.Errorf("intent: of %s it must be one of %v", a.TargetKind, known)
	case a.TargetSHA != "" && a.TargetKind != v1alpha1.MonitorPullRequest:
		return errors.New("targetSHA: is for pull requests")
	case a.TargetSHA == "" && a.TargetKind == v1alpha1.MonitorPullRequest && a.Intent != v1alpha1.MonitorStop && a.Intent != v1alpha1.MonitorResume:
		return fmt.Errorf("targetSHA: the command %s needs the head that it is for", a.Intent)
	}
	return checkSHA("targetSHA", a.TargetSHA)
}

// CommandByLabel makes the command that a label is. It reports whether the command is new: an event, which has one identity in however many
// deliveries, gives one command.
func (s Stored) CommandByLabel(ctx context.Context, m *v1alpha1.RepositoryMonitor, d *v1alpha1.CodeHostDelivery, c repomonitor.CommandLabel) (out *v1alpha1.MonitorCommand, made bool, err error) {
	command := repomonitor.NewCommand(m, "label-"+repomonitor.Digest(string(m.UID), d.Spec.DeliveryID, c.Label, d.Status.Replays), d.Spec.TargetKind, d.Spec.Number, c.Intent)
	command.Spec.Source, command.Spec.Label, command.Spec.Sender = v1alpha1.MonitorCommandLabel, c.Label, d.Spec.Sender
	command.Spec.Delivery, command.Spec.TargetSHA = d.Namespace+"/"+d.Name, d.Spec.HeadSHA
	return s.Commands.Ensure(ctx, command, false)
}
