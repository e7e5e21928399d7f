// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a log. With a nil disk it uses a folder of the real file system.
func open(t testing.TB, disk *localtest.Disk, o eventlog.Options) *eventlog.Log {
	t.Helper()
	eo := local.Options{Dir: t.TempDir(), OnFatal: func(err error) { t.Errorf("fatal: %v", err) }}
	if disk != nil {
		eo.Dir, eo.FS = localtest.Dir, disk.FS()
	}
	e, err := local.Open(context.Background(), eo)
	if err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Open(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), e.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func of(typ string) *v1alpha1.ExecutionEvent {
	return &v1alpha1.ExecutionEvent{Type: v1alpha1.EventType(typ)}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Many writers and readers at once: dense sequences and cursors, one result per
// de-duplication key, and every watch sees all of it in order.
func TestConcurrent(t *testing.T) {
	l := open(t, nil, eventlog.Options{WatchQueue: 16, CachedStreams: 4})
	ctx := context.Background()
	const writers, each, streams = 8, 60, 4
	var readers sync.WaitGroup
	for _, q := range []eventlog.Query{{}, {Namespace: "n"}, {Namespace: "n", Task: "t0"}, {Namespace: "n", Session: "s"}} {
		w := must[watch.Interface](t)(l.Watch(ctx, q, 1, eventlog.WatchOptions{}))
		defer w.Stop()
		want := writers * each
		if q.Task != "" {
			want /= streams
		}
		readers.Go(func() {
			last := uint64(0)
			for range want {
				e := <-w.ResultChan()
				o, ok := e.Object.(*v1alpha1.ExecutionEvent)
				if !ok {
					t.Errorf("%+v: got %+v", q, e)
					return
				}
				if rev, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil || rev <= last || o.Kind != "" {
					t.Errorf("%+v: %s after %d", q, o.ResourceVersion, last)
				} else {
					last = rev
				}
				o.Kind = "changed" // as an encoder does to what it is given
			}
		})
	}
	tails := make([]*eventlog.Tail, streams)
	for i := range tails {
		s := eventlog.Stream{Namespace: "n", Task: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("u", i))}
		tails[i] = must[*eventlog.Tail](t)(l.TailTask(s, 0, nil))
		defer tails[i].Close()
		readers.Go(func() {
			for next := int64(1); next <= writers*each/streams; {
				p, err := tails[i].Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range p.Events {
					if e.Seq != next {
						t.Errorf("tail got %d, want %d", e.Seq, next)
					}
					next++
				}
			}
		})
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				task := fmt.Sprint("t", (w+i)%streams)
				s := eventlog.Stream{Namespace: "n", Task: task, UID: types.UID("u" + task[1:]), Session: "s"}
				e := of("ToolCallStarted")
				e.DedupKey = fmt.Sprintf("%d/%d", w, i)
				var wgDup sync.WaitGroup
				var results [2]int64
				for k := range results { // the same append twice at the same time
					wgDup.Go(func() {
						got, err := l.Append(ctx, s, []*v1alpha1.ExecutionEvent{e})
						if err != nil {
							t.Error(err)
							return
						}
						results[k] = got[0].Seq
					})
				}
				wgDup.Wait()
				if results[0] != results[1] {
					t.Errorf("one key has seq %d and %d", results[0], results[1])
				}
			}
		})
	}
	wg.Wait()
	readers.Wait()
	for i := range streams {
		s := eventlog.Stream{Namespace: "n", Task: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("u", i))}
		p := must[*eventlog.StreamPage](t)(l.TaskPage(ctx, s, 0, 1000, nil))
		if len(p.Events) != writers*each/streams {
			t.Errorf("%s has %d events", s, len(p.Events))
		}
		for k, e := range p.Events {
			if e.Seq != int64(k)+1 {
				t.Errorf("%s: seq %d at %d", s, e.Seq, k)
			}
		}
	}
	p := must[*eventlog.StreamPage](t)(l.SessionPage(ctx, "n", "s", 0, 1000, nil))
	if len(p.Events) != writers*each || p.Latest != writers*each {
		t.Errorf("session has %d events, latest %d", len(p.Events), p.Latest)
	}
	for k, e := range p.Events {
		if e.Seq != int64(k)+1 {
			t.Fatalf("cursor %d at %d", e.Seq, k)
		}
	}
}

// Pebble shows a batch before its sync. While a sync hangs, no reader may see the batch.
func TestNothingBeforeDurable(t *testing.T) {
	disk := localtest.NewDisk()
	l := open(t, disk, eventlog.Options{CachedStreams: 4})
	ctx := context.Background()
	a := eventlog.Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}
	b := eventlog.Stream{Namespace: "n", Task: "b", UID: "b", Session: "s"}
	must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, a, []*v1alpha1.ExecutionEvent{of("TaskStarted")}))
	w := must[watch.Interface](t)(l.Watch(ctx, eventlog.Query{}, 2, eventlog.WatchOptions{}))
	defer w.Stop()

	hanging, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.Fail(func(op localtest.Op) error {
		if op.Log() && op.Kind == localtest.Sync {
			once.Do(func() { close(hanging) })
			<-release
		}
		return nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := l.Append(ctx, b, []*v1alpha1.ExecutionEvent{of("TaskStarted"), of("TaskSucceeded")})
		if err == nil {
			err = l.DeleteStream(ctx, a)
		}
		done <- err
	}()
	<-hanging

	page := must[*eventlog.Page](t)(l.List(ctx, eventlog.Query{}))
	task := must[*eventlog.StreamPage](t)(l.TaskPage(ctx, b, 0, 0, nil))
	session := must[*eventlog.StreamPage](t)(l.SessionPage(ctx, "n", "s", 0, 0, nil))
	head := must[eventlog.Head](t)(l.Head(ctx, b))
	if _, err := l.Get(ctx, "n", "b.0000000001"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if len(page.Items) != 1 || page.Revision != 2 || len(task.Events) != 0 || len(session.Events) != 1 || session.Latest != 1 || head != (eventlog.Head{}) {
		t.Errorf("seen before it is durable: list %d at %d, task %d, session %d of %d, head %+v",
			len(page.Items), page.Revision, len(task.Events), len(session.Events), session.Latest, head)
	}
	select {
	case e := <-w.ResultChan():
		t.Errorf("delivered before it is durable: %+v", e)
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED b.0000000001", "ADDED b.0000000002", "DELETED a.0000000001"} {
		e := <-w.ResultChan()
		if got := fmt.Sprintf("%s %s", e.Type, e.Object.(*v1alpha1.ExecutionEvent).Name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := l.Get(ctx, "n", "a.0000000001"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("get of a deleted event: %v", err)
	}
}

// The events given are not changed, and the results are the caller's own.
func TestAppendLeavesItsInputAlone(t *testing.T) {
	l := open(t, localtest.NewDisk(), eventlog.Options{})
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a"}
	in := of("TaskStarted")
	in.Summary, in.Labels = "token=abc", map[string]string{"x": "y"}
	got := must[[]*v1alpha1.ExecutionEvent](t)(l.Append(context.Background(), s, []*v1alpha1.ExecutionEvent{in}))
	if in.Summary != "token=abc" || in.Seq != 0 || got[0].Summary != "token=[REDACTED]" || got[0].Labels != nil {
		t.Errorf("in %q %d, out %q %v", in.Summary, in.Seq, got[0].Summary, got[0].Labels)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := open(t, localtest.NewDisk(), eventlog.Options{Registerer: reg})
	ctx := context.Background()
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a"}
	secret := of("ToolCallFailed")
	secret.Summary = "password=x"
	started := of("TaskStarted")
	started.DedupKey = "once"
	must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, s, []*v1alpha1.ExecutionEvent{started, secret, of("TaskFailed")}))
	must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, s, []*v1alpha1.ExecutionEvent{started}))
	if _, err := l.Append(ctx, s, []*v1alpha1.ExecutionEvent{of("TaskStarted")}); !errors.Is(err, eventlog.ErrClosed) {
		t.Error(err)
	}
	if _, err := l.Append(ctx, s, []*v1alpha1.ExecutionEvent{of("made up")}); err == nil {
		t.Error("an unknown type is accepted")
	}
	for name, want := range map[string]int{
		"platform_execution_events_appended_total":         3,
		"platform_execution_event_append_failures_total":   2,
		"platform_execution_event_append_duration_seconds": 5, // of it, 4 types times results and "unknown"
		"platform_execution_event_redactions_total":        1,
		"platform_execution_event_truncations_total":       0,
	} {
		if got, err := testutil.GatherAndCount(reg, name); err != nil || got != want {
			t.Errorf("%s has %d series, want %d, %v", name, got, want, err)
		}
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP platform_execution_events_appended_total Execution events that were stored.
# TYPE platform_execution_events_appended_total counter
platform_execution_events_appended_total{event_type="TaskFailed",stream_type="task"} 1
platform_execution_events_appended_total{event_type="TaskStarted",stream_type="task"} 1
platform_execution_events_appended_total{event_type="ToolCallFailed",stream_type="task"} 1
`), "platform_execution_events_appended_total"); err != nil {
		t.Error(err)
	}
}

// Times and failures are derived from events as they are stored.
func TestDerivedMetrics(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	disk := localtest.NewDisk()
	ctx := context.Background()
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a"}
	with := func(typ, content string) *v1alpha1.ExecutionEvent {
		e := of(typ)
		e.Content = &apiextensionsv1.JSON{Raw: []byte(content)}
		return e
	}
	reg := prometheus.NewRegistry()
	l := open(t, disk, eventlog.Options{Clock: fake, Registerer: reg, PurgeInterval: -1})
	for _, e := range []*v1alpha1.ExecutionEvent{
		of("TaskCreated"), of("TaskStarted"), of("TaskStarted"),
		with("ModelRequestCompleted", `{"nested": {"durationMs": 9}, "durationMs": 1500}`),
		with("ModelRequestFailed", `{"durationMs": 250, "errorClass": "rate_limited"}`),
		with("ToolCallCompleted", `{"durationMs": -5}`),
		with("ToolCallCompleted", `{"durationMs": 99999999999999999999}`),
		with("ToolCallFailed", `{"durationMs": 2000, "errorType": "made up"}`),
		with("WorkerFailed", `{"reason": "ServerUnreachable"}`),
		with("TaskFailed", `["reason"]`),
	} {
		fake.Step(2 * time.Second)
		must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, s, []*v1alpha1.ExecutionEvent{e}))
	}
	got := map[string]string{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.Contains(f.GetName(), "derived") {
			continue
		}
		for _, m := range f.Metric {
			key := ""
			for _, p := range m.Label {
				key += p.GetValue() + " "
			}
			if h := m.GetHistogram(); h != nil {
				got[key] = fmt.Sprintf("%d times %.2fs", h.GetSampleCount(), h.GetSampleSum())
			} else {
				got[key] = fmt.Sprint(m.GetCounter().GetValue())
			}
		}
	}
	want := map[string]string{
		"queue succeeded ": "1 times 2.00s", "run failed ": "1 times 16.00s",
		"model_request succeeded ": "1 times 1.50s", "model_request failed ": "1 times 0.25s", "tool_call failed ": "1 times 2.00s",
		"limit ModelRequestFailed ": "1", "other ToolCallFailed ": "1", "unavailable WorkerFailed ": "1", "other TaskFailed ": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// allocations returns how many allocations a call makes. It returns the smallest of several measurements,
// because each also counts other goroutines, including background work of the store.
func allocations(f func()) float64 {
	least := testing.AllocsPerRun(20, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(20, f))
	}
	return least
}

// The cost of a page and of an append does not depend on the length of the stream.
func TestCostDoesNotGrow(t *testing.T) {
	l := open(t, localtest.NewDisk(), eventlog.Options{})
	ctx := context.Background()
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}
	fill := func(n int) {
		batch := make([]*v1alpha1.ExecutionEvent, 500)
		for range n / len(batch) {
			for i := range batch {
				batch[i] = of("ToolCallStarted")
			}
			must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, s, batch))
		}
		rare := of("ToolCallFailed")
		rare.Severity, rare.DedupKey = "error", strconv.Itoa(n)
		must[[]*v1alpha1.ExecutionEvent](t)(l.Append(ctx, s, []*v1alpha1.ExecutionEvent{rare}))
	}
	costs := func() map[string]float64 {
		list := func(q eventlog.Query) func() {
			return func() {
				q.Limit = 10
				must[*eventlog.Page](t)(l.List(ctx, q))
			}
		}
		return map[string]float64{
			"list":     allocations(list(eventlog.Query{})),
			"task":     allocations(list(eventlog.Query{Namespace: "n", Task: "a"})),
			"severity": allocations(list(eventlog.Query{Namespace: "n", Severity: []v1alpha1.EventSeverity{"error"}})),
			"type":     allocations(list(eventlog.Query{Namespace: "n", Task: "a", Types: []v1alpha1.EventType{"ToolCallFailed"}})),
			"page":     allocations(func() { must[*eventlog.StreamPage](t)(l.TaskPage(ctx, s, 400, 10, nil)) }),
			"timeline": allocations(func() { must[*eventlog.StreamPage](t)(l.SessionPage(ctx, "n", "s", 400, 10, nil)) }),
			"last page": allocations(func() {
				must[*eventlog.StreamPage](t)(l.TaskSpan(ctx, s, eventlog.Span{Backward: true, Limit: 10}))
			}),
			"counts": allocations(func() { must[*eventlog.Counts](t)(l.Count(ctx, s, nil, 0)) }), // buckets read marks, whose number is bounded
			"last of a type": allocations(func() {
				must[*eventlog.StreamPage](t)(l.TaskSpan(ctx, s, eventlog.Span{Backward: true, Limit: 1, Types: []v1alpha1.EventType{"ToolCallFailed"}}))
			}),
			"end of the timeline": allocations(func() {
				must[*eventlog.StreamPage](t)(l.SessionSpan(ctx, "n", "s", eventlog.Span{Backward: true, Limit: 10}))
			}),
		}
	}
	fill(1000)
	poll := func(after int64) float64 {
		return allocations(func() { must[*eventlog.StreamPage](t)(l.SessionPage(ctx, "n", "s", after, 10, nil)) })
	}
	if idle := poll(1001); idle > 8 {
		t.Errorf("a poll with nothing new allocates %.0f times, as if it read", idle)
	}
	small := costs()
	fill(19000)
	for name, large := range costs() {
		if large > 2*small[name]+50 {
			t.Errorf("%s: %.0f allocations at 1,000 events, %.0f at 20,000", name, small[name], large)
		}
	}
}

func TestWatchErrors(t *testing.T) {
	l := open(t, localtest.NewDisk(), eventlog.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := l.Watch(ctx, eventlog.Query{Types: []v1alpha1.EventType{"x"}}, 0, eventlog.WatchOptions{}); err == nil {
		t.Error("a watch of an unknown type begins")
	}
	w := must[watch.Interface](t)(l.Watch(ctx, eventlog.Query{}, 0, eventlog.WatchOptions{SendInitialEvents: new(false)}))
	cancel()
	if e, ok := <-w.ResultChan(); ok {
		t.Errorf("a cancelled watch sends %+v", e)
	}
	w.Stop()
	w.Stop()
}

// A live tail that receives events together with the deletion of their stream returns the events first.
func TestTailReturnsWhatWasStoredBeforeTheDeletion(t *testing.T) {
	l := open(t, nil, eventlog.Options{PurgeInterval: -1})
	s := eventlog.Stream{Namespace: "default", Task: "a", UID: "u"}
	add := func(types ...string) {
		t.Helper()
		var events []*v1alpha1.ExecutionEvent
		for _, typ := range types {
			events = append(events, of(typ))
		}
		if _, err := l.Append(t.Context(), s, events); err != nil {
			t.Fatal(err)
		}
	}
	add("TaskStarted")
	all := must[*eventlog.Tail](t)(l.TailTask(s, 0, nil))
	defer all.Close()
	some := must[*eventlog.Tail](t)(l.TailTask(s, 0, []v1alpha1.EventType{"TaskStarted"}))
	defer some.Close()
	for _, tail := range []*eventlog.Tail{all, some} { // now both are live
		if p, err := tail.Next(t.Context()); err != nil || len(p.Events) != 1 {
			t.Fatal(p, err)
		}
	}
	add("WorkerStarted", "TaskCancelled")
	if err := l.DeleteStream(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for tail, want := range map[*eventlog.Tail]int{all: 2, some: 0} {
		p, err := tail.Next(t.Context())
		if err != nil || len(p.Events) != want || p.Head.Terminal != "TaskCancelled" {
			t.Errorf("%+v, %v, want %d events and the end", p, err, want)
		}
		if _, err := tail.Next(t.Context()); !errors.Is(err, eventlog.ErrDeleted) {
			t.Errorf("behind the deletion: %v", err)
		}
	}
}

// strict is a projection that refuses events of one type, and fails the test if it has to count a refused one.
type strict struct {
	t       *testing.T
	refused v1alpha1.EventType
	err     error
	counted atomic.Int64
}

func (s *strict) Admit(c *eventlog.Change) error {
	for a := range c.Appended() {
		if a.Event.Type == s.refused {
			return s.err
		}
	}
	return nil
}

func (s *strict) Project(b engine.Batch, c *eventlog.Change) error {
	for a := range c.Appended() {
		if a.Event.Type == s.refused {
			s.t.Errorf("%s/%d was refused, and is counted", c.Stream, a.Seq)
		}
		if c.Bytes <= 0 || c.At.IsZero() {
			s.t.Errorf("%s/%d: %+v", c.Stream, a.Seq, c)
		}
		s.counted.Add(1)
	}
	return b.Set([]byte("zcounted"), nil)
}

// An event that a projection refuses is stored by no projection, including earlier ones, and takes no seq and no revision.
func TestProjectionRefuses(t *testing.T) {
	refusal := errors.New("not today")
	s := &strict{t: t, refused: v1alpha1.EventModelMessage, err: refusal}
	l := open(t, nil, eventlog.Options{Projections: []eventlog.Projection{s}, Limits: eventlog.Limits{NamespaceBytes: 4000}})
	a := eventlog.Stream{Namespace: "n", Task: "t", UID: "u"}
	appends := func(types ...string) error {
		var events []*v1alpha1.ExecutionEvent
		for _, typ := range types {
			events = append(events, of(typ))
		}
		_, err := l.Append(t.Context(), a, events)
		return err
	}
	for range 20 { // more than the namespace may hold, had it counted them
		if err := appends("ToolCallStarted", "ModelMessage"); !errors.Is(err, refusal) {
			t.Fatalf("refused append: %v", err)
		}
	}
	if got := l.Revision(); got != 1 {
		t.Errorf("refused appends moved the store to revision %d", got)
	}
	if err := appends("ToolCallStarted", "ToolCallCompleted"); err != nil {
		t.Fatal(err)
	}
	if h := must[eventlog.Head](t)(l.Head(t.Context(), a)); h.LatestSeq != 2 || s.counted.Load() != 2 {
		t.Errorf("the stream is at %d, %d are counted, want 2", h.LatestSeq, s.counted.Load())
	}
}
