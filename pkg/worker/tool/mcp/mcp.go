// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp makes tools from Tool objects that name a tool of a remote server of the Model Context Protocol
// (https://modelcontextprotocol.io), which is called over streamable HTTP: without a session, by version 2026-07-28, or
// with one, by the versions from 2025-03-26 on.
//
// The server is not trusted. It may be reached at a public address only, unless the operator allows its host and port.
// Whatever it sends is limited in size, depth and time before it is decoded, and of each message only what is used reaches
// the SDK. The model reads the description of the Tool
// object and never that of the server. The server must offer what was reviewed, at the start of the run and before each
// call. Each call has a session of its own, so a server keeps no state from one call to the next. If the server forgets that
// session, the call is made in another one. A ping of the server is answered; for its other requests there is no method. A
// stream that ends before the answer is resumed if its events have ids. Otherwise whether the call was carried out is unknown.
//
// A server is asked for the newest version first. If it gives no usable answer within a few seconds, a session is begun as
// earlier versions do.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
)

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = 2 * time.Minute
)

// Options are what the Tool object does not contain.
type Options struct {
	// Credential is the value that spec.http.authSecretRef refers to; empty if there is none.
	Credential string
	// Hosts is where the credential may be sent; nothing is sent elsewhere.
	Hosts egress.Hosts
	// Traceparent is the W3C trace context that requests carry; empty for none.
	Traceparent string
	// Guard limits which addresses may be dialled.
	Guard egress.Guard
	// Timeout, if not 0, limits a call further than the Tool does.
	Timeout time.Duration
	// Clock defaults to the real clock. It times what happens within a call, not the call.
	Clock clock.WithDelayedExecution
}

// Open asks the server for the tool that a Tool object describes, and checks it. If the tool cannot be used, the error is
// a *tool.RefusedError.
func Open(ctx context.Context, name string, spec *v1alpha1.ToolSpec, o Options) (tool.Tool, error) {
	s, err := newServer(name, spec, o)
	if err != nil {
		return nil, &tool.RefusedError{Reason: v1alpha1.ReasonToolInvalid, Err: err}
	}
	t := &remote{server: s, definition: tool.Definition{Name: name, Description: spec.Description}}
	if spec.Parameters != nil {
		t.reviewed, t.by = decode(spec.Parameters.Raw), "spec.parameters"
	}
	var offered any
	err = s.do(ctx, func(c *conversation) error {
		offered, err = c.find(s.toolName)
		return err
	})
	if err == nil {
		err = t.expose(offered, spec)
	}
	if err != nil {
		return nil, refused(err)
	}
	return t, nil
}

// refused says whether another attempt may succeed.
func refused(err error) error {
	r := &tool.RefusedError{Reason: v1alpha1.ReasonToolInvalid, Err: err}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		r.Err = errors.New(e.Message)
		if e.Type == tool.TypeUnavailable || e.Type == tool.TypeTimeout || e.Type == tool.TypeCancelled {
			r.Reason, r.Retry = v1alpha1.ReasonToolUnavailable, true
		}
	}
	return r
}

// newServer checks the Tool object.
func newServer(name string, spec *v1alpha1.ToolSpec, o Options) (*server, error) {
	if err := tool.CheckSpec(spec); err != nil {
		return nil, err
	}
	if spec.MCP == nil {
		return nil, errors.New("spec.mcp: required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	u, err := url.Parse(spec.MCP.Remote.URL)
	if err != nil {
		return nil, errors.New("spec.mcp.remote.url: is not a URL") // the parser's error repeats the URL, which may hold a credential
	}
	s := &server{name: name, url: u, toolName: spec.MCP.Remote.ToolName, timeout: defaultTimeout, options: o, hidden: redact.KnownOf(o.Credential)}
	if s.toolName == "" {
		s.toolName = name
	}
	if h := spec.HTTP; h != nil {
		s.headers = h.Headers
		if h.Timeout.Value() > 0 {
			s.timeout = min(h.Timeout.Value(), maxTimeout)
		}
		if h.AuthSecretRef != nil && o.Credential == "" {
			return nil, errors.New("spec.http.authSecretRef: the key of the Secret is empty")
		}
		if err := o.Hosts.Check(u); err != nil {
			return nil, fmt.Errorf("spec.http.authSecretRef: the value %w", err)
		}
	}
	if o.Timeout > 0 {
		s.timeout = min(s.timeout, o.Timeout)
	}
	return s, nil
}

// remote is one tool of a server.
type remote struct {
	server     *server
	definition tool.Definition
	// reviewed is the schema that the server must offer; by says where it was reviewed.
	reviewed any
	by       string
}

var _ tool.Tool = (*remote)(nil)

// Definition returns the tool as the model sees it.
func (t *remote) Definition() tool.Definition { return t.definition }

// expose sets the schema that the model sees. Without a schema in the Tool object it is what the server offers now,
// whose texts are shortened and marked.
func (t *remote) expose(offered any, spec *v1alpha1.ToolSpec) error {
	if err := bounded(offered); err != nil {
		return tool.Errorf(tool.TypeToolChanged, "the schema that the server offers for %s cannot be used: %v", t.server.toolName, err)
	}
	if t.reviewed != nil {
		t.definition.Parameters = spec.Parameters.Raw
		return t.unchanged(offered)
	}
	t.reviewed, t.by = offered, "the schema at the start of the run"
	raw, err := json.Marshal(marked(offered))
	if err == nil {
		err = tool.CheckSchema(raw)
	}
	if err != nil {
		return tool.Errorf(tool.TypeToolChanged, "the schema that the server offers for %s cannot be used: %v", t.server.toolName, err)
	}
	t.definition.Parameters = raw
	return nil
}

// unchanged returns an error if the server offers something other than what was reviewed.
func (t *remote) unchanged(offered any) error {
	at := difference(t.reviewed, offered, "the root")
	if at == "" {
		return nil
	}
	return tool.Errorf(tool.TypeToolChanged, "the server of %s offers another schema than %s: it differs at %s; review the tool, and correct spec.parameters",
		t.definition.Name, t.by, at)
}

// Response is the result of a call that succeeded.
type Response struct {
	// Text is the text of the answer; empty if it only repeats Structured.
	Text string `json:"text,omitempty"`
	// Structured is the structured content of the answer.
	Structured json.RawMessage `json:"structured,omitempty"`
	// LeftOut says which parts of the answer cannot be shown; empty if there are none.
	LeftOut string `json:"leftOut,omitempty"`
}

// Call checks that the server still offers what was reviewed, and calls the tool.
func (t *remote) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	var out *Response
	err := t.server.do(ctx, func(c *conversation) error {
		offered, err := c.find(t.server.toolName)
		if err != nil {
			return err
		}
		if err := t.unchanged(offered); err != nil {
			return err
		}
		out, err = c.call(t.server.toolName, arguments)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// decode returns a document of which it is known that it is JSON.
func decode(raw []byte) any {
	v, _ := canonical.Decode(raw)
	return v
}

// shorten bounds a text of the server and removes the credential, which the server may repeat.
func (s *server) shorten(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	text = s.hidden.Remove(text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
