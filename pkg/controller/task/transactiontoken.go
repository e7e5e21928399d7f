// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// tokenPatience is how long a task waits for its transaction token after its creation.
const tokenPatience = 2 * time.Minute

// awaitToken returns what a task waits for that does not have its transaction token yet, and a *refusal.Error when that has
// taken too long. The server writes the annotations; the removal of the mark wakes the task.
func awaitToken(t *v1alpha1.Task, now func() time.Time) error {
	if t.Annotations[v1alpha1.AnnotationTransactionTokenPending] == "" {
		return nil
	}
	since, err := time.Parse(time.RFC3339, t.Annotations[v1alpha1.AnnotationTransactionTokenPendingSince])
	if err != nil {
		since = t.CreationTimestamp.Time
	}
	if left := since.Add(tokenPatience).Sub(now()); left > 0 {
		return queued{v1alpha1.ReasonTransactionTokenPending, step.Wait{After: left, Reason: "the task does not have its transaction token yet"}}
	}
	return refusal.New(v1alpha1.ReasonTransactionTokenPendingTimeout, "the task did not get its transaction token within %s", tokenPatience)
}

// transactionToken adds the task's transaction token to what its run gets, or the Secret that has it if the executor works
// by reference.
func (r *resolver) transactionToken(ctx context.Context, t *v1alpha1.Task, res *resolved) error {
	name := t.Annotations[v1alpha1.AnnotationTransactionTokenSecret]
	if name == "" {
		return nil
	}
	var s corev1.Secret
	err := r.live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: name}, &s)
	token := s.Data[v1alpha1.TransactionTokenKey]
	switch {
	case apierrors.IsNotFound(err):
		return refusal.New(v1alpha1.ReasonTransactionTokenLost, "Secret %q, which has the transaction token of the task, does not exist", name)
	case err != nil:
		return err
	case s.Type != v1alpha1.SecretTypeTransactionToken || !metav1.IsControlledBy(&s, t) || len(token) == 0:
		return refusal.New(v1alpha1.ReasonTransactionTokenLost, "Secret %q is not the one that was made for the task", name)
	case r.byReference:
		res.transactionSecret = name
	default:
		res.credentials.TransactionToken = string(token)
	}
	return nil
}
