// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// contract is a proxy in front of the stand-in for GitHub that checks each request against GitHub's own OpenAPI description. It is Prism,
// unmodified. GitHub's description is of api.github.com, so the prefix of an Enterprise server is taken away before it.
type contract struct {
	front *httptest.Server

	mu     sync.Mutex
	behind *url.URL
	checks int
	faults []string
}

func newContract(t *testing.T) *contract {
	t.Helper()
	const modules = "../../../test/githubapi/npm/node_modules/"
	c := &contract{}
	behind := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.SetURL(c.behind)
		r.Out.URL.Path, r.Out.URL.RawPath = prefix+r.In.URL.Path, ""
		if r.In.URL.RawPath != "" {
			r.Out.URL.RawPath = prefix + r.In.URL.RawPath
		}
	}})
	t.Cleanup(behind.Close)
	address := free(t)
	host, port, _ := strings.Cut(address, ":")
	cmd := exec.CommandContext(context.Background(), "node", modules+".bin/prism", "proxy", "--host", host, "--port", port, modules+"@octokit/openapi/generated/api.github.com.json", behind.URL)
	out := kit.Must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said, lines := "", bufio.NewScanner(out)
	for !strings.Contains(said, "is listening") {
		if !lines.Scan() {
			t.Fatalf("prism ended: %s", said)
		}
		said = lines.Text()
	}
	go func() { // ends with prism
		_, _ = io.Copy(io.Discard, out)
	}()
	checked := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.Path, prefix), strings.TrimPrefix(r.In.URL.RawPath, prefix)
	}, ModifyResponse: c.note}
	c.front = httptest.NewServer(checked)
	t.Cleanup(c.front.Close)
	return c
}

// prefix is what the paths of an Enterprise server begin with.
const prefix = "/api/v3"

// free returns an address on loopback where nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l := kit.Must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// note records what Prism says about a request. What it says about the answer is about the stand-in, which leaves out what nobody reads.
func (c *contract) note(answer *http.Response) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks++
	if said := answer.Header.Get("sl-violations"); strings.Contains(said, `"location":["request"`) {
		c.faults = append(c.faults, answer.Request.Method+" "+answer.Request.URL.Path+"?"+answer.Request.URL.RawQuery+": "+said)
	}
	return nil
}

// of puts the proxy in front of a place.
func (c *contract) of(t *testing.T, p place) place {
	t.Helper()
	at := kit.Must[*url.URL](t)(url.Parse(p.url))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = &url.URL{Scheme: at.Scheme, Host: at.Host}
	p.url = c.front.URL + at.Path
	return p
}

// check reports the requests that GitHub would not understand.
func (c *contract) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fault := range c.faults {
		t.Error(fault)
	}
	if c.checks == 0 {
		t.Error("no request was checked")
	}
	t.Logf("%d requests are as GitHub describes them", c.checks-len(c.faults))
	c.checks, c.faults = 0, nil
}
