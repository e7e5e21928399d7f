// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
)

// relay sends requests that are not of this client's making.
type relay struct {
	*patience
	base *url.URL
}

// maxDiscarded is how much of an answer that is of no use is read, so that the connection can be used again, in bytes.
const maxDiscarded = 64 << 10

// Relay sends a request of the coding agent of a task to a path below its models, with the worker's credential, and returns the answer
// as it comes: it takes as long as the answer of a model takes. While again reports that an answer, or an error, is none, the request
// is sent again, after the pauses of all requests. The path must be in its shortest form.
func (a *API) Relay(ctx context.Context, t *v1alpha1.Task, r *http.Request, body []byte, again func(*http.Response, error) bool) (*http.Response, error) {
	to, err := a.relay()
	if err != nil {
		return nil, err
	}
	return to.relay(ctx, t, r, body, again)
}

func (p relay) relay(ctx context.Context, t *v1alpha1.Task, r *http.Request, body []byte, again func(*http.Response, error) bool) (*http.Response, error) {
	to := p.base.JoinPath("apis", v1alpha1.SchemeGroupVersion.Group, v1alpha1.SchemeGroupVersion.Version, "namespaces", t.Namespace, "tasks", t.Name, runspec.ModelsSubresource)
	to.Path += r.URL.Path
	to.RawQuery = r.URL.RawQuery
	for pause := firstTry; ; pause = min(2*pause, longTry) {
		answer, err := p.send(ctx, r, to, body)
		if errors.Is(err, ErrToken) || !again(answer, err) {
			return answer, err
		}
		wait := max(jitter(pause), retryAfter(answer))
		if answer != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxDiscarded))
			_ = answer.Body.Close()
		}
		if !Sleep(ctx, p.clock, wait) {
			return nil, ctx.Err()
		}
	}
}

// send sends a request one time.
func (p relay) send(ctx context.Context, of *http.Request, to *url.URL, body []byte) (*http.Response, error) {
	if err := p.over(); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, of.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = of.Header.Clone()
	answer, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := p.known(answer); err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	return answer, nil
}

// newRelay returns a relay with the credential of a configuration, which has no other wrapper yet.
func newRelay(c *rest.Config, p *patience) (relay, error) {
	var err error
	if p.next, err = rest.TransportFor(c); err != nil {
		return relay{}, err
	}
	base, _, err := rest.DefaultServerUrlFor(c)
	return relay{p, base}, err
}
