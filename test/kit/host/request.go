// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
)

// Answer is what a server sent.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// Send makes a request of the listener without TLS. Header is pairs of name and value, which may repeat a name.
func (h Host) Send(t testing.TB, method, path, body string, header ...string) Answer {
	t.Helper()
	return Send(t, http.DefaultClient, method, h.RESTURL+path, body, header...)
}

// Ask makes a request of the API with a client configuration.
func (h Host) Ask(t testing.TB, c *rest.Config, method, path, body string, header ...string) Answer {
	t.Helper()
	client := kit.Must[*http.Client](t)(rest.HTTPClientFor(c))
	return Send(t, client, method, c.Host+path, body, header...)
}

// Send makes a request and reads the answer.
func Send(t testing.TB, client *http.Client, method, url, body string, header ...string) Answer {
	t.Helper()
	resp := Open(t, client, method, url, body, header...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return Answer{resp.StatusCode, resp.Header, string(data)}
}

// Open makes a request and leaves the body of the answer to the caller.
func Open(t testing.TB, client *http.Client, method, url, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Want fails the test unless the answer has the code and, in its body, all texts.
func (a Answer) Want(t testing.TB, code int, texts ...string) Answer {
	t.Helper()
	if a.Code != code {
		t.Errorf("code %d, want %d: %.400s", a.Code, code, a.Body)
	}
	for _, text := range texts {
		if !strings.Contains(a.Body, text) {
			t.Errorf("no %q in %.400s", text, a.Body)
		}
	}
	return a
}

// Problem fails the test unless the answer is the error envelope of REST with the code and all texts in its message.
func (a Answer) Problem(t testing.TB, code int, texts ...string) {
	t.Helper()
	var e struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Error == nil {
		t.Errorf("code %d, no error envelope: %v: %.400s", a.Code, err, a.Body)
		return
	}
	if a.Code != code || e.Error.Code != code || e.Error.Message == "" {
		t.Errorf("code %d, want %d: %.400s", a.Code, code, a.Body)
	}
	for _, text := range texts {
		if !strings.Contains(e.Error.Message, text) {
			t.Errorf("no %q in message %q", text, e.Error.Message)
		}
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
}

// Decode reads the body of an answer.
func Decode[T any](t testing.TB, a Answer) T {
	t.Helper()
	var v T
	if err := json.NewDecoder(strings.NewReader(a.Body)).Decode(&v); err != nil {
		t.Fatalf("code %d: %v: %.400s", a.Code, err, a.Body)
	}
	return v
}

// Get reads a path with a client configuration and gives code and body. Accept, if not empty, is what the answer may be.
func Get(t testing.TB, c *rest.Config, path, accept string) (int, string) {
	t.Helper()
	var header []string
	if accept != "" {
		header = []string{"Accept", accept}
	}
	a := Host{}.Ask(t, c, http.MethodGet, path, "", header...)
	return a.Code, a.Body
}
