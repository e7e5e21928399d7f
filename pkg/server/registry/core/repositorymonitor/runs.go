// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// requestRun serves POST of runs.
func (r *Resource) requestRun(ctx context.Context, p resource.Parent[*v1alpha1.RepositoryMonitor], obj runtime.Object) (runtime.Object, error) {
	asked, ok := obj.(*v1alpha1.MonitorRunRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a MonitorRunRequest, not %T", obj))
	}
	m := p.Object
	if err := checkRun(m, asked); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	active, err := r.active(ctx, m)
	if err != nil {
		return nil, err
	}
	if active != "" {
		return nil, apierrors.NewConflict(v1alpha1.Resource("monitorruns"), active, errors.New("the monitor has this run, which is not over"))
	}
	run := repomonitor.NewRun(m, v1alpha1.MonitorRunRequested, "request-"+rand.String(10))
	run.Spec.TargetKind, run.Spec.TargetNumber, run.Spec.TargetSHA = asked.TargetKind, asked.TargetNumber, asked.TargetSHA
	made, _, err := r.o.Stored.Runs.Ensure(ctx, run, p.DryRun)
	return made, err
}

// checkRun returns what is wrong with a request for a run.
func checkRun(m *v1alpha1.RepositoryMonitor, a *v1alpha1.MonitorRunRequest) error {
	switch {
	case m.Spec.Suspend:
		return errors.New("the monitor is suspended (spec.suspend)")
	case a.TargetNumber != 0 && a.TargetKind == "":
		return errors.New("targetKind: is needed with targetNumber")
	case a.TargetNumber < 0:
		return errors.New("targetNumber: must not be negative")
	case a.TargetKind == v1alpha1.MonitorPullRequest && !repomonitor.On(m.Spec.Targets.PullRequests.Enabled):
		return errors.New("targetKind: the monitor looks after no pull requests (spec.targets.pullRequests.enabled)")
	case a.TargetKind == v1alpha1.MonitorIssue && !m.Spec.Targets.Issues.Enabled:
		return errors.New("targetKind: the monitor looks after no issues (spec.targets.issues.enabled)")
	case a.TargetSHA != "" && (a.TargetKind != v1alpha1.MonitorPullRequest || a.TargetNumber == 0):
		return errors.New("targetSHA: is for one pull request")
	}
	return checkSHA("targetSHA", a.TargetSHA)
}

func checkSHA(name, sha string) error {
	if sha != "" && !v1alpha1.IsLowerHex(sha, 40) && !v1alpha1.IsLowerHex(sha, 64) {
		return fmt.Errorf("%s: must be the full name of a commit, in lower case", name)
	}
	return nil
}

// active returns the name of a run of the monitor that is not over.
func (r *Resource) active(ctx context.Context, m *v1alpha1.RepositoryMonitor) (name string, err error) {
	err = r.o.Stored.Runs.Select(ctx, m.Namespace, fields.OneTermEqualSelector(fieldMonitor, m.Name), func(run *v1alpha1.MonitorRun) error {
		if run.Spec.MonitorUID == m.UID && (run.Status.State == v1alpha1.MonitorRunQueued || run.Status.State == v1alpha1.MonitorRunRunning) {
			name = run.Name
		}
		return nil
	})
	return name, err
}

// QueueHead makes the run about the head of a pull request that a delivery names. It reports whether the run is new: a head has one run, however
// many deliveries name it.
func (s Stored) QueueHead(ctx context.Context, m *v1alpha1.RepositoryMonitor, number int64, sha, delivery string) (run *v1alpha1.MonitorRun, made bool, err error) {
	run = repomonitor.NewRun(m, v1alpha1.MonitorRunDelivered, "head-"+repomonitor.Digest(string(m.UID), number, sha))
	run.Spec.TargetKind, run.Spec.TargetNumber, run.Spec.TargetSHA, run.Spec.Delivery = v1alpha1.MonitorPullRequest, number, sha, delivery
	return s.Runs.Ensure(ctx, run, false)
}

// QueueItem makes the run about one pull request or issue that a delivery caused. A delivery causes one, however often it is decided.
func (s Stored) QueueItem(ctx context.Context, m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, number int64, delivery string) (run *v1alpha1.MonitorRun, made bool, err error) {
	run = repomonitor.NewRun(m, v1alpha1.MonitorRunDelivered, "item-"+repomonitor.Digest(string(m.UID), kind, number, delivery))
	run.Spec.TargetKind, run.Spec.TargetNumber, run.Spec.Delivery = kind, number, delivery
	return s.Runs.Ensure(ctx, run, false)
}
