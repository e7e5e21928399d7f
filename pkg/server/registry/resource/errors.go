// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"

	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// StatusError turns an error of a lower layer into the API error that a client sees. It returns API errors unchanged.
func StatusError(r schema.GroupResource, name string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	if se, ok := errors.AsType[*storage.StorageError](err); ok {
		return storeerr.InterpretGetError(se, r, name)
	}
	if rate, ok := errors.AsType[*quota.RateError](err); ok {
		return apierrors.NewTooManyRequests(rate.Error(), rate.RetryAfter())
	}
	for _, row := range mapped() {
		if errors.Is(err, row.err) {
			return row.status(r, name, err)
		}
	}
	return apierrors.NewInternalError(err)
}

// mapping is one row of the table: the API error for a sentinel error of a lower layer.
type mapping struct {
	err    error
	code   int32
	reason metav1.StatusReason
}

// mapped returns the table of all sentinel errors; the first match counts.
func mapped() []mapping {
	return []mapping{
		{event.ErrInvalid, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		{event.ErrName, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		{blob.ErrName, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		{eventlog.ErrBadStream, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		{eventlog.ErrContinue, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		{eventlog.ErrNotFound, http.StatusNotFound, metav1.StatusReasonNotFound},
		{eventlog.ErrClosed, http.StatusConflict, metav1.StatusReasonConflict},
		{eventlog.ErrDeleted, http.StatusGone, metav1.StatusReasonGone},
		{eventlog.ErrTrimmed, http.StatusGone, metav1.StatusReasonGone},
		{eventlog.ErrExpired, http.StatusGone, metav1.StatusReasonExpired},
		{eventlog.ErrFuture, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{eventlog.ErrLagging, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
		{eventlog.ErrShutdown, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{quota.ErrLimit, http.StatusForbidden, metav1.StatusReasonForbidden},
		{engine.ErrFull, http.StatusInsufficientStorage, "InsufficientStorage"},
		{engine.ErrClosed, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{engine.ErrDamaged, http.StatusInternalServerError, metav1.StatusReasonInternalError},
		{engine.ErrFailed, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{context.Canceled, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
	}
}

func (m mapping) status(r schema.GroupResource, name string, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    m.code,
		Reason:  m.reason,
		Message: err.Error(),
		Details: &metav1.StatusDetails{Group: r.Group, Kind: r.Resource, Name: name},
	}}
}

func (k *kind[T]) statusError(name string, err error) error {
	return StatusError(k.Resource.GroupResource(), name, err)
}
