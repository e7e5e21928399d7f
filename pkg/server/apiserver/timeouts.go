// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// timeoutKey holds the error of a request's parameter timeout.
type timeoutKey struct{}

// addTimeouts answers requests whose parameter timeout is not a duration after the caller is known. The default chain does
// so before that, and writes a line with the path into the log for each of them. A request that lasts has no timeout.
func (c *Config) addTimeouts() {
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		inside := chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err, refused := r.Context().Value(timeoutKey{}).(error)
			if !refused {
				api.ServeHTTP(w, r)
				return
			}
			var gv schema.GroupVersion
			if info, ok := request.RequestInfoFrom(r.Context()); ok {
				gv = schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
			}
			responsewriters.ErrorNegotiated(apierrors.NewBadRequest("invalid timeout specified in the request URL - "+err.Error()), g.Serializer, gv, w, r)
		}), g)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "timeout=") {
				r = markTimeout(r, g)
			}
			inside.ServeHTTP(w, r)
		})
	}
}

// markTimeout takes a timeout that is not a duration out of the query, and keeps the error for the innermost filter.
func markTimeout(r *http.Request, g *genericapiserver.Config) *http.Request {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // refused inside
		return r
	}
	value := q.Get("timeout")
	if value == "" {
		return r
	}
	_, wrong := time.ParseDuration(value)
	if wrong == nil {
		return r
	}
	info, err := g.RequestInfoResolver.NewRequestInfo(r)
	if err != nil || g.LongRunningFunc(r, info) {
		return r
	}
	q.Del("timeout")
	r = r.Clone(context.WithValue(r.Context(), timeoutKey{}, wrong))
	r.URL.RawQuery = q.Encode()
	return r
}
