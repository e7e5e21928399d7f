// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/pkg/workspace"
)

// evidence records the pull request of a publication for reports of usage. It may be recorded again: the newest observation counts.
type evidence struct {
	create func(ctx context.Context, l *v1alpha1.UsageLink) error
}

// record returns an error if the task has to be looked at again. A server that records no usage, or that knows better, ends nothing.
func (e evidence) record(ctx context.Context, t *v1alpha1.Task, p *workspace.Pulled) error {
	link, ok := linkOf(t, p)
	if !ok {
		return nil
	}
	err := e.create(ctx, link)
	code := int32(0)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = status.Status().Code
	}
	switch {
	case err == nil, code == http.StatusConflict, code == http.StatusNotImplemented:
		return nil
	case code/100 == 4 && code != http.StatusTooManyRequests:
		klog.FromContext(ctx).Error(err, "The pull request of a task is not recorded for usage", "task", klog.KObj(t))
		return nil
	}
	return fmt.Errorf("record of the pull request: %w", err)
}

// linkOf returns what is known of the pull request of a publication; false if that is nothing.
func linkOf(t *v1alpha1.Task, p *workspace.Pulled) (*v1alpha1.UsageLink, bool) {
	l, ok := usage.ClaimOfPublication(t, p.Repository, p.Receipt, p.How == pullAdopted)
	return &v1alpha1.UsageLink{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace}, Spec: l}, ok
}
