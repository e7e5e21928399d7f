// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"

	"github.com/platform-ai/platform/pkg/server/compat"
)

// vendors serves the APIs of model vendors; with a nil Handler it serves nothing.
type vendors struct{ *compat.Handler }

// vendors makes the handler that Config.Compat describes. It is closed when ctx ends.
func (c *Config) vendors(ctx context.Context) (vendors, error) {
	if c.Compat == nil {
		return vendors{}, nil
	}
	o := *c.Compat
	if o.Sparse == nil {
		o.Sparse = c.Sparse
	}
	h, err := compat.New(o)
	if err != nil {
		return vendors{}, err
	}
	context.AfterFunc(ctx, h.Close)
	return vendors{h}, nil
}

// inner puts the handler of requests that have passed the chain before the API.
func (v vendors) inner(api http.Handler) http.Handler {
	if v.Handler == nil {
		return api
	}
	return v.Inner(api)
}

// wrap puts the vendors' paths, which need the chain, before other paths.
func (v vendors) wrap(chain, next http.Handler) http.Handler {
	if v.Handler == nil {
		return next
	}
	return v.Wrap(chain, next)
}
