// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/platform-ai/platform/pkg/server"
)

// A client whose request outlasts the server must not wait for its answer.
func TestCut(t *testing.T) {
	t.Parallel()
	o := &server.Options{BindAddress: "127.0.0.1"}
	l, err := o.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Secure.Close() })
	var d net.Dialer
	client, err := d.DialContext(t.Context(), "tcp", l.Secure.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Secure.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l.Cut()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client read %v, want the end of the connection", err)
	}
	if err := accepted.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
