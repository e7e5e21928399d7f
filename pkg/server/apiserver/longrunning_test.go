// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

func TestLongRunning(t *testing.T) {
	resolver := genericapiserver.NewRequestInfoResolver(genericapiserver.NewConfig(Codecs(mustScheme(t))))
	const tasks = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"
	for _, tc := range []struct {
		method, path string
		want         bool
	}{
		{"GET", tasks, false},
		{"GET", tasks + "?watch=true", true},
		{"GET", tasks + "?watch=false", false},
		{"POST", tasks + "?watch=true", false},
		{"GET", tasks + "/a", false},
		{"GET", tasks + "/a/stream", true},
		{"GET", tasks + "/a/log", false},
		{"GET", tasks + "/a/log?follow=true", true},
		{"GET", tasks + "/a/log?follow=banana", false},
		{"GET", tasks + "/a/events?follow=true", false},
		{"POST", tasks + "/a/events", false},
		{"PATCH", tasks + "/a", false},
		{"DELETE", tasks, false},
		{"GET", "/healthz", false},
		{"GET", "/openapi/v3", false},
		{"GET", "/stream", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil)
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := LongRunning(r, info); got != tc.want {
			t.Errorf("%s %s: long-running %v, want %v", tc.method, tc.path, got, tc.want)
		}
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	stopping := make(chan struct{})
	started := make(chan struct{})
	handler := endStreams(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	}), LongRunning, stopping)
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "tasks", Subresource: "stream"}
	r := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), info), "GET", "/", nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-started
	select {
	case <-ended:
		t.Fatal("the stream ended before the server stopped")
	default:
	}
	close(stopping)
	<-ended
}

func TestCompleteRefusesAnOpenServer(t *testing.T) {
	scheme := mustScheme(t)
	g := NewGeneric(scheme)
	g.LoopbackClientConfig = &rest.Config{}
	c := &Config{Generic: g, Scheme: scheme}
	if _, err := c.Complete(); err == nil {
		t.Error("a server without storage, authentication and authorization was completed")
	}
}
