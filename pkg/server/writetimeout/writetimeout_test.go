// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package writetimeout_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/test/pipenet"
)

// onBothVersions runs a test over HTTP/1.1 and over HTTP/2, each in a bubble of its own. What get returns is the handler's answer.
func onBothVersions(t *testing.T, test func(t *testing.T, get func(http.HandlerFunc) *http.Response)) {
	t.Helper()
	for version, name := range map[int]string{1: "HTTP/1.1", 2: "HTTP/2"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				protocols := &http.Protocols{}
				protocols.SetHTTP1(version == 1)
				protocols.SetUnencryptedHTTP2(version == 2)
				test(t, func(handler http.HandlerFunc) *http.Response {
					l := pipenet.Listen()
					s := &http.Server{Handler: handler, Protocols: protocols}
					go func() { _ = s.Serve(l) }()
					client := &http.Transport{DialContext: l.DialContext, Protocols: protocols}
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.RoundTrip(req)
					t.Cleanup(func() {
						if err == nil {
							_ = resp.Body.Close()
						}
						client.CloseIdleConnections()
						_ = s.Close()
					})
					if err != nil || resp.ProtoMajor != version {
						t.Fatalf("%v, %v", resp, err)
					}
					return resp
				})
			})
		})
	}
}

// TestPause: an answer may pause for longer than a part of it may take, on either version of HTTP.
func TestPause(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	onBothVersions(t, func(t *testing.T, get func(http.HandlerFunc) *http.Response) {
		resp := get(func(w http.ResponseWriter, _ *http.Request) {
			out := writetimeout.NewWriter(w, timeout)
			_, _ = io.WriteString(out, "one")
			if err := out.FlushError(); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * timeout) // in the bubble of onBothVersions
			if _, err := io.WriteString(out, " two"); err != nil {
				t.Error(err)
			}
			if err := out.FlushError(); err != nil {
				t.Error(err)
			}
		})
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "one two" {
			t.Errorf("%q, %v", body, err)
		}
	})
}

// TestSlow: a write to a client that does not read fails when its time is over, on either version of HTTP.
func TestSlow(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	onBothVersions(t, func(t *testing.T, get func(http.HandlerFunc) *http.Response) {
		failed := make(chan time.Duration, 1)
		get(func(w http.ResponseWriter, _ *http.Request) { //nolint:bodyclose // get closes it
			_ = http.NewResponseController(w).Flush() // the client has the header
			began, out := time.Now(), writetimeout.NewWriter(w, timeout)
			for {
				if _, err := out.Write(make([]byte, 1<<20)); err != nil {
					failed <- time.Since(began) // in the bubble of onBothVersions
					return
				}
			}
		})
		if after := <-failed; after != timeout {
			t.Errorf("it failed after %s", after)
		}
	})
}
