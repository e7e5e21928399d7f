// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// RefusedError says why a task cannot run as it is written.
type RefusedError struct {
	// Reason is one of the reasons in package v1alpha1 for tasks that are refused before they run.
	Reason string
	// Message is for people. It names the object and the rule, and never contains a value of a Secret.
	Message string
	// Field is the field of the task that is wrong, such as spec.prompt; empty if the cause is not a field of the
	// task.
	Field string
	// Missing is set if the cause is an object or a key that may still be created, so that the same task may run
	// later.
	Missing bool
}

// Error returns the message.
func (r *RefusedError) Error() string { return r.Message }

func refuse(reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func missing(reason, format string, args ...any) *RefusedError {
	r := refuse(reason, format, args...)
	r.Missing = true
	return r
}

// lookedFor turns the error of a read into a RefusedError if the object does not exist. Other errors say nothing
// about the task; they are returned with the kind and name of the object.
func lookedFor(err error, kind string, key types.NamespacedName) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return missing(v1alpha1.ReasonNotFound(kind), "%s %q does not exist in namespace %q", kind, key.Name, key.Namespace)
	default:
		return fmt.Errorf("%s %s: %w", kind, key, err)
	}
}
