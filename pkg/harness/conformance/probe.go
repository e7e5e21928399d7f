// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/harness"
)

// longLease is the lease of prompts that are not about leases.
const longLease = time.Minute

// shortLease is the lease of those that are, unless the runtime's limits say otherwise.
const shortLease = 2 * time.Second

// pause is how long the kit looks whether something happens that must not.
const pause = 300 * time.Millisecond

// probe is what the checks share: how the runtime is reached, and what is known of it.
type probe struct {
	o       Options
	watch   *watch // looks for secrets in all that comes
	client  *harness.Client
	prefix  string
	counted int
	// made are the sessions of the check that runs.
	made []*session

	instance string
	runtime  string
	epoch    uint64
	caps     v1alpha1.AgentRuntimeCapabilities
}

func newProbe(o Options) *probe {
	w := newWatch(o.Transport, harness.Spellings(o.Token, o.Key))
	return &probe{o: o, watch: w, prefix: "kit-" + suffix(), epoch: 1, client: harness.New(harness.Options{
		Endpoint: o.Endpoint, Transport: w, Token: o.Token, Key: o.Key, Clock: o.Clock,
	})}
}

// greet finds out whether there is a runtime that knows the token.
func (p *probe) greet(ctx context.Context) error {
	_, err := p.client.Health(ctx)
	switch {
	case errors.Is(err, harness.ErrUnreachable):
		return fmt.Errorf("%w: %w", ErrCannotRun, err)
	case harness.Refused(err, harness.Unauthenticated):
		return fmt.Errorf("%w: it does not accept the controller token", ErrCannotRun)
	case harness.Refused(err, harness.Unavailable):
		return fmt.Errorf("%w: it says that it cannot work now, or has no credentials yet", ErrCannotRun)
	}
	return nil
}

// mean makes the client mean the instance with an epoch.
func (p *probe) mean(epoch uint64) {
	p.epoch = max(epoch, 1)
	p.client = p.client.For(p.instance, p.epoch, p.caps.Limits)
}

// lease returns a duration within the runtime's limits, in milliseconds.
func (p *probe) lease(d time.Duration) int64 {
	l := p.caps.Limits
	return min(max(d.Milliseconds(), *l.MinPromptLeaseMillis), *l.MaxPromptLeaseMillis)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// wait waits on the kit's clock.
func (p *probe) wait(ctx context.Context, d time.Duration) {
	select {
	case <-p.o.Clock.After(d):
	case <-ctx.Done():
	}
}

// session is one of the kit's sessions.
type session struct {
	*harness.Session
	p          *probe
	id         string
	generation uint64
}

// name returns a name that was not used.
func (p *probe) name() string {
	p.counted++
	return fmt.Sprintf("%s-%d", p.prefix, p.counted)
}

// unmade returns a session that does not exist yet. It is deleted after the check.
func (p *probe) unmade(generation uint64) *session {
	id := p.name()
	s := p.again(id, generation)
	p.made = append(p.made, s)
	return s
}

// again returns a session by its name.
func (p *probe) again(id string, generation uint64) *session {
	return &session{p.client.Session(id, generation), p, id, generation}
}

// session creates a session.
func (p *probe) session(ctx context.Context, spec harness.SessionSpec) (*session, error) {
	s := p.unmade(1)
	_, err := s.Create(ctx, harness.NewOperation(), spec)
	return s, did("creating a session", err)
}

// empty creates a session without a workspace.
func (p *probe) empty(ctx context.Context) (*session, error) {
	return p.session(ctx, harness.SessionSpec{})
}

// tidy deletes the sessions of a check. That some are gone is part of checks.
func (p *probe) tidy(ctx context.Context) {
	for _, s := range p.made {
		ctx, cancel := context.WithTimeout(ctx, p.o.Slack)
		_ = p.again(s.id, s.generation).Delete(ctx, harness.NewOperation())
		cancel()
	}
	p.made = nil
}

// did returns a finding if something that must work did not.
func did(what string, err error) error {
	if err == nil {
		return nil
	}
	return found("%s failed: %v", what, err)
}

// refused returns a finding unless something was refused for one of the reasons.
func refused(what string, err error, reasons ...harness.Reason) error {
	for _, r := range reasons {
		if harness.Refused(err, r) {
			return nil
		}
	}
	if err == nil {
		return found("%s was accepted; it must be refused with %s", what, either(reasons))
	}
	return found("%s must be refused with %s, but: %v", what, either(reasons), err)
}

func either(reasons []harness.Reason) string {
	var all []string
	for _, r := range reasons {
		all = append(all, string(r))
	}
	return strings.Join(all, " or ")
}

// raw is a request in which anything may be wrong.
type raw struct {
	method, path string
	generation   uint64
	operation    string // a new one if it is empty
	body         string
	kind         string // of the body; JSON if it is empty
	// token and key replace those of the kit; until is when the capability ends.
	token *string
	key   []byte
	until time.Duration
	// fence changes the fence before its capability is made, header the headers after that.
	fence  func(*harness.Fence)
	header func(http.Header)
}

// send makes a raw request. It returns the body of an answer with 2xx, and otherwise the refusal.
func (p *probe) send(ctx context.Context, r raw) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	base := strings.TrimRight(p.o.Endpoint.String(), "/")
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", harness.TypeJSON)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	token := p.o.Token
	if r.token != nil {
		token = *r.token
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.method == http.MethodPut || r.method == http.MethodDelete {
		if err := p.prove(req, r); err != nil {
			return nil, err
		}
	}
	answer, err := (&http.Client{Transport: p.watch, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", errors.Unwrap(err))
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("no whole answer: %w", err)
	}
	if answer.StatusCode/100 == 2 {
		return body, nil
	}
	refusal, err := harness.DecodeError(answer.StatusCode, body)
	if err != nil {
		return nil, err
	}
	return nil, refusal
}

// prove sets the headers of the fence and the capability.
func (p *probe) prove(req *http.Request, r raw) (err error) {
	f := harness.Fence{Instance: p.instance, Epoch: p.epoch, Generation: r.generation, Operation: r.operation}
	if f.Operation == "" {
		f.Operation = harness.NewOperation()
	}
	body := []byte(r.body)
	if r.body == "" {
		body = nil
	}
	if f.Digest, err = harness.Digest(r.method, r.path, r.generation, f.Operation, body); err != nil || r.kind != "" {
		f.Digest, err = harness.DigestBytes(r.method, r.path, r.generation, f.Operation, sha256.Sum256(body))
	}
	if err != nil {
		return err
	}
	if r.fence != nil {
		r.fence(&f)
	}
	key := p.o.Key
	if r.key != nil {
		key = r.key
	}
	if r.until == 0 {
		r.until = 5 * time.Minute
	}
	capability, err := f.Capability(key, p.o.Clock.Now().Add(r.until))
	f.Set(req.Header)
	req.Header.Set(harness.HeaderCapability, capability)
	if r.header != nil {
		r.header(req.Header)
	}
	return err
}

// undrain is a request that changes something and has no effect.
func undrain() raw {
	return raw{method: http.MethodPut, path: harness.PathDrain, body: `{"drain":false}`}
}

// takes returns a finding if a request without effect is refused. A runtime that cannot drain refuses it as the last thing.
func (p *probe) takes(ctx context.Context, what string, r raw) error {
	_, err := p.send(ctx, r)
	if harness.Refused(err, harness.NotSupported) && !p.caps.SupportsDrain {
		return nil
	}
	return did(what, err)
}

// start starts a prompt of some steps.
func (s *session) start(ctx context.Context, lease time.Duration, steps ...string) (*harness.Stream, string, error) {
	prompt := s.p.name()
	stream, err := s.Start(ctx, harness.NewOperation(), prompt, s.spec(lease, steps...))
	return stream, prompt, did("starting a prompt", err)
}

// started starts a prompt in a session of its own.
func (p *probe) started(ctx context.Context, lease time.Duration, steps ...string) (s *session, stream *harness.Stream, prompt string, err error) {
	if s, err = p.empty(ctx); err == nil {
		stream, prompt, err = s.start(ctx, lease, steps...)
	}
	return s, stream, prompt, err
}

func (s *session) spec(lease time.Duration, steps ...string) harness.PromptSpec {
	text := "do: " + strings.Join(steps, "\ndo: ")
	return harness.PromptSpec{Texts: []string{text}, LeaseMillis: s.p.lease(lease)}
}

// prompt does some steps and returns all events, of which the last is the result.
func (s *session) prompt(ctx context.Context, steps ...string) ([]*harness.Event, error) {
	stream, _, err := s.start(ctx, longLease, steps...)
	if err != nil {
		return nil, err
	}
	return s.p.rest(stream, longLease)
}

// completed does some steps, which must end well.
func (s *session) completed(ctx context.Context, steps ...string) ([]*harness.Event, error) {
	events, err := s.prompt(ctx, steps...)
	if err != nil {
		return nil, err
	}
	return events, ended(events, harness.Completed)
}

// rest reads the rest of a stream, which must end in time.
func (p *probe) rest(stream *harness.Stream, within time.Duration) (events []*harness.Event, err error) {
	late := make(chan struct{})
	timer := p.o.Clock.AfterFunc(within+p.o.Slack, func() { close(late); _ = stream.Close() })
	defer timer.Stop()
	defer func() { _ = stream.Close() }()
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		select {
		case <-late:
			return events, found("the stream did not end within %s; it has %s", within, shown(events))
		default:
		}
		if err != nil {
			return events, found("the stream: %v; before that: %s", err, shown(events))
		}
		events = append(events, e)
	}
}

// shown lists the types of events.
func shown(events []*harness.Event) string {
	if len(events) == 0 {
		return "no event"
	}
	var all []string
	for _, e := range events {
		if e != nil {
			all = append(all, string(e.Type))
		}
	}
	if n := len(all); n > 12 {
		all = append(append(all[:6:6], "…"), all[n-5:]...)
	}
	return strings.Join(all, ", ")
}

// ended returns a finding unless the events end with an outcome.
func ended(events []*harness.Event, want harness.Outcome) error {
	if len(events) == 0 || events[len(events)-1].Result == nil {
		return found("the stream has no result, but %s", shown(events))
	}
	if r := events[len(events)-1].Result; r.Outcome != want {
		return found("the outcome is %s (%s %s); it must be %s", r.Outcome, r.Reason, r.Message, want)
	}
	return nil
}

// said joins what the agent said.
func said(events []*harness.Event) string {
	var text bytes.Buffer
	for _, e := range events {
		if e.Type == harness.EventMessage {
			text.WriteString(e.Text)
		}
	}
	return text.String()
}
