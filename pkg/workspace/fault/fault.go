// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault gives the errors of the program platform-workspace the reasons that a task fails with.
package fault

import (
	"errors"
	"syscall"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/changes"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// Of says what an error of the packages below workspace means for the run.
func Of(err error) *workspace.FailedError {
	f := &workspace.FailedError{Reason: v1alpha1.ReasonInternalError, Message: err.Error()}
	switch {
	case errors.Is(err, egress.ErrRefused), errors.Is(err, repository.ErrNotFound), errors.Is(err, repository.ErrCredential), errors.Is(err, repository.ErrNoRef),
		errors.Is(err, repository.ErrEmpty), errors.Is(err, repository.ErrRedirect), errors.Is(err, repository.ErrUnusable):
		f.Reason = v1alpha1.ReasonRepositoryNotRead
	case errors.Is(err, checkout.ErrRefused), errors.Is(err, repository.ErrTooLarge), errors.Is(err, syscall.EFBIG), errors.Is(err, changes.ErrRefused):
		f.Reason = v1alpha1.ReasonWorkspaceRefused
	case errors.Is(err, repository.ErrUnavailable):
		f.Reason, f.Temporary = v1alpha1.ReasonRepositoryUnreachable, true
	}
	return f
}
