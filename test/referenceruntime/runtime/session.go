// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"net/http"
	"os"

	"github.com/platform-ai/platform/pkg/harness"
)

// session is one session. The Runtime's mu guards it.
type session struct {
	r          *Runtime
	id         string
	generation uint64
	spec       harness.SessionSpec
	dir        string
	base       *base // nil before the workspace has come
	prompt     *prompt
	deltas     map[string]*frozen
	// unfinished is the delta that was not finalized; empty if there is none.
	unfinished string
	fenced     bool
	gone       bool
}

func (s *session) state() harness.SessionState {
	switch {
	case s.fenced:
		return harness.SessionFencedOff
	case s.spec.Workspace != nil && s.base == nil:
		return harness.SessionPreparing
	case s.prompt != nil && !s.prompt.settled:
		return harness.SessionRunning
	case s.unfinished != "" && !s.r.broken("finalizing-ignored"):
		return harness.SessionFinalizing
	}
	return harness.SessionIdle
}

func (s *session) status() harness.SessionStatus {
	st := harness.SessionStatus{ID: s.id, Generation: s.generation, State: s.state()}
	if s.base != nil {
		st.Commit = s.base.commit
	}
	if p := s.prompt; p != nil {
		st.Prompt = &harness.PromptStatus{ID: p.id, State: harness.PromptRunning, LastSeq: p.last}
		if p.settled {
			st.Prompt.State, st.Prompt.Outcome = harness.PromptSettled, p.outcome
		}
	}
	return st
}

// shown is the status that readers get.
func (s *session) shown() harness.SessionStatus {
	st := s.status()
	if s.r.broken("session-without-generation") {
		st.Generation = 1
	}
	return st
}

// stop ends the session's agent by force.
func (s *session) stop() {
	if s.prompt != nil {
		s.prompt.kill()
	}
}

func (r *Runtime) create(at route, f harness.Fence, scope *scope, body []byte) (*operation, error) {
	var spec harness.SessionSpec
	if err := r.decode(body, &spec); err != nil {
		return nil, err
	}
	resident := 0
	for _, s := range r.scopes {
		if s.session != nil {
			resident++
		}
	}
	switch {
	case spec.Workspace != nil && spec.Workspace.Intent != harness.IntentRead && spec.Workspace.Intent != harness.IntentWrite:
		return nil, harness.Refuse(harness.BadRequest, "workspace.intent must be read or write")
	case spec.ProfileDigest != "" && spec.ProfileDigest != profile().Digest && !r.broken("any-profile"):
		return nil, harness.Refuse(harness.WrongProfile, "the profile is %s", profile().Digest)
	case scope.session != nil:
		return nil, harness.Refuse(harness.SessionExists, "the session is there already")
	case r.draining:
		return nil, harness.Refuse(harness.Draining, "the runtime takes on nothing new")
	case int64(resident) >= *r.limits.MaxResidentSessions && !r.broken("no-session-limit"):
		return nil, harness.Refuse(harness.LimitReached, "there are %d sessions already", resident)
	}
	dir, err := r.newFolder()
	if err != nil {
		return nil, err
	}
	s := &session{r: r, id: at.session, generation: f.Generation, spec: spec, dir: dir, deltas: map[string]*frozen{}}
	scope.session, scope.generation = s, max(scope.generation, f.Generation)
	return done(http.StatusCreated, s.status())
}

func (r *Runtime) remove(_ route, scope *scope) (*operation, error) {
	s := scope.session
	if s == nil {
		return nil, harness.Refuse(harness.NotFound, "there is no such session")
	}
	if scope.session, s.gone = nil, true; r.broken("stays-after-deletion") {
		scope.ghost = s
	}
	clear(scope.operations) // the deletion is kept
	switch {
	case s.prompt == nil || s.prompt.settled:
		if err := os.RemoveAll(s.dir); err != nil {
			return nil, err
		}
	case r.broken("deletion-keeps-agent"):
		s.prompt.forgotten = true
		r.running--
	default:
		s.stop() // the end of the prompt removes the files
	}
	return done(http.StatusOK, struct{}{})
}

func (s *session) finalize(body []byte) (*operation, error) {
	var f harness.Finalization
	if err := s.r.decode(body, &f); err != nil {
		return nil, err
	}
	switch {
	case !f.Outcome.Terminal():
		return nil, harness.Refuse(harness.BadRequest, "outcome must be a terminal state of a delivery")
	case s.deltas[f.Delta] == nil:
		return nil, harness.Refuse(harness.NotFound, "there is no delta %s", f.Delta)
	case f.Delta == s.unfinished:
		s.unfinished = ""
	}
	return done(http.StatusOK, s.status())
}
