// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A claim that is handed back leaves the effect as it was, for any approval, and cannot settle it any more.
func TestHandBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.reserve("work", "1")
	first := w.claim(e, "a")
	w.ok(first.HandBack(t.Context()))
	w.is(e, v1alpha1.ToolEffectPending, "")
	w.reopen()
	first.effects = w.Effects
	second := w.claim(e, "a")
	if second.Effect().Status.Attempts != 2 {
		t.Errorf("%+v", second.Effect().Status)
	}
	for what, err := range map[string]error{ // also after it has seen what the second one did
		"hand back": first.HandBack(t.Context()), "succeed": first.Succeed(t.Context(), 200, nil), "fail": first.Fail(t.Context(), 400, ""), "unknown": first.Unknown(t.Context(), ""),
	} {
		code(t, "the first claim: "+what, err, 409, "the claim has ended")
	}
	w.is(e, v1alpha1.ToolEffectInFlight, "")
	w.ok(second.HandBack(t.Context()))
	w.ok(second.HandBack(t.Context())) // is stored already
	third := w.claim(e, "b")
	w.ok(third.Succeed(t.Context(), 200, []byte("third")))
	_, err := w.Claim(t.Context(), e, "a")
	code(t, "the approval that was not used", err, 403)
	w.claim(w.reserve("work", "2"), "a") // it may be used for another
	c, err := w.Claim(t.Context(), e, "b")
	w.ok(err)
	if string(c.Response()) != "third" || c.Effect().Status.Attempts != 3 {
		t.Errorf("%q, %+v", c.Response(), c.Effect().Status)
	}
}

// An effect that was deleted and reserved once more is not the one that was approved.
func TestReservedOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.reserve("work", "1")
	c := w.claim(e, "a")
	w.tasks.set("work", "uid-work", v1alpha1.TaskFailed)
	w.ok(w.o.Stored.Remove(t.Context(), e))
	_, err := w.Claim(t.Context(), e, "a")
	code(t, "deleted", err, 404)
	code(t, "its claim", c.Succeed(t.Context(), 200, nil), 404)
	w.tasks.set("work", "uid-work", v1alpha1.TaskRunning)
	again := w.reserve("work", "1")
	_, err = w.Claim(t.Context(), e, "a")
	code(t, "reserved once more", err, 409, "reserved once more")
	code(t, "its claim", c.HandBack(t.Context()), 409, "reserved once more")
	w.is(again, v1alpha1.ToolEffectPending, "")
}

// Settlements are stored although the caller has gone; nothing is claimed for one that has.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	e := w.reserve("work", "1")
	if _, err := w.Claim(gone, e, "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.is(e, v1alpha1.ToolEffectPending, "")
	for state, settle := range map[v1alpha1.ToolEffectState]func(*Claim) error{
		v1alpha1.ToolEffectSucceeded:      func(c *Claim) error { return c.Succeed(gone, 200, []byte("r")) },
		v1alpha1.ToolEffectFailed:         func(c *Claim) error { return c.Fail(gone, 400, "") },
		v1alpha1.ToolEffectOutcomeUnknown: func(c *Claim) error { return c.Unknown(gone, "") },
		v1alpha1.ToolEffectPending:        func(c *Claim) error { return c.HandBack(gone) },
	} {
		c := w.claim(w.reserve("work", string(state)), string(state))
		w.ok(settle(c))
		w.is(c.Effect(), state, "")
	}
	again, err := w.Claim(t.Context(), w.reserve("work", "Succeeded"), "Succeeded")
	w.ok(err)
	if string(again.Response()) != "r" {
		t.Errorf("%q", again.Response())
	}
}

// Messages lose what looks like a secret, and are bounded.
func TestMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.reserve("work", "1"), "a")
	w.ok(c.Fail(t.Context(), 401, "bad header\nAuthorization: Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345\nof the request"))
	if m := w.now(c.Effect()).Status.Message; strings.Contains(m, "ghp_") || !strings.HasPrefix(m, "bad header") || !strings.HasSuffix(m, "of the request") {
		t.Errorf("%q", m)
	}
	c = w.claim(w.reserve("work", "2"), "b")
	w.ok(c.Unknown(t.Context(), strings.Repeat("é", 2000)))
	if m := w.now(c.Effect()).Status.Message; len(m) > 1024 || len(m) < 1000 || !utf8.ValidString(m) || !strings.HasSuffix(m, "[shortened]") {
		t.Errorf("%d bytes: %q", len(m), m)
	}
}
