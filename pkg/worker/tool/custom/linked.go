// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"errors"
	"net/http"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
)

// Linked is how a tool uses the account of a person: its address must be https and public, the token is sent as a bearer token, and no
// redirect is followed.
type Linked struct {
	// Transport makes the requests. Default: one that reaches public addresses only, each as it was resolved once.
	Transport http.RoundTripper
	// Writes says that a call may change something, whatever its method is.
	Writes bool
}

// link makes the tool one that uses the account of a person.
func (t *httpTool) link(o Options) (tool.Tool, error) {
	if t.url.Scheme != "https" {
		return nil, errors.New("spec.http.url: must be https")
	}
	if o.Credential == "" {
		return nil, errors.New("the account has no token")
	}
	transport := o.Linked.Transport
	if transport == nil {
		t.client = client(egress.Guard{}, true)
	} else {
		t.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	t.hidden, t.authHeader, t.linked = redact.KnownOf(o.Credential), true, o.Linked
	return t, nil
}
