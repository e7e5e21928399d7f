// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/platform-ai/platform/pkg/server/compat"
)

// LongRunning reports whether a request has no deadline and does not count against the limit of requests in flight:
// watches, streams, and logs that are followed. Everything else ends after Config.Generic.RequestTimeout.
func LongRunning(r *http.Request, info *request.RequestInfo) bool {
	if info == nil || !info.IsResourceRequest {
		return false
	}
	switch {
	case info.Verb == "watch":
		return true
	case info.Subresource == "stream", info.Resource == "sessions" && info.Subresource == "turn":
		return true
	case info.Subresource == "log":
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil { // refused inside
			return false
		}
		follow, err := strconv.ParseBool(q.Get("follow"))
		return err == nil && follow
	}
	return false
}

// addLongRunning treats requests to Handlers and to models as long-running, and creates that a resource answers itself.
func (c *Config) addLongRunning() {
	inner := c.Generic.LongRunningFunc
	c.Generic.LongRunningFunc = func(r *http.Request, info *request.RequestInfo) bool {
		if info != nil && !info.IsResourceRequest && c.Handlers[info.Path] != nil {
			return true
		}
		if compat.IsCall(r.Context()) {
			return true
		}
		return c.creates(info) != nil || inner(r, info)
	}
}

// creates returns the handler of a create that a resource answers itself; nil for every other request.
func (c *Config) creates(info *request.RequestInfo) http.Handler {
	if info == nil || !info.IsResourceRequest || info.Verb != "create" || info.Subresource != "" {
		return nil
	}
	for _, r := range c.Resources {
		gvr := r.GroupVersionResource()
		if gvr.Group == info.APIGroup && gvr.Version == info.APIVersion && gvr.Resource == info.Resource {
			return r.Creates()
		}
	}
	return nil
}

// addCreates makes the innermost filter one that gives creates to the resources that answer them themselves. A request
// of a vendor's API passes the chain as such a create, and is answered elsewhere.
func (c *Config) addCreates() {
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, _ := request.RequestInfoFrom(r.Context())
			if h := c.creates(info); h != nil && !compat.IsCall(r.Context()) {
				h.ServeHTTP(w, r)
				return
			}
			api.ServeHTTP(w, r)
		}), g)
	}
}

// handlerChain is the default chain with one addition: streams end when the server begins to shut down. The generic
// server does so for watches; raw streams would otherwise delay the shutdown until they are cut off.
func handlerChain(api http.Handler, c *genericapiserver.Config) http.Handler {
	return genericapiserver.DefaultBuildHandlerChain(endStreams(api, c.LongRunningFunc, c.ShutdownInitiatedNotify()), c)
}

func endStreams(next http.Handler, longRunning request.LongRunningRequestCheck, stopping <-chan struct{}) http.Handler {
	running := wait.ContextForChannel(stopping) // ends when the server begins to shut down
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context()) //nolint:contextcheck // the request has it
		if !ok || info.Verb == "watch" || !longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(running, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx)) //nolint:contextcheck // the request has it
	})
}
