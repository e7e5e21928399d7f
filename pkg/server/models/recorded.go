// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// Recorded is the Meter that records requests in the ledger.
type Recorded struct {
	Ledger *ledger.Ledger
	// Ends stores the ends of requests.
	Ends *Later
}

var _ Meter = Recorded{}

// Start stores that the request is about to be sent.
func (r Recorded) Start(ctx context.Context, a Asked) (Measurement, error) {
	o := usage.Observation{
		Namespace: a.Namespace, SessionName: a.Session, AttemptID: a.ID, CounterID: strconv.Itoa(a.Candidate), Provider: a.Provider, Model: a.Model,
	}
	if a.Caller != nil {
		o.User = a.Caller.GetName()
	}
	c, err := r.Ledger.Start(ctx, o)
	if err != nil {
		return nil, startRefused(err)
	}
	return recorded{c, r.Ends, klog.FromContext(ctx)}, nil
}

type recorded struct {
	call *ledger.Call
	ends *Later
	log  klog.Logger
}

// End stores how the request ended, soon. If that fails, the next start of the server records a gap.
func (r recorded) End(e Ended) {
	out := e.outcome()
	lost := func(err error) { r.log.Error(err, "The usage of a model request is lost") }
	r.call.EndSoon(out, e.Status, func(err error) {
		if !errors.Is(err, engine.ErrFull) {
			lost(err)
			return
		}
		r.ends.Do(r.log, func() error { return r.call.End(out, e.Status) }, lost)
	})
}
