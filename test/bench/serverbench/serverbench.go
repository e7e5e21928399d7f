// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

// Options of a run.
type Options struct {
	// Bin is the folder of the built programs.
	Bin string
	// Kube is the folder of a built kube-apiserver and etcd; without them, the rows beside them are not measured.
	Kube string
	// Dir is a folder on the disk that is measured.
	Dir string
	// Rows selects rows by name; nil means all.
	Rows *regexp.Regexp
	// Window is how long each append row runs; 0 means 5 s.
	Window time.Duration
	// Records is how many events of a gateway pages are read of; 0 means a million.
	Records int
}

// settle is how long a started server is left idle before its memory is read.
const settle = 10 * time.Second

func (o *Options) wants(name string) bool { return o.Rows == nil || o.Rows.MatchString(name) }

// Run measures start, memory and size, traces, streams, whole tasks, gateways, and appends at several widths.
func Run(ctx context.Context, o Options, r *report.Report) error {
	if o.Window == 0 {
		o.Window = 5 * time.Second
	}
	if err := size(o, r); err != nil {
		return err
	}
	dir := filepath.Join(o.Dir, "server")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := startAndIdle(ctx, o, dir, r); err != nil {
		return err
	}
	if err := approvals(ctx, o, dir, r); err != nil {
		return err
	}
	if err := modelAPIs(ctx, o, dir, r); err != nil {
		return err
	}
	if err := startLarge(ctx, o, r); err != nil {
		return err
	}
	if err := many(ctx, o, r); err != nil {
		return err
	}
	if err := small(ctx, o, r); err != nil {
		return err
	}
	if err := beside(ctx, o, r); err != nil {
		return err
	}
	if err := traces(ctx, o, dir, r); err != nil {
		return err
	}
	if err := streams(ctx, o, dir, r); err != nil {
		return err
	}
	if err := tasks(ctx, o, dir, r); err != nil {
		return err
	}
	if err := codingAgents(ctx, o, r); err != nil {
		return err
	}
	if err := recordings(ctx, o, dir, r); err != nil {
		return err
	}
	if err := slots(ctx, o, r); err != nil {
		return err
	}
	if err := gateways(ctx, o, r); err != nil {
		return err
	}
	return appends(ctx, o, dir, r)
}

func size(o Options, r *report.Report) error {
	const name = "size of platform-standalone"
	if !o.wants(name) {
		return nil
	}
	info, err := os.Stat(filepath.Join(o.Bin, "platform-standalone"))
	if err != nil {
		return err
	}
	return r.Add(report.Row{Name: name, Unit: "MiB", Better: report.Lower, Ours: float64(info.Size()) / (1 << 20)})
}

func startAndIdle(ctx context.Context, o Options, dir string, r *report.Report) error {
	const fresh, again, idle = "start to ready, fresh store", "start to ready, existing store", "idle memory after start"
	if !o.wants(fresh) && !o.wants(again) && !o.wants(idle) {
		return nil
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	if err := r.Add(report.Row{Name: fresh, Unit: "s", Better: report.Lower, Ours: s.ready.Seconds(), Other: 0.5, OtherName: "(aim)"}); err != nil {
		return errors.Join(err, s.stop())
	}
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = start(ctx, o.Bin, dir); err != nil {
		return err
	}
	if err := r.Add(report.Row{Name: again, Unit: "s", Better: report.Lower, Ours: s.ready.Seconds(), Other: 2, OtherName: "(aim)"}); err != nil {
		return errors.Join(err, s.stop())
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	rss, err := s.rss()
	if err == nil {
		err = r.Add(report.Row{Name: idle, Unit: "MiB", Better: report.Lower, Ours: rss, Other: 120, OtherName: "(aim)"})
	}
	return errors.Join(err, s.stop())
}

// widths are the numbers of clients that append at the same time.
var widths = []int{1, 16, 64}

func appends(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	token, err := workerToken(ctx, c, url)
	if err != nil {
		return err
	}
	var tasks []string
	defer func() {
		for _, name := range tasks {
			err = errors.Join(err, deleteTask(context.WithoutCancel(ctx), c, url, name))
		}
	}()
	for i := range 8 {
		name := fmt.Sprintf("bench-%d", i)
		if err := openTask(ctx, c, url, name); err != nil {
			return err
		}
		tasks = append(tasks, name)
	}
	for _, batch := range []int{1, 20} {
		for _, clients := range widths {
			name := fmt.Sprintf("event appends over HTTPS, %d clients", clients)
			if batch > 1 {
				name += fmt.Sprintf(", batches of %d", batch)
			}
			if !o.wants(name) {
				continue
			}
			if err := appendRow(ctx, o, s, appendLoad{token: token, tasks: tasks, clients: clients, batch: batch}, name, r); err != nil {
				return err
			}
		}
	}
	return busyWorker(ctx, o, s, appendLoad{token: token, tasks: tasks, clients: 1, batch: fullRequest}, r)
}

// fullRequest is how many events of payload fit into the largest request of a worker's outbox.
const fullRequest = 400

// busyWorker measures one worker that has more events than fit into its requests.
func busyWorker(ctx context.Context, o Options, s *server, w appendLoad, r *report.Report) error {
	const name = "events of one busy worker"
	if !o.wants(name) {
		return nil
	}
	rate, _, err := w.run(ctx, s, o.Window)
	if err != nil {
		return err
	}
	return r.Add(report.Row{Name: name, Unit: "events/s", Better: report.Higher, Ours: rate, Other: 10_000, OtherName: "(aim)"})
}

// appendRow also measures the disk before and after the appends, as its speed drifts.
func appendRow(ctx context.Context, o Options, s *server, w appendLoad, name string, r *report.Report) error {
	before, err := fsyncRate(o.Dir, o.Window/2)
	if err != nil {
		return err
	}
	rate, each, err := w.run(ctx, s, o.Window)
	if err != nil {
		return err
	}
	after, err := fsyncRate(o.Dir, o.Window/2)
	if err != nil {
		return err
	}
	if err := r.Add(report.Row{Name: name, Unit: "events/s", Better: report.Higher, Ours: rate, Other: (before + after) / 2, OtherName: "raw fsync/s"}); err != nil {
		return err
	}
	aim := report.Row{Name: "processor time a request of these", Unit: "µs", Better: report.Lower, Ours: each}
	if w.batch == 1 {
		aim.Other, aim.OtherName = 150, "(aim)"
	}
	return r.Add(aim)
}
