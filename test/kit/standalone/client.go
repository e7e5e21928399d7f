// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/host"
)

// Client is a client of the REST paths. It compares every answer with their OpenAPI document.
type Client struct {
	T      testing.TB
	Base   string
	HTTP   *http.Client
	Header http.Header
}

// REST returns the client of a ServiceAccount that has a ClusterRole in its namespace. Both are made if they do not exist. The role ""
// means none.
func (s *Server) REST(t testing.TB, namespace, account, role string) *Client {
	t.Helper()
	return s.Stranger(t).With("Authorization", "Bearer "+s.Token(t, namespace, account, role))
}

// Stranger returns a client of the secure port without credentials.
func (s *Server) Stranger(t testing.TB) *Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.Admin.CAData)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &Client{T: t, Base: s.URL, HTTP: &http.Client{Transport: tr}, Header: http.Header{}}
}

// At is the same client on another address.
func (c *Client) At(base string) *Client {
	d := *c
	d.Base, d.Header = base, c.Header.Clone()
	return &d
}

// With is the same client that also sends a header; an empty value removes it.
func (c *Client) With(name, value string) *Client {
	d := c.At(c.Base)
	if d.Header.Del(name); value != "" {
		d.Header.Set(name, value)
	}
	return d
}

// Open sends a request and leaves the body to be read.
func (c *Client) Open(ctx context.Context, method, path, body string) *http.Response {
	c.T.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header = c.Header.Clone()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	return resp
}

// Do sends a request and returns the answer.
func (c *Client) Do(method, path, body string) host.Answer {
	c.T.Helper()
	resp := c.Open(context.Background(), method, path, body)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	a := host.Answer{Code: resp.StatusCode, Header: resp.Header, Body: string(data)}
	if path == "/api/v1/secrets" && strings.HasPrefix(c.Base, "https:") {
		return a // Kubernetes' own path
	}
	return Comply(c.T, a, method, path, body)
}

// Get reads a path.
func (c *Client) Get(path string) host.Answer { c.T.Helper(); return c.Do(http.MethodGet, path, "") }

// Post sends a body to a path.
func (c *Client) Post(path, body string) host.Answer {
	c.T.Helper()
	return c.Do(http.MethodPost, path, body)
}

// ChatReply is the JSON answer of a turn.
type ChatReply struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message"`
	Outcome   string `json:"outcome"`
	ToolCalls []struct {
		Name   string         `json:"name"`
		Args   map[string]any `json:"args"`
		Result struct {
			Success   bool   `json:"success"`
			Error     string `json:"error"`
			ErrorType string `json:"errorType"`
			Data      any    `json:"data"`
		} `json:"result"`
	} `json:"toolCalls"`
	Usage struct {
		InputTokens, OutputTokens, LLMCalls, TasksCreated int64
	} `json:"usage"`
}

// Chat asks for a turn as JSON.
func (c *Client) Chat(body map[string]any, code int) ChatReply {
	c.T.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.T.Fatal(err)
	}
	got := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", string(raw))
	if got.Code != code {
		c.T.Fatalf("chat %.200s: %d %s, want %d", raw, got.Code, got.Body, code)
	}
	var out ChatReply
	if code == http.StatusOK {
		if err := json.Unmarshal([]byte(got.Body), &out); err != nil {
			c.T.Fatal(err)
		}
	}
	return out
}

// StartChat begins a background turn and returns its session.
func (c *Client) StartChat(message string) string {
	c.T.Helper()
	got := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"background":true,"message":"`+message+`"}`)
	_, after, ok := strings.Cut(got.Body, `"sessionId":"`)
	session, _, _ := strings.Cut(after, `"`)
	if got.Code != http.StatusAccepted || !ok || !strings.Contains(got.Body, `"outcome":"Running"`) {
		c.T.Fatalf("background turn: %d %s", got.Code, got.Body)
	}
	return session
}
