// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// recorder appends the run's events to the task's stream, and writes a line for each to the
// task's log. The n-th event of an attempt has the same de-duplication key however often it is
// sent.
type recorder struct {
	prefix string
	// attempt is that of the events, and began is when their clock began; 0 for a worker that only delivers what
	// another one recorded.
	attempt int32
	began   time.Time
	secret  *secrets
	log     *taskLog
	out     outbox[*v1alpha1.ExecutionEvent]
	// now sends an event without the queue.
	now func(context.Context, *v1alpha1.ExecutionEvent) error

	// cancelled is called when the server refuses an event because the task was cancelled. It may be called several times.
	cancelled func()

	// tail is the end of the last event's text, as it was.
	tailMu sync.Mutex
	tail   redact.Tail

	// mu keeps the keys in the order of the queue.
	mu sync.Mutex
	n  int
}

var (
	_ runner.Recorder = (*recorder)(nil)
	_ runner.Log      = (*taskLog)(nil)
)

// opening is how long the event that the worker has started waits for others. It is on disk meanwhile, and a request to a model
// does not wait for the rest of this time (see Begin).
const opening = 50 * time.Millisecond

func newRecorder(c *Config, a *client.API, clk clock.Clock, s *secrets, log *taskLog) *recorder {
	r := &recorder{cancelled: func() {}, prefix: fmt.Sprintf("%s/%d/", c.TaskUID, c.Attempt), began: clk.Now(), secret: s, log: log}
	if !c.Deliver {
		r.attempt = int32(c.Attempt)
	}
	r.out = outbox[*v1alpha1.ExecutionEvent]{
		name: "events", size: sizeOfEvent, clock: clk, opening: opening, encode: func(e *v1alpha1.ExecutionEvent) ([]byte, error) { return json.Marshal(e) },
		send: func(ctx context.Context, batch []*v1alpha1.ExecutionEvent) error {
			return r.heard(appendEvents(ctx, a, c, batch))
		},
	}
	r.now = func(ctx context.Context, e *v1alpha1.ExecutionEvent) error {
		return r.heard(appendEvents(ctx, a, c, []*v1alpha1.ExecutionEvent{e}))
	}
	return r
}

// heard notices that the task was cancelled.
func (r *recorder) heard(err error) error {
	if cancelled(err) {
		r.cancelled()
	}
	return err
}

// cancelled reports whether the server refused an event because it begins work of a task that was cancelled.
func cancelled(err error) bool { return spent(err, v1alpha1.ReasonCancelRequested) != "" }

// appendEvents appends a batch as one commit.
func appendEvents(ctx context.Context, a *client.API, c *Config, batch []*v1alpha1.ExecutionEvent) error {
	tasks := a.CoreV1alpha1().Tasks(c.TaskNamespace)
	if len(batch) == 1 {
		return tasks.AppendEvent(ctx, c.TaskName, batch[0])
	}
	list := &v1alpha1.ExecutionEventList{Items: make([]v1alpha1.ExecutionEvent, 0, len(batch))}
	for _, e := range batch {
		list.Items = append(list.Items, *e)
	}
	return tasks.AppendEvents(ctx, c.TaskName, list)
}

// Commit records an event and returns when it is stored, with everything that was recorded
// before it. It waits as long as the API is unavailable.
func (r *recorder) Commit(ctx context.Context, e *v1alpha1.ExecutionEvent) error {
	before := r.out.lostSoFar()
	r.Record(e)
	return r.out.flush(ctx, before)
}

// Begin stores the event that a model request starts and returns when the request may be sent. The event is sent
// after everything that was recorded before it. It is in no journal: if the server does not store it, for whatever reason,
// the request is not sent. So every request has a stored start, and one whose end is missing, because the worker was killed or
// the vendor reported no usage, is counted as a gap (unreportedRequests) and never as zero. While the API server is away, the
// run makes no further model request.
func (r *recorder) Begin(ctx context.Context, e *v1alpha1.ExecutionEvent) error {
	r.clean(e)
	r.mu.Lock()
	r.key(e)
	r.mu.Unlock()
	r.log.event(e)
	_ = r.out.flush(ctx, r.out.lostSoFar()) // events that are lost do not keep a request back
	faults := client.Faults{Most: client.WorkFaults}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		r.stamp(e) // the request is sent after this try, not after the first one
		err := r.now(ctx, e)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case faults.Again(err):
			if !client.Sleep(ctx, r.out.clock, max(pause, client.RetryAfter(err))) {
				return ctx.Err()
			}
		case spent(err, v1alpha1.ReasonBudgetUnpriced) != "":
			return runner.Fail(v1alpha1.ReasonBudgetUnpriced, "%s", spent(err, v1alpha1.ReasonBudgetUnpriced))
		case spent(err, v1alpha1.ReasonBudgetExhausted) != "":
			return runner.Fail(v1alpha1.ReasonBudgetExhausted, "%s", spent(err, v1alpha1.ReasonBudgetExhausted))
		case spent(err, v1alpha1.ReasonTokenBudgetExhausted) != "":
			return runner.Fail(v1alpha1.ReasonTokenBudgetExhausted, "%s", spent(err, v1alpha1.ReasonTokenBudgetExhausted))
		case errors.Is(err, client.ErrToken), apierrors.IsGone(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
			return fmt.Errorf("record the start of a model request: %w", err)
		default:
			return runner.Fail(v1alpha1.ReasonModelRequestUnrecorded, "the server refused to record that a model request starts, so it was not sent: %v", err)
		}
	}
}

// Pauses between tries of Begin, where the server names none.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// spent returns the server's words if it refused a request for a reason, such as that a budget has no room; otherwise an empty
// string.
func spent(err error, reason metav1.CauseType) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == reason {
			return c.Message
		}
	}
	return ""
}

// Record removes secrets from an event and queues it. An event that has a de-duplication key keeps it.
func (r *recorder) Record(e *v1alpha1.ExecutionEvent) {
	r.clean(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key(e)
	r.out.add(e)
	r.log.event(e)
}

// stamp sets when the event was recorded, by a clock that an outage of the server does not concern.
func (r *recorder) stamp(e *v1alpha1.ExecutionEvent) {
	if r.attempt == 0 {
		return
	}
	e.Attempt, e.ElapsedMicros = r.attempt, new(max(0, r.out.clock.Since(r.began).Microseconds()))
}

// key gives the event its de-duplication key, and the time. The caller holds mu.
func (r *recorder) key(e *v1alpha1.ExecutionEvent) {
	r.stamp(e)
	r.n++
	if e.DedupKey == "" {
		e.DedupKey = fmt.Sprintf("%s%d", r.prefix, r.n)
	}
}

// clean removes secrets, and the rest of those that began in the text of the event before.
func (r *recorder) clean(e *v1alpha1.ExecutionEvent) {
	r.tailMu.Lock()
	e.ContentText, r.tail = r.tail.Continued(e.ContentText)
	r.tailMu.Unlock()
	event.SanitizeAfter(e, &r.secret.seen)
}

func sizeOfEvent(e *v1alpha1.ExecutionEvent) int {
	raw, err := json.Marshal(e)
	if err != nil {
		return 0
	}
	return len(raw)
}

// logWindow is how long a line of the log waits for more lines.
const logWindow = 300 * time.Millisecond

// maxLine bounds a line of the log, in bytes; longer ones are broken.
const maxLine = 32 << 10

// patientWindows is the number of windows after which the last lines are queued even if the
// output does not pause.
const patientWindows = 5

// taskLog is the task's log: the output of commands, and a line for each event. Several lines
// are cleaned of secrets together, because a key block or a manifest spans many lines. The last
// ones wait until the output pauses.
type taskLog struct {
	out outbox[string]

	// mu guards the rest.
	mu sync.Mutex
	// partial is the line that has not ended yet, and clean holds the lines that wait.
	partial []byte
	clean   redact.Stream
	// fresh is set if lines came since the last window; windows counts the windows that began with
	// lines waiting.
	fresh   bool
	windows int
	clock   clock.Clock
}

func newTaskLog(c *Config, a *client.API, clk clock.Clock, s *secrets) *taskLog {
	l := &taskLog{clock: clk, clean: redact.Stream{Seen: &s.seen}}
	l.out = outbox[string]{
		name: "log", size: func(s string) int { return len(s) }, window: logWindow, clock: clk, windowed: l.windowed,
		encode: func(s string) ([]byte, error) { return []byte(s), nil },
		send: func(ctx context.Context, batch []string) error {
			return postBytes(ctx, a, c, "text/plain", []byte(strings.Join(batch, "")), "log")
		},
	}
	return l
}

// Write adds the output of a command, line by line.
func (l *taskLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		if len(l.partial) >= maxLine && utf8.RuneStart(b) {
			l.endLine()
		}
		if l.partial = append(l.partial, b); b == '\n' {
			l.endLine()
		}
	}
	return len(p), nil
}

// endLine passes the current line on to be cleaned. The caller holds mu.
func (l *taskLog) endLine() {
	if len(l.partial) == 0 {
		return
	}
	l.queue(l.clean.Write(strings.ToValidUTF8(string(l.partial), "\uFFFD")))
	l.partial, l.fresh = l.partial[:0], true
	l.out.signal()
}

func (l *taskLog) queue(clean string) {
	if clean != "" {
		l.out.add(clean)
	}
}

// windowed is called after each window that began with lines waiting. It queues the last lines
// if no more came, or after patientWindows.
func (l *taskLog) windowed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.windows++; l.fresh && l.windows < patientWindows {
		l.fresh = false
		l.out.signal()
		return
	}
	l.fresh, l.windows = false, 0
	l.queue(l.clean.Flush(false))
}

// Line adds a line of the worker itself.
func (l *taskLog) Line(format string, args ...any) {
	text := l.clock.Now().UTC().Format("15:04:05") + " " + fmt.Sprintf(format, args...)
	_, _ = l.Write([]byte(strings.ReplaceAll(text, "\n", " ") + "\n"))
}

// event adds a line for an event, and the text of a model's message.
func (l *taskLog) event(e *v1alpha1.ExecutionEvent) {
	text := e.Summary
	if e.Type == v1alpha1.EventModelMessage {
		text = e.ContentText
	}
	if text != "" {
		l.Line("%s: %s", e.Type, text)
	}
}

func (l *taskLog) close(patience time.Duration) int {
	l.mu.Lock()
	l.endLine()
	l.queue(l.clean.Flush(true))
	l.mu.Unlock()
	return l.out.close(patience)
}
