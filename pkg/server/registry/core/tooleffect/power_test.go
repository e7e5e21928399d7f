// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// The power fails at each moment of a call. If the request was sent, it is not sent again; if not, it still can be.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	type moment struct {
		disk *localtest.Disk
		sent bool
		step string
	}
	seen := map[v1alpha1.ToolEffectState]int{}
	for _, unsynced := range []int{0, 50, 100} {
		w := newWorld(t)
		var mu sync.Mutex
		var moments []moment
		step, sent := "", false
		at := func(now string, isSent bool) {
			mu.Lock()
			defer mu.Unlock()
			step, sent = now, isSent
		}
		w.disk.Fail(func(op localtest.Op) error {
			if op.Log() && op.Kind == localtest.Sync {
				mu.Lock()
				defer mu.Unlock()
				moments = append(moments, moment{w.disk.Crash(unsynced, uint64(len(moments))), sent, step})
			}
			return nil
		})
		at("reserve", false)
		e := w.reserve("work", "1")
		at("claim", false)
		c := w.claim(e, "a")
		at("hand back", false)
		w.ok(c.HandBack(t.Context()))
		at("claim again", false)
		c = w.claim(e, "a")
		at("succeed", true)
		w.ok(c.Succeed(t.Context(), 200, []byte("response")))
		at("over", true)
		w.disk.Fail(nil)
		moments = append(moments, moment{w.disk.Crash(unsynced, 0), true, "over"})
		for i, m := range moments {
			w.close()
			w.disk, w.clock = m.disk, clocktesting.NewFakeClock(noon)
			w.open()
			row, err := w.Get(t.Context(), "default", e.Name)
			if apierrors.IsNotFound(err) && m.step == "reserve" {
				continue
			}
			w.ok(err)
			state := row.Status.State
			seen[state]++
			again, err := w.Claim(t.Context(), row, "a")
			name := fmt.Sprintf("moment %d, %s, %d%% kept, %s", i, m.step, unsynced, state)
			switch {
			case err == nil && !again.Replayed():
				if m.sent || state != v1alpha1.ToolEffectPending {
					t.Errorf("%s: sent once more", name)
				}
				continue
			case err == nil:
				if string(again.Response()) != "response" || !m.sent {
					t.Errorf("%s: %q", name, again.Response())
				}
				continue
			}
			if code(t, name, err, 409, "still executing"); m.step == "reserve" || m.step == "over" {
				t.Errorf("%s: %v", name, err)
			}
			w.clock.Step(time.Minute)
			w.ok(w.Reconcile(t.Context()))
			_, err = w.Claim(t.Context(), row, "a")
			code(t, name, err, 502)
		}
	}
	if seen[v1alpha1.ToolEffectPending] == 0 || seen[v1alpha1.ToolEffectInFlight] == 0 || seen[v1alpha1.ToolEffectSucceeded] == 0 {
		t.Errorf("found %v", seen)
	}
}
