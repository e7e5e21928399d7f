// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anthropic is the llm.Model of Anthropic and of every server that speaks the Messages protocol. It streams,
// and makes exactly one attempt for each call. The key is sent to the configured address only.
//
// The vendor's SDK is one package of all its APIs, which took a fifteenth of the time in which the programs are compiled. Of it this
// package would use the types of one request and of its events; it has them itself. Its tests read recorded answers with the SDK, too.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

const (
	defaultBaseURL = "https://api.anthropic.com"
	// defaultMaxTokens is sent if a request sets no limit, because the protocol requires one.
	defaultMaxTokens = 4096
)

// Config describes one endpoint.
type Config struct {
	// APIKey may be empty for servers that need none.
	APIKey string
	// BaseURL is the address that v1/messages is appended to; a /v1 at its end is accepted. Default
	// https://api.anthropic.com.
	BaseURL string
	// IdleTimeout ends a stream on which nothing arrives for this long. Default 5 min.
	IdleTimeout time.Duration
	// HeaderTimeout ends a request whose response has not begun after this time, and a stream that brings no content
	// for this long. Default 10 min: a model may think that long before it says anything.
	HeaderTimeout time.Duration
	// Clock is required.
	Clock clock.WithDelayedExecution
	// Hosts is where the key may be sent; nothing is sent elsewhere.
	Hosts egress.Hosts
	// Quirks is what is known about the server. Default: quirks of the client's own.
	Quirks *llm.Quirks
	// Transport sends the requests. It must use no proxy. HeaderTimeout does not apply to it. Default: a transport of
	// the client's own.
	Transport http.RoundTripper
}

// Client is an llm.Model. It is safe for concurrent use.
type Client struct {
	http *http.Client
	// base is the address, which is a part of the origin of opaque data.
	base         string
	key          wire.Key
	idle, silent time.Duration
	clock        clock.WithDelayedExecution
	// noCaching is set once the server has refused cache_control. Compatible servers may not know it.
	noCaching atomic.Bool
	quirks    *llm.Quirks
}

var _ llm.Model = (*Client)(nil)

// New checks the configuration and returns a client. It does not open a connection.
func New(c Config) (*Client, error) {
	address, err := baseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = wire.IdleTimeout
	}
	if c.HeaderTimeout == 0 {
		c.HeaderTimeout = wire.HeaderTimeout
	}
	if c.Quirks == nil {
		c.Quirks = &llm.Quirks{}
	}
	return &Client{
		http: wire.Client(c.HeaderTimeout, c.Transport, c.Hosts), base: address.String(), key: wire.Key(c.APIKey),
		idle: c.IdleTimeout, silent: c.HeaderTimeout, clock: c.Clock, quirks: c.Quirks,
	}, nil
}

// baseURL returns the address that v1/messages is appended to, without a slash at its end.
func baseURL(raw string) (*url.URL, error) {
	u, err := wire.BaseURL(cmp.Or(raw, defaultBaseURL))
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), ""
	return u, nil
}

// Generate makes one attempt. If the server refuses cache_control or a hint for the first time, that does not count as a failed
// attempt: the request is sent once more without it.
func (c *Client) Generate(ctx context.Context, req llm.Request, parts func(llm.Part)) (llm.Response, error) {
	if _, ok := SchemaOf(req.Format); !ok && len(req.Format) > 0 {
		return llm.Response{}, &llm.Error{Class: llm.ClassInvalidRequest, Message: "the messages protocol has no form of the answer but that of a schema"}
	}
	lacks := map[string]bool{}
	for _, name := range hints(req) {
		lacks[name] = c.quirks.Lacks(req.Model, name)
	}
	for {
		resp, err := c.generate(ctx, req, lacks, parts)
		if !c.learn(err, req, lacks) {
			return resp, err
		}
	}
}

func (c *Client) generate(ctx context.Context, req llm.Request, lacks map[string]bool, parts func(llm.Part)) (llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	raw, err := c.send(ctx, c.params(req, lacks))
	if err != nil {
		return llm.Response{}, c.refused(ctx, nil, err)
	}
	defer raw.Body.Close() //nolint:errcheck // it was read, or is of no use
	if !wire.IsSuccess(raw.StatusCode) {
		return llm.Response{}, c.refused(ctx, raw, nil)
	}
	a := answer{origin: c.origin(req.Model)}
	watch := wire.NewWatch(c.clock, c.idle, c.silent, cancel)
	defer watch.Stop()
	body, streams := wire.IsStream(raw.Body)
	switch {
	case !streams && req.Whole:
		return c.whole(ctx, &a, body, parts)
	case !streams && ctx.Err() == nil && !wire.SaysStream(raw.Header):
		return llm.Response{}, &llm.Error{
			Class: llm.ClassMalformed, Status: raw.StatusCode,
			Message: fmt.Sprintf("the answer is %q, not an event stream", raw.Header.Get("Content-Type")),
		}
	}
	for stream := newEvents(body); ; {
		e, err := stream.next()
		if err != nil {
			return a.response(), c.ended(ctx, &a, err)
		}
		if err := a.add(e, parts); err != nil {
			return a.response(), err
		}
		watch.Event(a.size)
	}
}

// send posts a request.
func (c *Client) send(ctx context.Context, body request) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/messages", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header = header(string(c.key))
	r.Header.Set("Content-Type", "application/json")
	return c.http.Do(r)
}

// origin identifies the endpoint and the model, because signed blocks are valid for these only.
func (c *Client) origin(model string) string { return "anthropic " + c.base + " " + model }
