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
	"github.com/platform-ai/platform/pkg/registry/rule"
)

// isWorker reports whether the caller's credential is that of a task.
func isWorker(ctx context.Context) bool { return len(taskOf(ctx)) > 0 }

// taskOf is what the caller's credential says of its task.
func taskOf(ctx context.Context) map[string]string {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	return rule.TaskOf(user)
}

// mayRead holds a worker to the session of its own task, while that runs. RBAC
// cannot say that: every worker has the same role.
func (r *Resource) mayRead(ctx context.Context, s *v1alpha1.Session) error {
	of := taskOf(ctx)
	if len(of) == 0 {
		return nil
	}
	refuse := func(why string) error {
		return apierrors.NewForbidden(v1alpha1.Resource("sessions"), s.Name, errors.New(why))
	}
	if of[v1alpha1.ExtraTaskNamespace] != s.Namespace {
		return refuse("the caller's credential is for a task of another namespace")
	}
	t, err := r.task(request.WithNamespace(ctx, s.Namespace), of[v1alpha1.ExtraTaskName])
	switch {
	case apierrors.IsNotFound(err):
		return refuse("the task of the caller's credential is gone")
	case err != nil:
		return err
	case string(t.UID) != of[v1alpha1.ExtraTaskUID]:
		return refuse("the task of the caller's credential is gone")
	case !uses(t, s.Name):
		return refuse("the task of the caller's credential has not this session")
	case t.Status.Phase.Terminal():
		return refuse("the task of the caller's credential has ended")
	}
	return nil
}

// uses reports whether the task has the session.
func uses(t *v1alpha1.Task, session string) bool {
	return t.Spec.SessionRef != nil && t.Spec.SessionRef.Name == session
}

// validateDelete refuses to delete a session that a task holds or waits for. A
// status that names a task which is gone or over keeps nobody from it.
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
	return nil
}

func busy(s *v1alpha1.Session, why string) error {
	return apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("the session is busy: "+why+"; cancel the task, or wait for its end"))
}
