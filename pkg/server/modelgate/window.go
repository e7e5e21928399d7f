// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/fairshare"
)

// window is what began under one limit within the period, and who waits for it.
type window struct {
	begun  []*reservation // oldest first
	tokens int64          // of begun
	places []place        // in the order in which they came
}

// place is a task's place in the queue.
type place struct {
	task      types.UID
	namespace string
	need      int64
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

// wait returns the time until a request of a task may begin; 0 if it may begin now. Those before it in the queue come first.
func (w *window) wait(l Limit, of place, now time.Time, s fairshare.Shares) time.Duration {
	w.prune(now)
	requests, tokens := int64(1), of.need
	for _, p := range w.before(l, of, s) {
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

// before returns the places that come before that of a task, which is the last one if it has none yet.
func (w *window) before(l Limit, of place, s fairshare.Shares) []place {
	at := slices.IndexFunc(w.places, func(p place) bool { return p.task == of.task })
	if at < 0 {
		at = len(w.places)
	}
	if !slices.ContainsFunc(w.places, func(p place) bool { return p.namespace != of.namespace }) {
		return w.places[:at]
	}
	used := map[string]*use{}
	usedBy := func(namespace string) *use {
		if used[namespace] == nil {
			used[namespace] = &use{}
		}
		return used[namespace]
	}
	for _, o := range w.begun {
		usedBy(o.namespace).add(o.tokens)
	}
	// turns are the uses of the limit before each request that waits. The lower one is first.
	turns := make([]float64, 0, len(w.places)+1)
	for _, p := range append(slices.Clip(w.places), of) { // of is in it twice if it has a place, and the last one is not used
		u := usedBy(p.namespace)
		turns = append(turns, u.part(l)/s.Weight(p.namespace))
		u.add(p.need)
	}
	var first []place
	for i, p := range w.places {
		if i != at && (turns[i] < turns[at] || turns[i] == turns[at] && i < at) {
			first = append(first, p)
		}
	}
	return first
}

// use is what a namespace has used of a limit.
type use struct{ requests, tokens int64 }

func (u *use) add(tokens int64) { u.requests, u.tokens = u.requests+1, u.tokens+tokens }

// part returns the use as a part of the limit.
func (u *use) part(l Limit) (part float64) {
	if l.Requests > 0 {
		part = float64(u.requests) / float64(l.Requests)
	}
	if l.Tokens > 0 {
		part = max(part, float64(u.tokens)/float64(l.Tokens))
	}
	return part
}

// queue gives a task a place at the end, or keeps the one that it has.
func (w *window) queue(of place) {
	for i := range w.places {
		if w.places[i].task == of.task {
			w.places[i] = of
			return
		}
	}
	w.places = append(w.places, of)
}

// leave gives up a task's place.
func (w *window) leave(task types.UID) {
	w.places = slices.DeleteFunc(w.places, func(p place) bool { return p.task == task })
}
