// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package asking

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// Waiting for a decision.
const (
	// watchTime ends a watch before client.RequestTimeout does.
	watchTime = client.RequestTimeout - 10*time.Second
	// firstPause is after a watch that failed. It doubles up to lookPause while watches fail.
	firstPause = 200 * time.Millisecond
	lookPause  = 30 * time.Second
)

// decided waits until the approval has been decided, has expired or was cancelled; the server
// and the controller determine when it expires. It keeps waiting through restarts of the
// server, as every read does. It stops waiting if the approval is deleted or ctx ends.
func (a *Approvals) decided(ctx context.Context, id string) (*v1alpha1.Approval, error) {
	for pause := firstPause; ; {
		got, err := a.API.CoreV1alpha1().Approvals(a.Task.Namespace).Get(ctx, id, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("approval %s: %w", id, err)
		case got.Status.State != v1alpha1.ApprovalPending:
			return got, nil
		case a.follow(ctx, id):
			pause = firstPause // nothing is wrong
			continue
		}
		if !client.Sleep(ctx, a.Clock, pause) {
			return nil, ctx.Err()
		}
		pause = min(2*pause, lookPause)
	}
}

// follow watches an approval until it is decided or watchTime is over. It reports false if the
// watch failed.
func (a *Approvals) follow(ctx context.Context, id string) bool {
	began, seconds := a.Clock.Now(), int64(watchTime/time.Second)
	w, err := a.API.CoreV1alpha1().Approvals(a.Task.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + id, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return false
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*v1alpha1.Approval)
		switch {
		case !ok:
			return false // an error
		case e.Type == watch.Deleted, e.Type != watch.Bookmark && now.Status.State != v1alpha1.ApprovalPending:
			return true
		}
	}
	return a.Clock.Since(began) >= lookPause
}
