// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tokenexchange"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// tokenFor returns the transaction token of a child that is to be created, and marks the child so that it waits for it;
// empty if children get none. Without its token a child is not created.
func (f *family) tokenFor(ctx context.Context, child *v1alpha1.Task) (string, error) {
	if f.childToken == nil {
		return "", nil
	}
	token, err := f.childToken(ctx)
	failed, ok := errors.AsType[*tokenexchange.Error](err)
	switch {
	case ok && failed.Refused():
		return "", tool.Errorf(tool.TypePermissionDenied, "nothing was delegated: %v", err)
	case ok:
		return "", tool.Errorf(tool.TypeUnavailable, "nothing was delegated: %v", err).Suggest("try again later, or do the work yourself")
	case err != nil:
		return "", err
	}
	metav1.SetMetaDataAnnotation(&child.ObjectMeta, v1alpha1.AnnotationTransactionTokenPending, "true")
	return token, nil
}

// handOver gives a child the token that it waits for. A child that cannot get it is cancelled.
func (f *family) handOver(ctx context.Context, child *v1alpha1.Task, token string) error {
	tasks := f.api.CoreV1alpha1().Tasks(f.task.Namespace)
	err := f.persist(ctx, func() error { return tasks.GiveTransactionToken(ctx, child.Name, token) })
	if err == nil {
		return nil
	}
	_ = f.persist(ctx, func() error { // otherwise it ends when it has waited too long
		_, err := tasks.Cancel(ctx, child.Name, &v1alpha1.TaskCancellation{Reason: "it did not get its transaction token"}, metav1.CreateOptions{})
		return err
	})
	return toolkit.Explain(ctx, err)
}
