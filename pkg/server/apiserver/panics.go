// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/platform-ai/platform/pkg/server/panics"
)

// addPanics answers requests whose handler panics with 500. The chain would break their connections, which a client cannot
// tell from a server that is away.
func (c *Config) addPanics() {
	if c.REST != nil {
		rest := *c.REST
		rest.Panics = c.Panics
		c.REST = &rest
	}
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(c.answerPanics(api, g), g)
	}
}

func (c *Config) answerPanics(api http.Handler, g *genericapiserver.Config) http.Handler {
	return c.Panics.Answer(api, func(w http.ResponseWriter, r *http.Request) {
		responsewriters.ErrorNegotiated(apierrors.NewInternalError(panics.ErrPanic), g.Serializer, versionOf(r), w, r)
	})
}

// versionOf returns the group and version that a request is for, in which its errors are encoded.
func versionOf(r *http.Request) schema.GroupVersion {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		return schema.GroupVersion{}
	}
	return schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
}
