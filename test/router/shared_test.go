// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/server/router"
)

// shared is a running router.
type shared struct {
	url, metricsURL string
	routesFile      string
	stop            context.CancelFunc
	done            chan error
	logs            func() string
	secrets         []string // values that no log may contain
}

// start starts a router on free ports in this process. It is stopped at the end of the test, and its log is searched for
// the secrets of the test.
func start(t *testing.T, h *issuer, routes map[string]string, configure ...func(*router.Options)) *shared {
	t.Helper()
	s := &shared{routesFile: filepath.Join(t.TempDir(), "routes.yaml"), done: make(chan error, 1)}
	s.writeRoutes(t, routes)
	o := router.NewOptions()
	o.BindAddress, o.MetricsBindAddress = "127.0.0.1:0", "127.0.0.1:0"
	o.RoutesFile, o.Kubeconfig = s.routesFile, h.kubeconfig(t)
	h.awaitReviews(t, o.Kubeconfig)
	scheme := "http://"
	for _, f := range configure {
		f(o)
	}
	if o.TLSCertFile != "" {
		scheme = "https://"
	}
	ready := make(chan [2]net.Addr, 1)
	o.Ready = func(address, metrics net.Addr) { ready <- [2]net.Addr{address, metrics} }

	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	s.logs = func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), logger))
	s.stop = cancel
	go func() { s.done <- router.Run(ctx, *o) }()
	t.Cleanup(func() {
		s.stop()
		if err := <-s.done; err != nil {
			t.Errorf("the router ended with: %v", err)
		}
		for _, secret := range s.secrets {
			if strings.Contains(s.logs(), secret) {
				t.Errorf("a secret is in the log: %s", secret)
			}
		}
	})
	select {
	case a := <-ready:
		s.url, s.metricsURL = scheme+a[0].String(), "http://"+a[1].String()+"/metrics"
	case err := <-s.done:
		s.done <- err
		t.Fatalf("the router did not start: %v", err)
	}
	return s
}

// writeRoutes replaces the routes file in one step, as a mounted ConfigMap does.
func (s *shared) writeRoutes(t *testing.T, routes map[string]string) {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{"namespaces": routes})
	if err != nil {
		t.Fatal(err)
	}
	s.writeFile(t, string(data))
}

func (s *shared) writeFile(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.routesFile+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.routesFile+".new", s.routesFile); err != nil {
		t.Fatal(err)
	}
}

// reply is a whole answer.
type reply struct {
	code   int
	header http.Header
	body   string
}

// call is a request and its whole answer. Headers are given as pairs.
func (s *shared) call(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	r := s.request(t, method, path, strings.NewReader(body), headers...)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{code: res.StatusCode, header: res.Header, body: string(data)}
}

func (s *shared) request(t *testing.T, method, path string, body io.Reader, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
		switch strings.ToLower(headers[i]) {
		case "authorization", "x-api-key", "cookie", "txn-token", "proxy-authorization":
			if secret := strings.TrimPrefix(headers[i+1], "Bearer "); len(secret) > 8 {
				s.secrets = append(s.secrets, secret)
			}
		}
	}
	return r
}

// metrics is the text of the router's metrics.
func (s *shared) metrics(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.metricsURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// errorOf reads an error in the exact envelope of an API and returns its type and message.
func errorOf(t *testing.T, path string, r reply) (kind, message string) {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q", path, got)
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(r.body)))
	strict.DisallowUnknownFields()
	if strings.HasPrefix(path, "/anthropic") || strings.HasPrefix(path, "/provider-b") {
		var e struct {
			Type  string `json:"type"`
			Error struct {
				Type    string `json:"type"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := strict.Decode(&e); err != nil || e.Type != "error" {
			t.Errorf("%s: not the error of this API: %s", path, r.body)
		}
		return e.Error.Type, e.Error.Message
	}
	var e struct {
		Error map[string]any `json:"error"`
	}
	if err := strict.Decode(&e); err != nil {
		t.Errorf("%s: not the error of this API: %s", path, r.body)
	}
	for _, name := range []string{"param", "code"} {
		if v, has := e.Error[name]; !has || v != nil {
			t.Errorf("%s: %s is not null: %s", path, name, r.body)
		}
	}
	kind, _ = e.Error["type"].(string)
	message, _ = e.Error["message"].(string)
	if len(e.Error) != 4 {
		t.Errorf("%s: more or less than four members: %s", path, r.body)
	}
	return kind, message
}
