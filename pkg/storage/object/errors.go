// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

// storage.Interface returns API errors by contract: a 410 carries the token to continue
// with, and a list of unreadable objects its causes. They are made only in this file.

// CorruptObjectError reports stored data that cannot be transformed or decoded.
type CorruptObjectError struct{ Err error }

func (e *CorruptObjectError) Error() string {
	return "stored data is corrupt: " + e.Err.Error()
}

// Unwrap returns the error of the transformer or the codec.
func (e *CorruptObjectError) Unwrap() error { return e.Err }

func unsafeDeletionAllowed() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}

// full returns the API error for a write for which the disk has no room. It has no Retry-After, so that
// people see the error at once. Programs repeat a request that failed with 507 as they choose.
func full(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage", Message: err.Error(),
	}}
}

// expiredList returns the 410 of a list. For a later page it offers a token that continues with newer data.
func expiredList(paging bool, start, prefix string) error {
	if !paging {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	const text = "The provided continue parameter is too old to display a consistent list result."
	token, err := storage.EncodeContinue(start, prefix, -1)
	if err != nil {
		return apierrors.NewResourceExpired(text)
	}
	st := apierrors.NewResourceExpired(text + " You can start a new list without the continue parameter, " +
		"or use the continue token in this response to go on with newer, inconsistent data.")
	st.ErrStatus.ListMeta.Continue = token
	return st
}

// watchError returns the ERROR event of a watch that ends with err. at is the revision up to which the
// watch delivered.
func watchError(err error, at, compacted uint64) watch.Event {
	if errors.Is(err, ErrCompacted) {
		err = apierrors.NewResourceExpired(fmt.Sprintf(
			"The resourceVersion for the provided watch is too old: %d, history starts at %d. List again and watch from there.", at, compacted))
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	st := status.Status()
	return watch.Event{Type: watch.Error, Object: &st}
}

// aheadError ends a watch that would begin at a revision that the store has not reached. It is one of an earlier life of the
// store, and waiting for it would leave out everything up to there. 410 makes clients list again.
func aheadError(at, now uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf(
		"The resourceVersion for the provided watch is ahead of the store: %d, current: %d. List again and watch from there.", at, now))
}

// tooLarge returns the API error for an object that has too many values, or too deep ones, to be stored as it is now. One that
// had as many before may stay so, and shrink: earlier versions had no bounds. Short ones are not looked at: a value takes two bytes
// at least, and bodies of requests are not deep.
func tooLarge(plain, before []byte) error {
	if int64(len(plain)) < 2*jsonsize.Object.Values {
		return nil
	}
	err := jsonsize.Object.Check(plain)
	shrinks := len(plain) <= len(before) && jsonsize.Object.Check(before) != nil
	if err == nil || shrinks {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError("the object " + err.Error())
}

// maxUnreadable ends a list of many unreadable objects.
const maxUnreadable = 100

// unreadable collects the objects of a list that cannot be read. It is used where the API lets an
// administrator delete such objects unread.
type unreadable struct {
	resource schema.GroupResource
	causes   []metav1.StatusCause
	first    error
	more     int
}

// add notes an object, and returns the error that ends the list, or nil to continue.
func (u *unreadable) add(key string, err error) error {
	corrupt, ok := errors.AsType[*CorruptObjectError](err)
	if !ok || !unsafeDeletionAllowed() {
		if u.first == nil {
			return err
		}
		u.causes = append(u.causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: err.Error()})
		return u.err()
	}
	wrapped := storage.NewCorruptObjError(key, corrupt)
	if u.first == nil {
		u.first = wrapped
	} else {
		u.more++
	}
	u.causes = append(u.causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: key, Message: wrapped.Error()})
	if len(u.causes) < maxUnreadable {
		return nil
	}
	u.causes = append(u.causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	return u.err()
}

func (u *unreadable) err() error {
	if u.first == nil {
		return nil
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", u.resource, u.first)
	if u.more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, u.more)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: u.resource.Group, Kind: u.resource.Resource, Name: "list", Causes: u.causes},
		Message: message,
	}}
}
