// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/server/cors"
)

// newCORS allows pages of the origins to send what the vendors' SDKs send. Not all of it is forwarded.
func newCORS(origins []string) cors.Policy {
	return cors.New(origins, corsMethods(), cors.VendorHeaders(), []string{"Request-Id", "Retry-After", headerRequestID})
}

// corsMethods returns the methods of the endpoints.
func corsMethods() []string { return []string{http.MethodGet, http.MethodPost} }
