// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// Of 64 that claim an effect at once, one sends.
func TestOneClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	effects := make([]*v1alpha1.ToolEffect, 200)
	for i := range effects {
		effects[i] = w.reserve("work", fmt.Sprint(i))
	}
	w.disk.Fail(func(localtest.Op) error { // others go on while a write becomes durable
		for range 100 {
			runtime.Gosched()
		}
		return nil
	})
	defer w.disk.Fail(nil)
	type claims struct {
		effect   func(i int) *v1alpha1.ToolEffect
		approval func(i int) string
		refused  func(error) bool
	}
	cases := map[string]claims{
		"one effect, one approval":   {func(int) *v1alpha1.ToolEffect { return effects[0] }, func(int) string { return "a" }, apierrors.IsConflict},
		"one effect, many approvals": {func(int) *v1alpha1.ToolEffect { return effects[1] }, func(i int) string { return fmt.Sprint("many-", i) }, apierrors.IsForbidden},
	}
	for round := range 20 {
		cases[fmt.Sprint("many effects, one approval, ", round)] = claims{
			func(i int) *v1alpha1.ToolEffect { return effects[2+round*8+i%8] }, func(int) string { return fmt.Sprint("round-", round) },
			func(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsConflict(err) },
		}
	}
	for name, tc := range cases {
		var claimed atomic.Int32
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				c, err := w.Claim(t.Context(), tc.effect(i), tc.approval(i))
				switch {
				case err == nil && !c.Replayed():
					claimed.Add(1)
				case err == nil || !tc.refused(err):
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		all.Wait()
		if claimed.Load() != 1 {
			t.Errorf("%s: %d claims", name, claimed.Load())
		}
	}
}

// What the tool returned is returned again byte for byte, also by another server, and only for the same approval.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	odd := []byte("{\"a\":  1.0,\n\"b\": \"\x00\xff\u2028\"} ")
	responses := map[string][]byte{"odd": odd, "empty": nil, "largest": bytes.Repeat([]byte("x"), MaxResponseBytes)}
	for call, response := range responses {
		c := w.claim(w.reserve("work", call), "approval of "+call)
		w.ok(c.Succeed(t.Context(), 201, response))
		w.ok(c.Succeed(t.Context(), 201, response)) // is stored already
		sum := sha256.Sum256(response)
		s := w.now(c.Effect()).Status
		want := v1alpha1.ToolEffectStatus{
			State: v1alpha1.ToolEffectSucceeded, ApprovalID: "approval of " + call, Attempts: 1, ResponseStatus: 201, ResponseDigest: hex.EncodeToString(sum[:]), ResponseBytes: int64(len(response)),
		}
		if s.UpdatedAt = nil; s != want {
			t.Errorf("%s: %+v", call, s)
		}
	}
	for range 2 {
		for call, response := range responses {
			e := w.reserve("work", call)
			c, err := w.Claim(t.Context(), e, "approval of "+call)
			w.ok(err)
			if !c.Replayed() || !bytes.Equal(c.Response(), response) || c.Effect().Status.State != v1alpha1.ToolEffectSucceeded || c.Effect().Status.ResponseStatus != 201 {
				t.Errorf("%s: %v, %d bytes, %+v", call, c.Replayed(), len(c.Response()), c.Effect().Status)
			}
			code(t, "a replayed claim that succeeds", c.Succeed(t.Context(), 200, []byte("other")), 409, "the claim has ended")
			code(t, "a replayed claim that is handed back", c.HandBack(t.Context()), 409, "the claim has ended")
			_, err = w.Claim(t.Context(), e, "another")
			code(t, "another approval", err, 403, "another approval was spent on it")
			_, err = w.Claim(t.Context(), w.reserve("work", "fresh"), "approval of "+call)
			code(t, "another effect", err, 403, "the approval was spent on "+e.Name)
			_, err = w.Claim(t.Context(), e, "")
			code(t, "no approval", err, 400, "approvalId")
		}
		w.losePower(0, 7)
	}
	failed := w.in(v1alpha1.ToolEffectFailed, "failed")
	c, err := w.Claim(t.Context(), failed, "approval of failed")
	w.ok(err)
	if s := c.Effect().Status; !c.Replayed() || s.State != v1alpha1.ToolEffectFailed || s.ResponseStatus != 422 || s.Message != "refused" || c.Response() != nil {
		t.Errorf("%+v", s)
	}
	unknown := w.in(v1alpha1.ToolEffectOutcomeUnknown, "unknown")
	_, err = w.Claim(t.Context(), unknown, "approval of unknown")
	code(t, "unknown", err, 502, "the connection broke", unknown.Name)
	if !IsOutcomeUnknown(err) || IsOutcomeUnknown(errors.New("other")) || IsOutcomeUnknown(nil) {
		t.Error("the reason of the error")
	}
	running := w.in(v1alpha1.ToolEffectInFlight, "running")
	_, err = w.Claim(t.Context(), running, "approval of running")
	code(t, "in flight", err, 409, "still executing")
}
