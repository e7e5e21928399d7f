// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/platform-ai/platform/test/bench/report"
)

const (
	// alone is how many tasks are measured one after the other, and atOnce how many are created at once, by creators
	// clients.
	alone, atOnce, creators = 30, 1000, 8
)

// tasks measures whole tasks: local runs of the program true, from their creation to their end.
func tasks(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	const one, asked, many = "one task alone", "one model request through a task", "1,000 tasks at once"
	if !o.wants(one) && !o.wants(asked) && !o.wants(many) {
		return nil
	}
	s, err := start(ctx, o.Bin, dir)
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
		if err := l.measureAlone(ctx, one, "alone", 20, r); err != nil {
			return err
		}
		steps, err := l.steps(ctx, "alone", alone)
		if err := errors.Join(err, addAll(r, steps...)); err != nil {
			return err
		}
	}
	if o.wants(asked) {
		if err := l.ask(ctx, asked, r); err != nil {
			return err
		}
	}
	if o.wants(many) {
		return l.measureMany(ctx, o, many, r)
	}
	return nil
}

// load runs tasks on a server.
type load struct {
	server *server
	client *http.Client
	url    string
	took   []float64 // by alone, in ms
	spec   string    // of the tasks, as JSON without braces; by default the program true
}

// ask measures tasks that make one request to a model, whose vendor is in this process.
func (l *load) ask(ctx context.Context, name string, r *report.Report) error {
	vendor := httptest.NewServer(http.HandlerFunc(answerTask))
	defer vendor.Close()
	if err := makeProvider(ctx, l.client, l.url, "of-tasks", vendor.URL); err != nil {
		return err
	}
	l.spec = `"type":"ai","prompt":"Hello.","ai":{"providerRef":{"name":"of-tasks"},"model":"m"}`
	defer func() { l.spec = "" }()
	if err := l.alone(ctx, "ask-warm", 3); err != nil {
		return err
	}
	return l.measureAlone(ctx, name, "ask", 100, r)
}

func (l *load) create(ctx context.Context, c *http.Client, name string, priority int) error {
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},"spec":{%s,"priority":%d}}`, name, cmp.Or(l.spec, `"type":"container","command":["true"]`), priority)
	return send(ctx, c, http.MethodPost, l.url+base+"tasks", []byte(body), nil)
}

// alone runs n tasks one after the other.
func (l *load) alone(ctx context.Context, prefix string, n int) error {
	seen, err := l.watch(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	for i := range n {
		from := time.Now()
		if err := l.create(ctx, l.client, fmt.Sprintf("%s-%d", prefix, i), 500); err != nil {
			return err
		}
		if err := seen.await(i + 1); err != nil {
			return err
		}
		l.took = append(l.took, time.Since(from).Seconds()*1000)
	}
	return nil
}

// measureAlone measures tasks one after the other, with the aim for the time of one, in ms.
func (l *load) measureAlone(ctx context.Context, name, prefix string, aim float64, r *report.Report) error {
	l.took = nil
	before, err := l.spent(ctx)
	if err != nil {
		return err
	}
	if err := l.alone(ctx, prefix, alone); err != nil {
		return err
	}
	after, err := l.spent(ctx)
	if err != nil {
		return err
	}
	slices.Sort(l.took)
	return addAll(r,
		report.Row{Name: name + ": creation to end", Unit: "ms", Better: report.Lower, Ours: l.took[alone/2], Other: aim, OtherName: "(aim)"},
		report.Row{Name: name + ": CPU with its worker", Unit: "ms", Better: report.Lower, Ours: (after.cpu - before.cpu).Seconds() * 1000 / alone},
		report.Row{Name: name + ": CPU of its worker", Unit: "ms", Better: report.Lower, Ours: (after.workers - before.workers).Seconds() * 1000 / alone},
		report.Row{Name: name + ": requests", Better: report.Lower, Ours: (after.requests - before.requests) / alone},
		report.Row{Name: name + ": syncs of the store", Better: report.Lower, Ours: (after.syncs - before.syncs) / alone},
	)
}

func (l *load) measureMany(ctx context.Context, o Options, name string, r *report.Report) error {
	bare, err := forkRate(ctx, o.Window)
	if err != nil {
		return err
	}
	seen, err := l.watch(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	if err := l.server.resetPeak(); err != nil {
		return err
	}
	before, err := l.spent(ctx)
	if err != nil {
		return err
	}
	from := time.Now()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	reads := l.reads(reading)
	all, work := errgroup.WithContext(ctx)
	for client := range creators {
		c, _, err := l.server.client("")
		if err != nil {
			return err
		}
		all.Go(func() error {
			for i := client; i < atOnce; i += creators {
				if err := l.create(work, c, fmt.Sprintf("many-%04d", i), i*7919%5*250); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	created := time.Since(from)
	if err := seen.await(atOnce); err != nil { // an error if one is lost
		return err
	}
	took := time.Since(from)
	stop()
	get, list := reads.get.p99(), reads.list.p99()
	after, err := l.spent(ctx)
	if err != nil {
		return err
	}
	peak, err := l.server.peak()
	if err != nil {
		return err
	}
	run, err := l.medianRun(ctx)
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: name + ": started to succeeded, median", Unit: "ms", Better: report.Lower, Ours: run, Other: 100, OtherName: "(aim)"},
		report.Row{Name: name + ": creations", Unit: "tasks/s", Better: report.Higher, Ours: atOnce / created.Seconds()},
		report.Row{Name: name + ": ends", Unit: "tasks/s", Better: report.Higher, Ours: atOnce / took.Seconds(), Other: bare, OtherName: "bare runs of true/s"},
		report.Row{Name: name + ": ends, beside the aim", Unit: "tasks/s", Better: report.Higher, Ours: atOnce / took.Seconds(), Other: 50, OtherName: "(aim)"},
		report.Row{Name: name + ": CPU of each with its worker", Unit: "ms", Better: report.Lower, Ours: (after.cpu - before.cpu).Seconds() * 1000 / atOnce},
		report.Row{Name: name + ": CPU of each worker", Unit: "ms", Better: report.Lower, Ours: (after.workers - before.workers).Seconds() * 1000 / atOnce},
		report.Row{Name: name + ": syncs of each", Better: report.Lower, Ours: (after.syncs - before.syncs) / atOnce},
		report.Row{Name: name + ": starts before a higher priority", Better: report.Lower, Ours: float64(seen.early)},
		report.Row{Name: name + ": p99 of get meanwhile", Unit: "ms", Better: report.Lower, Ours: get},
		report.Row{Name: name + ": p99 of a list of 500 meanwhile", Unit: "ms", Better: report.Lower, Ours: list},
		report.Row{Name: name + ": peak memory of the server", Unit: "MiB", Better: report.Lower, Ours: peak},
	)
}

func addAll(r *report.Report, rows ...report.Row) error {
	var errs []error
	for _, row := range rows {
		errs = append(errs, r.Add(row))
	}
	return errors.Join(errs...)
}

// forkRate starts and awaits the program true in a loop for d; it returns runs a second.
func forkRate(ctx context.Context, d time.Duration) (float64, error) {
	n, from := 0, time.Now()
	for time.Since(from) < d {
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(from).Seconds(), nil
}

// seen follows the tasks that are created after the watch has begun.
type seen struct {
	stop  func()
	ended chan error // one value for each task that ends, or the error that ended the watch
	got   int
	// early counts the tasks that started while one of a higher priority waited for a slot. Ageing explains some.
	early int
}

// await waits until n tasks have ended, and fails if one did not succeed.
func (s *seen) await(n int) error {
	for ; s.got < n; s.got++ {
		if err := <-s.ended; err != nil {
			return err
		}
	}
	return nil
}

func (l *load) watch(ctx context.Context) (*seen, error) {
	var now struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := send(ctx, l.client, http.MethodGet, l.url+base+"tasks?limit=1", nil, &now); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+base+"tasks?watch=true&resourceVersion="+now.Metadata.ResourceVersion, nil)
	if err != nil {
		stop()
		return nil, err
	}
	resp, err := l.client.Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		stop()
		return nil, err
	}
	s := &seen{stop: stop, ended: make(chan error, atOnce)}
	go func() { // ends with the watch
		defer resp.Body.Close()
		s.ended <- s.follow(json.NewDecoder(resp.Body))
	}()
	return s, nil
}

// follow reads the watch until it ends.
func (s *seen) follow(frames *json.Decoder) error {
	over, waiting := map[string]bool{}, map[string]int{}
	for {
		var f struct {
			Object struct {
				Metadata struct{ Name string }
				Spec     struct{ Priority int }
				Status   struct {
					Phase, Message string
					Conditions     []struct{ Type, Status string }
				}
			}
		}
		if err := frames.Decode(&f); err != nil {
			return fmt.Errorf("watch tasks: %w", err)
		}
		t := f.Object
		name := t.Metadata.Name
		waits := slices.Contains(t.Status.Conditions, struct{ Type, Status string }{"WaitingToStart", "True"})
		if _, was := waiting[name]; was && !waits {
			for _, p := range waiting {
				if p > t.Spec.Priority {
					s.early++
					break
				}
			}
			delete(waiting, name)
		} else if waits {
			waiting[name] = t.Spec.Priority
		}
		switch t.Status.Phase {
		case "Failed", "Cancelled":
			return fmt.Errorf("task %s is %s: %s", name, t.Status.Phase, t.Status.Message)
		case "Succeeded":
			if !over[name] {
				over[name] = true
				s.ended <- nil
			}
		}
	}
}

// reader measures requests.
type reader struct {
	mu   sync.Mutex
	took []float64 // in ms
}

func (r *reader) p99() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.took)
	if len(r.took) == 0 {
		return 0
	}
	return r.took[len(r.took)*99/100]
}

type readers struct{ get, list reader }

// reads gets one task and lists 500, ten times a second each, until ctx ends.
func (l *load) reads(ctx context.Context) *readers {
	all := &readers{}
	follow := func(r *reader, path string) {
		c, _, err := l.server.client("")
		if err != nil {
			return
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			from := time.Now()
			if send(ctx, c, http.MethodGet, l.url+base+path, nil, nil) == nil {
				r.mu.Lock()
				r.took = append(r.took, time.Since(from).Seconds()*1000)
				r.mu.Unlock()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	go follow(&all.get, "tasks/warm-0") // both end with ctx
	go follow(&all.list, "tasks?limit=500")
	return all
}

// spent is what a server has used until now.
type spent struct {
	// cpu includes that of the workers that have ended, and workers is theirs alone.
	cpu, workers    time.Duration
	requests, syncs float64
}

func (l *load) spent(ctx context.Context) (spent, error) {
	var s spent
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.server.cmd.Process.Pid))
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const utime, cutime, cstime, ticks = 11, 13, 14, 100 // proc(5), counted from the field after the name; USER_HZ
	for i, f := range fields[utime : cstime+1] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return s, err
		}
		used := time.Duration(n) * time.Second / ticks
		s.cpu += used
		if utime+i >= cutime {
			s.workers += used
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/metrics", nil)
	if err != nil {
		return s, err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, labels, _ := strings.Cut(name, "{")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || strings.Contains(labels, `verb="WATCH"`):
		case name == "apiserver_request_total":
			s.requests += n
		case name == "platform_store_commit_groups_total":
			s.syncs += n
		}
	}
	return s, lines.Err()
}
