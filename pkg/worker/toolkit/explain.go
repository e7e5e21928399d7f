// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// Explain turns the error of a request into one that the model can read.
func Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	text := MessageOf(err)
	switch {
	case apierrors.IsForbidden(err):
		// The server begins with the kind and the name of the object.
		if _, why, ok := strings.Cut(text, " is forbidden: "); ok {
			text = why
		}
		if isLimit(err, text) {
			return tool.Errorf(tool.TypeLimitReached, "%s", text).Suggest("do the rest yourself, or work with the tasks that you have")
		}
		return tool.Errorf(tool.TypePermissionDenied, "%s", text)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return tool.InvalidArguments("%s", text)
	case apierrors.IsNotFound(err):
		return tool.Errorf(tool.TypeNotFound, "%s", text)
	case apierrors.IsAlreadyExists(err):
		return tool.Errorf(tool.TypeAlreadyExists, "%s", text)
	default:
		return tool.Errorf(tool.TypeUnavailable, "%s", text)
	}
}

// isLimit reports whether the server refused a request because of a number that may not be exceeded, and not because of who asks:
// the size of the tree of tasks, or a ResourceQuota, whose refusals have no cause.
func isLimit(err error, text string) bool {
	return apierrors.HasStatusCause(err, v1alpha1.ReasonTreeLimitReached) || strings.HasPrefix(text, "exceeded quota: ")
}

// MessageOf returns the server's message, without what Go says about the request.
func MessageOf(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
