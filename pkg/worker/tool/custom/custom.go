// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package custom makes tools from Tool objects, which describe calls of an HTTP endpoint. The
// endpoint may be inside the operator's network, but metadata services cannot be reached. A redirect
// to another origin leads into that network only if the operator allows its destination. The
// credential is sent to the configured host only, and is never shown.
package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	defaultTimeout = 30 * time.Second
	// maxResponse is the largest accepted answer, in bytes.
	maxResponse = 10 << 20
	// maxErrorBody is how much of an error response the model is shown, in bytes.
	maxErrorBody = 2 << 10
)

// Options are what the Tool object does not contain.
type Options struct {
	// Credential is the value that spec.http.authSecretRef refers to; empty if there is none.
	Credential string
	// Hosts is where the credential may be sent.
	Hosts egress.Hosts
	// Traceparent is the W3C trace context that requests carry; empty for none.
	Traceparent string
	// Guard limits which addresses may be dialled. The origin of the Tool itself may have a private address.
	Guard egress.Guard
	// Once says that the tool is made for one call, so no connection is kept.
	Once bool
	// Linked, if set, makes the tool one that uses the account of a person, whose token is Credential.
	Linked *Linked
}

// New makes a tool from a Tool object. The error names the field that is wrong.
func New(name string, spec v1alpha1.ToolSpec, o Options) (tool.Tool, error) {
	if err := tool.CheckSpec(&spec); err != nil {
		return nil, err
	}
	if spec.MCP != nil {
		return nil, errors.New("spec.mcp: is not an HTTP tool")
	}
	h := spec.HTTP
	u, err := url.Parse(h.URL)
	if err != nil {
		return nil, errors.New("spec.http.url: is not a URL") // the parser's error repeats the URL, which may hold a credential
	}
	t := &httpTool{
		definition: tool.Definition{Name: name, Description: spec.Description},
		url:        u, method: string(h.Method), headers: h.Headers, timeout: defaultTimeout, credential: o.Credential, hosts: o.Hosts, traceparent: o.Traceparent,
	}
	if t.method == "" {
		t.method = http.MethodPost
	}
	if h.Timeout.Value() > 0 {
		t.timeout = h.Timeout.Value()
	}
	if spec.Parameters != nil {
		t.definition.Parameters = spec.Parameters.Raw
	}
	if o.Linked != nil {
		return t.link(o)
	}
	if err := t.authenticate(h); err != nil {
		return nil, err
	}
	o.Guard.Private = false
	t.away = client(o.Guard, o.Once)
	o.Guard.Private = true
	t.client, t.single = client(o.Guard, o.Once), client(o.Guard, true)
	return t, nil
}

// client returns a client that follows no redirects.
func client(g egress.Guard, once bool) *http.Client {
	transport := g.Transport()
	transport.ResponseHeaderTimeout = 0 // the time of the whole call is limited
	transport.DisableKeepAlives = once
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// httpTool is a Tool object that is called over HTTP.
type httpTool struct {
	definition tool.Definition
	url        *url.URL
	method     string
	headers    map[string]string
	timeout    time.Duration
	// client makes the requests to the origin of url, away those after a redirect to another one, and single those that a person has
	// approved: on a connection of their own, because net/http repeats what has an Idempotency-Key and got no answer on one that was kept.
	client, away, single *http.Client
	// traceparent is sent with each request to the configured host, if it is not empty.
	traceparent string

	credential string
	// hidden removes the credential from texts, in each form in which an endpoint may write it.
	hidden redact.Known
	// hosts is where the credential may be sent.
	hosts egress.Hosts
	// authHeader sends the credential as a bearer token.
	authHeader bool
	// linked is nil unless the credential is the token of a person's account.
	linked *Linked
	// authKey, if not empty, is the key under which the credential is sent in the JSON body.
	authKey string
}

var _ tool.Tool = (*httpTool)(nil)

func (t *httpTool) authenticate(h *v1alpha1.ToolHTTP) error {
	if h.AuthSecretRef == nil {
		return nil
	}
	if t.credential == "" {
		return errors.New("spec.http.authSecretRef: the key of the Secret is empty")
	}
	t.hidden = redact.KnownOf(t.credential)
	if h.AuthInject == v1alpha1.AuthInjectBody {
		t.authKey = h.AuthBodyKey
	} else {
		t.authHeader = true
	}
	return nil
}

func (t *httpTool) hasBody() bool { return t.method != http.MethodGet && t.method != http.MethodDelete }

// Definition returns the tool as the model sees it.
func (t *httpTool) Definition() tool.Definition { return t.definition }

// Response is the result of a call that the endpoint answered with success.
type Response struct {
	Status int `json:"status"`
	// Body is the answer: decoded if it is JSON, text otherwise, absent if it is empty.
	Body any `json:"body,omitempty"`
}

// Call sends the arguments: as the JSON body, or as query parameters with GET and DELETE.
func (t *httpTool) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	limited, sent := t.watched(limited)
	target, body, err := t.message(arguments)
	if err != nil {
		return nil, err
	}
	res, err := t.send(limited, target, body)
	if err != nil {
		return nil, t.transportError(err, sent.Load())
	}
	answered(ctx, res)
	defer func() { _ = res.Body.Close() }()
	kind := res.Header.Get("Content-Type")
	raw, larger, err := toolkit.ReadAtMost(res.Body, maxResponse)
	switch {
	case err != nil:
		return nil, t.transportError(err, sent.Load())
	case larger:
		return nil, tool.Errorf(tool.TypeLimitReached, "the answer is larger than 10 MiB").Suggest("ask for less")
	case res.StatusCode >= http.StatusMultipleChoices:
		return nil, t.refused(res.StatusCode, toolkit.UTF8(raw, kind))
	}
	raw = toolkit.UTF8(raw, kind)
	if brokenOff(raw, kind) {
		return nil, t.transportError(io.ErrUnexpectedEOF, sent.Load())
	}
	raw = []byte(t.hidden.JSON(string(raw))) // an endpoint may echo what it was sent
	out := &Response{Status: res.StatusCode}
	if len(bytes.TrimSpace(raw)) > 0 {
		if out.Body, err = canonical.Decode(raw); err != nil {
			out.Body = string(raw)
		}
	}
	return out, nil
}

// brokenOff reports whether an answer is JSON by its content type and ends within a value. Where an answer ends with its
// connection, nothing else shows that the rest is missing.
func brokenOff(raw []byte, contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return false
	}
	var whole json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(raw)).Decode(&whole), io.ErrUnexpectedEOF)
}

// watched returns a context whose requests set sent as soon as a part of one that may change something has left.
func (t *httpTool) watched(ctx context.Context) (_ context.Context, sent *atomic.Bool) {
	sent = &atomic.Bool{}
	if t.method == http.MethodGet && (t.linked == nil || !t.linked.Writes) {
		return ctx, sent // such a call is safe to repeat
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { sent.Store(true) }}), sent
}

// message makes the request's address and body from the arguments.
func (t *httpTool) message(arguments json.RawMessage) (*url.URL, []byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil {
		return nil, nil, tool.InvalidArguments("the arguments are not a JSON object")
	}
	target := *t.url
	if !t.hasBody() {
		// What the Tool's address sets is its author's, and stays as it is written.
		fixed, own := parametersOf(target.RawQuery), url.Values{}
		for name, value := range object {
			if !fixed[name] {
				addQuery(own, name, value)
			}
		}
		target.RawQuery = strings.Trim(target.RawQuery+"&"+own.Encode(), "&")
		return &target, nil, nil
	}
	if t.authKey != "" {
		credential, err := json.Marshal(t.credential)
		if err != nil {
			return nil, nil, err
		}
		if object == nil {
			object = map[string]json.RawMessage{}
		}
		// This is set last, so that a model cannot replace the value.
		object[t.authKey] = credential
	}
	body, err := json.Marshal(object)
	return &target, body, err
}

// parametersOf returns the names of the parameters of a query, also of those that endpoints read and net/url does not.
func parametersOf(query string) map[string]bool {
	names := map[string]bool{}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		names[name] = true
	}
	return names
}

// addQuery adds an argument: an array as repeated parameters, an object as JSON. It skips null.
func addQuery(q url.Values, name string, raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && list != nil {
		for _, item := range list {
			q.Add(name, queryText(item))
		}
		return
	}
	if string(raw) != "null" {
		q.Set(name, queryText(raw))
	}
}

func queryText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// refused returns the error for the model about an answer that is not a success.
func (t *httpTool) refused(status int, body []byte) error {
	kind := tool.TypeUnavailable
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		kind = tool.TypeInvalidArguments
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = tool.TypePermissionDenied
	case http.StatusNotFound, http.StatusGone:
		kind = tool.TypeNotFound
	case http.StatusConflict:
		kind = tool.TypeAlreadyExists
	case http.StatusTooManyRequests:
		kind = tool.TypeLimitReached
	}
	e := tool.Errorf(kind, "%s answered with status %d", t.definition.Name, status)
	if text := t.scrub(string(body)); text != "" {
		e.Message += ": " + text
	}
	return e
}

// scrub removes the credential from an endpoint's text, which may repeat it, and shortens the text.
func (t *httpTool) scrub(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	s = t.hidden.Remove(s)
	if len(s) > maxErrorBody {
		s = clip.Text(s, maxErrorBody) + "…"
	}
	return s
}

// transportError returns the error for the model about a call that got no complete answer. sent is set if it may have been carried out.
func (t *httpTool) transportError(err error, sent bool) error {
	var typed *tool.Error
	var timeout interface{ Timeout() bool }
	name := t.definition.Name
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, egress.ErrRefused):
		return tool.Errorf(tool.TypePermissionDenied, "the address of %s is not allowed", name)
	case late && sent:
		return tool.OutcomeUnknown(name, "it took longer than "+t.timeout.String())
	case late:
		return tool.Errorf(tool.TypeTimeout, "%s took longer than %s", name, t.timeout)
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	if sent {
		return tool.OutcomeUnknown(name, "the answer did not arrive: "+t.scrub(err.Error()))
	}
	return tool.Errorf(tool.TypeUnavailable, "%s cannot be reached: %s", name, t.scrub(err.Error()))
}
