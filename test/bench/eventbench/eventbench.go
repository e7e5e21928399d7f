// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventbench measures the event log alone, on a real disk: that costs do
// not grow with what is stored, how much disk an event takes, and how much readers
// slow down writers. Each figure is compared with an aim, or with the closest
// peer's figure, measured on a machine of the same size.
package eventbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/test/bench/report"
)

// Options of a run.
type Options struct {
	// Dir is a folder on the disk that is measured.
	Dir string
	// Rows selects rows by name; nil means all.
	Rows *regexp.Regexp
	// Window is how long each row runs; 0 means 3 s.
	Window time.Duration
}

// Names of what a figure is compared with.
const (
	peer = "(peer)"
	aim  = "(aim)"
)

// group is a set of rows over one log.
type group struct {
	rows []string
	run  func(context.Context, *bench) error
}

// bench is what a group runs on.
type bench struct {
	o      Options
	r      *report.Report
	dir    string
	engine engine.Engine
	log    *eventlog.Log
	// recordings are beside the log in groups that need them.
	recordings *recording.Store
}

// Run measures every selected row.
func Run(ctx context.Context, o Options, r *report.Report) error {
	if o.Window == 0 {
		o.Window = 3 * time.Second
	}
	for i, g := range groups() {
		if o.Rows != nil && !slices.ContainsFunc(g.rows, o.Rows.MatchString) {
			continue
		}
		b := &bench{o: o, r: r, dir: filepath.Join(o.Dir, fmt.Sprintf("events-%d", i))}
		if err := b.run(ctx, g); err != nil {
			return fmt.Errorf("%s: %w", g.rows[0], err)
		}
	}
	return nil
}

func groups() []group {
	return []group{
		{[]string{rowPageEnd, rowApprovals, rowApprovalsPeer}, longStream},
		{[]string{rowRecordedPage, rowRecordedEntry, rowRecordedNewest}, recorded},
		{[]string{rowSessionFirst, rowSessionEnd, rowSessionIdle, rowSessionCold}, longSession},
		{[]string{rowDedup, rowDedupPeer}, dedup},
		{[]string{rowDiskLog, rowDiskContent, rowDiskPlain}, disk},
		{[]string{rowReaderTask, rowReaderSession}, readers},
		{[]string{rowTails, rowTailsIdle}, tails},
		{[]string{rowTrim}, trim},
		{[]string{rowRedact, rowRedactPeer}, redaction},
		{[]string{rowUsage, rowUsageMemory}, usageReports},
	}
}

func (b *bench) run(ctx context.Context, g group) (err error) {
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	return g.run(ctx, b)
}

func (b *bench) openEngine(ctx context.Context) (err error) {
	b.engine, err = local.Open(ctx, local.Options{Dir: b.dir, Mark: b.dir + ".mark"})
	return err
}

func (b *bench) open(ctx context.Context) (err error) {
	if err := b.openEngine(ctx); err != nil {
		return err
	}
	if b.log, err = eventlog.Open(ctx, b.engine, eventlog.Options{}); err != nil {
		return errors.Join(err, b.engine.Close())
	}
	return nil
}

func (b *bench) close() error { return errors.Join(b.log.Close(), b.engine.Close()) }

// add reports a row if it is selected.
func (b *bench) add(name, unit string, better report.Better, ours, other float64, otherName string) error {
	if b.o.Rows != nil && !b.o.Rows.MatchString(name) {
		return nil
	}
	return b.r.Add(report.Row{Name: name, Unit: unit, Better: better, Ours: ours, Other: other, OtherName: otherName})
}

// micros returns the median time of f in microseconds over the window.
func (b *bench) micros(f func() error) (float64, error) {
	var took []time.Duration
	for end := time.Now().Add(b.o.Window); len(took) < 5 || time.Now().Before(end); {
		from := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(from))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1000, nil
}

// once returns the time of one call of f in microseconds.
func (b *bench) once(f func() error) (float64, error) {
	from := time.Now()
	err := f()
	return float64(time.Since(from).Nanoseconds()) / 1000, err
}

// page returns a reader of one page of 100 that must be full.
func (b *bench) page(ctx context.Context, s eventlog.Stream, after int64) func() error {
	return func() error {
		p, err := b.log.TaskPage(ctx, s, after, 100, nil)
		if err == nil && len(p.Events) != 100 {
			err = fmt.Errorf("a page of %d events", len(p.Events))
		}
		return err
	}
}

func stream(task int, session string) eventlog.Stream {
	name := fmt.Sprintf("task-%04d", task)
	return eventlog.Stream{Namespace: "default", Task: name, UID: types.UID("uid-" + name), Session: session}
}

// fill appends n events made by event, in batches.
func (b *bench) fill(ctx context.Context, s eventlog.Stream, n int, event func(i int) *v1alpha1.ExecutionEvent) error {
	const batch = 500
	for from := 0; from < n; from += batch {
		var events []*v1alpha1.ExecutionEvent
		for i := from; i < min(from+batch, n); i++ {
			events = append(events, event(i))
		}
		if _, err := b.log.Append(ctx, s, events); err != nil {
			return err
		}
	}
	return nil
}

// short returns a small event.
func short(i int) *v1alpha1.ExecutionEvent {
	return &v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, ToolName: "run", Summary: fmt.Sprintf("calling run, step %d", i)}
}
