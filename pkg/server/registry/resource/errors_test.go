// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func TestStatusError(t *testing.T) {
	gr := schema.GroupResource{Group: "g", Resource: "things"}
	conflict := apierrors.NewConflict(gr, "a", errors.New("changed"))
	for _, tc := range []struct {
		err    error
		reason metav1.StatusReason
		code   int32
	}{
		{nil, metav1.StatusReasonUnknown, 0},
		{conflict, metav1.StatusReasonConflict, 409},
		{fmt.Errorf("outer: %w", conflict), metav1.StatusReasonConflict, 409},
		{storage.NewKeyNotFoundError("/g/things/a", 0), metav1.StatusReasonNotFound, 404},
		{fmt.Errorf("append: %w", event.ErrInvalid), metav1.StatusReasonBadRequest, 400},
		{fmt.Errorf("append: %w", eventlog.ErrClosed), metav1.StatusReasonConflict, 409},
		{eventlog.ErrDeleted, metav1.StatusReasonGone, 410},
		{eventlog.ErrTrimmed, metav1.StatusReasonGone, 410},
		{&eventlog.ExpiredError{Revision: 1, Floor: 2}, metav1.StatusReasonExpired, 410},
		{blob.ErrName, metav1.StatusReasonBadRequest, 400},
		{engine.ErrFailed, metav1.StatusReasonServiceUnavailable, 503},
		{context.DeadlineExceeded, metav1.StatusReasonTimeout, 504},
		{errors.New("unheard of"), metav1.StatusReasonInternalError, 500},
	} {
		got := resource.StatusError(gr, "a", tc.err)
		var status apierrors.APIStatus
		if errors.As(got, &status) && status.Status().Code != tc.code || apierrors.ReasonForError(got) != tc.reason {
			t.Errorf("%v became %v", tc.err, got)
		}
	}
}
