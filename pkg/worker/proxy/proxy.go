// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy is the HTTP proxy (RFC 9110, section 9.3.6) through which programs of a run reach the public internet. Their
// sandbox lets them connect to its port and to nothing else, and the proxy connects to what its guard allows. It resolves names
// itself, so a program needs no other service, and what it connects to is checked after that.
//
// Programs of other runs share the machine's loopback interface, so the proxy demands a password that only the environment of
// its own programs has.
//
// A proxy in the worker works in Pods under the restricted Pod Security Standard, where a worker cannot make network namespaces. It
// needs Landlock 4 (Linux 6.7). Programs have no UDP, and cannot resolve names themselves. Landlock's rule has a port and no address,
// so a program can also connect directly to that port of other hosts. The kernel chooses the port for each run, and no program can.
package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/worker/loopback"
)

const (
	// idleTimeout is how long a connection that was not used for a tunnel is kept.
	idleTimeout = time.Minute
	// user is the name in the proxy's URL. It means nothing.
	user = "run"
)

// Proxy is a proxy that runs. Its methods may be called concurrently.
type Proxy struct {
	server        *loopback.Server
	authorization string
	password      string
	transport     *http.Transport
	forward       *httputil.ReverseProxy

	// mu guards what follows.
	mu sync.Mutex
	// tunnels are the connections of tunnels, nil after Close.
	tunnels map[net.Conn]struct{}
}

// Start starts a proxy that connects to what the guard allows, on a port of the loopback interface that the kernel chooses.
func Start(guard egress.Guard) (*Proxy, error) {
	p := &Proxy{password: rand.Text(), transport: guard.Transport(), tunnels: map[net.Conn]struct{}{}}
	p.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+p.password))
	p.forward = &httputil.ReverseProxy{
		Transport: p.transport, ErrorLog: loopback.Quiet, FlushInterval: -1,
		Rewrite:      func(*httputil.ProxyRequest) {}, // the request names its destination
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
	}
	var err error
	if p.server, err = loopback.Serve(p, idleTimeout); err != nil {
		return nil, fmt.Errorf("the network proxy of the run: %w", err)
	}
	return p, nil
}

// Port returns the TCP port of the proxy.
func (p *Proxy) Port() uint16 { return p.server.Port() }

// Env returns the variables by which programs find the proxy. Curl, git, Python, Go, npm and pip know them, and Node from
// version 24 on. They contain the proxy's password, which is good for nothing else.
func (p *Proxy) Env() []string {
	url := "http://" + user + ":" + p.password + "@127.0.0.1:" + strconv.Itoa(int(p.Port()))
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		env = append(env, name+"="+url)
	}
	return append(env, "NODE_USE_ENV_PROXY=1")
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.server.Close()
	p.mu.Lock()
	open := p.tunnels
	p.tunnels = nil
	p.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
	p.transport.CloseIdleConnections()
}

// keep adds a connection to those that Close ends. It reports false after Close.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tunnels == nil {
		return false
	}
	p.tunnels[c] = struct{}{}
	return true
}

// end closes a connection that was kept.
func (p *Proxy) end(c net.Conn) {
	p.mu.Lock()
	delete(p.tunnels, c)
	p.mu.Unlock()
	_ = c.Close()
}

// ServeHTTP serves one request of a program.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(p.authorization)) != 1 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="programs of one run"`)
		http.Error(w, "this proxy is for the programs of one run, whose environment (HTTP_PROXY) has its password", http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy; a request must name an http address, or use CONNECT", http.StatusBadRequest)
	}
}

// tunnel connects the program with what it names.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	// The context of the request ends when the program has said all, which may be before the destination was reached.
	out, err := p.transport.DialContext(context.WithoutCancel(r.Context()), "tcp", r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	defer p.end(out)
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "CONNECT needs HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	defer p.end(in)
	if !p.keep(in) || !p.keep(out) {
		return
	}
	_ = in.SetDeadline(time.Time{})
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := io.Copy(out, buffered)
		if half, ok := out.(*net.TCPConn); err != nil || !ok || half.CloseWrite() != nil { // the answer may still be coming
			_ = out.Close()
		}
	})
	_, _ = io.Copy(in, out)
	_ = in.Close() // a destination that has said all does not listen any more
	sending.Wait()
}

// refuse answers a request whose destination could not be reached. The text names what the program named, and no address that a
// name inside a private network resolves to.
func refuse(w http.ResponseWriter, err error) {
	code, text := http.StatusBadGateway, "the destination cannot be reached"
	dns := (*net.DNSError)(nil)
	switch {
	case errors.Is(err, egress.ErrRefused):
		code, text = http.StatusForbidden, "programs of agents may reach the public internet only: the address of the destination is private, local or reserved"
	case errors.As(err, &dns):
		text = "the name of the destination cannot be resolved"
	case strings.Contains(err.Error(), "missing port"):
		code, text = http.StatusBadRequest, "CONNECT needs host:port"
	}
	http.Error(w, text, code)
}
