// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/tool"
)

// Explain turns an error of the API into one for the model. It keeps the server's words, which say what is allowed.
func Explain(err error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return tool.Errorf(tool.TypeUnavailable, "the server did not answer").Suggest("try again once")
	}
	s := status.Status()
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return tool.Errorf(tool.TypePermissionDenied, "%s", s.Message).Suggest("tell the user that they lack this permission; do not try to get around it")
	case apierrors.IsNotFound(err):
		return tool.Errorf(tool.TypeNotFound, "%s", s.Message).Suggest("check the name; list what there is")
	case apierrors.IsAlreadyExists(err):
		return tool.Errorf(tool.TypeAlreadyExists, "%s", s.Message).Suggest("choose another name, or use what exists")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return tool.InvalidArguments("%s", s.Message)
	case apierrors.IsTooManyRequests(err):
		return tool.Errorf(tool.TypeLimitReached, "%s", s.Message).Suggest("wait before you try again")
	case apierrors.IsConflict(err):
		return tool.Errorf(tool.TypeUnavailable, "%s", s.Message).Suggest("look at the present state, then try again if it is still needed")
	}
	return tool.Errorf(tool.TypeUnavailable, "%s", s.Message)
}

// words returns what an error says to the model.
func words(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Message
	}
	return "it failed unexpectedly"
}
