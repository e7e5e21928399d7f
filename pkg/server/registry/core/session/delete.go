// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// uses reports whether the task refers to the session.
func uses(t *v1alpha1.Task, session string) bool {
	return t.Spec.SessionRef != nil && t.Spec.SessionRef.Name == session
}

// validateDelete refuses to delete a session that a task holds or waits for. A
// status that names a task which is gone or has ended does not prevent the
// deletion.
func (r *Resource) validateDelete(ctx context.Context, s *v1alpha1.Session) error {
	ctx = request.WithNamespace(ctx, s.Namespace)
	if name := s.Status.ActiveTask; name != "" {
		t, err := r.task(ctx, name)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && t.UID == s.Status.ActiveTaskUID && !t.Status.Phase.Terminal() {
			return busy(s, fmt.Sprintf("task %s holds it", name))
		}
	}
	for _, name := range s.Status.WaitingTasks {
		t, err := r.task(ctx, name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if uses(t, s.Name) && !t.Status.Phase.Terminal() && t.Spec.Schedule == "" {
			return busy(s, fmt.Sprintf("task %s waits for it", name))
		}
	}
	return chats{r}.end(ctx, s)
}

func busy(s *v1alpha1.Session, why string) error {
	return apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("the session is busy: "+why+"; cancel the task, or wait for its end"))
}
