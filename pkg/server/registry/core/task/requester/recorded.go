// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package requester

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// SetUser records the user who creates a task, and the user's groups. Only a controller may name
// another user, because it creates tasks on behalf of others.
func (r Requesters) SetUser(ctx context.Context, t *v1alpha1.Task) {
	if t.Annotations[v1alpha1.AnnotationRequestedBy] != "" {
		if ok, err := guard.MayControl(ctx, r.Authorizer, t.Namespace); ok && err == nil {
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

// Keys returns the annotations that name the user who created a task, and the groups of that user.
func Keys() []string {
	return []string{v1alpha1.AnnotationRequestedBy, v1alpha1.AnnotationRequestedByGroups}
}

// Keep copies the requester of the old task into an update that lacks it.
func Keep(t, old *v1alpha1.Task) {
	for _, key := range Keys() {
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

// Validate refuses changes of what the server recorded: for whom the task was created, and who created it.
func Validate(t, old *v1alpha1.Task) field.ErrorList {
	errs := append(validateIdentity(t, old), validateMarks(t, old)...)
	for _, key := range Keys() {
		if rule.Changed(t.Annotations, old.Annotations, key) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(key), "is set by the server"))
		}
	}
	return errs
}

// systemGroups is how the names of groups begin that are not recorded, because every user has them.
const systemGroups = "system:"

// groupsFor returns the annotation for the groups of a user; empty if there is nothing to record.
func groupsFor(groups []string) string {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return strings.HasPrefix(g, systemGroups) })
	if len(groups) == 0 {
		return ""
	}
	slices.Sort(groups)
	raw, err := json.Marshal(groups)
	if err != nil { // strings can always be encoded
		return ""
	}
	return string(raw)
}

// GroupsOf returns the groups that whoever created the task had then.
func GroupsOf(t *v1alpha1.Task) []string {
	var groups []string
	_ = json.Unmarshal([]byte(t.Annotations[v1alpha1.AnnotationRequestedByGroups]), &groups) // the server wrote it, if it is there
	return groups
}
