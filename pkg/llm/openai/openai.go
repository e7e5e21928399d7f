// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openai is the llm.Model of OpenAI, Azure OpenAI and every server that speaks the
// OpenAI chat completions protocol. It streams, and makes one attempt for each call (see Generate):
// the SDK's own retries are off, and it ignores the SDK's environment variables. It follows no
// redirect and uses no proxy, so the key is sent to the configured address only.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

const (
	defaultBaseURL = "https://api.openai.com/v1"
	// defaultAzureAPIVersion is the api-version that is sent if a Provider names none.
	defaultAzureAPIVersion = "2024-02-15-preview"
)

// Azure selects a deployment of Azure OpenAI.
type Azure struct {
	// Deployment is the name of the deployment, which determines the model.
	Deployment string
	// APIVersion is the value of the api-version parameter. Default 2024-02-15-preview.
	APIVersion string
}

// Config describes one endpoint.
type Config struct {
	// APIKey may be empty for servers that need none.
	APIKey string
	// BaseURL is the address that chat/completions is appended to. Default
	// https://api.openai.com/v1; required with Azure, where it is the resource's address.
	BaseURL string
	// Azure is nil for everything but Azure OpenAI.
	Azure *Azure
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
	chat sdk.ChatCompletionService
	// base is the address, which is a part of the origin of opaque data.
	base         string
	key          wire.Key
	idle, silent time.Duration
	clock        clock.WithDelayedExecution
	// quirks records which parameters this server was found not to support.
	quirks *llm.Quirks
}

var _ llm.Model = (*Client)(nil)

// New checks the configuration and returns a client. It does not open a connection.
func New(c Config) (*Client, error) {
	base, err := endpoint(c)
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
	client := wire.Client(c.HeaderTimeout, c.Transport, c.Hosts)
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(client),
	}
	if c.Azure != nil {
		opts = append(opts, option.WithHeader("Api-Key", c.APIKey), option.WithQuery("api-version", c.Azure.APIVersion))
	} else if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	out := &Client{
		chat: sdk.NewChatCompletionService(opts...), base: base.String(), key: wire.Key(c.APIKey),
		idle: c.IdleTimeout, silent: c.HeaderTimeout, clock: c.Clock, quirks: c.Quirks,
	}
	// OpenAI's own models refuse or deprecate max_tokens; other servers often support nothing else.
	if base.Host == "api.openai.com" {
		out.quirks.NewMaxTokens.Store(true)
	}
	return out, nil
}

func endpoint(c Config) (*url.URL, error) {
	raw := c.BaseURL
	if raw == "" {
		if c.Azure != nil {
			return nil, errors.New("baseURL is required for azure-openai")
		}
		raw = defaultBaseURL
	}
	u, err := wire.BaseURL(raw)
	if err != nil {
		return nil, err
	}
	if c.Azure == nil {
		return u, nil
	}
	if c.Azure.Deployment == "" {
		return nil, errors.New("azure-openai needs a deployment name")
	}
	if c.Azure.APIVersion == "" {
		c.Azure.APIVersion = defaultAzureAPIVersion
	}
	return u.JoinPath("openai", "deployments", c.Azure.Deployment), nil
}

// Generate makes one attempt. If the server refuses an optional parameter for the first time,
// that does not count as a failed attempt: the request is sent once more without it.
func (c *Client) Generate(ctx context.Context, req llm.Request, parts func(llm.Part)) (llm.Response, error) {
	w := way{newMaxTokens: c.quirks.NewMaxTokens.Load(), noUsageOption: c.quirks.NoUsageOption.Load(), lacks: map[string]bool{}}
	if !c.quirks.NoThinking.Load() && hasThinking(req.Messages, c.origin(req.Model)) {
		w.thinkingOf = c.origin(req.Model)
	}
	for _, name := range hints(req) {
		w.lacks[name] = c.quirks.Lacks(req.Model, name)
	}
	for {
		resp, err := c.generate(ctx, req, w, parts)
		if err == nil || !c.learn(err, &w, req) {
			return resp, err
		}
	}
}

// way is how a request is sent.
type way struct {
	// newMaxTokens and noUsageOption are those of llm.Quirks. whole asks for an answer that is not a stream.
	newMaxTokens, noUsageOption, whole bool
	// lacks are the hints that are not sent.
	lacks map[string]bool
	// thinkingOf is the origin whose thinking is sent back; empty if none is.
	thinkingOf string
}

// origin identifies the endpoint and the model, because models continue their own thinking only.
func (c *Client) origin(model string) string { return "openai " + c.base + " " + model }

func (c *Client) generate(ctx context.Context, req llm.Request, w way, parts func(llm.Part)) (llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var raw *http.Response
	var err error
	var stream *ssestream.Stream[sdk.ChatCompletionChunk]
	if params := params(req, w); w.whole {
		_, err = c.chat.New(ctx, params, option.WithResponseBodyInto(&raw))
	} else {
		stream = c.chat.NewStreaming(ctx, params, option.WithResponseInto(&raw))
		err = stream.Err()
	}
	if raw != nil {
		defer raw.Body.Close() //nolint:errcheck // it was read, or is of no use
	}
	if err != nil || raw == nil || !wire.IsSuccess(raw.StatusCode) {
		return llm.Response{}, c.refused(ctx, raw, err)
	}
	watch := wire.NewWatch(c.clock, c.idle, c.silent, cancel)
	defer watch.Stop()
	body, streams := wire.IsStream(raw.Body)
	switch {
	case !streams && req.Whole:
		return c.whole(ctx, body, c.origin(req.Model), parts)
	case !streams && ctx.Err() == nil && !wire.SaysStream(raw.Header):
		return llm.Response{}, &llm.Error{
			Class: llm.ClassMalformed, Status: raw.StatusCode,
			Message: fmt.Sprintf("the answer is %q, not an event stream", raw.Header.Get("Content-Type")),
		}
	}
	wire.AsStream(raw, body)
	stream = ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(raw), nil)
	a := answer{origin: c.origin(req.Model)}
	for stream.Next() {
		if err := a.add(stream.Current(), parts); err != nil {
			return a.response(), err
		}
		watch.Event(a.size)
	}
	err = c.ended(ctx, &a, stream.Err())
	return a.response(), err
}
