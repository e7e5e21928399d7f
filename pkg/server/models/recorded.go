// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// Recorded is the Meter that records requests in the ledger.
type Recorded struct {
	Ledger *ledger.Ledger
	// Ends stores the ends of requests. Since no request begins on a full disk, at most as many wait as requests were open. A server
	// that stops loses them: the ledger then has a gap for each, and Budgets are charged what was reserved.
	Ends *later.Queue
	// Keeper records what is said; nil for nothing.
	Keeper *Keeper
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
		return nil, StartRefused(err)
	}
	m := recorded{c, r.Ends, klog.FromContext(ctx), nil}
	later := context.WithoutCancel(ctx)
	if mode := r.Keeper.mode(a.Namespace); mode != v1alpha1.RecordingOff && a.Said != nil {
		a.Said.Wanted, m.keep = true, func() { r.Keeper.keep(later, mode, c, a.Said) }
	}
	return m, nil
}

type recorded struct {
	call *ledger.Call
	ends *later.Queue
	log  klog.Logger
	keep func() // nil for a namespace that does not record requests
}

// End stores how the request ended, soon. If that fails, the next start of the server records a gap.
func (r recorded) End(e Ended) {
	if r.keep != nil {
		defer r.keep()
	}
	out := e.Outcome()
	lost := func(err error) { r.log.Error(err, "The usage of a model request is lost") }
	r.call.EndSoon(out, e.Status, func(err error) {
		if !errors.Is(err, engine.ErrFull) {
			lost(err)
			return
		}
		r.ends.Do(r.log, "the end of a model request", func() error { return r.call.End(out, e.Status) }, lost)
	})
}

// StartRefused returns the API error of a request that is not sent because its start cannot be stored on a full disk, and
// other errors as they are.
func StartRefused(err error) error {
	if !errors.Is(err, engine.ErrFull) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: "the model request cannot be recorded, and was not sent: " + err.Error(),
	}}
}
