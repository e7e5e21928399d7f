// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// relay sends requests that are not of this client's making.
type relay struct {
	transport http.RoundTripper
	base      *url.URL
}

func newRelay(c *rest.Config) (relay, error) {
	transport, err := rest.TransportFor(c)
	if err != nil {
		return relay{}, err
	}
	base, _, err := rest.DefaultServerUrlFor(c)
	return relay{transport, base}, err
}

// Relay sends a request of the coding agent of a task to a path below the subresource proxy of the task, with the worker's credential,
// and returns the answer as it comes. The request is sent once, and takes as long as the answer of a model takes. The header is
// completed.
func (a *API) Relay(ctx context.Context, t *v1alpha1.Task, method, path, query string, header http.Header, body []byte) (*http.Response, error) {
	to := a.relay.base.JoinPath("apis", v1alpha1.SchemeGroupVersion.Group, v1alpha1.SchemeGroupVersion.Version, "namespaces", t.Namespace, "tasks", t.Name, "proxy")
	to.Path += path
	to.RawQuery = query
	r, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header
	return a.relay.transport.RoundTrip(r)
}
