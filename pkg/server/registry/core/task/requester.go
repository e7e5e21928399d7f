// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// setRequester records the user who creates a task. Only a controller may name
// another user, because it creates tasks on behalf of others.
func (r *Resource) setRequester(ctx context.Context, t *v1alpha1.Task) {
	if t.Annotations[v1alpha1.AnnotationRequestedBy] != "" {
		if ok, err := r.controller(ctx, t.Namespace); ok && err == nil {
			return
		}
	}
	user, ok := request.UserFrom(ctx)
	if !ok || user.GetName() == "" {
		delete(t.Annotations, v1alpha1.AnnotationRequestedBy)
		return
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationRequestedBy] = user.GetName()
}

// keepRequester copies the requester of the old task into an update that lacks
// one.
func keepRequester(_ context.Context, t, old *v1alpha1.Task) {
	was, is := old.Annotations[v1alpha1.AnnotationRequestedBy]
	if _, set := t.Annotations[v1alpha1.AnnotationRequestedBy]; set || !is {
		return
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationRequestedBy] = was
}

// validateRequester refuses a change of the requester.
func validateRequester(t, old *v1alpha1.Task) field.ErrorList {
	if !changed(t.Annotations, old.Annotations, v1alpha1.AnnotationRequestedBy) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationRequestedBy), "is set by the server")}
}
