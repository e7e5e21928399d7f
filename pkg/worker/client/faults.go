// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// CallFaults is how often a call is tried over which the server itself fails, if only that call is lost with it:
	// a minute and a half.
	CallFaults = 20
	// WorkFaults is the same for what a run has to deliver or cannot go on without: at least five minutes, because a
	// server also answers 500 while it cannot ask the cluster who may do what.
	WorkFaults = 100
)

// Faults counts the answers 500 to one and the same request. With 500 the server says that it could not handle the request,
// not that it is away, so it may never be able to: repeating it without end would keep a run from ever ending.
type Faults struct {
	// Most is how many such answers are accepted.
	Most int
	seen int
}

// Again reports whether a request that failed with err is to be sent again.
func (f *Faults) Again(err error) bool {
	if !Temporary(err) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || f.goOn(int(status.Status().Code))
}

func (f *Faults) goOn(code int) bool {
	if code == http.StatusInternalServerError {
		f.seen++
	}
	return f.seen < f.Most
}
