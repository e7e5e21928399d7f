// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// Listeners are the open ports of a server.
type Listeners struct {
	// Secure is the port with TLS.
	Secure net.Listener
	// Plain serves the REST paths without TLS; it may be nil.
	Plain net.Listener
	// URL and RESTURL are the addresses of the ports for clients on this machine. RESTURL is empty if Plain is nil.
	URL, RESTURL string
}

// Listen opens the ports.
func (o *Options) Listen(ctx context.Context) (*Listeners, error) {
	var lc net.ListenConfig
	secure, err := lc.Listen(ctx, "tcp", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen (another --secure-port?): %w", err)
	}
	log := sparse.New(cmp.Or[clock.PassiveClock](o.Clock, clock.RealClock{}))
	exhausted := func(err error) {
		log.Error(ctx, err, "No connection can be accepted until others end, or the limit of open files is raised")
	}
	l := &Listeners{Secure: track(secure, exhausted), URL: "https://" + reachable(secure.Addr().(*net.TCPAddr))}
	if o.RESTBindAddress == "" {
		return l, nil
	}
	plain, err := lc.Listen(ctx, "tcp", o.RESTBindAddress)
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot listen for REST (another --rest-bind-address, or an empty one for none?): %w", err), secure.Close())
	}
	l.Plain, l.RESTURL = track(plain, exhausted), "http://"+reachable(plain.Addr().(*net.TCPAddr))
	return l, nil
}

// Close closes the ports of a server that was not started.
func (l *Listeners) Close() error {
	err := l.Secure.Close()
	if l.Plain != nil {
		err = errors.Join(err, l.Plain.Close())
	}
	return err
}

// Cut closes the connections that are still open. The generic server leaves them open if a request outlasts its shutdown
// timeout, and their clients would wait for an answer that no one sends anymore. A client that reads nothing would delay
// the end of the server.
func (l *Listeners) Cut() {
	for _, port := range []net.Listener{l.Secure, l.Plain} {
		if t, ok := port.(*tracked); ok {
			t.cut()
		}
	}
}

// tracked is a listener that knows its open connections.
type tracked struct {
	net.Listener
	// exhausted is called if a connection cannot be accepted for lack of descriptors. The HTTP servers try again.
	exhausted func(error)

	mu     sync.Mutex // guards open and closed
	open   map[*connection]struct{}
	closed bool
}

func track(l net.Listener, exhausted func(error)) *tracked {
	return &tracked{Listener: l, exhausted: exhausted, open: map[*connection]struct{}{}}
}

// connection is one connection of a tracked listener.
type connection struct {
	net.Conn
	of *tracked
}

// Accept waits for the next connection.
func (t *tracked) Accept() (net.Conn, error) {
	plain, err := t.Listener.Accept()
	if err != nil {
		if local.Exhausted(err) {
			t.exhausted(err)
		}
		return nil, err
	}
	c := &connection{plain, t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = plain.Close()
		return nil, net.ErrClosed
	}
	t.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (t *tracked) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.open {
		_ = c.Conn.Close()
	}
	clear(t.open)
}

// reachable returns the host and port by which this machine reaches a listener.
func reachable(addr *net.TCPAddr) string {
	host := addr.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return net.JoinHostPort(host.String(), strconv.Itoa(addr.Port))
}

// checkREST refuses an address with which tokens would cross a network unencrypted, unless the operator allows that.
func (o *Options) checkREST() error {
	if o.RESTBindAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.RESTBindAddress)
	if err != nil {
		return fmt.Errorf("--rest-bind-address: %w", err)
	}
	ip, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && ip.IsLoopback(); loopback || o.RESTAllowRemote {
		return nil
	}
	return fmt.Errorf("--rest-bind-address: %q is not on loopback, and tokens would cross the network unencrypted; use the secure port, which serves the same paths, or set --rest-allow-remote if a proxy in front of it does TLS", o.RESTBindAddress)
}
