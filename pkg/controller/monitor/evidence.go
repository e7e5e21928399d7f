// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/usage"
)

const (
	// evidenceBatch is how many pull requests are looked at at a time.
	evidenceBatch = 20
	// evidenceAge is how old what is known of a pull request may be, and evidencePause how long to wait before the next batch.
	evidenceAge, evidencePause = 5 * time.Minute, 15 * time.Second
)

// refresh looks at pull requests that reports of usage know of and that are not known to be merged, a batch at a time, and returns when to do
// so again.
func (w *world) refresh(ctx context.Context, m *v1alpha1.RepositoryMonitor) (time.Duration, error) {
	now := w.now()
	if last := m.Status.LastEvidenceTime; last != nil && now.Sub(last.Time) < evidencePause && now.Sub(last.Time) >= 0 {
		return evidencePause - now.Sub(last.Time), nil
	}
	var known v1alpha1.UsageLinkPage
	if err := w.SubResource("links").Get(ctx, m, &known); err != nil {
		return 0, fmt.Errorf("links of usage: %w", err)
	}
	links := map[int64][]v1alpha1.UsageLinkSpec{}
	var due []int64
	next := evidenceAge
	for _, l := range known.Links {
		age := evidenceAge
		if l.ObservedAt != nil {
			age = now.Sub(l.ObservedAt.Time)
		}
		links[l.Number] = append(links[l.Number], l)
		if age < evidenceAge {
			next = min(next, evidenceAge-age)
		} else if !slices.Contains(due, l.Number) {
			due = append(due, l.Number)
		}
	}
	m.Status.LastEvidenceTime = w.time() // each change of an item wakes the monitor, and must not read all links again
	if len(due) == 0 {
		return max(next, evidencePause), nil
	}
	for _, number := range due[:min(len(due), evidenceBatch)] {
		pause, err := w.observeLinks(ctx, m, number, links[number])
		if err != nil {
			return 0, err
		}
		if pause > 0 {
			return pause, nil
		}
	}
	if len(due) > evidenceBatch {
		return evidencePause, nil
	}
	return max(next, evidencePause), nil
}

// observeLinks records what the code host says about a pull request, for each task that is linked with it. If the host answers no more for
// some time, it returns how long.
func (w *world) observeLinks(ctx context.Context, m *v1alpha1.RepositoryMonitor, number int64, links []v1alpha1.UsageLinkSpec) (time.Duration, error) {
	is, err := w.state(ctx, m, v1alpha1.MonitorPullRequest, number)
	failed, ok := errors.AsType[failure](err)
	if err != nil && !ok {
		return 0, err
	}
	for _, l := range links {
		l.ObservedAt = nil // the server's clock says when, because all times of usage are its
		switch id := usage.HostID(is.ID); {
		case ok:
			unseen(&l, failed.Message, failed.Reason == v1alpha1.CodeHostNotFound)
		case l.GitHubID != 0 && id != l.GitHubID:
			unseen(&l, "the code host has another pull request of this number, so the repository is another one", true)
		default:
			w.seen(&l, is)
		}
		if err := w.link(ctx, m.Namespace, l); err != nil {
			return 0, err
		}
	}
	if ok && failed.Reason == v1alpha1.CodeHostRateLimited {
		return failed.wait(1), nil
	}
	return 0, nil
}

// link records a link of usage. A server that records no usage, or that knows better, ends nothing.
func (w *world) link(ctx context.Context, namespace string, l v1alpha1.UsageLinkSpec) error {
	err := w.Create(ctx, &v1alpha1.UsageLink{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: l})
	code := int32(0)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = status.Status().Code
	}
	switch {
	case err == nil, code == http.StatusConflict, code == http.StatusNotFound, code == http.StatusNotImplemented:
		return nil
	case code == http.StatusUnprocessableEntity:
		klog.FromContext(ctx).Error(err, "What the code host says of a pull request is not recorded for usage", "repository", l.Repository, "number", l.Number)
		return nil
	}
	return fmt.Errorf("link of usage: %w", err)
}

// worked records that the task of a piece of work reviewed its pull request, or changed its branch.
func (w *world) worked(ctx context.Context, j *job, t *v1alpha1.Task, origin v1alpha1.UsageLinkOrigin, evidence string, is *operation.ItemState) error {
	l := usage.Claim(t.UID, repositoryOf(j.m), j.a.Spec.Number, origin, evidence)
	w.seen(&l, is)
	return w.link(ctx, j.m.Namespace, l)
}

// maxReason is how long the reason of a link may be, in bytes.
const maxReason = 1024

// unseen clears the readiness of a link whose pull request the host does not show now. What was known of its state stays unless it is gone,
// because nothing else is known.
func unseen(l *v1alpha1.UsageLinkSpec, why string, gone bool) {
	l.Ready, l.ReadinessReason = false, clip.Text(why, maxReason)
	if gone {
		l.State = v1alpha1.UsageLinkUnknown
	}
}

// seen sets what the host says about the pull request of a link.
func (w *world) seen(l *v1alpha1.UsageLinkSpec, is *operation.ItemState) {
	l.URL, l.HeadSHA, l.Ready, l.ReadinessReason = is.URL, is.HeadSHA, false, clip.Text(is.Reason, maxReason)
	l.GitHubID, l.CreatedAt, l.MergedAt, l.ClosedAt = usage.HostID(is.ID), date(is.CreatedAt), nil, date(is.ClosedAt)
	switch is.State {
	case "merged":
		l.State, l.MergedAt = v1alpha1.UsageLinkMerged, date(is.MergedAt)
		if l.MergedAt == nil {
			l.MergedAt = w.time()
		}
	case "closed":
		l.State = v1alpha1.UsageLinkClosed
	default:
		l.State, l.Ready = v1alpha1.UsageLinkOpen, is.Ready
	}
}

func date(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: *t}
}
