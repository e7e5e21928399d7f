// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
)

// sightings are what this process saw of publications that are under way. They are not stored: without them a step is repeated.
type sightings struct {
	now func() time.Time

	mu  sync.Mutex
	all map[types.UID]*sighting
}

// sighting is what was seen of one publication.
type sighting struct {
	// since is when the push that is to be verified was made, and away since when a server cannot be reached.
	since, away time.Time
	// outcome is what the server said about the push; empty if it is not known, also after a restart. blocked says why the push
	// credential could not be used.
	outcome workspace.PushOutcome
	blocked string
}

func newSightings(now func() time.Time) *sightings {
	return &sightings{now: now, all: map[types.UID]*sighting{}}
}

// with calls f with the sighting of a task, which it may change.
func (s *sightings) with(uid types.UID, f func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[uid] == nil {
		s.all[uid] = &sighting{}
	}
	f(s.all[uid])
}

// of returns what is known of a publication.
func (s *sightings) of(uid types.UID) (known sighting) {
	s.with(uid, func(g *sighting) {
		if g.since.IsZero() {
			g.since = s.now()
		}
		known = *g
	})
	return known
}

// pushed notes how a push ended. The time of the first one counts.
func (s *sightings) pushed(uid types.UID, answer *workspace.Answer, err error) {
	s.with(uid, func(g *sighting) {
		if g.since.IsZero() {
			g.since = s.now()
		}
		failed, ok := errors.AsType[*workspace.FailedError](err)
		switch {
		case err == nil && answer.Pushed != nil:
			g.outcome = answer.Pushed.Outcome
		case ok && failed.Reason == v1alpha1.ReasonCredentialBlocked:
			g.blocked = failed.Message
		case ok && !failed.Temporary:
			g.outcome = workspace.PushRefused
		default:
			g.outcome = workspace.PushLost
		}
	})
}

// blocked notes that the push credential cannot be used.
func (s *sightings) blocked(uid types.UID, why string) {
	s.with(uid, func(g *sighting) { g.blocked = why })
}

// reached notes that a server answered.
func (s *sightings) reached(uid types.UID) {
	s.with(uid, func(g *sighting) { g.away = time.Time{} })
}

// patient reports whether a server that cannot be reached is to be asked again.
func (s *sightings) patient(uid types.UID, now time.Time) (again bool) {
	s.with(uid, func(g *sighting) {
		if g.away.IsZero() {
			g.away = now
		}
		again = now.Sub(g.away) < publishPatience
	})
	return again
}

func (s *sightings) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, uid)
}

// answered says what the server said about a push, for people.
func (g sighting) answered() string {
	switch g.outcome {
	case workspace.PushAccepted:
		return "and said that it did"
	case workspace.PushLost:
		return "and gave no answer"
	default:
		return "and its answer is not known"
	}
}
