// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/ptr"
)

// Session is a session of a runtime, as a client sees it: a name and a generation.
type Session struct {
	c          *Client
	id         string
	generation uint64
}

// Session returns the session with a name and a generation, whether or not it exists.
func (c *Client) Session(id string, generation uint64) *Session {
	return &Session{c, id, generation}
}

// ask makes a request below the session that changes something.
func (s *Session) ask(ctx context.Context, method, operation string, body, into any, below ...string) error {
	return s.c.call(ctx, call{method: method, path: PathSession(s.id, below...), operation: operation, generation: s.generation, body: body}, into)
}

// status checks that a status is that of this session.
func (s *Session) status(st *SessionStatus, err error) (*SessionStatus, error) {
	if err != nil {
		return nil, err
	}
	if st.ID != s.id || st.Generation != s.generation {
		return nil, wrong("the answer is about session %s, generation %d", st.ID, st.Generation)
	}
	return st, nil
}

// Create creates the session.
func (s *Session) Create(ctx context.Context, operation string, spec SessionSpec) (*SessionStatus, error) {
	st := &SessionStatus{}
	return s.status(st, s.ask(ctx, http.MethodPut, operation, spec, st))
}

// Get returns the session, whatever its generation.
func (s *Session) Get(ctx context.Context) (*SessionStatus, error) {
	st := &SessionStatus{}
	if err := s.c.call(ctx, call{method: http.MethodGet, path: PathSession(s.id)}, st); err != nil {
		return nil, err
	}
	return st, nil
}

// Delete deletes the session.
func (s *Session) Delete(ctx context.Context, operation string) error {
	return s.ask(ctx, http.MethodDelete, operation, nil, &nothing{})
}

// PutWorkspace sends the files to work on: a delta without changes that has all objects.
func (s *Session) PutWorkspace(ctx context.Context, operation string, archive []byte) (*SessionStatus, error) {
	st := &SessionStatus{}
	return s.status(st, s.c.call(ctx, call{method: http.MethodPut, path: PathSession(s.id, "workspace"), operation: operation, generation: s.generation, file: archive}, st))
}

// Start starts a prompt and returns its events. The prompt goes on until its lease ends, whatever becomes of the stream.
func (s *Session) Start(ctx context.Context, operation, prompt string, spec PromptSpec) (*Stream, error) {
	return s.stream(ctx, call{method: http.MethodPut, path: PathSession(s.id, "prompts", prompt), operation: operation, generation: s.generation, body: spec}, prompt, 0)
}

// Resume returns the events of a prompt after one of them.
func (s *Session) Resume(ctx context.Context, prompt string, after uint64) (*Stream, error) {
	return s.stream(ctx, call{method: http.MethodGet, path: PathSession(s.id, "prompts", prompt), query: "after=" + strconv.FormatUint(after, 10)}, prompt, after)
}

func (s *Session) stream(ctx context.Context, r call, prompt string, after uint64) (*Stream, error) {
	limits := s.c.o.Limits
	if limits == nil {
		return nil, errors.New("the limits of the runtime are not known")
	}
	ctx, end := context.WithCancelCause(ctx)
	// The silence before the answer counts, too.
	watch := s.c.o.Clock.AfterFunc(silence, func() { end(ErrSilent) })
	fail := func(err error) (*Stream, error) {
		watch.Stop()
		end(nil)
		return nil, err
	}
	answer, err := s.c.send(ctx, r)
	if err != nil {
		return fail(err)
	}
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = answer.Body.Close() }() // it was only read
		raw, err := s.c.read(ctx, answer, maxAnswer)
		if err == nil {
			err = s.c.refusal(answer.StatusCode, raw)
		}
		return fail(err)
	}
	if err := isType(answer, TypeStream); err != nil {
		_ = answer.Body.Close()
		return fail(err)
	}
	watch.Stop() // until the reader waits
	line := min(ptr.Deref(limits.MaxEventLineBytes, maxLine), maxLine)
	return &Stream{
		body: answer.Body, in: bufio.NewReaderSize(answer.Body, 64<<10), end: end, watch: watch,
		cause:   func() error { return context.Cause(ctx) },
		session: s.id, generation: s.generation, prompt: prompt, last: after, partly: after > 0,
		maxLine: line, maxEnd: min(ptr.Deref(limits.MaxTerminalResultBytes, line), line),
		calls: map[string]bool{}, permissions: map[string]bool{},
	}, nil
}

// Renew renews the lease of a prompt.
func (s *Session) Renew(ctx context.Context, operation, prompt string, l Lease) error {
	a := &leaseAnswer{}
	if err := s.ask(ctx, http.MethodPut, operation, l, a, "prompts", prompt, "lease"); err != nil {
		return err
	}
	if a.Lease != l {
		return wrong("the answer to a renewal has another lease")
	}
	return nil
}

// Keep renews the lease of a prompt until ctx ends, and returns nil then. It returns an error once the lease may have ended: the prompt
// must be taken for lost. leaseMillis is what the prompt was started with, a moment ago.
func (s *Session) Keep(ctx context.Context, prompt string, leaseMillis int64) error {
	lease := time.Duration(leaseMillis) * time.Millisecond
	now := s.c.o.Clock.Now
	good := now().Add(lease)
	for l := (Lease{Sequence: 2, LeaseMillis: leaseMillis}); ; l.Sequence++ {
		select {
		case <-ctx.Done():
			return nil
		case <-s.c.o.Clock.After(lease / 3):
		}
		sent := now()
		within, cancel := context.WithTimeout(ctx, max(good.Sub(sent), 0))
		err := s.Renew(within, NewOperation(), prompt, l)
		cancel()
		_, refused := errors.AsType[*Error](err)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the renewal ended because its caller wanted that
		case err == nil:
			good = sent.Add(lease)
		case refused && !Refused(err, Unavailable), !now().Before(good):
			return fmt.Errorf("the lease of prompt %s: %w", prompt, err)
		}
	}
}

// Cancel asks for the end of a prompt. The stream has the result.
func (s *Session) Cancel(ctx context.Context, operation, prompt, reason string) (PromptState, error) {
	a := &Cancelled{}
	if err := s.ask(ctx, http.MethodPut, operation, Cancellation{Reason: reason}, a, "prompts", prompt, "cancel"); err != nil {
		return "", err
	}
	if a.State != PromptCancelling && a.State != PromptSettled {
		return "", wrong("the answer to a cancellation must have the state cancelling or settled")
	}
	return a.State, nil
}

// Answer answers a question for a permission.
func (s *Session) Answer(ctx context.Context, operation, prompt, permission string, answer PermissionAnswer) error {
	a := &Decided{}
	if err := s.ask(ctx, http.MethodPut, operation, answer, a, "prompts", prompt, "permissions", permission); err != nil {
		return err
	}
	if a.Decision != answer.Decision {
		return wrong("the answer to a decision has another decision")
	}
	return nil
}

// Freeze freezes what has changed in the workspace.
func (s *Session) Freeze(ctx context.Context, operation, delta string, maxBytes int64) (*DeltaStatus, error) {
	d := &DeltaStatus{}
	if err := s.ask(ctx, http.MethodPut, operation, DeltaSpec{MaxBytes: maxBytes}, d, "workspace-deltas", delta); err != nil {
		return nil, err
	}
	if d.ID != delta || d.Bytes > maxBytes {
		return nil, wrong("the answer is about the delta %s, or it has %d bytes where %d are allowed", d.ID, d.Bytes, maxBytes)
	}
	return d, nil
}

// Fetch writes the file of a delta, which must be the one that d describes: what was written before an error must not be used.
func (s *Session) Fetch(ctx context.Context, d *DeltaStatus, to io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, filePatience, fmt.Errorf("%w: the delta did not come within %s", ErrUnreachable, filePatience))
	defer cancel()
	answer, err := s.c.send(ctx, call{method: http.MethodGet, path: PathSession(s.id, "workspace-deltas", d.ID)})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		raw, err := s.c.read(ctx, answer, maxAnswer)
		if err != nil {
			return err
		}
		return s.c.refusal(answer.StatusCode, raw)
	}
	if err := isType(answer, TypeWorkspace); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, to), io.LimitReader(answer.Body, d.Bytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w: the delta: %w", ErrUnreachable, err)
	case n != d.Bytes || "sha256:"+hex.EncodeToString(sum.Sum(nil)) != d.Digest:
		return wrong("the delta %s is not the one that was frozen: its size or digest differ", d.ID)
	}
	return nil
}

// Finalize says what became of a delta.
func (s *Session) Finalize(ctx context.Context, operation string, f Finalization) (*SessionStatus, error) {
	st := &SessionStatus{}
	return s.status(st, s.ask(ctx, http.MethodPut, operation, f, st, "publication-finalization"))
}
