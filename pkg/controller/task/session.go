// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// sessions lets one task at a time hold a session. The hold is the Session's
// status.activeTask, with the UID of the task; a holder that is gone or over
// holds nothing.
type sessions struct {
	client client.Client
}

// lock takes the task's session. It gives a step.Wait while another task has
// it, and a refusal when there is no such session.
func (s *sessions) lock(ctx context.Context, t *v1alpha1.Task) error {
	ref := t.Spec.SessionRef
	if ref == nil {
		return nil
	}
	var sess v1alpha1.Session
	err := s.client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}, &sess)
	if apierrors.IsNotFound(err) {
		if !ref.Create {
			return missing("SessionNotFound", "session %q does not exist", ref.Name)
		}
		sess = v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: ref.Name}}
		sess.Spec.SessionType = v1alpha1.SessionTypeTask
		err = s.client.Create(ctx, &sess)
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if sess.Status.ActiveTaskUID == t.UID {
		return nil
	}
	held, err := s.isHeld(ctx, &sess)
	if err != nil {
		return err
	}
	if held {
		return step.Wait{After: sessionWait, Reason: fmt.Sprintf("session %s is held by task %s", sess.Name, sess.Status.ActiveTask)}
	}
	return s.hold(ctx, &sess, t.Name, t.UID)
}

func (s *sessions) isHeld(ctx context.Context, sess *v1alpha1.Session) (bool, error) {
	if sess.Status.ActiveTask == "" {
		return false, nil
	}
	var holder v1alpha1.Task
	err := s.client.Get(ctx, types.NamespacedName{Namespace: sess.Namespace, Name: sess.Status.ActiveTask}, &holder)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("holder of session: %w", err)
	}
	return holder.UID == sess.Status.ActiveTaskUID && !holder.Status.Phase.Terminal(), nil
}

// hold fails with a conflict when the session changed meanwhile.
func (s *sessions) hold(ctx context.Context, sess *v1alpha1.Session, task string, uid types.UID) error {
	before := sess.DeepCopy()
	sess.Status.ActiveTask, sess.Status.ActiveTaskUID = task, uid
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, sess, patch); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// release gives the task's session free, where the task holds it.
func (s *sessions) release(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.SessionRef == nil {
		return nil
	}
	var sess v1alpha1.Session
	err := s.client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.SessionRef.Name}, &sess)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if sess.Status.ActiveTaskUID != t.UID {
		return nil
	}
	return client.IgnoreNotFound(s.hold(ctx, &sess, "", ""))
}
