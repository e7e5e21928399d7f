// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/platform-ai/platform/test/bench/report"
)

const (
	// short is how many tasks pass through one slot, and queued how many wait for it.
	short, queued = 12, 20_000
	// atRest is how long the server is left alone with the tasks that wait.
	atRest = time.Minute
)

// slots measures a server that runs one task at a time: tasks that follow each other, and tasks that wait.
func slots(ctx context.Context, o Options, r *report.Report) (err error) {
	const one, many = "12 tasks of true, one slot", "20,000 waiting tasks: processor at rest"
	if !o.wants(one) && !o.wants(many) {
		return nil
	}
	s, err := start(ctx, o.Bin, filepath.Join(o.Dir, "slots"), "--max-running-tasks", "1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	l := &load{server: s, client: c, url: url}
	if err := l.alone(ctx, "warm", 3); err != nil { // makes the worker's account
		return err
	}
	if o.wants(one) {
		took, err := l.queue(ctx, short)
		if err != nil {
			return err
		}
		if err := r.Add(report.Row{Name: one, Unit: "s", Better: report.Lower, Ours: took.Seconds(), Other: 4.5, OtherName: "(aim)"}); err != nil {
			return err
		}
	}
	if !o.wants(many) {
		return nil
	}
	cpu, err := l.wait(ctx, queued)
	if err != nil {
		return err
	}
	return r.Add(report.Row{Name: many, Unit: "% of a core", Better: report.Lower, Ours: 100 * cpu.Seconds() / atRest.Seconds(), Other: 38, OtherName: "before slots were a ledger"})
}

// queue creates n tasks one after the other and returns the time until all have ended.
func (l *load) queue(ctx context.Context, n int) (time.Duration, error) {
	seen, err := l.watch(ctx)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	from := time.Now()
	for i := range n {
		if err := l.create(ctx, l.client, fmt.Sprintf("short-%02d", i), 500); err != nil {
			return 0, err
		}
	}
	err = seen.await(n)
	return time.Since(from), err
}

// wait lets n tasks wait for one that takes long, and returns the processor time that the server then uses at rest.
func (l *load) wait(ctx context.Context, n int) (time.Duration, error) {
	long := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"long"},"spec":{"type":"container","command":["sleep","3600"],"priority":1000}}`
	if err := send(ctx, l.client, http.MethodPost, l.url+base+"tasks", []byte(long), nil); err != nil {
		return 0, err
	}
	all, work := errgroup.WithContext(ctx)
	for client := range creators {
		c, _, err := l.server.client("")
		if err != nil {
			return 0, err
		}
		all.Go(func() error {
			for i := client; i < n; i += creators {
				if err := l.create(work, c, fmt.Sprintf("waiting-%05d", i), 500); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return 0, err
	}
	if err := pause(ctx, atRest); err != nil { // what the creations left behind is done
		return 0, err
	}
	before, err := l.spent(ctx)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, atRest); err != nil {
		return 0, err
	}
	after, err := l.spent(ctx)
	return after.cpu - before.cpu, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
