// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// testRows returns rows of each kind: passed on, streamed, and computed from an
// answer.
func testRows() []Row {
	return []Row{
		{Method: http.MethodGet, Path: "/api/v1/tasks/:id", Native: []Native{{Verb: "get", Path: "tasks/:id"}}},
		{Method: http.MethodGet, Path: "/api/v1/tasks/:id/stream", Native: []Native{{Verb: "get", Path: "tasks/:id/stream"}}},
		{Method: http.MethodGet, Path: "/api/v1/sessions", Native: []Native{{Verb: "list", Path: "sessions", All: true}}, Answer: Answer{Fields: Fields("items: items")}},
	}
}

func newFacade(t *testing.T, chain http.HandlerFunc, o Options) *Facade {
	t.Helper()
	f, err := New(chain, testRows(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ask sends a request with credentials.
func ask(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestErrorsBecomeEnvelopes(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"what went wrong","reason":"%","code":1}`
	for _, tc := range []struct {
		name, body string
		code       int
		want       string
		wantCode   int
	}{
		{"Status", strings.Replace(status, "%", "Conflict", 1), 409, "what went wrong", 409},
		{"invalid", strings.Replace(status, "%", "Invalid", 1), 422, "what went wrong", 400},
		{"422 for another reason", strings.Replace(status, "%", "TooMany", 1), 422, "what went wrong", 422},
		{"the server's own failure", strings.Replace(status, "%", "InternalError", 1), 500, "Internal Server Error", 500},
		{"text", "no store\n", 503, "no store", 503},
		{"text of a failure", "dial tcp 10.0.0.1: refused", 500, "Internal Server Error", 500},
		{"nothing", "", 404, "Not Found", 404},
		{"other JSON", `{"a":1}`, 410, "Gone", 410},
	} {
		f := newFacade(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "999")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(tc.code)
			_, _ = io.WriteString(w, tc.body)
			_ = http.NewResponseController(w).Flush()
		}, Options{})
		for _, path := range []string{"/api/v1/tasks/a", "/api/v1/tasks/a/stream", "/api/v1/sessions"} { // passed, streamed, read
			w := ask(t, f, http.MethodGet, path)
			want := `{"error":{"code":` + strconv.Itoa(tc.wantCode) + `,"message":"` + tc.want + "\"}}\n"
			if w.Code != tc.wantCode || w.Body.String() != want || w.Header().Get("Content-Length") != "" || w.Header().Get("Retry-After") != "7" {
				t.Errorf("%s, %s: %d %s %v", tc.name, path, w.Code, w.Body, w.Header())
			}
		}
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	f := newFacade(t, func(http.ResponseWriter, *http.Request) { panic("secret") }, Options{})
	w := ask(t, f, http.MethodGet, "/api/v1/tasks/a")
	if w.Code != 500 || w.Body.String() != `{"error":{"code":500,"message":"Internal Server Error"}}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for name, h := range map[string]http.HandlerFunc{
		"aborted":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the midst": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{"); panic("x") },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			ask(t, newFacade(t, h, Options{}), http.MethodGet, "/api/v1/tasks/a")
		}()
	}
}

// TestStrangersLearnNothing: without credentials every REST path answers 401, whether there is something or not.
func TestStrangersLearnNothing(t *testing.T) {
	f := newFacade(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("the chain was asked for %s", r.URL) }, Options{})
	for _, h := range []http.Handler{f, f.Alone()} {
		for _, target := range []string{"GET /api/v1/tasks/a", "PUT /api/v1/tasks/a", "GET /api/v1/tasks/a/b/c/d", "POST /api/v1/sessions/none/none"} {
			method, path, _ := strings.Cut(target, " ")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
	}
	if w := ask(t, f, http.MethodGet, "/api/v1/tasks/a/b/c/d"); w.Code != http.StatusNotFound {
		t.Errorf("with credentials: %d", w.Code)
	}
}

func TestOneNamespaceOnly(t *testing.T) {
	var path string
	f := newFacade(t, func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; w.WriteHeader(http.StatusOK) }, Options{Namespace: "team"})
	if w := ask(t, f, http.MethodGet, "/api/v1/tasks/a?namespace=other"); w.Code != 403 || !strings.Contains(w.Body.String(), "namespace not allowed") {
		t.Errorf("another namespace: %d %s", w.Code, w.Body)
	}
	if w := ask(t, f, http.MethodGet, "/api/v1/tasks/a"); w.Code != 403 { // this is not the default namespace
		t.Errorf("default namespace: %d %s", w.Code, w.Body)
	}
	if w := ask(t, f, http.MethodGet, "/api/v1/tasks/a?namespace=team"); w.Code != 200 || path != "/apis/core.platform.ai/v1alpha1/namespaces/team/tasks/a" {
		t.Errorf("its namespace: %d %s", w.Code, path)
	}
}

func TestMetrics(t *testing.T) {
	reg, c := prometheus.NewRegistry(), clocktesting.NewFakeClock(time.Unix(0, 0))
	f := newFacade(t, func(w http.ResponseWriter, _ *http.Request) {
		c.Step(2 * time.Millisecond)
		w.WriteHeader(http.StatusNotFound)
	}, Options{Metrics: reg, Clock: c})
	ask(t, f, http.MethodGet, "/api/v1/tasks/a")
	ask(t, f, http.MethodGet, "/api/v1/tasks/b")
	ask(t, f, http.MethodPut, "/api/v1/tasks/b")
	ask(t, f, "INVENTED", "/api/v1/tasks/b/nosuch")
	want := `
# HELP platform_api_requests_total REST requests that were answered.
# TYPE platform_api_requests_total counter
platform_api_requests_total{endpoint="/api/v1/tasks/:id",method="GET",status="404"} 2
platform_api_requests_total{endpoint="/api/v1/tasks/:id",method="PUT",status="405"} 1
platform_api_requests_total{endpoint="unknown",method="other",status="404"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "platform_api_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "platform_api_request_duration_seconds"); n != 3 || err != nil {
		t.Errorf("%d series of durations: %v", n, err)
	}
	if _, err := New(http.NotFoundHandler(), testRows(), Options{Metrics: reg}); err == nil {
		t.Error("the same metrics were registered twice")
	}
	f.Close()
	if _, err := New(http.NotFoundHandler(), testRows(), Options{Metrics: reg}); err != nil {
		t.Error(err)
	}
}

// What the chain writes reaches the client immediately.
func TestStreamsAreNotHeldBack(t *testing.T) {
	next := make(chan string)
	f := newFacade(t, func(w http.ResponseWriter, _ *http.Request) {
		for text := range next {
			_, _ = io.WriteString(w, text)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}, Options{})
	s := httptest.NewServer(f)
	defer s.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/tasks/a/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer x")
	go func() { next <- "first" }()
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, text := range []string{"first", "second"} {
		if text != "first" {
			next <- text
		}
		buf := make([]byte, len(text))
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != text {
			t.Errorf("%q %v", buf, err)
		}
	}
	close(next)
}

func TestHealth(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, tc := range []struct {
		name   string
		checks map[string]Check
		code   int
		body   string
	}{
		{"well", map[string]Check{"store": ok, "kubernetes": ok}, 200, `{"status":"ok","checks":{"kubernetes":"ok","store":"ok"}}`},
		{"broken", map[string]Check{"store": func(context.Context) error { return broken }, "kubernetes": ok}, 503, `{"status":"not ready","checks":{"kubernetes":"ok","store":"the disk is gone"}}`},
	} {
		w := httptest.NewRecorder()
		NewHealth(clock.RealClock{}, tc.checks).Ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if w.Code != tc.code || strings.TrimSpace(w.Body.String()) != tc.body {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	entered := make(chan struct{})
	hangs := func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() }
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		w := httptest.NewRecorder()
		NewHealth(c, map[string]Check{"store": hangs}).Ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		done <- w
	}()
	<-entered
	var w *httptest.ResponseRecorder
	for w == nil { // the timer may be set after the check began
		c.Step(checkTimeout)
		select {
		case w = <-done:
		default:
		}
	}
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"store":"no answer within 2s"`) {
		t.Errorf("hanging: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	NewHealth(clock.RealClock{}, nil).Alive(w, nil)
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"status":"ok"}` {
		t.Errorf("alive: %d %s", w.Code, w.Body)
	}
}

func ok(context.Context) error { return nil }
