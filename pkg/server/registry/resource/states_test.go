// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/kit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// list returns a page of the parcels that a selector selects.
func (l *ledger) list(ns, selector string, o internalversion.ListOptions) *ParcelList {
	l.t.Helper()
	o.FieldSelector = fields.ParseSelectorOrDie(selector)
	return must[runtime.Object](l.t)(l.storage["parcels"].(registryrest.Lister).List(l.ctx(ns, ""), &o)).(*ParcelList)
}

func names(parcels []Parcel) string {
	var all []string
	for i := range parcels {
		all = append(all, parcels[i].Namespace+"/"+parcels[i].Name)
	}
	return strings.Join(all, " ")
}

func (l *ledger) inState(ns, state string) string {
	l.t.Helper()
	return names(l.list(ns, "status.state="+state, internalversion.ListOptions{}).Items)
}

func (l *ledger) due(at time.Time, limit int) string {
	l.t.Helper()
	var all []Parcel
	for _, p := range must[[]*Parcel](l.t)(l.def.Stored.Due(l.t.Context(), at, limit)) {
		all = append(all, *p)
	}
	return names(all)
}

// A state changes as the table says, whoever writes; otherwise the error names both states and what is allowed.
func TestTransitions(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	l := openLedger(t, t.TempDir(), c, object.Options{})
	sending, retry := lease("w", noon), func(s *ParcelStatus) { s.NextAttempt = metav1.NewTime(noon.Add(time.Minute)) }
	l.create("a", "p")
	for _, step := range []struct {
		to   string
		set  func(*ParcelStatus)
		want string
	}{
		{"Delivered", nil, `state "Pending" cannot become "Delivered" by this request; allowed: Sending`},
		{"RetryScheduled", nil, `state "Pending" cannot become "RetryScheduled" by this request; allowed: Sending`},
		{"", nil, `state "Pending" cannot become ""`},
		{"Unknown", nil, `state "Pending" cannot become "Unknown"`},
		{"Pending", lease("w", noon), `an entry in state "Pending" has no lease`},
		{"Pending", retry, ""},
		{"Sending", nil, `an entry in state "Sending" needs a holder and a lease that ends in the future`},
		{"Sending", lease("", noon), "needs a holder"},
		{"Sending", lease("w", noon.Add(-time.Minute)), "that ends in the future"},
		{"Sending", sending, ""},
		{"Pending", nil, `state "Sending" cannot become "Pending" by this request; allowed: Sending, Delivered, RetryScheduled, DeadLettered`},
		{"Sending", lease("w", noon.Add(time.Minute)), ""}, // longer
		{"Sending", lease("x", noon), `"w" holds the entry until 2026-01-01T12:02:00Z`},
		{"Sending", lease("x", noon.Add(time.Hour)), `"w" holds the entry until`},
		{"RetryScheduled", sending, `an entry in state "RetryScheduled" has no lease`},
		{"RetryScheduled", retry, ""},
		{"DeadLettered", nil, `state "RetryScheduled" cannot become "DeadLettered" by this request; allowed: Sending`},
		{"Sending", sending, ""},
		{"DeadLettered", nil, ""},
		{"Pending", nil, `state "DeadLettered" cannot become "Pending" by this request; allowed: Pending (by the subresource retry)`},
	} {
		err := l.to("a", "p", step.to, step.set)
		if (err == nil) != (step.want == "") || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("to %s: %v, want %q", step.to, err, step.want)
		}
	}
	again := l.storage["parcels/retry"].(registryrest.NamedCreater)
	for i, want := range []bool{true, true, false} { // the first is a dry run
		opts := &metav1.CreateOptions{}
		if i == 0 {
			opts.DryRun = []string{metav1.DryRunAll}
		}
		_, err := again.Create(l.ctx("a", "retry"), "p", &Parcel{}, registryrest.ValidateAllObjectFunc, opts)
		if (err == nil) != want {
			t.Errorf("retry %d: %v", i, err)
		}
	}
	if err := l.to("a", "p", "Sending", sending); err != nil {
		t.Error(err)
	}
	if err := l.to("a", "p", "Delivered", nil); err != nil {
		t.Error(err)
	}
	if err := l.to("a", "p", "Pending", nil); err == nil || !strings.Contains(err.Error(), `state "Delivered" cannot become "Pending" by this request; allowed: none`) {
		t.Error(err)
	}
	// What was appended stays as it is; its labels may change.
	p := l.get("a", "p").DeepCopyObject().(*Parcel)
	p.Spec.Text, p.Labels = "another", map[string]string{"a": "b"}
	update := func(p *Parcel) error {
		_, _, err := l.storage["parcels"].(registryrest.Updater).Update(l.ctx("a", ""), p.Name, registryrest.DefaultUpdatedObjectInfo(p),
			registryrest.ValidateAllObjectFunc, registryrest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		return err
	}
	if err := update(p); !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "status.state") {
		t.Errorf("another spec: %v", err)
	}
	p.Spec.Text = "p"
	if err := update(p); err != nil {
		t.Error(err)
	}
}

// A ledger whose table contradicts itself is not served.
func TestWrongTables(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*resource.StateLedger[*Parcel]){
		"an initial state is needed":      func(s *resource.StateLedger[*Parcel]) { s.States.Initial = nil },
		"a held one is neither initial":   func(s *resource.StateLedger[*Parcel]) { s.States.Held = append(s.States.Held, "Pending") },
		`"Lost" is held or ended`:         func(s *resource.StateLedger[*Parcel]) { s.States.Ended = append(s.States.Ended, "Lost") },
		"by a subresource alone":          func(s *resource.StateLedger[*Parcel]) { s.States.Ended = append(s.States.Ended, "RetryScheduled") },
		"only a held state is taken over": func(s *resource.StateLedger[*Parcel]) { s.States.Held = nil },
		"needs Entry":                     func(s *resource.StateLedger[*Parcel]) { s.Entry = nil },
		"has a Retention":                 func(s *resource.StateLedger[*Parcel]) { s.Kept.TTL = time.Hour },
		"needs the indexed field":         nil,
	} {
		d := parcelDefinition(clock.RealClock{})
		if s := d.Shape.(resource.StateLedger[*Parcel]); change != nil {
			change(&s)
			d.Shape = s
		} else {
			d.Fields[0].Indexed = false
		}
		l := openLedger(t, t.TempDir(), clock.RealClock{}, object.Options{})
		if _, err := d.Storage(t.Context(), resource.Config{Scheme: l.scheme, Clock: clock.RealClock{}, RESTOptions: l.options}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Of many workers that want an entry, one gets it, by a write of what it read as by a change of what is stored. When its lease has
// ended, one other does.
func TestLeaseIsHeldOnce(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	l := openLedger(t, t.TempDir(), c, object.Options{})
	l.create("a", "p")
	for round := range 5 {
		now := noon.Add(time.Duration(round) * time.Hour)
		c.SetTime(now)
		read := l.get("a", "p")
		var held, refused atomic.Int32
		var all sync.WaitGroup
		for i := range 32 {
			claim := lease(fmt.Sprintf("w%d-%d", round, i), now)
			all.Go(func() {
				var err error
				if i%2 == 0 {
					mine := read.DeepCopyObject().(*Parcel)
					mine.Status.State = "Sending"
					claim(&mine.Status)
					err = l.put(mine)
				} else {
					_, err = l.def.UpdateStored(l.ctx("a", ""), "p", func(p *Parcel) error {
						p.Status.State = "Sending"
						claim(&p.Status)
						return nil
					})
				}
				switch {
				case err == nil:
					held.Add(1)
				case apierrors.IsConflict(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "holds the entry until"):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if held.Load() != 1 || refused.Load() != 31 {
			t.Errorf("round %d: %d hold the entry, %d were refused", round, held.Load(), refused.Load())
		}
	}
	// A worker that is late does not end what another one does.
	late := l.get("a", "p").DeepCopyObject().(*Parcel)
	c.SetTime(noon.Add(24 * time.Hour))
	if err := l.to("a", "p", "Sending", lease("next", c.Now())); err != nil {
		t.Fatal(err)
	}
	late.Status.State, late.Status.Holder, late.Status.Until = "Delivered", "", metav1.Time{}
	if err := l.put(late); !apierrors.IsConflict(err) {
		t.Errorf("a late worker: %v", err)
	}
}

// What is due is found in order: next attempts and leases that ended, of all namespaces, and nothing that has ended or waits for
// something else.
func TestDue(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	l := openLedger(t, t.TempDir(), c, object.Options{})
	for i, name := range []string{"first", "held", "scheduled", "idle", "delivered"} {
		c.SetTime(noon.Add(time.Duration(i) * time.Second))
		l.create(string(rune('e'-i)), name)
	}
	for _, err := range []error{
		l.to("d", "held", "Sending", lease("w", noon.Add(time.Hour))),
		l.to("c", "scheduled", "Sending", lease("w", noon)),
		l.to("c", "scheduled", "RetryScheduled", func(s *ParcelStatus) { s.NextAttempt = metav1.NewTime(noon.Add(30 * time.Minute)) }),
		l.to("b", "idle", "Pending", func(s *ParcelStatus) { s.NextAttempt = metav1.Time{} }),
		l.to("a", "delivered", "Sending", lease("w", noon)),
		l.to("a", "delivered", "Delivered", nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		at    time.Duration
		limit int
		want  string
	}{
		{-time.Second, 10, ""},
		{0, 10, "e/first"},
		{29 * time.Minute, 10, "e/first"},
		{30 * time.Minute, 10, "e/first c/scheduled"},
		{2 * time.Hour, 10, "e/first c/scheduled d/held"},
		{2 * time.Hour, 2, "e/first c/scheduled"},
	} {
		if got := l.due(noon.Add(tc.at), tc.limit); got != tc.want {
			t.Errorf("after %s: %q, want %q", tc.at, got, tc.want)
		}
	}
}

// A page by state, and what is due, cost what they return, however many entries there are. Rows are counted, and not time.
func TestCostOfAPage(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	l := openLedger(t, t.TempDir(), c, object.Options{ObjectCacheBytes: -1})
	many := 500
	if kit.Offered(kit.Minutes) {
		many = 2000
	}
	var waiting []string // five of all
	for i := range many {
		name := fmt.Sprintf("p%04d", i)
		l.create("a", name)
		if i%(many/5) == 7 {
			waiting = append(waiting, "a/"+name)
			continue
		}
		for _, state := range []string{"Sending", "Delivered"} {
			set := lease("w", noon)
			if state == "Delivered" {
				set = nil
			}
			if err := l.to("a", name, state, set); err != nil {
				t.Fatal(err)
			}
		}
	}
	cost := func(what string, most int64, do func() string, want string) {
		t.Helper()
		l.engine.rows.Store(0)
		if got := do(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if n := l.engine.rows.Load(); n > most {
			t.Errorf("%s: read %d rows, at most %d", what, n, most)
		} else {
			t.Logf("%s: %d rows", what, n)
		}
	}
	pending := strings.Join(waiting, " ")
	page := func(selector string, limit int64) func() string {
		return func() string { return names(l.list("a", selector, internalversion.ListOptions{Limit: limit}).Items) }
	}
	cost("all that are pending", 30, func() string { return l.inState("a", "Pending") }, pending)
	cost("in all namespaces", 30, func() string { return l.inState("", "Pending") }, pending)
	cost("a page of what is pending", 15, page("status.state=Pending", 2), strings.Join(waiting[:2], " "))
	cost("a page of what was delivered", 20, page("status.state=Delivered", 3), "a/p0000 a/p0001 a/p0002")
	cost("nothing", 10, page("status.state=RetryScheduled", 3), "")
	cost("two selectors", 30, page("status.state=Pending,spec.text="+strings.TrimPrefix(waiting[2], "a/"), 3), waiting[2])
	cost("what is due", 20, func() string { return l.due(noon, 3) }, strings.Join(waiting[:3], " "))
	cost("what was pending before the end", int64(many)*10, func() string { return names(l.list("a", "spec.text=p0007", internalversion.ListOptions{}).Items) }, "a/p0007") // walks all
}

// A list by state is the same as a list of all at its revision, whatever is written meanwhile, also in pages.
func TestListByStateIsOfOneRevision(t *testing.T) {
	t.Parallel()
	l := openLedger(t, t.TempDir(), clocktesting.NewFakeClock(noon), object.Options{ObjectCacheBytes: -1})
	const entries = 40
	for i := range entries {
		l.create("a", fmt.Sprintf("p%02d", i))
	}
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := l.def.UpdateStored(l.ctx("a", ""), fmt.Sprintf("p%02d", w*entries/4+random.IntN(entries/4)), func(p *Parcel) error {
					if p.Status.State != "Sending" {
						p.Status.State = "Sending"
						lease("w", noon)(&p.Status)
						return nil
					}
					p.Status.State, p.Status.Holder, p.Status.Until = "RetryScheduled", "", metav1.Time{}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 100 {
		var got []Parcel
		o := internalversion.ListOptions{Limit: 7}
		for {
			page := l.list("a", "status.state=Sending", o)
			got = append(got, page.Items...)
			if o.Continue = page.Continue; o.Continue == "" {
				o = internalversion.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
				break
			}
		}
		all := l.list("a", "", o)
		want := slices.DeleteFunc(all.Items, func(p Parcel) bool { return p.Status.State != "Sending" })
		if names(got) != names(want) {
			t.Fatalf("by state: %s\nof all:   %s", names(got), names(want))
		}
	}
	close(stop)
	writers.Wait()
}

// A watch by state sees each change once: an entry comes, is changed, and leaves with the state.
func TestWatchOfStates(t *testing.T) {
	t.Parallel()
	l := openLedger(t, t.TempDir(), clocktesting.NewFakeClock(noon), object.Options{})
	l.create("a", "p")
	from := l.list("a", "status.state=Sending", internalversion.ListOptions{})
	w := must[watch.Interface](t)(l.storage["parcels"].(registryrest.Watcher).Watch(l.ctx("a", ""), &internalversion.ListOptions{
		ResourceVersion: from.ResourceVersion, FieldSelector: fields.ParseSelectorOrDie("status.state=Sending"),
	}))
	defer w.Stop()
	for _, err := range []error{
		l.to("a", "p", "Sending", lease("w", noon)),
		l.to("a", "p", "Sending", lease("w", noon.Add(time.Minute))),
		l.to("a", "p", "RetryScheduled", nil),
		l.to("a", "p", "Sending", lease("w", noon)),
		l.to("a", "p", "Delivered", nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added, watch.Deleted} {
		if e := <-w.ResultChan(); e.Type != want {
			t.Errorf("change %d: %s, want %s", i, e.Type, want)
		}
	}
	select {
	case e := <-w.ResultChan():
		t.Errorf("one more: %v", e)
	default:
	}
}

// rows counts the rows of the index.
func (l *ledger) rows() (n int) {
	l.t.Helper()
	it, err := l.engine.Engine.NewIter([]byte("f"), []byte("g"))
	if err != nil {
		l.t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// Entries that have ended leave the store after their retention, with their rows; others stay. One that is retried stays, too.
func TestRetention(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	l := openLedger(t, t.TempDir(), c, object.Options{})
	for _, name := range []string{"delivered", "retried", "pending", "deleted"} {
		l.create("a", name)
	}
	for _, err := range []error{
		l.to("a", "delivered", "Sending", lease("w", noon)), l.to("a", "delivered", "Delivered", nil),
		l.to("a", "retried", "Sending", lease("w", noon)), l.to("a", "retried", "DeadLettered", nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	must[runtime.Object](t)(l.storage["parcels/retry"].(registryrest.NamedCreater).Create(l.ctx("a", "retry"), "retried", &Parcel{}, registryrest.ValidateAllObjectFunc, &metav1.CreateOptions{}))
	if _, _, err := l.storage["parcels"].(registryrest.GracefulDeleter).Delete(l.ctx("a", ""), "deleted", registryrest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	left := func() string { return names(l.list("a", "", internalversion.ListOptions{}).Items) }
	c.Step(retention - time.Minute)
	if got := left(); got != "a/delivered a/pending a/retried" {
		t.Errorf("before: %s", got)
	}
	kit.Await(t, "the end of what was delivered", func() bool {
		c.Step(time.Minute)
		return left() == "a/pending a/retried"
	})
	if n := l.rows(); n != 4 || l.inState("a", "Delivered") != "" {
		t.Errorf("%d rows, want the state and the time of two entries", n)
	}
}

// After a crash the states, the leases and both indexes are as they were: they are one commit.
func TestCrash(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(noon)
	dir, copied := t.TempDir(), t.TempDir()
	l := openLedger(t, dir, c, object.Options{})
	for i := range 20 {
		name := fmt.Sprintf("p%02d", i)
		l.create("a", name)
		if i%2 == 0 {
			if err := l.to("a", name, "Sending", lease("w", noon.Add(time.Duration(i)*time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What a process that is killed now leaves behind.
	for _, entry := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		if entry.IsDir() {
			continue
		}
		data := must[[]byte](t)(os.ReadFile(filepath.Join(dir, entry.Name())))
		if err := os.WriteFile(filepath.Join(copied, entry.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := openLedger(t, copied, c, object.Options{})
	later := noon.Add(1000 * time.Hour)
	for what, f := range map[string]func(*ledger) string{
		"pending": func(l *ledger) string { return l.inState("a", "Pending") },
		"sending": func(l *ledger) string { return l.inState("", "Sending") },
		"due":     func(l *ledger) string { return l.due(later, 100) },
		"rows":    func(l *ledger) string { return fmt.Sprint(l.rows()) },
	} {
		if before, now := f(l), f(after); before != now || before == "" {
			t.Errorf("%s: %q, before %q", what, now, before)
		}
	}
	if err := after.to("a", "p00", "Sending", lease("x", noon)); err == nil || !strings.Contains(err.Error(), `"w" holds the entry`) {
		t.Errorf("the lease after a crash: %v", err)
	}
}

// The roles of a ledger with states cover its status, as of everything that has one.
func TestStateLedgerGrant(t *testing.T) {
	if g := parcelDefinition(clock.RealClock{}).KindGrant(); !g.Status {
		t.Errorf("%+v", g)
	}
}
