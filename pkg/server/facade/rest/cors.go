// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import "github.com/platform-ai/platform/pkg/server/cors"

// newCORS lets pages of the origins use the facade.
func newCORS(origins []string) cors.Policy {
	return cors.New(origins,
		[]string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"},
		[]string{"Origin", "Content-Type", "Accept", "Authorization", "X-API-Key", "Txn-Token", "Idempotency-Key", "Last-Event-ID", headerRequestID},
		[]string{headerRequestID, "Content-Disposition", "Retry-After"})
}
