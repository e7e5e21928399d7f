// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storebench measures API server storage through storage.Interface: our
// store, and the stock etcd3 store on a real etcd process with default durability.
// Where it matters, the latter is also measured with the API server's watch cache in
// front. One driver drives all of them with the same objects of 1 KiB, in one run.
package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/test/bench/report"
)

// Options of a run.
type Options struct {
	// Etcd is the path of the etcd program.
	Etcd string
	// Dir is an empty folder on the disk that is measured.
	Dir string
	// Rows selects rows by name; nil means all.
	Rows *regexp.Regexp
	// Window is how long each row runs for each subject; 0 means 3 s.
	Window time.Duration
	// JSON stores JSON. The default is protobuf, which shows the stores rather than
	// the codec: decoding JSON costs more than all else in a read.
	JSON bool
	// Repeat is how often each row is measured, on fresh databases; the median
	// counts. 0 means once.
	Repeat int
}

// names of the subjects in the report.
const (
	ours   = "ours"
	stock  = "etcd"
	cached = "etcd+cacher"
)

// row is one measurement of one store.
type row struct {
	name, unit string
	better     report.Better
	cached     bool // compare with the watch cache too
	load       int  // objects in the store before
	measure    func(ctx context.Context, s storage.Interface, window time.Duration) (float64, error)
}

// Run measures every selected row for every subject, one after the other.
func Run(ctx context.Context, o Options, r *report.Report) error {
	if o.Window == 0 {
		o.Window = 3 * time.Second
	}
	var selected []row
	for _, m := range rows() {
		if o.Rows == nil || o.Rows.MatchString(m.name) {
			selected = append(selected, m)
		}
	}
	for _, m := range selected {
		if err := m.run(ctx, o, r); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// run measures one row and reports it.
func (m row) run(ctx context.Context, o Options, r *report.Report) error {
	figures := map[string][]float64{}
	for range max(o.Repeat, 1) {
		if err := m.once(ctx, o, figures); err != nil {
			return err
		}
	}
	for _, other := range []string{stock, cached} {
		if len(figures[other]) == 0 {
			continue
		}
		if err := r.Add(report.Row{
			Name: m.name, Unit: m.unit, Better: m.better,
			Ours: median(figures[ours]), Other: median(figures[other]), OtherName: other,
		}); err != nil {
			return err
		}
	}
	return nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// once measures each subject on fresh databases and notes its figure.
func (m row) once(ctx context.Context, o Options, figures map[string][]float64) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "row-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := open(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	theirs, closeTheirs, err := b.etcd()
	if err != nil {
		return err
	}
	defer closeTheirs()
	note := func(subject string, figure float64, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", subject, err)
		}
		figures[subject] = append(figures[subject], figure)
		return nil
	}
	figure, err := m.on(ctx, theirs, o.Window)
	if err := note(stock, figure, err); err != nil {
		return err
	}
	if m.cached {
		c, closeCache, err := withCache(ctx, theirs, b.codec)
		if err != nil {
			return err
		}
		figure, err := m.clean(ctx, c, o.Window)
		closeCache()
		if err := note(cached, figure, err); err != nil {
			return err
		}
	}
	s, err := b.ours()
	if err != nil {
		return err
	}
	defer s.Close()
	figure, err = m.on(ctx, s, o.Window)
	return note(ours, figure, err)
}

// on fills a store and measures it.
func (m row) on(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
	if err := load(ctx, s, m.load); err != nil {
		return 0, err
	}
	return m.clean(ctx, s, window)
}

// clean measures a store after the garbage of the previous one was collected.
func (m row) clean(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
	runtime.GC()
	return m.measure(ctx, s, window)
}

func rows() []row {
	var all []row
	for _, n := range []int{1, 16, 64, 256} {
		all = append(all, row{name: fmt.Sprintf("create, %d writers", n), unit: "writes/s", better: report.Higher, measure: creates(n)})
	}
	for _, n := range []int{1, 16, 64} {
		all = append(all, row{name: fmt.Sprintf("update, %d writers", n), unit: "writes/s", better: report.Higher, load: updated, measure: updates(n)})
	}
	for _, n := range []int{1, 16, 64} {
		all = append(all, row{name: fmt.Sprintf("get, %d readers", n), unit: "reads/s", better: report.Higher, load: read, measure: gets(n)})
	}
	return append(all,
		row{name: "list of 10k in pages of 500", unit: "objects/s", better: report.Higher, cached: true, load: 10_000, measure: lists},
		row{name: "list of 100k in pages of 500", unit: "objects/s", better: report.Higher, cached: true, load: 100_000, measure: lists},
		row{name: "watch, write to delivery, p50", unit: "us", better: report.Lower, cached: true, measure: delivery(0.50)},
		row{name: "watch, write to delivery, p99", unit: "us", better: report.Lower, cached: true, measure: delivery(0.99)},
		row{name: "fan-out to 1,000 watches", unit: "events/s", better: report.Higher, cached: true, load: 1, measure: fanOut},
	)
}
