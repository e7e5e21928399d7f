// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectionAfterAStream: a connection of HTTP/1.1 that carried a stream serves later requests like any other. The stream's
// deadline for writes does not remain set.
func TestConnectionAfterAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		client, accepted := net.Pipe()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/stream" {
				_, _ = io.WriteString(w, "an answer")
				return
			}
			s := newSender(w, &Options{WriteTimeout: patience})
			if err := errors.Join(s.begin(), s.send([]byte(": a stream\n\n"))); err != nil {
				t.Error(err)
			}
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(&oneConnection{accepted: accepted, closed: make(chan struct{})}) }()
		c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			if client == nil {
				return nil, errors.New("a second connection")
			}
			defer func() { client = nil }()
			return client, nil
		}}}
		read := func(path string) string {
			resp, err := c.Get("http://server" + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if got := read("/stream"); got != ": a stream\n\n" {
			t.Errorf("the stream: %q", got)
		}
		time.Sleep(2 * patience)
		if got := read("/object"); got != "an answer" {
			t.Errorf("after the stream: %q", got)
		}
		c.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// oneConnection is a listener that accepts one connection.
type oneConnection struct {
	accepted net.Conn // nil once it was accepted
	closed   chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if c := l.accepted; c != nil {
		l.accepted = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConnection) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
