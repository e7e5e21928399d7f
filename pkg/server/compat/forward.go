// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/usage"
)

// Causes of the end of a request.
var (
	errIdle    = errors.New("the vendor sent nothing for too long")
	errDrained = errors.New("the client left, and the answer did not end in time")
)

// forward asks one candidate after the other until one answers. Another one is asked only while nothing has been sent
// to the client, and only if the request can be carried over to its protocol: otherwise the error of the one before stands.
// It calls release when the last answer has ended, which may be after it returned.
//
// No request is repeated after a failure that may pass, because the vendors' clients do that. A request is sent once more if the
// vendor refused the key and the Secret has another one by now, and if the vendor refused to stream or what this server added
// (relent). A fallback that the request cannot be carried to is passed over: the header X-Platform-Passed-Over, the audit event and
// the usage say so. A vendor's error about its key is replaced, and a key in any other error is removed, so the key never reaches a
// client.
func (x *exchange) forward(in *incoming, choice *models.Choice, release func()) error {
	var err error
	number := 0
	try := func(c models.Candidate) (p problem, next bool) {
		number++
		a := &attempt{exchange: x, in: in, candidate: c, number: number, release: release, unlimited: choice.MaxTokens}
		if err = a.run(); err == nil {
			return problem{}, false
		}
		p, ok := asProblem(err)
		return p, ok && p.next && x.r.Context().Err() == nil
	}
	for _, c := range choice.Candidates {
		if number > 0 && x.passesOver(c, number+1, in.carriedTo(c)) {
			number++
			continue
		}
		x.w.Header().Del(headerLeft)
		p, next := try(c)
		if next && p.key && c.Renew(x.r.Context()) { // the key was replaced since it was read
			_, next = try(c)
		}
		if err == nil {
			return nil
		}
		if !next {
			break
		}
	}
	release()
	return err
}

// carriedTo returns why a request cannot be carried to a candidate; nil if it can.
func (in *incoming) carriedTo(c models.Candidate) error {
	if c.Protocol() == protocolOf(in.op) || in.op == opCount {
		return nil
	}
	req, err := in.translate(c.Protocol())
	if err != nil {
		return err
	}
	return req.fits(c.Protocol())
}

// attempt is one request to one candidate.
type attempt struct {
	*exchange

	in        *incoming
	candidate models.Candidate
	number    int
	release   func()
	// unlimited is what a request without a limit is expected to write at most, in tokens.
	unlimited int64

	sent     changes // in the last request to the vendor
	measured models.Measurement
	heard    heard
	tally    tally
	failed   bool            // no complete answer came
	refusal  bool            // the vendor refused the request before it used tokens, or did not get it
	ctx      context.Context //nolint:containedctx // of the request to the vendor
	cancel   context.CancelCauseFunc
	stay     func() bool // stops waiting for the client to leave
	idle     interface {
		Reset(d time.Duration) bool
		Stop() bool
	}
}

// run makes the request. It returns an error if nothing was written; otherwise it has called release, or will.
func (a *attempt) run() error {
	other := a.candidate.Protocol() != protocolOf(a.in.op)
	if other && a.in.op == opCount {
		return a.estimate()
	}
	if other {
		return a.ask()
	}
	a.sent.usage = a.in.hidesUsage() && !a.candidate.Quirks().NoUsageOption.Load()
	for {
		resp, err := a.send()
		if err != nil {
			return err
		}
		p, failed := a.refused(resp)
		switch {
		case failed && a.relent(p):
			continue
		case failed:
			a.failed = true
			lacks := a.in.lacksCount(p)
			a.refusal = a.refusal || lacks
			a.end()
			if lacks {
				return a.estimate()
			}
			return p
		}
		body, streams := wire.IsStream(resp.Body)
		resp.Body = reading{body, resp.Body}
		if streams {
			return a.stream(resp)
		}
		return a.whole(resp)
	}
}

// reading is a body whose first bytes were looked at.
type reading struct {
	io.Reader
	io.Closer
}

// relent reports whether a request that the vendor refused is sent once more: without what this server added, and without
// asking for a stream, if the vendor refused just that.
func (a *attempt) relent(p problem) bool {
	sent := &a.sent
	switch {
	case p.code != http.StatusBadRequest || a.in.op != opChat:
		return false
	case sent.usage && openai.RefusesUsage(p.raw):
		sent.usage = false
		a.candidate.Quirks().NoUsageOption.Store(true)
	case a.in.stream && !sent.whole && openai.RefusesStream(p.raw):
		*sent = changes{whole: true}
	default:
		return false
	}
	a.refusal = false // it cost nothing, but the answer will
	return true
}

// start records the start of the request. The request outlives its client for a while, so that its usage is known.
func (a *attempt) start() error {
	client := a.r.Context()
	a.tally.op = a.in.op
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	var err error
	a.measured, err = a.meter.Start(client, models.Asked{
		Namespace: a.call.namespace, Provider: a.candidate.Provider.Name, Read: a.candidate.Provider, Model: a.candidate.Model, Caller: a.caller,
		ID: a.call.id, Candidate: a.number, Agent: a.call.query.Get("agent"), MaxTokens: a.maxTokens(), MaxInput: a.maxInput(), Outside: a.in.maxOutside, Cancel: cancel, Said: a.hear(),
	})
	if err != nil {
		cancel(nil)
	}
	if refused := apierrors.APIStatus(nil); errors.As(err, &refused) {
		return err
	}
	if err != nil {
		return fmt.Errorf("the start of a request could not be recorded: %w", err)
	}
	a.ctx, a.cancel = ctx, cancel
	a.stay = context.AfterFunc(client, a.left)
	return nil
}

// left bounds how long the answer is read on, from now, since its client has left. The vendor writes on after that, which costs,
// and says what the answer costs at its end. So the rest is read for the Provider's drainSeconds, else --model-drain-time. The
// usage of what is cut then is partial: what the vendor has reported until then, and no output.
func (a *attempt) left() {
	t := a.h.o.Clock.AfterFunc(a.candidate.Drain(), func() { a.cancel(errDrained) })
	context.AfterFunc(a.ctx, func() { t.Stop() })
}

// maxTokens returns how many tokens the output may have. A client that states no limit gets what vendors usually write at
// most; what exceeds that is spent all the same.
func (a *attempt) maxTokens() int64 {
	if a.in.op == opCount {
		return 0
	}
	for _, name := range []string{"max_completion_tokens", "max_tokens", "max_output_tokens"} {
		var n *int64
		if a.in.decode(name, &n) == nil && n != nil {
			return max(0, *n)
		}
	}
	return a.unlimited
}

// maxInput returns how many tokens the input may have. Counting them spends none.
func (a *attempt) maxInput() int64 {
	if a.in.op == opCount {
		return 0
	}
	return llm.MaxInputOf(len(a.in.data))
}

// send makes the request, whose start it records the first time.
func (a *attempt) send() (*http.Response, error) {
	c := a.candidate
	body, err := a.in.forModel(c.Model, a.sent)
	if err == nil && a.measured == nil {
		err = a.start()
	}
	if err != nil {
		return nil, err
	}
	if a.idle != nil {
		a.idle.Stop()
	}
	a.idle = a.h.o.Clock.AfterFunc(wire.HeaderTimeout, func() { a.cancel(errIdle) })
	resp, err := c.Send(a.ctx, string(a.in.op), a.call.ofVendor(), outgoing(a.call.header), body)
	if err == nil {
		return resp, nil
	}
	a.failed = true
	_, unsent := errors.AsType[*models.UnsentError](err)
	_, none := errors.AsType[*models.TargetError](err)
	a.refusal = unsent || none
	a.end()
	if target, ok := errors.AsType[*models.TargetError](err); ok {
		return nil, invalid("model", "model: %v", target)
	}
	return nil, problem{code: http.StatusBadGateway, message: err.Error(), next: true}
}

// end records the end of the request.
func (a *attempt) end() {
	if a.idle != nil {
		a.idle.Stop()
	}
	e := models.Ended{Usage: a.tally.count.Usage(), Refused: a.refusal, Free: a.in.op == opCount, Status: usage.StatusCompleted} // counting is free
	switch cause := context.Cause(a.ctx); {
	case errors.Is(cause, errDrained), errors.Is(cause, models.ErrStopping):
		e.Status = usage.StatusCancelled
	case a.failed:
		e.Status = usage.StatusFailed
	}
	a.stay()
	a.cancel(context.Canceled)
	a.measured.End(e)
}

// outgoing returns the header of a client's request that its vendor gets.
func outgoing(client http.Header) http.Header {
	out := http.Header{"Accept-Encoding": {"identity"}, "Content-Type": {"application/json"}}
	for _, name := range []string{"Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Idempotency-Key"} {
		if v := client[name]; len(v) > 0 {
			out[name] = v
		}
	}
	return out
}

// copyHeader copies what a client learns of a vendor's header. Names of accounts and cookies are not part of it.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch {
		case name == "Content-Type", name == "Content-Encoding", name == "Retry-After", name == "Retry-After-Ms", name == "X-Should-Retry",
			name == "Request-Id", name == "Openai-Processing-Ms", name == "Openai-Version",
			strings.HasPrefix(name, "X-Ratelimit-"), strings.HasPrefix(name, "Anthropic-Ratelimit-"):
			to[name] = values
		case name == headerRequestID:
			to["X-Provider-Request-Id"] = values
		}
	}
}

// refused returns the problem if the vendor did not accept the request.
func (a *attempt) refused(resp *http.Response) (problem, bool) {
	code := resp.StatusCode
	if wire.IsSuccess(code) {
		return problem{}, false
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or is of no use
	a.refusal = llm.RefusedStatus(code)
	name := a.candidate.Provider.Name
	switch {
	case code < http.StatusBadRequest:
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q answered %d, which is no answer; redirects are not followed", name, code)}, true
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		// The vendor's text repeats parts of the key, and the client's own credentials are valid.
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q: its API key was refused", name), next: true, key: true}, true
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxErrorBody))
	text = a.candidate.Scrub(text)
	p := problem{code: code, message: fmt.Sprintf("Provider %q answered %d %s", name, code, http.StatusText(code)), header: resp.Header}
	if err == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		p.raw = text
	} else {
		p.header = http.Header{"Retry-After": resp.Header["Retry-After"]}
	}
	p.next = code >= http.StatusInternalServerError || code == http.StatusNotFound || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests
	return p, true
}
