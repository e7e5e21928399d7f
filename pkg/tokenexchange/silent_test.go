// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenexchange

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestSilentService: an exchange fails once the service has not answered for the time that the operator chose.
func TestSilentService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Endpoint: "http://tokens.test/token", ChildScope: "work", Timeout: 20 * time.Second}, clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		s.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, service := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, service) }() // ends when the client hangs up
			return client, nil
		}
		began := time.Now()
		_, err = s.ask(t.Context(), "a token")
		if e, ok := errors.AsType[*Error](err); !ok || e.Cause != CauseTimeout || e.Refused() || e.Message != "the token service did not answer within 20s" {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("after %s", took)
		}
	})
}
