// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

const credential = "cred-0123456789"

// endpoint is a real server that records requests and answers as a test asks.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []string
	answer http.HandlerFunc
}

func newEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.seen = append(e.seen, fmt.Sprintf("%s %s auth=%q x=%q body=%s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Team"), body))
		e.mu.Unlock()
		e.answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// newTool makes the tool weather. allow lists what the operator allows, as host:port.
func newTool(t *testing.T, h v1alpha1.ToolHTTP, parameters string, allow ...string) *tool.Catalogue {
	t.Helper()
	spec := v1alpha1.ToolSpec{Description: "a tool", HTTP: &h}
	if parameters != "" {
		spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(parameters)}
	}
	tl, err := New("weather", spec, Options{Credential: credential, Guard: egress.Guard{Allow: allow}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tool.NewCatalogue(tl)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func secret() *v1alpha1.KeyReference { return &v1alpha1.KeyReference{Name: "s", Key: "k"} }

func ok(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

// TestDigits: the model reads the numbers of an answer, and the endpoint those of the model, as they were written.
func TestDigits(t *testing.T) {
	const digits = `{"id":1972435959496572929,"price":0.10000000000000000001,"large":12345678901234567890123,"ids":[9007199254740993]}`
	e := newEndpoint(t, ok(digits))
	r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL}, "").Call(t.Context(), "weather", `{"id":1972435959496572929}`)
	for _, number := range []string{"1972435959496572929", "0.10000000000000000001", "12345678901234567890123", "9007199254740993"} {
		if !strings.Contains(r.Text, number) {
			t.Errorf("%s is not in %s", number, r.Text)
		}
	}
	if seen := e.requests(); len(seen) != 1 || !strings.HasSuffix(seen[0], `body={"id":1972435959496572929}`) {
		t.Errorf("sent %q", seen)
	}
}

// TestApprovedCall: the endpoint can recognise a repetition of an approved call.
func TestApprovedCall(t *testing.T) {
	var keys []string
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) { keys = append(keys, r.Header.Get("Idempotency-Key")) })
	c := newTool(t, v1alpha1.ToolHTTP{URL: e.URL}, "")
	for _, ctx := range []context.Context{t.Context(), tool.WithApproval(t.Context(), "the-approval")} {
		if r := c.Call(ctx, "weather", `{}`); r.Failed() {
			t.Error(r.Text)
		}
	}
	if diff := cmp.Diff([]string{"", "the-approval"}, keys); diff != "" {
		t.Error(diff)
	}
}

func TestRequests(t *testing.T) {
	e := newEndpoint(t, ok(`{"degrees":7}`))
	tests := map[string]struct {
		http v1alpha1.ToolHTTP
		args string
		want string
	}{
		"post": {v1alpha1.ToolHTTP{}, `{"city":"Bonn","n":1}`, `POST /w auth="" x="" body={"city":"Bonn","n":1}`},
		"headers and bearer": {
			v1alpha1.ToolHTTP{Method: v1alpha1.ToolPut, Headers: map[string]string{"X-Team": "blue"}, AuthSecretRef: secret()},
			`{}`, `PUT /w auth="Bearer ` + credential + `" x="blue" body={}`,
		},
		"credential in the body wins": {
			v1alpha1.ToolHTTP{AuthSecretRef: secret(), AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "key"},
			`{"a":1,"key":"forged"}`, `POST /w auth="" x="" body={"a":1,"key":"` + credential + `"}`,
		},
		"get": {
			v1alpha1.ToolHTTP{Method: v1alpha1.ToolGet},
			`{"city":"New York","n":1.50,"tags":["a","b"],"deep":{"x":true},"none":null}`,
			`GET /w?city=New+York&deep=%7B%22x%22%3Atrue%7D&n=1.50&tags=a&tags=b auth="" x="" body=`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.http.URL = e.URL + "/w"
			r := newTool(t, tt.http, "").Call(t.Context(), "weather", tt.args)
			if r.Text != `{"success":true,"data":{"status":200,"body":{"degrees":7}}}` {
				t.Errorf("got %s", r.Text)
			}
			all := e.requests()
			if diff := cmp.Diff(tt.want, all[len(all)-1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	e := newEndpoint(t, ok("fine"))
	c := newTool(t, v1alpha1.ToolHTTP{URL: e.URL}, `{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}`)
	if r := c.Call(t.Context(), "weather", `{"city":7}`); r.ErrorType != tool.TypeInvalidArguments || len(e.requests()) != 0 {
		t.Errorf("got %s, %d requests", r.Text, len(e.requests()))
	}
	if r := c.Call(t.Context(), "weather", `{"city":"Bonn"}`); r.Text != `{"success":true,"data":{"status":200,"body":"fine"}}` {
		t.Errorf("got %s", r.Text)
	}
}

func TestRefusals(t *testing.T) {
	status := 0
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "you sent %s", r.Header.Get("Authorization"))
	})
	c := newTool(t, v1alpha1.ToolHTTP{URL: e.URL, AuthSecretRef: secret()}, "")
	for code, want := range map[int]tool.ErrorType{
		400: tool.TypeInvalidArguments, 401: tool.TypePermissionDenied, 403: tool.TypePermissionDenied, 404: tool.TypeNotFound,
		409: tool.TypeAlreadyExists, 429: tool.TypeLimitReached, 500: tool.TypeUnavailable, 304: tool.TypeUnavailable,
	} {
		status = code
		r := c.Call(t.Context(), "weather", "{}")
		if r.ErrorType != want || strings.Contains(r.Text, credential) || !strings.Contains(r.Text, strconv.Itoa(code)) {
			t.Errorf("%d: got %s", code, r.Text)
		}
	}
}

func TestTooLarge(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for range 11 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	if r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL}, "").Call(t.Context(), "weather", "{}"); r.ErrorType != tool.TypeLimitReached {
		t.Errorf("got %.200s", r.Text)
	}
}

func TestTimeout(t *testing.T) {
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	// The call would never end by itself, so the timeout can be short.
	h := v1alpha1.ToolHTTP{URL: e.URL, Method: v1alpha1.ToolGet, Timeout: v1alpha1.DurationOf(20 * time.Millisecond)}
	if r := newTool(t, h, "").Call(t.Context(), "weather", "{}"); r.ErrorType != tool.TypeTimeout {
		t.Errorf("got %s", r.Text)
	}
}

// TestOutcomeUnknown: of a call that may change something, that was sent, and that got no complete answer, nobody knows whether it was
// carried out. The model reads that it may have been. A call that only reads, and one that was not sent, have failed.
func TestOutcomeUnknown(t *testing.T) {
	dropped := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("begun"))
		panic(http.ErrAbortHandler)
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		method v1alpha1.ToolMethod
		answer http.HandlerFunc // nil: nobody listens
		stop   bool             // the run is stopped during the call
		want   tool.ErrorType
	}{
		"post, dropped":   {v1alpha1.ToolPost, dropped, false, tool.TypeOutcomeUnknown},
		"post, cut":       {v1alpha1.ToolPost, cut, false, tool.TypeOutcomeUnknown},
		"post, no answer": {v1alpha1.ToolPost, silent, false, tool.TypeOutcomeUnknown},
		"post, stopped":   {v1alpha1.ToolPost, silent, true, tool.TypeOutcomeUnknown},
		"delete, dropped": {v1alpha1.ToolDelete, dropped, false, tool.TypeOutcomeUnknown},
		"post, not sent":  {v1alpha1.ToolPost, nil, false, tool.TypeUnavailable},
		"get, dropped":    {v1alpha1.ToolGet, dropped, false, tool.TypeUnavailable},
		"get, cut":        {v1alpha1.ToolGet, cut, false, tool.TypeUnavailable},
		"get, stopped":    {v1alpha1.ToolGet, silent, true, tool.TypeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h := v1alpha1.ToolHTTP{URL: "http://127.0.0.1:1", Method: c.method}
			if c.answer != nil {
				h.URL = newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
					if c.stop {
						stop()
					}
					c.answer(w, r)
				}).URL
			}
			if name == "post, no answer" { // this is about a timeout
				h.Timeout = v1alpha1.DurationOf(20 * time.Millisecond)
			}
			r := newTool(t, h, "").Call(ctx, "weather", "{}")
			if says := strings.Contains(r.Text, "it may have happened"); r.ErrorType != c.want || says != (c.want == tool.TypeOutcomeUnknown) {
				t.Errorf("got %s", r.Text)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	r := newTool(t, v1alpha1.ToolHTTP{URL: "http://127.0.0.1:1", AuthSecretRef: secret()}, "").Call(t.Context(), "weather", "{}")
	if r.ErrorType != tool.TypeUnavailable || !strings.Contains(r.Text, "refused") || strings.Contains(r.Text, credential) {
		t.Errorf("got %s", r.Text)
	}
}

func TestBadSpecs(t *testing.T) {
	with := func(change func(*v1alpha1.ToolSpec)) v1alpha1.ToolSpec {
		s := v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{URL: "http://host/x"}}
		change(&s)
		return s
	}
	tests := map[string]v1alpha1.ToolSpec{
		"spec.http:":                 with(func(s *v1alpha1.ToolSpec) { s.HTTP = nil }),
		"spec.mcp.remote:":           with(func(s *v1alpha1.ToolSpec) { s.MCP = &v1alpha1.ToolMCP{} }),
		"spec.mcp:":                  {MCP: &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: "https://h/"}}},
		"spec.http.url:":             with(func(s *v1alpha1.ToolSpec) { s.HTTP.URL = "http://u:p@host" }),
		"spec.http.headers[txn-tok":  with(func(s *v1alpha1.ToolSpec) { s.HTTP.Headers = map[string]string{"txn-token": "x"} }),
		"spec.http.headers[A b]":     with(func(s *v1alpha1.ToolSpec) { s.HTTP.Headers = map[string]string{"A b": "x"} }),
		"spec.http.headers[X]":       with(func(s *v1alpha1.ToolSpec) { s.HTTP.Headers = map[string]string{"X": "a\r\nB: c"} }),
		"spec.http.headers[Idempote": with(func(s *v1alpha1.ToolSpec) { s.HTTP.Headers = map[string]string{"Idempotency-Key": "x"} }),
		"spec.http.authBodyKey:": with(func(s *v1alpha1.ToolSpec) {
			s.HTTP.AuthSecretRef, s.HTTP.AuthInject = secret(), v1alpha1.AuthInjectBody
		}),
		"spec.http.authInject:": with(func(s *v1alpha1.ToolSpec) {
			s.HTTP.AuthSecretRef, s.HTTP.AuthInject, s.HTTP.AuthBodyKey, s.HTTP.Method = secret(), v1alpha1.AuthInjectBody, "k", v1alpha1.ToolGet
		}),
		"spec.parameters:": with(func(s *v1alpha1.ToolSpec) {
			s.Parameters = &apiextensionsv1.JSON{Raw: json.RawMessage(`{"$ref":"http://x","type":"object"}`)}
		}),
	}
	for want, spec := range tests {
		if _, err := New("t", spec, Options{Credential: credential}); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), credential) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	spec := with(func(s *v1alpha1.ToolSpec) { s.HTTP.AuthSecretRef = secret() })
	if _, err := New("t", spec, Options{}); err == nil {
		t.Error("a missing credential was accepted")
	}
}
