// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// setRequester records the user who creates a task, and the user's groups. Only a controller may name
// another user, because it creates tasks on behalf of others.
func (r *Resource) setRequester(ctx context.Context, t *v1alpha1.Task) {
	if t.Annotations[v1alpha1.AnnotationRequestedBy] != "" {
		if ok, err := guard.MayControl(ctx, r.authorizer, t.Namespace); ok && err == nil {
			return
		}
	}
	delete(t.Annotations, v1alpha1.AnnotationRequestedByGroups)
	user, ok := request.UserFrom(ctx)
	if !ok || user.GetName() == "" {
		delete(t.Annotations, v1alpha1.AnnotationRequestedBy)
		return
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationRequestedBy] = user.GetName()
	if groups := groupsFor(user.GetGroups()); groups != "" {
		t.Annotations[v1alpha1.AnnotationRequestedByGroups] = groups
	}
}

func requesterKeys() []string {
	return []string{v1alpha1.AnnotationRequestedBy, v1alpha1.AnnotationRequestedByGroups}
}

// keepRequester copies the requester of the old task into an update that lacks it.
func keepRequester(t, old *v1alpha1.Task) {
	for _, key := range requesterKeys() {
		was, is := old.Annotations[key]
		if _, set := t.Annotations[key]; set || !is {
			continue
		}
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = was
	}
}

// validateRequester refuses a change of the requester.
func validateRequester(t, old *v1alpha1.Task) field.ErrorList {
	var errs field.ErrorList
	for _, key := range requesterKeys() {
		if changed(t.Annotations, old.Annotations, key) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(key), "is set by the server"))
		}
	}
	return errs
}
