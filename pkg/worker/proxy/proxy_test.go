// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/egress"
)

// through returns a client that uses the proxy as programs do.
func through(t *testing.T, p *Proxy, trust *httptest.Server) *http.Client {
	t.Helper()
	_, address, _ := strings.Cut(p.Env()[0], "=")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}
	if trust != nil {
		transport.TLSClientConfig = trust.Client().Transport.(*http.Transport).TLSClientConfig
	}
	return &http.Client{Transport: transport}
}

func start(t *testing.T, g egress.Guard) *Proxy {
	t.Helper()
	p, err := Start(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestBothSchemes: programs reach http and https addresses that the guard allows, and neither the password nor any other trace
// of the proxy arrives there.
func TestBothSchemes(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name := range r.Header {
			if strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded") || name == "Via" || name == "Forwarded" {
				t.Errorf("%s: %s", name, r.Header.Get(name))
			}
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, body)
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	p := start(t, egress.Guard{Private: true})
	for _, s := range []*httptest.Server{plain, secure} {
		resp, err := through(t, p, secure).Post(s.URL+"/x", "text/plain", strings.NewReader("question"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		u, _ := url.Parse(s.URL)
		if want := "POST " + u.Host + " question"; err != nil || string(body) != want {
			t.Errorf("%q, %v; want %q", body, err, want)
		}
	}
}

// TestRefusals: what the guard refuses, what is no request for a proxy, and who does not know the password.
func TestRefusals(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	t.Cleanup(inside.Close)
	host := strings.TrimPrefix(inside.URL, "http://")
	p := start(t, egress.Guard{Allow: []string{host}, NotSelf: true})
	auth := "Proxy-Authorization: " + p.authorization + "\r\n"
	for _, tc := range []struct{ name, request, want string }{
		{"loopback, although it is allowed", "CONNECT " + host + " HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"loopback by http", "GET " + inside.URL + "/ HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"metadata", "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n" + auth, "403"},
		{"metadata by tunnel", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"mapped loopback", "CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"private", "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"localhost", "CONNECT localhost:1 HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"unspecified", "CONNECT 0.0.0.0:80 HTTP/1.1\r\nHost: x\r\n" + auth, "403"},
		{"decimal loopback", "CONNECT 2130706433:80 HTTP/1.1\r\nHost: x\r\n" + auth, "502"},
		{"no port", "CONNECT example.com HTTP/1.1\r\nHost: x\r\n" + auth, "400"},
		{"a path", "GET / HTTP/1.1\r\nHost: x\r\n" + auth, "400"},
		{"another scheme", "GET ftp://example.com/ HTTP/1.1\r\nHost: x\r\n" + auth, "400"},
		{"no password", "CONNECT " + host + " HTTP/1.1\r\nHost: x\r\n", "407"},
		{"a wrong password", "CONNECT " + host + " HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic cnVuOng=\r\n", "407"},
	} {
		c, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, tc.request+"Connection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.HasPrefix(resp.Status, tc.want) || strings.Contains(string(body), p.password) {
			t.Errorf("%s: %s %s; want %s", tc.name, resp.Status, body, tc.want)
		}
		_ = c.Close()
	}
}

// TestHalfClosed: a program that has said all still gets the answer.
func TestHalfClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("got "), all...))
		_ = c.Close()
	}()
	p := start(t, egress.Guard{Private: true})
	c, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	// What follows the request at once belongs to the tunnel as well.
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\nearly ", l.Addr(), p.authorization)
	_, _ = io.WriteString(c, "late")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.HasSuffix(string(all), "got early late") {
		t.Errorf("%q, %v", all, err)
	}
}

// TestCloseEndsTunnels: nothing of a run's connections outlives it.
func TestCloseEndsTunnels(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := start(t, egress.Guard{Private: true})
	c, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n", l.Addr(), p.authorization)
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatal(line, err)
	}
	p.Close()
	for name, end := range map[string]net.Conn{"program": c, "destination": far} {
		if _, err := io.ReadAll(end); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// address returns where the proxy listens.
func (p *Proxy) address() string { return fmt.Sprintf("127.0.0.1:%d", p.Port()) }
