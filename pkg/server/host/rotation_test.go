// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/host/pki"
	"github.com/platform-ai/platform/test/kit"
)

// A certificate is refused once its authority is no longer trusted, also on a connection on which it was accepted.
func TestAuthorityIsReplaced(t *testing.T) {
	s := start(t, t.TempDir(), clock.RealClock{})
	c := must(rest.HTTPClientFor(s.admin()))(t)
	dialed := 0
	status := func(ctx context.Context) int {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				dialed++
			}
		}})
		resp, err := c.Do(must(http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/namespaces", nil))(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		_ = must(io.ReadAll(resp.Body))(t)
		return resp.StatusCode
	}
	for range 2 {
		if got := status(t.Context()); got != http.StatusOK {
			t.Fatalf("status %d before the authority is replaced", got)
		}
	}
	other := must(pki.Open(pki.Options{Dir: t.TempDir()}))(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, other.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, s.host.PKI().CAFile()); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the certificate of the replaced authority is refused", func() bool { return status(t.Context()) == http.StatusUnauthorized })
	if dialed != 1 {
		t.Errorf("%d connections, want 1", dialed)
	}
}
