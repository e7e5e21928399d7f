// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import "context"

type callIDKey struct{}

// WithCallID returns a context with the id that the model gave to the call.
func WithCallID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callIDKey{}, id)
}

// CallID returns the id that the model gave to the call in ctx; empty if it gave none. Some models use an id again for a later call.
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callIDKey{}).(string)
	return id
}
