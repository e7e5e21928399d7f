// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// resultAPI reads what workers submitted.
type resultAPI struct{ *wire }

// result returns what the worker submitted, if anything.
func (w resultAPI) result(ctx context.Context, t *v1alpha1.Task) (text string, ok bool, err error) {
	var r v1alpha1.TaskResult
	err = w.SubResource("result").Get(ctx, t, &r)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("result: %w", err)
	}
	return r.Result, true, nil
}

// delta returns what the run changed in its workspace; false if it left no account of that.
func (w resultAPI) delta(ctx context.Context, t *v1alpha1.Task) ([]byte, bool, error) {
	data, err := w.group.Get().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("delta").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("delta: %w", err)
	}
	return data, true, nil
}

// secretAPI reads Secrets.
type secretAPI struct{ *wire }

// workspaceSecret returns a credential of a task's workspace, with where it may be sent, and the version of its Secret. The token is empty
// if there is no such Secret or key.
func (w secretAPI) workspaceSecret(ctx context.Context, s plan.Secret) (token string, found plan.Secret, version string, err error) {
	var o corev1.Secret
	err = w.live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Ref.Name}, &o)
	if apierrors.IsNotFound(err) {
		return "", s, "", nil
	}
	if err != nil {
		return "", s, "", fmt.Errorf("read Secret %s: %w", s.Ref.Name, err)
	}
	s.Hosts = plan.HostsOf(o.Annotations)
	return string(o.Data[s.Ref.Key]), s, o.ResourceVersion, nil
}
