// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openai is the llm.Model of OpenAI, Azure OpenAI and every server that speaks the
// OpenAI chat completions protocol. It streams, and makes exactly one attempt for each call:
// the SDK's own retries are off, and it ignores the SDK's environment variables. It follows no
// redirect and uses no proxy, so the key is sent to the configured address only.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/llm"
)

const (
	defaultBaseURL = "https://api.openai.com/v1"
	// defaultAzureAPIVersion is the api-version that is sent if a Provider names none.
	defaultAzureAPIVersion = "2024-02-15-preview"
	// maxErrorBody bounds how much of an error response is read, in bytes.
	maxErrorBody = 64 << 10
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
	// HeaderTimeout ends a request whose response has not begun after this time. Default 10 min,
	// as in the SDK: a model may think that long before the first byte.
	HeaderTimeout time.Duration
	// Clock is required.
	Clock clock.WithDelayedExecution
}

// Client is an llm.Model. It is safe for concurrent use.
type Client struct {
	chat  sdk.ChatCompletionService
	key   string
	idle  time.Duration
	clock clock.WithDelayedExecution
	// quirks records which parameters this server was found not to support.
	quirks quirks
}

var _ llm.Model = (*Client)(nil)

// quirks are learned from refused requests, because compatible servers differ and do not
// announce it.
type quirks struct {
	// newMaxTokens means that max_completion_tokens must be sent in place of max_tokens.
	newMaxTokens atomic.Bool
	// noUsageOption means that stream_options is refused, so usage stays unknown.
	noUsageOption atomic.Bool
}

// New checks the configuration and returns a client. It does not open a connection.
func New(c Config) (*Client, error) {
	base, err := endpoint(c)
	if err != nil {
		return nil, err
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 5 * time.Minute
	}
	if c.HeaderTimeout == 0 {
		c.HeaderTimeout = 10 * time.Minute
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("http.DefaultTransport was replaced")
	}
	transport = transport.Clone()
	transport.Proxy = nil
	transport.ResponseHeaderTimeout = c.HeaderTimeout
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{
			Transport:     boundedErrors{transport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
	}
	if c.Azure != nil {
		opts = append(opts, option.WithHeader("Api-Key", c.APIKey), option.WithQuery("api-version", c.Azure.APIVersion))
	} else if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	client := &Client{
		chat: sdk.NewChatCompletionService(opts...), key: c.APIKey,
		idle: c.IdleTimeout, clock: c.Clock,
	}
	// OpenAI's own models refuse or deprecate max_tokens; other servers often support nothing else.
	client.quirks.newMaxTokens.Store(base.Host == "api.openai.com")
	return client, nil
}

func endpoint(c Config) (*url.URL, error) {
	raw := c.BaseURL
	if raw == "" {
		if c.Azure != nil {
			return nil, errors.New("baseURL is required for azure-openai")
		}
		raw = defaultBaseURL
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		// The URL is not shown: it may hold credentials.
		return nil, errors.New("baseURL must be an absolute http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("baseURL must not hold credentials, a query or a fragment")
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
	for {
		resp, err := c.generate(ctx, req, parts)
		if err == nil || !c.learn(err) {
			return resp, err
		}
	}
}

func (c *Client) generate(ctx context.Context, req llm.Request, parts func(llm.Part)) (llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var raw *http.Response
	stream := c.chat.NewStreaming(ctx, c.params(req), option.WithResponseInto(&raw))
	defer func() { _ = stream.Close() }()
	if err := stream.Err(); err != nil || raw == nil || raw.StatusCode != http.StatusOK {
		return llm.Response{}, c.refused(ctx, raw, err)
	}
	if kind := raw.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return llm.Response{}, &llm.Error{
			Class: llm.ClassMalformed, Status: raw.StatusCode,
			Message: fmt.Sprintf("the answer is %q, not an event stream", kind),
		}
	}
	watchdog := c.clock.AfterFunc(c.idle, func() { cancel(errIdle) })
	defer watchdog.Stop()
	var a answer
	for stream.Next() {
		watchdog.Reset(c.idle)
		if err := a.add(stream.Current(), parts); err != nil {
			return a.response(), err
		}
	}
	return a.response(), c.ended(ctx, &a, stream.Err())
}

var errIdle = errors.New("the model's server sent nothing for too long")

// boundedErrors limits the size of error responses, which the SDK reads as a whole, so that a
// hostile or broken server cannot fill the memory.
type boundedErrors struct{ next http.RoundTripper }

func (t boundedErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		res.Body = http.MaxBytesReader(nil, res.Body, maxErrorBody)
	}
	return res, err
}
