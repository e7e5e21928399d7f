// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wellformed refuses requests that would be understood other than they were meant. Each API checks its requests once,
// and answers the error in its own form: the REST paths in facade/rest, the vendors' APIs in compat, the Kubernetes API in the
// innermost filter of the handler chain, the console in its handler.
//
//   - A query that cannot be parsed. (*url.URL).Query drops what it cannot read, so "?namespace=other;x=1" would act in
//     another namespace, and "?labelSelector=a=b;c" would select everything. Handlers read the query with Query.
//   - Preconditions in headers. No answer has an entity tag or a date that a client could send, so a request under such a
//     condition is meant for something that this server cannot compare.
package wellformed

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check returns the API error with which a request is refused; nil if it is understood.
func Check(r *http.Request) error {
	if r.URL.RawQuery != "" {
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("the query cannot be parsed: %v; a percent sign must be written %%25 and a semicolon %%3B", err))
		}
	}
	if name := condition(r); name != "" {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusPreconditionFailed, Reason: "PreconditionFailed",
			Message: name + ": this server gives no entity tags to compare; to change an object only as you have read it, send its metadata.resourceVersion, " +
				"in the object or in the preconditions of a delete",
		}}
	}
	return nil
}

// condition returns the name of the header under whose condition the request is made.
func condition(r *http.Request) string {
	if r.Header.Get("If-Match") != "" {
		return "If-Match"
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead { // these only ask for less than the whole answer
		return ""
	}
	for _, name := range []string{"If-None-Match", "If-Unmodified-Since"} {
		if r.Header.Get(name) != "" {
			return name
		}
	}
	return ""
}

// Query returns the parameters of a request that has passed Check. It panics on others, because they must not reach a handler.
func Query(r *http.Request) url.Values {
	if r.URL.RawQuery == "" {
		return url.Values{}
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		panic(fmt.Sprintf("the query of a request was not checked: %v", err))
	}
	return q
}

// Bool returns a parameter that is true or false, and false if the query lacks it. The error is an API error.
func Bool(r *http.Request, name string) (bool, error) {
	s := Query(r).Get(name)
	if s == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: must be true or false", name, s))
	}
	return b, nil
}

// Number returns a parameter that is a number from 0, and none if the query lacks it. The error is an API error.
func Number(r *http.Request, name string, none int64) (int64, error) {
	s := Query(r).Get(name)
	if s == "" {
		return none, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("%s: %q: must be a number from 0", name, s))
	}
	return n, nil
}
