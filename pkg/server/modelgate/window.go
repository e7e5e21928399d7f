// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// window is what began under one limit within the period, and who waits for it.
type window struct {
	begun  []*reservation // oldest first
	tokens int64          // of begun
	places []place        // in the order of their turns
}

// place is a task's place in the queue.
type place struct {
	task types.UID
	need int64
	// until is when the place is lost.
	until time.Time
}

// prune removes what is older than the period, and places that were lost.
func (w *window) prune(now time.Time) {
	n := 0
	for n < len(w.begun) && !w.begun[n].at.Add(period).After(now) {
		w.tokens -= w.begun[n].tokens
		n++
	}
	w.begun = slices.Delete(w.begun, 0, n)
	w.places = slices.DeleteFunc(w.places, func(p place) bool { return p.until.Before(now) })
}

func (w *window) idle() bool { return len(w.begun) == 0 && len(w.places) == 0 }

func (w *window) add(o *reservation) {
	w.begun = append(w.begun, o)
	w.tokens += o.tokens
}

func (w *window) remove(o *reservation) {
	if i := slices.Index(w.begun, o); i >= 0 {
		w.begun = slices.Delete(w.begun, i, i+1)
		w.tokens -= o.tokens
	}
}

// change changes the tokens of a request, if it is still within the period.
func (w *window) change(o *reservation, tokens int64) {
	if slices.Contains(w.begun, o) {
		w.tokens += tokens - o.tokens
	}
}

// wait returns the time until a request of a task may begin; 0 if it may begin now. Tasks with an earlier place come
// first.
func (w *window) wait(l Limit, task types.UID, need int64, now time.Time) time.Duration {
	w.prune(now)
	requests, tokens := int64(1), need
	for _, p := range w.places {
		if p.task == task {
			break
		}
		requests, tokens = requests+1, tokens+p.need
	}
	count, sum := int64(len(w.begun)), w.tokens
	for i := 0; ; i++ {
		fits := (l.Requests == 0 || count+requests <= l.Requests) && (l.Tokens == 0 || sum+tokens <= l.Tokens)
		alone := count == 0 && requests == 1
		if fits || alone {
			if i == 0 {
				return 0
			}
			return max(w.begun[i-1].at.Add(period).Sub(now), time.Nanosecond)
		}
		if i == len(w.begun) {
			// Those that wait fill more than a period. The next look is after the first of them began.
			return period
		}
		count, sum = count-1, sum-w.begun[i].tokens
	}
}

// queue gives a task a place at the end, or keeps the one that it has.
func (w *window) queue(task types.UID, need int64, until time.Time) {
	for i := range w.places {
		if w.places[i].task == task {
			w.places[i].need, w.places[i].until = need, until
			return
		}
	}
	w.places = append(w.places, place{task, need, until})
}

// leave gives up a task's place.
func (w *window) leave(task types.UID) {
	w.places = slices.DeleteFunc(w.places, func(p place) bool { return p.task == task })
}
