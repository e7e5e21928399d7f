// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback is an HTTP server of a worker for the programs of its run, on a port of the loopback interface that the kernel chooses.
// Programs of other runs reach that port, too, so what is served demands a secret.
package loopback

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxConnections is how many connections programs may have at a time. Others wait.
	maxConnections = 128
	// headerTimeout is how long a program may take to say what it wants.
	headerTimeout = 10 * time.Second
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 64 << 10
)

// Quiet is the log of such a server: what programs do wrong is theirs to see, and nobody else's.
var Quiet = log.New(io.Discard, "", 0)

// Server is a running server.
type Server struct {
	server *http.Server
	port   uint16
	work   sync.WaitGroup
}

// Serve starts a server. idle is how long an unused connection is kept.
func Serve(h http.Handler, idle time.Duration) (*Server, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return nil, err
	}
	address, _ := l.Addr().(*net.TCPAddr)
	s := &Server{port: uint16(address.Port), server: &http.Server{
		Handler: h, ErrorLog: Quiet, ReadHeaderTimeout: headerTimeout, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
	}}
	s.work.Go(func() { _ = s.server.Serve(netutil.LimitListener(l, maxConnections)) })
	return s, nil
}

// Port returns the TCP port.
func (s *Server) Port() uint16 { return s.port }

// Close ends the server and its connections, except those that a handler has taken over.
func (s *Server) Close() {
	_ = s.server.Close()
	s.work.Wait()
}
