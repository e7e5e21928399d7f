// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/usage"
)

// Asked is a request to a model that is about to be sent on behalf of a caller.
type Asked struct {
	Namespace, Provider, Model string
	// Read is the Provider as it is now, which must not be changed; nil if it is to be read.
	Read *v1alpha1.Provider
	// Caller is who asked.
	Caller user.Info
	// Session is the name of the session of a chat; empty without one.
	Session string
	// ID is that of the caller's request, which is also that of its audit event where there is one. Candidate counts the
	// requests to models that it makes, from 1.
	ID        string
	Candidate int
	// PassedOver is set for a fallback that is not asked, because the request cannot be carried to it. It is recorded as a request
	// that the vendor never got, and neither limited nor counted.
	PassedOver bool
	// Agent is the name of the Agent; empty for none.
	Agent string
	// MaxTokens bounds the output, in tokens; 0 if the vendor decides. MaxInput is how many tokens the input has at most.
	MaxTokens, MaxInput int64
	// Outside returns how many tokens of input may come from outside of the request at most, such as from a document of which it
	// has the address; nil if none do. Budgets reserve it, so it is asked for only where there are some. Rate limits do not: their
	// next request learns from what the vendor reported.
	Outside func() int64
	// Said has what is said, for a meter that records it; nil if nobody knows it.
	Said *Said
	// Cancel ends the request; nil if it cannot be cancelled.
	Cancel context.CancelCauseFunc
}

// Said is what is said in a request and its answer. A meter that records it sets Wanted in Start. The functions are called once if it is
// wanted, Request at any time and Answer after the end; Answer returns nil if no answer came.
type Said struct {
	Wanted  bool
	Request func() *recording.Request
	Answer  func() *v1alpha1.RecordedMessage
}

// Ended is how a request ended.
type Ended struct {
	// Usage is what the vendor reported. Figures that it did not report are unknown.
	Usage llm.Usage
	// Refused and Free are those of usage.Outcome.
	Refused, Free bool
	// Status is completed, failed or cancelled.
	Status usage.Status
}

// Meter records the use of models. The start of each request is recorded before the request is sent, so that a request
// whose end is missing is a gap and not zero.
type Meter interface {
	// Start records that a request is about to be sent. If it fails, the request is not sent. An error that is an
	// apierrors.APIStatus refuses the request; its text is for the caller.
	Start(ctx context.Context, a Asked) (Measurement, error)
}

// Measurement is a request that was started.
type Measurement interface {
	// End records how the request ended, once. It is called even if the caller has disconnected.
	End(e Ended)
}

// Meters are asked in order. If one refuses a request, those before it are told that it failed without any use.
type Meters []Meter

// Start asks all meters.
func (m Meters) Start(ctx context.Context, a Asked) (Measurement, error) {
	all := make(measurements, 0, len(m))
	for _, meter := range m {
		one, err := meter.Start(ctx, a)
		if err != nil {
			all.End(NothingUsed)
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

type measurements []Measurement

// End tells all of them, the last first.
func (m measurements) End(e Ended) {
	for _, one := range slices.Backward(m) {
		one.End(e)
	}
}

// Outcome returns what is known of the use of tokens.
func (e *Ended) Outcome() usage.Outcome {
	u := &e.Usage
	return usage.Outcome{Counts: usage.Counts{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedInputTokens: u.CachedInputTokens, CacheWriteInputTokens: u.CacheWriteInputTokens,
	}, Refused: e.Refused, Free: e.Free}
}

// NothingUsed is the end of a request that its vendor refused, or that was not sent. It costs nothing.
var NothingUsed = Ended{Refused: true, Status: usage.StatusFailed}

// EndOf returns how a request ended by the result of llm.Model.
func EndOf(u llm.Usage, err error) Ended {
	switch class := llm.ClassOf(err); {
	case err == nil:
		return Ended{Usage: u, Status: usage.StatusCompleted}
	case class == llm.ClassCanceled || errors.Is(err, context.Canceled):
		return Ended{Usage: u, Status: usage.StatusCancelled}
	case llm.Unused(err) && u.InputTokens == nil && u.OutputTokens == nil:
		return NothingUsed
	}
	return Ended{Usage: u, Status: usage.StatusFailed}
}

// LimitReason returns the reason, RateLimited, BudgetExhausted, BudgetUnpriced or TokenBudgetExhausted, if limits refused a request (package modelrequest); otherwise an empty string.
func LimitReason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, c := range status.Status().Details.Causes {
		switch c.Type {
		case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonBudgetUnpriced, v1alpha1.ReasonRateLimited, v1alpha1.ReasonTokenBudgetExhausted:
			return string(c.Type)
		}
	}
	return ""
}
