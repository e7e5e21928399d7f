// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// proxy is a TCP proxy in front of the server whose connections can be cut. It keeps running while the server is down.
type proxy struct {
	listener net.Listener
	to       string

	mu   sync.Mutex // guards the rest
	open map[net.Conn]struct{}
	cuts int
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, open: map[net.Conn]struct{}{}}
	var serving sync.WaitGroup
	serving.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
		p.cut(nil, 1)
	})
	return p
}

func (p *proxy) url() string { return "https://" + p.listener.Addr().String() }

// serve ends when the listener is closed.
func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client] = struct{}{}
		p.mu.Unlock()
		pipe := func(to, from net.Conn) { // ends with either side
			_, _ = io.Copy(to, from)
			client.Close()
			server.Close()
			p.mu.Lock()
			delete(p.open, client)
			p.mu.Unlock()
		}
		go pipe(server, client)
		go pipe(client, server)
	}
}

// cut cuts each connection with a given probability, without notifying either side.
func (p *proxy) cut(random *rand.Rand, probability float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		if random == nil || random.Float64() < probability {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // what is under way is lost
			}
			c.Close()
			p.cuts++
		}
	}
}
