// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// How long an answer is read on after its caller has left, in case the vendor reports the usage soon: what it writes until then
// costs. DefaultDrain is used where neither the server nor the Provider says, and MaxDrain is the longest time.
const (
	DefaultDrain = 5 * time.Second
	MaxDrain     = 10 * time.Minute
)

// Metering is what requests of one caller have in common.
type Metering struct {
	Meter Meter
	// Asked is completed with the Provider, the model, the limit and the number of each request, which follows Candidate.
	Asked
	Clock clock.WithDelayedExecution
}

// Metered returns the candidates with models that record each request. If the caller disconnects, a request returns at once,
// and the rest of its answer is read for the Drain of its candidate. The usage of what is cut then is partial.
func Metered(list []llm.Candidate, m Metering) []llm.Candidate {
	asked := &atomic.Int64{}
	asked.Store(int64(m.Candidate))
	out := make([]llm.Candidate, len(list))
	for i, c := range list {
		one := m
		one.Provider = c.Provider
		out[i] = c
		out[i].Model = &metered{Metering: one, model: c.Model, drain: c.Drain, asked: asked}
	}
	return out
}

type metered struct {
	Metering

	model llm.Model
	drain time.Duration
	asked *atomic.Int64 // shared by all candidates
}

// ended is the result of a request.
type ended struct {
	resp llm.Response
	err  error
}

// Generate records a request around the one of the model.
func (m *metered) Generate(ctx context.Context, req llm.Request, parts func(llm.Part)) (llm.Response, error) {
	a := m.Asked
	a.Model, a.MaxTokens, a.MaxInput, a.Candidate = req.Model, req.MaxTokens, req.MaxInput(), int(m.asked.Add(1))
	answer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a.Cancel = cancel
	var said llm.Response
	a.Said = &Said{
		Request: func() *recording.Request { return SaidOf(&req) },
		Answer:  func() *v1alpha1.RecordedMessage { return Answered(&said) },
	}
	measured, err := m.Meter.Start(ctx, a)
	if err != nil {
		cancel(nil)
		return llm.Response{}, notStarted(ctx, err)
	}
	arrived, done := make(chan llm.Part), make(chan ended, 1)
	go func() { // ends with the answer, or when the time to drain is over
		defer cancel(nil)
		resp, err := m.model.Generate(answer, req, func(p llm.Part) {
			if parts == nil {
				return
			}
			select {
			case arrived <- p:
			case <-ctx.Done():
			}
		})
		said = resp
		measured.End(EndOf(resp.Usage, err))
		done <- ended{resp, err}
	}()
	for {
		select {
		case p := <-arrived:
			parts(p)
		case e := <-done:
			return e.resp, e.err
		case <-ctx.Done():
			t := m.Clock.AfterFunc(m.drain, func() { cancel(nil) })
			context.AfterFunc(answer, func() { t.Stop() })
			return llm.Response{}, &llm.Error{Class: llm.ClassCanceled, Message: "the caller left", Err: ctx.Err()}
		}
	}
}

// SaidOf returns what a request says, as it is recorded.
func SaidOf(req *llm.Request) *recording.Request {
	r := &recording.Request{Parameters: agentloop.Parameters(req), Tools: agentloop.Offered(req.Tools)}
	for i := range req.Messages {
		r.Conversation = append(r.Conversation, *agentloop.Said(&req.Messages[i]))
	}
	return r
}

// Answered returns what an answer says, as it is recorded; nil if it says nothing.
func Answered(r *llm.Response) *v1alpha1.RecordedMessage {
	m := r.Message()
	if m.Text == "" && len(m.ToolCalls) == 0 && m.Opaque == nil {
		return nil
	}
	return agentloop.Said(&m)
}

// notStarted returns the error of a request that was not sent.
func notStarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &llm.Error{Class: llm.ClassCanceled, Message: "the caller left", Err: ctx.Err()}
	}
	if errors.Is(err, ErrStopping) {
		return &llm.Error{Class: llm.ClassCanceled, Message: ErrStopping.Error(), Err: err}
	}
	if refused := apierrors.APIStatus(nil); errors.As(err, &refused) {
		return &llm.Error{Class: llm.ClassQuota, Message: refused.Status().Message, Err: err}
	}
	return &llm.Error{Class: llm.ClassServer, Message: "the start of the request could not be recorded", Err: err}
}
