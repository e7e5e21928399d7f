// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// model is what an effect must be.
type model struct {
	effect   *v1alpha1.ToolEffect
	task     string
	state    v1alpha1.ToolEffectState
	approval string
	attempts int32
	until    time.Time
	response []byte
}

// outstanding is a claim whose holder did not settle it yet.
type outstanding struct {
	claim   *Claim
	of      *model
	attempt int32
}

// driver does random things to a ledger, and knows what must come of them.
type driver struct {
	*world
	random  *rand.Rand
	effects []*model
	ended   map[string]bool
	claims  []outstanding
	// sent is on which effects a request may have been sent, for each approval, and requests for which approvals, for each effect.
	sent, requests map[string][]string
	counts         map[string]int
}

func (d *driver) pick() *model { return d.effects[d.random.IntN(len(d.effects))] }

// approvalOf is mostly the approval of an effect, and sometimes that of another.
func (d *driver) approvalOf(m *model) string {
	if d.random.IntN(8) == 0 {
		m = d.pick()
	}
	return fmt.Sprintf("approval-%s-%d", m.effect.Spec.CallID, d.random.IntN(10)/9)
}

func (d *driver) reserve() {
	task := fmt.Sprint("task-", d.random.IntN(4))
	if _, known := d.ended[task]; !known {
		d.tasks.set(task, types.UID("uid-"+task), v1alpha1.TaskRunning)
	}
	call := fmt.Sprintf("%s-%d", task, d.random.IntN(12))
	e := d.world.reserve(task, call)
	for _, m := range d.effects {
		if m.effect.UID == e.UID {
			return
		}
	}
	d.effects = append(d.effects, &model{effect: e, task: task, state: v1alpha1.ToolEffectPending})
}

// expire changes what a claim or a reconciliation finds to be over.
func (d *driver) expire(m *model) {
	if m.state == v1alpha1.ToolEffectInFlight && !d.clock.Now().Before(m.until) {
		m.state = v1alpha1.ToolEffectOutcomeUnknown
	}
}

func (d *driver) claim() {
	m := d.pick()
	approval := d.approvalOf(m)
	spent := false // on another effect
	for _, other := range d.effects {
		spent = spent || other != m && other.approval == approval
	}
	c, err := d.Claim(d.t.Context(), m.effect, approval)
	switch {
	case spent || m.approval != "" && m.approval != approval:
		if !apierrors.IsForbidden(err) {
			d.t.Fatalf("approval %s of %s: %v", approval, m.effect.Spec.CallID, err)
		}
		return
	case m.state == v1alpha1.ToolEffectPending:
		if err != nil || c.Replayed() {
			d.t.Fatalf("claim of what is pending: %v", err)
		}
		d.counts["claimed"]++
		m.state, m.approval, m.until = v1alpha1.ToolEffectInFlight, approval, c.Effect().Status.LeaseExpiresAt.Time
		m.attempts++
		d.sent[approval] = append(d.sent[approval], m.effect.Name)
		d.requests[m.effect.Name] = append(d.requests[m.effect.Name], approval)
		d.claims = append(d.claims, outstanding{c, m, m.attempts})
		return
	}
	d.expire(m)
	switch m.state {
	case v1alpha1.ToolEffectInFlight:
		if !apierrors.IsConflict(err) {
			d.t.Fatalf("claim of what is in flight: %v", err)
		}
	case v1alpha1.ToolEffectOutcomeUnknown:
		if !IsOutcomeUnknown(err) {
			d.t.Fatalf("claim of what is not known: %v", err)
		}
	default:
		if err != nil || !c.Replayed() || !bytes.Equal(c.Response(), m.response) || c.Effect().Status.State != m.state {
			d.t.Fatalf("replay: %v", err)
		}
		d.counts["replayed"]++
	}
}

// settle settles a claim, perhaps one that was settled before.
func (d *driver) settle() {
	if len(d.claims) == 0 {
		return
	}
	o := d.claims[d.random.IntN(len(d.claims))]
	m, ctx := o.of, d.t.Context()
	open := m.state == v1alpha1.ToolEffectInFlight && m.attempts == o.attempt
	to, response := every[d.random.IntN(len(every))], []byte(nil)
	var err error
	switch to {
	case v1alpha1.ToolEffectInFlight: // it is forgotten
		return
	case v1alpha1.ToolEffectSucceeded:
		response = fmt.Appendf(nil, "response %d", d.random.Uint32())
		err = o.claim.Succeed(ctx, 200, response)
	case v1alpha1.ToolEffectFailed:
		err = o.claim.Fail(ctx, 400, "refused")
	case v1alpha1.ToolEffectOutcomeUnknown:
		err = o.claim.Unknown(ctx, "the connection broke")
	case v1alpha1.ToolEffectPending:
		err = o.claim.HandBack(ctx)
	}
	same := m.state == to && m.attempts == o.attempt
	if (err == nil) != (open || same) {
		d.t.Fatalf("%s becomes %s by claim %d of %d: %v", m.state, to, o.attempt, m.attempts, err)
	}
	if !open {
		d.counts["late"]++
		return
	}
	d.counts[string(to)]++
	m.state, m.response = to, response
	if to == v1alpha1.ToolEffectPending {
		name := m.effect.Name // nothing was sent
		d.sent[m.approval], d.requests[name] = d.sent[m.approval][:len(d.sent[m.approval])-1], d.requests[name][:len(d.requests[name])-1]
		m.approval = ""
	}
}

func (d *driver) reconcile() {
	d.ok(d.Reconcile(d.t.Context()))
	for _, m := range d.effects {
		d.expire(m)
		if m.state == v1alpha1.ToolEffectPending && d.ended[m.task] {
			m.state = v1alpha1.ToolEffectFailed
			d.counts["fenced"]++
		}
	}
}

// restart starts another server. Claims of the one before are lost.
func (d *driver) restart() {
	d.claims = nil
	if d.random.IntN(2) == 0 {
		d.reopen()
		return
	}
	d.losePower(d.random.IntN(101), d.random.Uint64())
}

// race claims an effect many times at once.
func (d *driver) race() {
	m := d.pick()
	approval := "approval-" + m.effect.Spec.CallID + "-0"
	if m.state != v1alpha1.ToolEffectPending || len(d.sent[approval]) > 0 {
		return
	}
	var all sync.WaitGroup
	got := make([]*Claim, 8)
	for i := range got {
		all.Go(func() {
			if c, err := d.Claim(d.t.Context(), m.effect, approval); err == nil {
				got[i] = c
			} else if !apierrors.IsConflict(err) {
				d.t.Error(err)
			}
		})
	}
	all.Wait()
	m.attempts++
	for _, c := range got {
		if c == nil {
			continue
		}
		m.state, m.approval, m.until = v1alpha1.ToolEffectInFlight, approval, c.Effect().Status.LeaseExpiresAt.Time
		d.sent[approval] = append(d.sent[approval], m.effect.Name)
		d.requests[m.effect.Name] = append(d.requests[m.effect.Name], approval)
		d.claims = append(d.claims, outstanding{c, m, m.attempts})
	}
	d.counts["raced"]++
}

// check compares what is stored with the model. At most one request may have been sent for an approval, and for an effect.
func (d *driver) check(after string) {
	for _, m := range d.effects {
		s := d.now(m.effect).Status
		if s.State != m.state || s.ApprovalID != m.approval || s.Attempts != m.attempts {
			d.t.Fatalf("after %s: %s is %s by %q, %d claims; want %s by %q, %d", after, m.effect.Spec.CallID, s.State, s.ApprovalID, s.Attempts, m.state, m.approval, m.attempts)
		}
	}
	for _, by := range []map[string][]string{d.sent, d.requests} {
		for of, all := range by {
			if len(all) > 1 {
				d.t.Fatalf("after %s: of %s there may be the requests %v", after, of, all)
			}
		}
	}
}

// Whatever is done in whatever order, by servers that end at any moment, at most one request is sent for an approval.
func TestRandom(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	for seed := range uint64(4) {
		w := newWorld(t)
		d := &driver{
			world: w, random: rand.New(rand.NewPCG(seed, 1)), ended: map[string]bool{}, sent: map[string][]string{}, requests: map[string][]string{}, counts: total,
		}
		for range 4 {
			d.reserve()
		}
		for step := range 1500 {
			what := "reserve"
			switch n := d.random.IntN(200); {
			case n < 20:
				d.reserve()
			case n < 100:
				what = "claim"
				d.claim()
			case n < 150:
				what = "settle"
				d.settle()
			case n < 170:
				what = "time"
				d.clock.Step(time.Duration(d.random.IntN(20_000)) * time.Millisecond)
			case n < 185:
				what = "reconcile"
				d.reconcile()
			case n < 195:
				what = "race"
				d.race()
			case n < 197:
				what = "restart"
				d.restart()
			case step > 1000:
				what = "the end of a task"
				task := fmt.Sprint("task-", d.random.IntN(2))
				d.ended[task] = true
				d.tasks.set(task, types.UID("uid-"+task), v1alpha1.TaskSucceeded)
			}
			if d.check(fmt.Sprintf("%s, step %d of seed %d", what, step, seed)); t.Failed() {
				return
			}
		}
	}
	for _, what := range []string{"claimed", "replayed", "late", "fenced", "raced", "Succeeded", "Failed", "OutcomeUnknown", "Pending"} {
		if total[what] == 0 {
			t.Errorf("%s never happened: %v", what, total)
		}
	}
	t.Log(total)
}
