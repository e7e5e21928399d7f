// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func newSessions(t *testing.T) (*Sessions, *clocktesting.FakeClock) {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	return NewSessions(SessionOptions{Idle: time.Hour, Life: 10 * time.Hour, Clock: c}), c
}

func begin(t *testing.T, s *Sessions, user string) (*Session, Secrets) {
	t.Helper()
	x, secrets, err := s.Begin(user, "team", "token of "+user)
	if err != nil {
		t.Fatal(err)
	}
	return x, secrets
}

func always(context.Context) bool { return true }

// A session ends when it is idle for too long, and at the end of its life at the latest. An open request is no idleness.
func TestExpiry(t *testing.T) {
	s, c := newSessions(t)
	_, idle := begin(t, s, "ann")
	c.Step(59 * time.Minute)
	if s.Find(idle) == nil {
		t.Fatal("the session ended too early")
	}
	c.Step(59 * time.Minute)
	if s.Find(idle) == nil {
		t.Fatal("the use of a session does not count")
	}
	c.Step(time.Hour)
	if s.Find(idle) != nil {
		t.Error("an idle session did not end")
	}
	streaming, secrets := begin(t, s, "ann")
	ctx, done := s.Use(t.Context(), streaming, always)
	c.Step(9 * time.Hour)
	if s.Find(secrets) == nil || ctx.Err() != nil {
		t.Error("a session with an open request ended as if it were idle")
	}
	c.Step(time.Hour)
	<-ctx.Done()
	done()
	if s.Find(secrets) != nil {
		t.Error("a session did not end with its life")
	}
}

// The end of a session ends what is being answered in it, and so does a credential that is no longer good.
func TestEnd(t *testing.T) {
	s, c := newSessions(t)
	x, secrets := begin(t, s, "ann")
	ctx, done := s.Use(t.Context(), x, always)
	s.End(x)
	s.End(x) // does nothing
	<-ctx.Done()
	done()
	if s.Find(secrets) != nil {
		t.Error("a session that was ended is found")
	}
	x, secrets = begin(t, s, "ann")
	ctx, done = s.Use(t.Context(), x, func(context.Context) bool { return false })
	c.Step(recheck)
	<-ctx.Done()
	done()
	if s.Find(secrets) == nil {
		t.Error("whether the session itself is over is up to the API, which answers 401")
	}
}

// Only both secrets of a session find it, and the server does not keep what it needs to read the credential.
func TestSecrets(t *testing.T) {
	s, _ := newSessions(t)
	x, a := begin(t, s, "ann")
	_, b := begin(t, s, "ann")
	for _, wrong := range []Secrets{{}, {Cookie: a.Cookie}, {Key: a.Key}, {Cookie: a.Cookie, Key: b.Key}, {Cookie: b.Cookie, Key: a.Key}, {Cookie: a.Key, Key: a.Cookie}} {
		if s.Find(wrong) != nil {
			t.Errorf("%+v finds a session", wrong)
		}
	}
	if got, err := x.Credential(a); err != nil || got != "token of ann" {
		t.Errorf("the credential is %q, %v", got, err)
	}
	if _, err := x.Credential(b); err == nil {
		t.Error("the cookie of another session opens the credential")
	}
	if kept := fmt.Sprintf("%+v", *x); strings.Contains(kept, "token of ann") || strings.Contains(kept, a.Cookie) || strings.Contains(kept, a.Key) {
		t.Errorf("the server keeps %s", kept)
	}
}

// A user has a limited number of sessions, and so has the server.
func TestBounds(t *testing.T) {
	s, c := newSessions(t)
	_, first := begin(t, s, "ann")
	for range maxOwn {
		c.Step(time.Second)
		begin(t, s, "ann")
	}
	if s.Find(first) != nil {
		t.Error("the oldest session of a user with too many goes on")
	}
	for i := range maxSessions - maxOwn {
		begin(t, s, fmt.Sprint("user-", i))
	}
	if _, _, err := s.Begin("one-more", "", ""); !errors.Is(err, ErrFull) {
		t.Errorf("one session too many: %v", err)
	}
	begin(t, s, "ann") // in place of another one of hers
	c.Step(time.Hour)
	begin(t, s, "one-more")
	if n := len(s.all); n != 1 {
		t.Errorf("%d sessions are kept after all others have expired", n)
	}
}
