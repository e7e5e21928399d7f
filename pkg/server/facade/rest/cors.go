// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"slices"

	"github.com/platform-ai/platform/pkg/server/cors"
)

// newCORS lets pages of the origins use the facade, also with a transaction token.
func newCORS(origins, tokens []string) cors.Policy {
	headers := []string{"Origin", "Content-Type", "Accept", "Authorization", "X-API-Key", "Idempotency-Key", "Last-Event-ID", headerRequestID}
	return cors.New(origins, []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}, slices.Concat(headers, tokens),
		[]string{headerRequestID, "Content-Disposition", "Retry-After"})
}
