// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestRESTListener(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := standalone.Start(t, func(o *standalone.Options) { o.Out = &out })
	u := kit.Must[*url.URL](t)(url.Parse(s.RESTURL))
	if u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Port() == "0" || !strings.Contains(out.String(), s.RESTURL+"/api/v1") {
		t.Errorf("REST at %q, message:\n%s", s.RESTURL, out.String())
	}
	o := standalone.NewOptions()
	o.DataDir, o.Port, o.RESTBindAddress = t.TempDir(), 0, u.Host
	if err := standalone.Run(t.Context(), *o); err == nil || !strings.Contains(err.Error(), "--rest-bind-address") {
		t.Errorf("used address: %v", err)
	}
	for address, text := range map[string]string{
		"0.0.0.0:0": "--rest-allow-remote", ":7080": "--rest-allow-remote", "[::]:0": "--rest-allow-remote", "192.0.2.1:80": "--rest-allow-remote",
		"example.com:80": "--rest-allow-remote", "127.0.0.1": "--rest-bind-address: address 127.0.0.1: missing port",
	} {
		o := standalone.NewOptions()
		o.DataDir, o.Port, o.RESTBindAddress = t.TempDir(), 0, address
		if err := standalone.Run(t.Context(), *o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", address, err)
		}
	}
	off := standalone.Start(t, func(o *standalone.Options) { o.RESTBindAddress = "" })
	if off.RESTURL != "" {
		t.Errorf("REST at %q", off.RESTURL)
	}
	off.REST(t, "default", "vi", "view").Get("/api/v1/tasks").Want(t, http.StatusOK)
	remote := standalone.Start(t, func(o *standalone.Options) { o.RESTBindAddress, o.RESTAllowRemote = "0.0.0.0:0", true })
	remote.Stranger(t).At(remote.RESTURL).Get("/api/v1/tasks").Problem(t, http.StatusUnauthorized, "Unauthorized")
}

// HTTP/2 needs no TLS on the plain listener.
func TestRESTOverPlainHTTP2(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "vi", "view").At(s.RESTURL)
	tr := &http.Transport{Protocols: &http.Protocols{}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	c.HTTP = &http.Client{Transport: tr}
	resp := c.Open(t.Context(), http.MethodGet, "/api/v1/tasks", "")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Proto != "HTTP/2.0" {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
}

// A server that stops ends the streams of its plain listener, and the clients see an end, not a failure.
func TestRESTStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "a")
	worker.Post("/internal/v1/events/default/task/a", `{"type":"ModelMessage"}`).Want(t, http.StatusCreated)
	c := s.REST(t, "default", "vi", "view").At(s.RESTURL)
	ends := make(chan error, 2)
	for _, path := range []string{"/api/v1/tasks/a/stream", "/api/v1/tasks/a/logs?follow=true"} {
		resp := c.Open(t.Context(), http.MethodGet, path, "") //nolint:bodyclose // below, when the stream has ended
		if path == "/api/v1/tasks/a/stream" {
			if e, err := sse.NewReader(resp.Body, sse.Options{}).Next(); err != nil || e.ID != "1" {
				t.Fatal(e, err)
			}
		}
		go func() {
			_, err := io.Copy(io.Discard, resp.Body)
			ends <- err
			resp.Body.Close()
		}()
	}
	s.Stop(t)
	for range 2 {
		if err := <-ends; err != nil {
			t.Errorf("a stream ended with %v", err)
		}
	}
}

func TestRESTMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := standalone.Start(t, func(o *standalone.Options) { o.Metrics = reg })
	c := s.REST(t, "default", "vi", "view")
	c.Get("/api/v1/tasks").Want(t, http.StatusOK)
	c.Get("/api/v1/tasks/nosuch").Want(t, http.StatusNotFound)
	want := `
# HELP platform_api_requests_total REST requests that were answered.
# TYPE platform_api_requests_total counter
platform_api_requests_total{endpoint="/api/v1/tasks",method="GET",status="200"} 1
platform_api_requests_total{endpoint="/api/v1/tasks/:id",method="GET",status="404"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "platform_api_requests_total"); err != nil {
		t.Error(err)
	}
	s.Restart(t) // registers the same metrics once more
}
