// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 4 << 20
	// patience is how long a request may take that is neither a stream nor a file.
	patience = 30 * time.Second
	// filePatience is how long a file may take.
	filePatience = 10 * time.Minute
)

// ErrUnreachable is in the chain of the error for a runtime that gives no answer.
var ErrUnreachable = errors.New("the runtime cannot be reached")

// Options configure a Client.
type Options struct {
	// Endpoint is the address of the runtime; the paths of the protocol follow its own.
	Endpoint *url.URL
	// Transport reaches it. It decides which addresses may be dialled (package egress), and which certificates are good.
	Transport http.RoundTripper
	// Token is the controller token, and Key the operation key. A client without a key can only look.
	Token string
	Key   []byte
	// Instance is who is meant, and Epoch who asks.
	Instance string
	Epoch    uint64
	// Limits are those that the runtime reports; nil before they are known, and only streams need them.
	Limits *v1alpha1.AgentRuntimeLimits
	// Clock is required.
	Clock clock.WithDelayedExecution
}

// Client asks a runtime. It may be used by several goroutines.
type Client struct {
	o    Options
	base string
	http *http.Client
}

// New returns a client.
func New(o Options) *Client {
	return &Client{o: o, base: strings.TrimRight(o.Endpoint.String(), "/"), http: &http.Client{
		Transport: o.Transport,
		// The token is for this address alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// For returns a client that means an instance and keeps to its limits, on behalf of a controller with an epoch.
func (c *Client) For(instance string, epoch uint64, l *v1alpha1.AgentRuntimeLimits) *Client {
	o := c.o
	o.Instance, o.Epoch, o.Limits = instance, epoch, l
	return New(o)
}

// Health asks how the runtime is. A runtime that is unhealthy has a Health, and no error.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	h := &Health{}
	err := c.call(ctx, call{method: http.MethodGet, path: PathHealth, also: http.StatusServiceUnavailable}, h)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Capabilities asks what the runtime can do.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	a := &Capabilities{}
	if err := c.call(ctx, call{method: http.MethodGet, path: PathCapabilities}, a); err != nil {
		return nil, err
	}
	return a, nil
}

// Status asks what the runtime is doing.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	s := &Status{}
	if err := c.call(ctx, call{method: http.MethodGet, path: PathStatus}, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Drain begins or ends draining.
func (c *Client) Drain(ctx context.Context, operation string, drain bool) (*Drained, error) {
	d := &Drained{}
	if err := c.call(ctx, call{method: http.MethodPut, path: PathDrain, operation: operation, body: DrainSpec{Drain: drain}}, d); err != nil {
		return nil, err
	}
	return d, nil
}

// Bootstrap gives an instance its credentials. The client's token is the bootstrap token.
func (c *Client) Bootstrap(ctx context.Context, operation string, credentials Credentials) error {
	return c.call(ctx, call{method: http.MethodPut, path: PathBootstrap, operation: operation, body: credentials, unproven: true}, &Bootstrapped{})
}

// call is one request.
type call struct {
	method, path string
	query        string
	// operation and generation are for requests that change something.
	operation  string
	generation uint64
	// body becomes JSON; file is sent as it is.
	body any
	file []byte
	// also is one more status whose body is an answer.
	also int
	// unproven requests have no capability.
	unproven bool
}

// checked is an answer that can tell what is wrong with it.
type checked interface{ check() error }

// call makes a request and decodes its answer.
func (c *Client) call(ctx context.Context, r call, into any) error {
	wait := patience
	if r.file != nil {
		wait = filePatience
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w: no answer within %s", ErrUnreachable, wait))
	defer cancel()
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	raw, err := c.read(ctx, answer, maxAnswer)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 && (r.also == 0 || answer.StatusCode != r.also || isError(raw)) {
		return c.refusal(answer.StatusCode, raw)
	}
	if err := isType(answer, TypeJSON); err != nil {
		return err
	}
	if err := Decode(raw, into); err != nil {
		return c.silently(wrong("the answer to %s %s: %w", r.method, r.path, err))
	}
	if a, ok := into.(checked); ok {
		if err := a.check(); err != nil {
			return c.silently(wrong("the answer to %s %s: %w", r.method, r.path, err))
		}
	}
	return nil
}

// isError reports whether an answer is a refusal.
func isError(raw []byte) bool {
	var a struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(raw, &a) == nil && a.Error != nil
}

// send makes a request; its answer has not been read.
func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if answer.StatusCode/100 == 3 {
		_ = answer.Body.Close()
		return nil, wrong("the answer is a redirect (status %d), which is not followed", answer.StatusCode)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, r call) (*http.Request, error) {
	body, kind := r.file, TypeWorkspace
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("the body of the request: %w", err)
		}
		kind = TypeJSON
		if l := c.o.Limits; l != nil && l.MaxRequestBytes != nil && int64(len(body)) > *l.MaxRequestBytes {
			return nil, Refuse(TooLarge, "the request has %d bytes, and the runtime takes %d", len(body), *l.MaxRequestBytes)
		}
	}
	to := c.base + r.path
	if r.query != "" {
		to += "?" + r.query
	}
	req, err := http.NewRequestWithContext(ctx, r.method, to, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("spec.deployment.endpoint: no request can be made to it")
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Authorization", "Bearer "+c.o.Token)
	if r.method == http.MethodGet {
		return req, nil
	}
	return req, c.fence(req, r, body)
}

// fence sets the headers of a request that changes something.
func (c *Client) fence(req *http.Request, r call, body []byte) (err error) {
	f := Fence{Instance: c.o.Instance, Epoch: c.o.Epoch, Generation: r.generation, Operation: r.operation}
	if r.file != nil {
		f.Digest, err = DigestBytes(r.method, r.path, r.generation, r.operation, sha256.Sum256(r.file))
	} else {
		f.Digest, err = Digest(r.method, r.path, r.generation, r.operation, body)
	}
	if err != nil {
		return err
	}
	f.Set(req.Header)
	if r.unproven {
		return nil
	}
	capability, err := f.Capability(c.o.Key, c.o.Clock.Now().Add(capabilityLife))
	req.Header.Set(HeaderCapability, capability)
	return err
}

// read reads an answer up to a limit.
func (c *Client) read(ctx context.Context, answer *http.Response, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if int64(len(raw)) > limit {
		return nil, wrong("an answer has more than %d bytes", limit)
	}
	return raw, nil
}

// refusal returns the error of an answer that is no success.
func (c *Client) refusal(status int, raw []byte) error {
	refused, err := DecodeError(status, raw)
	if err != nil {
		return c.silently(err)
	}
	refused.Message = c.without(refused.Message)
	return refused
}

func isType(answer *http.Response, want string) error {
	got, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || got != want {
		return wrong("the answer's Content-Type must be %s", want)
	}
	return nil
}

// unreachable returns the error of a connection.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return c.silently(fmt.Errorf("%w: %w", ErrUnreachable, err))
}

// silently returns an error whose text has no secret.
func (c *Client) silently(err error) error {
	if text := err.Error(); c.without(text) != text {
		return &quietError{err, c.without(text)}
	}
	return err
}

// quietError is an error with another text.
type quietError struct {
	error
	text string
}

func (e *quietError) Error() string { return e.text }

// Unwrap returns the error, which is for comparisons alone.
func (e *quietError) Unwrap() error { return e.error }

// without returns a text without the secrets.
func (c *Client) without(text string) string {
	for _, secret := range Spellings(c.o.Token, c.o.Key) {
		text = strings.ReplaceAll(text, secret, "[a secret]")
	}
	return text
}

// quoted returns a text as it is written in JSON, without the quotes.
func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil { // a text has a JSON
		return s
	}
	return string(raw[1 : len(raw)-1])
}

// Spellings returns how the secrets may be written.
func Spellings(token string, key []byte) (all []string) {
	for _, s := range []string{token, string(key)} {
		if s == "" {
			continue
		}
		all = append(all, s, quoted(s), base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%x", s), url.QueryEscape(s))
	}
	return all
}
