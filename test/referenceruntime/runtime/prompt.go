// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/harness"
)

// prompt is one prompt. The Runtime's mu guards what changes.
type prompt struct {
	r  *Runtime
	s  *session
	id string

	last   uint64
	lines  []line        // what is kept
	change chan struct{} // closed when a line is added or the prompt is settled

	sequence    uint64 // of the lease
	lease       time.Duration
	watch       clock.Timer // ends the lease
	permissions map[string]*permission

	// cancelled is closed by interrupt, which asks the agent to stop; kill ends it.
	cancelled chan struct{}
	interrupt func()
	ctx       context.Context // that of the agent
	kill      context.CancelFunc
	unwanted  bool // somebody cancelled the prompt
	lost      bool // the lease has ended
	settled   bool
	forgotten bool // it does not count any more
	outcome   harness.Outcome
}

type line struct {
	seq  uint64
	text []byte
}

// permission is a question of the agent.
type permission struct {
	digest   string
	decision harness.Decision
	answered chan struct{}
}

func (s *session) start(id string, body []byte) (*operation, error) {
	var spec harness.PromptSpec
	if err := s.r.decode(body, &spec); err != nil {
		return nil, err
	}
	lease := spec.LeaseMillis
	beside := s.state() == harness.SessionRunning && s.r.broken("two-prompts")
	again := s.prompt != nil && s.prompt.id == id
	switch state := s.state(); {
	case len(spec.Texts) == 0:
		return nil, harness.Refuse(harness.BadRequest, "texts is required")
	case (lease < *s.r.limits.MinPromptLeaseMillis || lease > *s.r.limits.MaxPromptLeaseMillis) && !s.r.broken("any-lease"):
		return nil, harness.Refuse(harness.BadRequest, "leaseMillis must be %d to %d", *s.r.limits.MinPromptLeaseMillis, *s.r.limits.MaxPromptLeaseMillis)
	case s.r.draining:
		return nil, harness.Refuse(harness.Draining, "the runtime takes on nothing new")
	case state != harness.SessionIdle && !beside, again && !s.r.broken("does-again") && !s.r.broken("prompt-again"):
		return nil, harness.Refuse(harness.Busy, "the session is %s, or its prompt has this name", state)
	case int64(s.r.running) >= *s.r.limits.MaxConcurrentPrompts && !s.r.broken("no-prompt-limit"):
		return nil, harness.Refuse(harness.LimitReached, "%d prompts are running already", s.r.running)
	}
	p := &prompt{
		r: s.r, s: s, id: id, change: make(chan struct{}), sequence: 1, lease: time.Duration(max(lease, 1)) * time.Millisecond,
		permissions: map[string]*permission{}, cancelled: make(chan struct{}),
	}
	p.interrupt = sync.OnceFunc(func() { close(p.cancelled) })
	p.ctx, p.kill = context.WithCancel(s.r.ctx)
	p.watch = s.r.clock.AfterFunc(p.lease, p.lose)
	s.stop() // a prompt before this one has ended
	s.prompt = p
	s.r.running++
	generation := s.generation
	p.add(&harness.Event{Type: harness.EventAccepted, Session: s.id, Generation: generation, Prompt: id, LeaseMillis: lease})
	s.r.agents.Go(func() { p.work(&spec) })
	return &operation{prompt: p}, nil
}

// add appends an event. The caller holds mu.
func (p *prompt) add(e *harness.Event) {
	p.last++
	if e.Seq = p.last; p.r.broken("gap-in-numbers") && p.last > 1 {
		e.Seq++
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return // events are made of texts and numbers
	}
	p.lines = append(p.lines, line{p.last, append(raw, '\n')})
	if most := int(*p.r.limits.MaxBufferedEvents); len(p.lines) > most {
		p.lines = p.lines[len(p.lines)-most:]
	}
	close(p.change)
	p.change = make(chan struct{})
}

// emit appends an event of the agent, unless its prompt is over.
func (p *prompt) emit(e *harness.Event) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.settled || p.lost && !p.r.broken("lost-lease-ignored") {
		return
	}
	most := p.room(*p.r.limits.MaxEventLineBytes)
	if p.r.broken("long-line") {
		most = 1 << 20
	}
	for rest := e.Text; len(rest) > most; rest = e.Text {
		part := *e
		part.Text = clip.Text(rest, most)
		e.Text = rest[len(part.Text):]
		p.add(&part)
	}
	p.add(e)
}

// room is how long a text may be in a line of a length: each byte may be escaped as six.
func (p *prompt) room(line int64) int { return int(line-512) / 6 }

// permit asks for a permission and waits for the decision.
func (p *prompt) permit(id string, call *harness.Call) bool {
	digest, err := harness.ArgumentsDigest(call.Arguments)
	if err != nil {
		return false
	}
	q := &permission{digest: digest, answered: make(chan struct{})}
	p.r.mu.Lock()
	if int64(len(p.permissions)) >= *p.r.limits.MaxPendingPermissions {
		p.r.mu.Unlock()
		return false
	}
	p.permissions[id] = q
	p.r.mu.Unlock()
	p.emit(&harness.Event{Type: harness.EventPermissionRequested, Permission: &harness.Permission{ID: id, Call: call, ArgumentsDigest: digest}})
	if p.r.broken("asks-late") {
		return true
	}
	select {
	case <-q.answered:
	case <-p.cancelled:
	case <-p.ctx.Done():
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	return q.decision == harness.Allow || q.decision == harness.Deny && p.r.broken("allows-denied")
}

func (p *prompt) answer(id string, body []byte) (*operation, error) {
	var a harness.PermissionAnswer
	if err := p.r.decode(body, &a); err != nil {
		return nil, err
	}
	q := p.permissions[id]
	switch {
	case q == nil:
		return nil, harness.Refuse(harness.NotFound, "there is no permission %s", id)
	case a.Decision != harness.Allow && a.Decision != harness.Deny:
		return nil, harness.Refuse(harness.BadRequest, "decision must be allow or deny")
	case p.settled && p.r.broken("late-answer"):
		return done(http.StatusOK, harness.Decided{Decision: a.Decision})
	case q.decision != "" && q.decision != a.Decision && !p.r.broken("changes-answer"), p.settled:
		return nil, harness.Refuse(harness.PermissionSettled, "the permission was settled: %s", q.decision)
	case a.ArgumentsDigest != q.digest && !p.r.broken("any-arguments"):
		return nil, harness.Refuse(harness.PermissionChanged, "the arguments are others")
	}
	if q.decision == "" {
		q.decision = a.Decision
		p.add(&harness.Event{Type: harness.EventPermissionSettled, Permission: &harness.Permission{ID: id, Decision: a.Decision}})
		close(q.answered)
	}
	return done(http.StatusOK, harness.Decided{Decision: a.Decision})
}

func (p *prompt) renew(body []byte) (*operation, error) {
	var l harness.Lease
	if err := p.r.decode(body, &l); err != nil {
		return nil, err
	}
	switch {
	case p.settled || p.lost:
		return nil, harness.Refuse(harness.LeaseLost, "the prompt is over, or its lease has ended")
	case (l.LeaseMillis < *p.r.limits.MinPromptLeaseMillis || l.LeaseMillis > *p.r.limits.MaxPromptLeaseMillis) && !p.r.broken("any-lease"):
		return nil, harness.Refuse(harness.BadRequest, "leaseMillis must be %d to %d", *p.r.limits.MinPromptLeaseMillis, *p.r.limits.MaxPromptLeaseMillis)
	case l.Sequence <= p.sequence && !p.r.broken("any-sequence"):
		return nil, harness.Refuse(harness.LeaseSequence, "sequence must be above %d", p.sequence)
	}
	p.sequence, p.lease = l.Sequence, time.Duration(l.LeaseMillis)*time.Millisecond
	if !p.r.broken("no-renewal") {
		p.watch.Reset(p.lease)
	}
	return done(http.StatusOK, l)
}

// lose ends the prompt because its lease has ended.
func (p *prompt) lose() {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.settled || p.r.broken("lost-lease-ignored") {
		return
	}
	p.lost = true
	p.interrupt()
	p.killSoon()
}

func (p *prompt) cancel(body []byte) (*operation, error) {
	var c harness.Cancellation
	if err := p.r.decode(body, &c); err != nil {
		return nil, err
	}
	if p.settled {
		if p.r.broken("cancel-changes-outcome") {
			p.outcome = harness.CancelledThen
		}
		return done(http.StatusOK, harness.Cancelled{State: harness.PromptSettled})
	}
	if !p.r.broken("cancel-ignored") {
		p.unwanted = true
		p.interrupt()
		if !p.r.broken("cancel-polite") {
			p.killSoon()
		}
	}
	return done(http.StatusOK, harness.Cancelled{State: harness.PromptCancelling})
}

// killSoon ends the agent by force if it does not stop soon.
func (p *prompt) killSoon() { p.r.clock.AfterFunc(p.lease/4, p.kill) }

// work runs the agent, and settles the prompt.
func (p *prompt) work(spec *harness.PromptSpec) {
	result := (&agent{prompt: p}).run(spec)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.watch.Stop()
	switch {
	case p.lost:
		result = &harness.Result{Outcome: harness.LostLease}
		p.s.fenced = !p.r.broken("lost-lease-usable")
	case p.unwanted && p.r.broken("cancel-fails"):
		result = &harness.Result{Outcome: harness.Failed, Reason: "AgentFailed", Message: "it was stopped"}
	case p.unwanted, p.ctx.Err() != nil:
		result = &harness.Result{Outcome: harness.CancelledThen}
		p.s.fenced = p.s.fenced || p.r.broken("cancel-fences")
	}
	for id, q := range p.permissions {
		if q.decision == "" {
			q.decision = harness.Withdrawn
			p.add(&harness.Event{Type: harness.EventPermissionSettled, Permission: &harness.Permission{ID: id, Decision: harness.Withdrawn}})
		}
	}
	if most := p.room(*p.r.limits.MaxTerminalResultBytes); len(result.Text) > most && !p.r.broken("long-result") {
		result.Text, result.Truncated = clip.Text(result.Text, most), true
	}
	if !p.r.broken("no-result") {
		p.add(&harness.Event{Type: harness.EventResult, Result: result})
	}
	if p.r.broken("two-results") {
		p.add(&harness.Event{Type: harness.EventResult, Result: result})
	}
	p.settled, p.outcome = true, result.Outcome
	if !p.forgotten {
		p.r.running--
	}
	p.kill()
	close(p.change)
	p.change = make(chan struct{})
	if p.s.gone {
		_ = os.RemoveAll(p.s.dir) // what is left is removed with the folder of the runtime
	}
}
