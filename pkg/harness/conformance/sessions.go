// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/harness"
)

// sessions are the checks of sessions.
func sessions() []Check {
	return []Check{
		{Number: "S1", Required: "A session that was created is shown, by itself and in the status, with its generation and state.", Advice: "GET of the session and /v2/status must say the same as the answer to its creation.", needs: []string{"A3"}, run: shownSession},
		{Number: "S2", Required: "A session that was deleted is gone, and the repeated deletion gets the same answer.", Advice: "Keep the operation of the deletion after the session is gone.", needs: []string{"S1", "F3", "R5"}, run: deleted},
		{Number: "F9", Required: "A session that was deleted comes back with a higher generation only.", Advice: "Keep the highest generation of each name after the session is gone.", needs: []string{"F8", "S2"}, run: usedGeneration},
		{Number: "S4", Required: "A session that asks for another profile is refused.", Advice: "Compare profileDigest with the digest that the capabilities say.", needs: []string{"S1"}, run: otherProfile},
		{Number: "S5", Required: "There are at most maxResidentSessions sessions.", Advice: "Refuse more with 429 LimitReached.", needs: []string{"S2"}, run: mostSessions},
	}
}

func shownSession(ctx context.Context, p *probe) error {
	s := p.unmade(7)
	made, err := s.Create(ctx, harness.NewOperation(), harness.SessionSpec{})
	if err != nil {
		return did("creating a session", err)
	}
	got, err := s.Get(ctx)
	if err != nil {
		return did("GET of the session", err)
	}
	st, err := p.client.Status(ctx)
	if err != nil {
		return did("GET /v2/status", err)
	}
	var listed *harness.SessionStatus
	for i := range st.Sessions {
		if st.Sessions[i].ID == s.id {
			listed = &st.Sessions[i]
		}
	}
	switch {
	case made.State != harness.SessionIdle:
		return found("a session without a workspace is %s; it must be idle", made.State)
	case got.ID != s.id || got.Generation != 7 || got.State != made.State:
		return found("GET of the session says %s, generation %d, %s", got.ID, got.Generation, got.State)
	case listed == nil:
		return found("the status does not list the session")
	case listed.Generation != 7 || listed.State != made.State:
		return found("the status says generation %d, %s", listed.Generation, listed.State)
	}
	return nil
}

func deleted(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	r := raw{method: http.MethodDelete, path: harness.PathSession(s.id), generation: 1, operation: harness.NewOperation()}
	first, err := p.send(ctx, r)
	if err != nil {
		return did("deleting a session", err)
	}
	if _, err := s.Get(ctx); !harness.Refused(err, harness.NotFound) {
		return refused("GET of a session that was deleted", err, harness.NotFound)
	}
	again, err := p.send(ctx, r)
	if err != nil {
		return did("the same deletion once more", err)
	}
	if !same(first, again) {
		return found("the first answer was %s, the second %s", first, again)
	}
	_, _, err = s.start(ctx, longLease, "say x")
	if err == nil {
		return found("a prompt was started in a session that was deleted")
	}
	return nil
}

func deletedMeanwhile(ctx context.Context, p *probe) error {
	s, stream, _, err := p.started(ctx, longLease, "await-cancel")
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, harness.NewOperation()); err != nil {
		_ = stream.Close()
		return did("deleting the session", err)
	}
	events, err := p.rest(stream, shortLease)
	if err != nil {
		return err
	}
	return ended(events, harness.CancelledThen)
}

func otherProfile(ctx context.Context, p *probe) error {
	if p.caps.Profile == nil {
		return &inapplicable{"the runtime has no profile"}
	}
	s := p.unmade(1)
	_, err := s.Create(ctx, harness.NewOperation(), harness.SessionSpec{ProfileDigest: "sha256:" + strings.Repeat("0", 64)})
	if err := refused("creating a session for another profile", err, harness.WrongProfile); err != nil {
		return err
	}
	_, err = p.session(ctx, harness.SessionSpec{ProfileDigest: p.caps.Profile.Digest})
	return err
}

// mostTried is the largest limit that is tried.
const mostTried = 64

func mostSessions(ctx context.Context, p *probe) error {
	most := *p.caps.Limits.MaxResidentSessions
	if most > mostTried {
		return &inapplicable{"maxResidentSessions is too large to be tried"}
	}
	st, err := p.client.Status(ctx)
	if err != nil {
		return did("GET /v2/status", err)
	}
	for range most - int64(len(st.Sessions)) {
		if _, err := p.empty(ctx); err != nil {
			return err
		}
	}
	_, err = p.unmade(1).Create(ctx, harness.NewOperation(), harness.SessionSpec{})
	return refused("creating one more session than maxResidentSessions", err, harness.LimitReached)
}
