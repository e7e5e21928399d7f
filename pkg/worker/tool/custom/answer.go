// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"net/http"
)

// Answer is how an endpoint answered a call; zero if it did not.
type Answer struct {
	Status int
	// RetryAfter is the header of this name.
	RetryAfter string
}

type answerKey struct{}

// WithAnswer returns a context in which a call of a tool of this package sets a, also if the answer is a failure.
func WithAnswer(ctx context.Context, a *Answer) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

func answered(ctx context.Context, res *http.Response) {
	if a, ok := ctx.Value(answerKey{}).(*Answer); ok {
		*a = Answer{res.StatusCode, res.Header.Get("Retry-After")}
	}
}
