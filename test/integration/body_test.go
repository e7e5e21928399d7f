// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/server/sparse"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/harness"
)

// bodyPaths are paths that read bodies, REST and native ones.
func bodyPaths() []string {
	return []string{
		"/api/v1/tasks", "/api/v1/tasks/a/fork", "/internal/v1/events/default/task/a", "/internal/v1/results/default/a",
		"/internal/v1/artifacts/default/a/f", tasksPath, tasksPath + "/a/events", tasksPath + "/a/result", "/no/such/path",
	}
}

// dial opens a connection of HTTP/1.1 to a listener.
func dial(t *testing.T, s *Server, base string) net.Conn {
	t.Helper()
	u := must[*url.URL](t)(url.Parse(base))
	c := must[net.Conn](t)(net.Dial("tcp", u.Host))
	t.Cleanup(func() { c.Close() })
	if u.Scheme == "https" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(s.Admin.CAData)
		c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	}
	return c
}

// The server reads no byte of an unauthenticated caller's body: the answer comes when only the head was sent, on both
// listeners, whatever the head says about the body.
func TestBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	s := Start(t)
	for _, base := range []string{s.URL, s.RESTURL} {
		for _, path := range bodyPaths() {
			if base == s.RESTURL && !strings.HasPrefix(path, "/api/v1") && !strings.HasPrefix(path, "/internal") {
				continue
			}
			for _, length := range []string{"Content-Length: 14680064\r\n", "Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 1000\r\nExpect: 100-continue\r\n"} {
				c := dial(t, s, base)
				_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer garbage\r\nContent-Type: application/json\r\n%s\r\n", path, length)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatalf("%s%s %q: %v", base, path, length, err)
				}
				if resp.StatusCode != http.StatusUnauthorized || !resp.Close {
					t.Errorf("%s%s %q: %s, closes %v", base, path, length, resp.Status, resp.Close)
				}
				resp.Body.Close()
				c.Close()
			}
		}
	}
	// Over HTTP/2 the request stays open until it is answered.
	c := restOf(t, s).with("Authorization", "Bearer garbage")
	body, sender := io.Pipe()
	defer sender.Close()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+tasksPath, body))
	req.Header = c.header
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
}

// All bodies share a budget, of which a caller gets a part. A request beyond that part is told at once to retry later, and
// other callers are served.
func TestBodyBudget(t *testing.T) {
	t.Parallel()
	s := Start(t, func(o *standalone.Options) { o.BodyBudget.Quantity = resource.MustParse("32Mi") })
	restTask(t, s, "a")
	first, other := accountToken(t, s, "default", "ed", "cluster-admin"), accountToken(t, s, "default", "eve", "cluster-admin")
	upload := func(base, path, token string) (net.Conn, int, string) {
		t.Helper()
		c := dial(t, s, base)
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 10485760\r\nExpect: 100-continue\r\n\r\n", path, token)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return c, resp.StatusCode, resp.Header.Get("Retry-After")
	}
	native, rest := tasksPath+"/a/result", "/internal/v1/results/default/a"
	var held []net.Conn
	for i, step := range []struct {
		base, path, token string
		want              int
	}{
		{s.URL, native, first, 100},
		{s.RESTURL, rest, first, 100},
		{s.URL, native, first, 429},
		{s.URL, rest, first, 429},
		{s.URL, native, other, 100},
		{s.RESTURL, rest, other, 429},
	} {
		c, code, retry := upload(step.base, step.path, step.token)
		if code != step.want || step.want == 429 && retry == "" {
			t.Errorf("upload %d: %d, Retry-After %q", i, code, retry)
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Close()
	}
	c := restOf(t, s).with("Authorization", "Bearer "+first)
	made := c.post("/api/v1/tasks", `{"name":"b","type":"container","image":"x","command":["true"]}`)
	for made.code == http.StatusTooManyRequests { // the server has yet to see that the connections are closed
		made = c.post("/api/v1/tasks", `{"name":"b","type":"container","image":"x","command":["true"]}`)
	}
	made.want(t, http.StatusCreated)
	if a := c.post(tasksPath, strings.Repeat(" ", 3<<20+1)); a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "at most 3145728 bytes") {
		t.Errorf("a long object: %d %s", a.code, a.body)
	}
}

// TestLogOfStrangers: requests with credentials that nobody knows cost one line of the log per interval, however many come
// and whatever they ask for.
func TestLogOfStrangers(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, t.TempDir())
	_, after, _ := strings.Cut(s.Output(), "REST ")
	plain, _, _ := strings.Cut(strings.TrimSpace(after), "/api/v1")
	native := must[*restclient.Config](t)(clientcmd.BuildConfigFromFlags("", s.Kubeconfig))
	c := must[*http.Client](t)(restclient.HTTPClientFor(restclient.AnonymousClientConfig(native)))
	t.Cleanup(c.CloseIdleConnections)
	began := time.Now()
	for range 10 {
		for _, address := range []string{native.Host + tasksPath, native.Host + "/backup", native.Host + "/openai/v1/models", plain + "/api/v1/tasks", plain + "/anthropic/v1/messages"} {
			req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil))
			if !strings.HasSuffix(address, "/messages") {
				req.Method = http.MethodGet
			}
			req.Header.Set("Authorization", "Bearer garbage")
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s", address, resp.Status)
			}
		}
	}
	most := 1 + int(time.Since(began)/sparse.Interval)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s.Output(), "Unable to authenticate"); n < 1 || n > most {
		t.Errorf("%d lines for 50 requests, want at most %d:\n%s", n, most, s.Output())
	}
}
