// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// TestStrangersAreLoggedSparsely: whoever has no token that anybody knows fills no log.
func TestStrangersAreLoggedSparsely(t *testing.T) {
	var lines atomic.Int32
	logger := funcr.New(func(_, _ string) { lines.Add(1) }, funcr.Options{})
	rt := New(Config{Clock: clock.RealClock{}, Routes: &Routes{}})
	for _, request := range []func() *http.Request{
		func() *http.Request { return httptest.NewRequest(http.MethodGet, "/none", nil) },
		func() *http.Request { return httptest.NewRequest(http.MethodPost, "/openai/v1/chat/completions", nil) },
		func() *http.Request {
			r := httptest.NewRequest(http.MethodOptions, "/openai/v1/models", nil)
			r.Header.Set("Origin", "https://page.example")
			r.Header.Set("Access-Control-Request-Method", http.MethodGet)
			return r
		},
	} {
		for range 100 {
			r := request()
			rt.ServeHTTP(httptest.NewRecorder(), r.WithContext(klog.NewContext(r.Context(), logger)))
		}
	}
	if n := lines.Load(); n < 1 || n > 2 {
		t.Errorf("300 requests of strangers caused %d lines", n)
	}
}
