// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/platform-ai/platform/test/bench/report"
)

// Rows about many tasks, while the controllers look at each of them. They are schedules that are not due, so that nothing
// runs and no worker is left when the server stops.
const (
	rowManyCreate = "20,000 tasks: created, 64 clients"
	rowManyCPU    = "20,000 tasks: processor time a create"
	rowManyList   = "20,000 tasks: one whole list"
	rowManyWall   = "20,000 tasks: one whole list, time"
	rowManyTable  = "20,000 tasks: as kubectl lists them"
	rowManyTool   = "20,000 tasks: kubectl get tasks --chunk-size=0, time"
	rowManyPaged  = "20,000 tasks: kubectl get tasks, time"
	rowManyPeak   = "20,000 tasks: peak memory"
	rowManyRest   = "20,000 tasks: memory a minute later"
)

// manyTasks is the number of tasks, and tablePage the number that kubectl asks for at a time.
const manyTasks, tablePage = 20_000, 500

// tableAccept is what kubectl get accepts.
const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// many measures the processor time of the server, because a busy machine does not change it much, and its memory.
func many(ctx context.Context, o Options, r *report.Report) (err error) {
	wanted := false
	for _, name := range []string{rowManyCreate, rowManyCPU, rowManyList, rowManyWall, rowManyTable, rowManyTool, rowManyPaged, rowManyPeak, rowManyRest} {
		wanted = wanted || o.wants(name)
	}
	if !wanted {
		return nil
	}
	dir := filepath.Join(o.Dir, "many")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	idle, err := s.rss()
	if err == nil {
		err = s.resetPeak()
	}
	if err != nil {
		return err
	}
	if err := s.createMany(ctx, r); err != nil {
		return err
	}
	if err := s.listMany(ctx, o, r); err != nil {
		return err
	}
	peak, err := s.peak()
	if err != nil {
		return err
	}
	wait(ctx, time.Minute)
	rest, err := s.rss()
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: rowManyPeak, Unit: "MiB", Better: report.Lower, Ours: peak, Other: 776, OtherName: "(before)"},
		report.Row{Name: rowManyRest, Unit: "MiB", Better: report.Lower, Ours: rest, Other: 1.5 * idle, OtherName: "1.5x idle"})
}

func (s *server) createMany(ctx context.Context, r *report.Report) error {
	used, err := s.cpu()
	if err != nil {
		return err
	}
	const clients = 64
	from := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		c, url, err := s.client("")
		if err != nil {
			return err
		}
		work.Go(func() error {
			defer c.CloseIdleConnections()
			for n := i; n < manyTasks; n += clients {
				body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"task-%05d"},"spec":{"type":"container","command":["true"],"schedule":"0 0 29 2 *"}}`, n)
				if err := send(ctx, c, http.MethodPost, url+base+"tasks", []byte(body), nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	took := time.Since(from)
	until, err := s.cpu()
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: rowManyCreate, Unit: "tasks/s", Better: report.Higher, Ours: manyTasks / took.Seconds(), Other: 1000, OtherName: "(aim)"},
		report.Row{Name: rowManyCPU, Unit: "µs", Better: report.Lower, Ours: (until - used) * 1e6 / manyTasks})
}

// listMany lists all tasks at once, and in pages as kubectl does.
func (s *server) listMany(ctx context.Context, o Options, r *report.Report) error {
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	cpu := func(f func() error) (float64, error) {
		before, err := s.cpu()
		if err == nil {
			err = f()
		}
		if err != nil {
			return 0, err
		}
		after, err := s.cpu()
		return after - before, err
	}
	var took time.Duration
	whole, err := cpu(func() error {
		from := time.Now()
		_, err := fetch(ctx, c, url+base+"tasks", "")
		took = time.Since(from)
		return err
	})
	if err != nil {
		return err
	}
	table, err := cpu(func() error { return pages(ctx, c, url) })
	if err != nil {
		return err
	}
	if err := s.kubectlMany(ctx, o, r); err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: rowManyWall, Unit: "s", Better: report.Lower, Ours: took.Seconds(), Other: 0.7, OtherName: "(aim)"},
		report.Row{Name: rowManyList, Unit: "s CPU", Better: report.Lower, Ours: whole, Other: 0.7, OtherName: "(aim)"},
		report.Row{Name: rowManyTable, Unit: "s CPU", Better: report.Lower, Ours: table, Other: 3, OtherName: "(aim)"})
}

// kubectlMany lists all tasks with kubectl, if it is built: at once, and page by page as it does unless told otherwise. Then kubectl
// limits itself: after ten pages it asks for five in a second, which takes it six seconds whatever the server does.
func (s *server) kubectlMany(ctx context.Context, o Options, r *report.Report) error {
	program := filepath.Join(o.Bin, "kubectl")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	list := func(more ...string) (float64, error) {
		cmd := exec.CommandContext(ctx, program, append([]string{"get", "tasks"}, more...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"), "HOME="+o.Dir)
		from := time.Now()
		out, err := cmd.Output()
		if n := bytes.Count(out, []byte("\n")); err == nil && n != manyTasks+1 {
			err = fmt.Errorf("kubectl printed %d lines", n)
		}
		return time.Since(from).Seconds(), err
	}
	paged, err := list() // also fills the cache of what the server has
	if err != nil {
		return err
	}
	whole, err := list("--chunk-size=0")
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: rowManyTool, Unit: "s", Better: report.Lower, Ours: whole, Other: 3, OtherName: "(aim)"},
		report.Row{Name: rowManyPaged, Unit: "s", Better: report.Lower, Ours: paged, Other: 6, OtherName: "kubectl's own limit"})
}

// pages walks through all tasks as kubectl get does.
func pages(ctx context.Context, c *http.Client, url string) error {
	for token := ""; ; {
		body, err := fetch(ctx, c, fmt.Sprintf("%s%stasks?limit=%d&continue=%s", url, base, tablePage, token), tableAccept)
		if err != nil {
			return err
		}
		var page struct{ Metadata struct{ Continue string } }
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		if token = page.Metadata.Continue; token == "" {
			return nil
		}
	}
}
