// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// addWellformed refuses requests that would be understood other than they were meant, once their caller is known.
func (c *Config) addWellformed() {
	chain := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := wellformed.Check(r); err != nil {
				responsewriters.ErrorNegotiated(err, g.Serializer, versionOf(r), w, r)
				return
			}
			api.ServeHTTP(w, r)
		}), g)
	}
}
