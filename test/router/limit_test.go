// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/test/kit"
)

// certificate is a listener's certificate, in two files.
type certificate struct {
	certFile, keyFile string
	pool              *x509.CertPool
	serial            string
}

func newCertificate(t *testing.T, host string) *certificate {
	t.Helper()
	dir := t.TempDir()
	c := &certificate{certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key")}
	c.renew(t, host)
	return c
}

// renew writes another certificate into the files.
func (c *certificate) renew(t *testing.T, host string) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{c.certFile: certPEM, c.keyFile: keyPEM} {
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	all, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	c.serial = all[0].SerialNumber.String()
	c.pool = x509.NewCertPool()
	c.pool.AppendCertsFromPEM(certPEM)
}

func (c *certificate) serve(o *router.Options) { o.TLSCertFile, o.TLSKeyFile = c.certFile, c.keyFile }

// client trusts the certificate, speaks HTTP/2 and has connections of its own.
func (c *certificate) client() http.RoundTripper {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
}

// A certificate that was renewed is served without a restart; one that cannot be read is not.
func TestRenewedCertificate(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := issuing(t)
	c := newCertificate(t, "127.0.0.1")
	s := start(t, h, map[string]string{}, c.serve)
	serial := func() string {
		conn, err := tls.Dial("tcp", s.url[len("https://"):], &tls.Config{RootCAs: c.pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got := serial(); got != c.serial {
		t.Fatalf("serial %s, want %s", got, c.serial)
	}
	c.renew(t, "127.0.0.1")
	if got := serial(); got != c.serial {
		t.Errorf("after renewal serial %s, want %s", got, c.serial)
	}
	if err := os.WriteFile(c.keyFile, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != c.serial {
		t.Errorf("with a broken key serial %s, want %s", got, c.serial)
	}
}

// Installations with a certificate of their own authority are trusted if the operator configures that, also with HTTP/2.
func TestInstallationWithItsOwnAuthority(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	secure := httptest.NewUnstartedServer(in)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, h, map[string]string{"team-a": secure.URL}, func(o *router.Options) { o.OriginCAFile = ca })
	got := s.call(t, "POST", "/openai/v1/chat/completions", `{"model":"m"}`, "Authorization", "Bearer "+h.token(t, "team-a", "client"))
	if got.code != 200 {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// An installation accepts requests of up to 15 MiB, and so does the router, whether or not their size is announced.
func TestRequestSize(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	var mu sync.Mutex // guards sizes
	var sizes []int64
	in.serve = func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			mu.Lock()
			sizes = append(sizes, n)
			mu.Unlock()
		}
		in.json(w, `{}`)
	}
	c := newCertificate(t, "127.0.0.1")
	plain, secure := start(t, h, map[string]string{"team-a": in.URL}), start(t, h, map[string]string{"team-a": in.URL}, c.serve)
	token := h.token(t, "team-a", "client")
	const limit = 15 << 20
	whole := bytes.Repeat([]byte("x"), limit+1)
	for name, tc := range map[string]struct {
		s      *shared
		client http.RoundTripper
	}{"HTTP/1.1": {plain, http.DefaultTransport}, "HTTP/2": {secure, c.client()}} {
		for _, path := range []string{"/openai/v1/responses", "/anthropic/v1/messages"} {
			for size, want := range map[int]int{limit: 200, limit + 1: 413} {
				for kind, body := range map[string]io.Reader{
					"announced": bytes.NewReader(whole[:size]), "not announced": io.MultiReader(bytes.NewReader(whole[:size])),
				} {
					res, err := tc.client.RoundTrip(tc.s.request(t, "POST", path, body, "Authorization", "Bearer "+token))
					if err != nil {
						t.Errorf("%s, %s, %d bytes, %s: %v", name, path, size, kind, err)
						continue
					}
					data, _ := io.ReadAll(res.Body)
					res.Body.Close()
					if res.StatusCode != want {
						t.Errorf("%s, %s, %d bytes, %s: %d %s", name, path, size, kind, res.StatusCode, data)
					}
					if want == 413 {
						if e, _ := errorOf(t, path, reply{header: res.Header, body: string(data)}); e != "request_too_large" {
							t.Errorf("%s, %s: %s", name, path, data)
						}
					}
				}
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sizes) != 8 {
		t.Errorf("the installation got whole requests of %v bytes, want 8", sizes)
	}
	for _, n := range sizes {
		if n != limit {
			t.Errorf("the installation got %d bytes, want %d", n, limit)
		}
	}
}

// A request that does not arrive in time is refused. The limit covers only the upload: an answer may take longer.
func TestUploadTime(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	token := h.token(t, "team-a", "client")
	c := newCertificate(t, "127.0.0.1")
	// The deadlines of sockets pass in real time. The other requests arrive within it.
	quick := func(o *router.Options) { o.ReadTimeout = 3 * time.Second }
	t.Run("HTTP/1.1", func(t *testing.T) {
		t.Parallel()
		testUploadTime(t, h, token, http.DefaultTransport, quick)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		testUploadTime(t, h, token, c.client(), quick, c.serve)
	})
}

func testUploadTime(t *testing.T, h *issuer, token string, client http.RoundTripper, configure ...func(*router.Options)) {
	in := newInstallation(t, "installation-a")
	late := make(chan struct{})
	in.serve = func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		<-late
		in.json(w, `"%s"`)
	}
	s := start(t, h, map[string]string{"team-a": in.URL}, configure...)
	answered := make(chan reply, 2)
	for path, method := range map[string]string{"/openai/v1/chat/completions": "POST", "/openai/v1/models": "GET"} {
		r := s.request(t, method, path, bytes.NewReader([]byte(`{}`)), "Authorization", "Bearer "+token)
		go func() {
			res, err := client.RoundTrip(r)
			if err != nil {
				answered <- reply{body: err.Error()}
				return
			}
			defer res.Body.Close()
			data, _ := io.ReadAll(res.Body)
			answered <- reply{code: res.StatusCode, body: string(data)}
		}()
	}
	kit.Await(t, "both requests", func() bool { return len(in.requests()) == 2 })
	stalled, more := io.Pipe()
	defer more.Close()
	go func() { _, _ = more.Write([]byte(`{"never":`)) }()
	res, err := client.RoundTrip(s.request(t, "POST", "/anthropic/v1/messages", stalled, "Authorization", "Bearer "+token))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	got := reply{code: res.StatusCode, header: res.Header, body: string(data)}
	if kind, _ := errorOf(t, "/anthropic/v1/messages", got); got.code != 400 || kind != "invalid_request_error" {
		t.Errorf("the stalled request: %d %s", got.code, got.body)
	}
	close(late)
	for range 2 {
		if got := <-answered; got.code != 200 || got.body != `"installation-a"` {
			t.Errorf("an answer that took longer: %d %s", got.code, got.body)
		}
	}
}

// A header that does not end in time closes the connection.
func TestHeaderTime(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	s := start(t, h, map[string]string{}, func(o *router.Options) { o.ReadTimeout = 2 * time.Second }) // to send half a header, by a deadline that passes in real time
	c, err := net.Dial("tcp", s.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /openai/v1/responses HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection ended with %v", err)
	}
}
