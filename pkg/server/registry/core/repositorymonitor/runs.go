// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

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
	made, _, err := create(ctx, r.o.Stored.Runs, run, p.DryRun)
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
	err = list(ctx, m.Namespace, r.o.Stored.Runs, fieldMonitor+"="+m.Name, func(l *v1alpha1.MonitorRunList) error {
		for i := range l.Items {
			if run := &l.Items[i]; run.Spec.MonitorUID == m.UID && (run.Status.State == v1alpha1.MonitorRunQueued || run.Status.State == v1alpha1.MonitorRunRunning) {
				name = run.Name
			}
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
	return create(ctx, s.Runs, run, false)
}

// QueueItem makes the run about one pull request or issue that a delivery caused. A delivery causes one, however often it is decided.
func (s Stored) QueueItem(ctx context.Context, m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, number int64, delivery string) (run *v1alpha1.MonitorRun, made bool, err error) {
	run = repomonitor.NewRun(m, v1alpha1.MonitorRunDelivered, "item-"+repomonitor.Digest(string(m.UID), kind, number, delivery))
	run.Spec.TargetKind, run.Spec.TargetNumber, run.Spec.Delivery = kind, number, delivery
	return create(ctx, s.Runs, run, false)
}

// create stores a record on behalf of the server itself, or returns the one that is there under its name.
func create[T resource.Object](ctx context.Context, stored *resource.Stored[T], record T, dryRun bool) (out T, made bool, err error) {
	ctx = request.WithNamespace(request.WithUser(ctx, nil), record.GetNamespace())
	served, err := stored.AsCaller()
	if err != nil {
		return out, false, err
	}
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	obj, err := served.Create(ctx, record, rest.ValidateAllObjectFunc, options)
	if apierrors.IsAlreadyExists(err) {
		out, err = stored.Get(ctx, record.GetName())
		return out, false, err
	}
	if err != nil {
		return out, false, err
	}
	out, ok := obj.(T)
	if !ok {
		return out, false, apierrors.NewInternalError(fmt.Errorf("create of a record: %T", obj))
	}
	return out, true, nil
}

// pageOfRecords is how many objects are read at a time.
const pageOfRecords = 500

// list calls f with each page of the objects of a namespace, or of all, on behalf of the server itself.
func list[T resource.Object, L runtime.Object](ctx context.Context, namespace string, stored *resource.Stored[T], selector string, f func(L) error) error {
	ctx = request.WithNamespace(request.WithUser(ctx, nil), namespace)
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return fmt.Errorf("selector %q: %w", selector, err)
	}
	for o := (&metainternalversion.ListOptions{FieldSelector: parsed, Limit: pageOfRecords}); ; {
		obj, err := stored.List(ctx, o)
		if err != nil {
			return err
		}
		l, ok := obj.(L)
		if !ok {
			return fmt.Errorf("list of records: %T", obj)
		}
		if err := f(l); err != nil {
			return err
		}
		meta, ok := obj.(metav1.ListInterface)
		if !ok || meta.GetContinue() == "" {
			return nil
		}
		o.Continue = meta.GetContinue()
	}
}
