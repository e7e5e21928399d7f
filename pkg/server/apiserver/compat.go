// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"

	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

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
	o.Panics = c.Panics
	h, err := compat.New(o)
	if err != nil {
		return vendors{}, err
	}
	context.AfterFunc(ctx, h.Close)
	return vendors{h}, nil
}

// wrap puts the vendors' paths, which need a chain, before other paths.
func (v vendors) wrap(chain, next http.Handler) http.Handler {
	if v.Handler == nil {
		return next
	}
	return v.Wrap(chain, next)
}

// callChain is the handler chain of requests to models. It consists of the filters of the default chain that do something for
// such a request: they identify and authorize the caller, write audit events, open the body and end the request with the
// server, which gives it some time to end by itself. Left out are the filters that limit and time requests which end soon, and the
// measurement of each filter: together they would take longer than everything that is left.
func (c *Config) callChain(v vendors, g *genericapiserver.Config) http.Handler {
	if v.Handler == nil {
		return nil
	}
	h := admitBodies(c.answerPanics(v.Inner(http.NotFoundHandler()), g), nil, g)
	if c.Identify != nil {
		h = c.Identify(h)
	}
	stopping := g.ShutdownInitiatedNotify()
	if c.Requests != nil {
		stopping = c.Requests.Over()
	}
	h = endStreams(h, g.LongRunningFunc, stopping)
	h = genericapifilters.WithAuthorization(h, g.Authorization.Authorizer, g.Serializer)
	if g.FeatureGate.Enabled(genericfeatures.ConstrainedImpersonation) {
		h = impersonation.WithConstrainedImpersonation(h, g.Authorization.Authorizer, g.Serializer)
	} else {
		h = impersonation.WithImpersonation(h, g.Authorization.Authorizer, g.Serializer)
	}
	h = genericapifilters.WithAudit(h, g.AuditBackend, g.AuditPolicyRuleEvaluator, g.LongRunningFunc)
	failed := genericapifilters.WithFailedAuthenticationAudit(genericapifilters.Unauthorized(g.Serializer), g.AuditBackend, g.AuditPolicyRuleEvaluator)
	h = genericapifilters.WithAuthentication(h, g.Authentication.Authenticator, failed, g.Authentication.APIAudiences, g.Authentication.RequestHeaderConfig)
	h = genericapifilters.WithRequestInfo(h, g.RequestInfoResolver)
	h = genericapifilters.WithRequestReceivedTimestamp(h)
	h = genericfilters.WithPanicRecovery(h, g.RequestInfoResolver)
	h = genericapifilters.WithAuditInit(h)
	if c.StoreID != "" {
		h = nameStore(h, c.StoreID)
	}
	return h
}
