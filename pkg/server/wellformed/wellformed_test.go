// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wellformed

import (
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		method, query, header string
		code                  int32 // 0 if accepted
	}{
		{"GET", "", "", 0},
		{"GET", "a=b&labelSelector=x%3Dy%2Cz%21%3D1", "", 0},
		{"DELETE", "namespace=other;x=1", "", 400},
		{"POST", "namespace=oth%er", "", 400},
		{"GET", "a=b&%zz", "", 400},
		{"GET", "", "If-None-Match", 0},
		{"GET", "", "If-Match", 412},
		{"PUT", "", "If-Match", 412},
		{"PUT", "", "If-None-Match", 412},
		{"DELETE", "", "If-Unmodified-Since", 412},
	} {
		r := httptest.NewRequest(tc.method, "/x", http.NoBody)
		r.URL.RawQuery = tc.query
		if tc.header != "" {
			r.Header.Set(tc.header, `"1"`)
		}
		err := Check(r)
		if s, _ := err.(apierrors.APIStatus); (err == nil) != (tc.code == 0) || err != nil && s.Status().Code != tc.code {
			t.Errorf("%+v: %v", tc, err)
		}
		if err == nil && len(Query(r)) != len(r.URL.Query()) {
			t.Errorf("%+v: %v", tc, Query(r))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a query that was not checked is read")
		}
	}()
	r := httptest.NewRequest(http.MethodGet, "/x", http.NoBody)
	r.URL.RawQuery = "a;b"
	Query(r)
}
