// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Revision parses a resourceVersion; an empty one is 0. The error is a
// BadRequest.
func Revision(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	rev, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %q: must be a number", s))
	}
	return rev, nil
}

// At sets in q the state that a list asks for: at least the given
// resourceVersion or, for a page after the first, exactly that one, as in every
// Kubernetes list.
func At(q *eventlog.Query, o *metainternalversion.ListOptions) error {
	rev, err := Revision(o.ResourceVersion)
	if err != nil {
		return err
	}
	q.Revision = rev
	switch o.ResourceVersionMatch {
	case metav1.ResourceVersionMatchNotOlderThan:
		q.NotOlderThan = true
	case metav1.ResourceVersionMatchExact:
	default:
		q.NotOlderThan = o.Limit == 0
	}
	return nil
}

// PositionError turns errors about a position in the event log into API errors
// from which clients know how to continue. It returns other errors unchanged.
func PositionError(err error) error {
	var expired *eventlog.ExpiredError
	var future *eventlog.FutureError
	switch {
	case errors.As(err, &expired):
		gone := apierrors.NewResourceExpired(fmt.Sprintf("The resource version %d is too old: events are kept since %d. Start a new list, or go on with the continue token of this error where there is one.", expired.Revision, expired.Floor))
		gone.ErrStatus.Continue = expired.Continue
		return gone
	case errors.As(err, &future):
		return storage.NewTooLargeResourceVersionError(future.Revision, future.Current, 1)
	case errors.Is(err, eventlog.ErrContinue):
		return apierrors.NewBadRequest("continue: is not a continue token of this list")
	}
	return err
}
