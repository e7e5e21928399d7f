// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	// streamTasks is the number of tasks over which open streams are spread, as in the closest peer's benchmark.
	streamTasks = 50
	// streamsPerClient is how many streams share a connection.
	streamsPerClient = 100
	// replayed is how many stored events are replayed.
	replayed = 10_000
	// idleWindow is how long idle streams are watched: two heartbeats of each.
	idleWindow = 20 * time.Second
)

// openStreams are the numbers of streams that are open while events are appended.
var openStreams = []int{1, 100, 1000}

const (
	rowReplay     = "replay of 10,000 stored events over SSE"
	rowIdleCPU    = "CPU of 1000 idle streams"
	rowIdleMemory = "memory of an open stream"
	rowIdleMany   = "memory with 3,000 open streams"
)

func delayName(streams int, what string) string {
	if streams == 1 {
		return "append to client, 1 stream, " + what
	}
	return fmt.Sprintf("append to client, %d streams, %s", streams, what)
}

// streams measures event streams (SSE): the time to read a stored history, the cost of open streams, and the time from
// the append of an event to its frame at a client.
func streams(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	delays := false
	for _, n := range openStreams {
		delays = delays || o.wants(delayName(n, "median")) || o.wants(delayName(n, "p99")) || o.wants(delayName(n, "beyond fsync"))
	}
	idle := o.wants(rowIdleCPU) || o.wants(rowIdleMemory) || o.wants(rowIdleMany)
	if !delays && !idle && !o.wants(rowReplay) {
		return nil
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	b := &streamBench{o: o, s: s, r: r}
	if b.admin, b.url, err = s.client(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.clean(context.WithoutCancel(ctx))) }()
	for i := range streamTasks + 1 {
		if err := b.createTask(ctx, taskName(i)); err != nil {
			return err
		}
	}
	if idle { // first, as memory that something else has used would be counted
		if err := b.idle(ctx); err != nil {
			return err
		}
	}
	if o.wants(rowReplay) {
		if err := b.replay(ctx, taskName(streamTasks)); err != nil {
			return err
		}
	}
	for _, n := range openStreams {
		if delays {
			if err := b.delay(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func taskName(i int) string { return fmt.Sprintf("bench-stream-%d", i) }

// streamBench is a running server with tasks whose streams are open and that never run.
type streamBench struct {
	o     Options
	s     *server
	r     *report.Report
	admin *http.Client
	url   string
}

func (b *streamBench) createTask(ctx context.Context, name string) error {
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},
		"spec":{"type":"container","command":["true"],"schedule":"0 0 29 2 *","suspend":true}}`, name)
	return send(ctx, b.admin, http.MethodPost, b.url+base+"tasks", []byte(body), nil)
}

// clean deletes the tasks and waits until they are gone: what comes next must not find them ending.
func (b *streamBench) clean(ctx context.Context) (err error) {
	for i := range streamTasks + 1 {
		err = errors.Join(err, deleteTask(ctx, b.admin, b.url, taskName(i)))
	}
	return err
}

// open opens the stream of a task after the last stored event.
func (b *streamBench) open(ctx context.Context, c *http.Client, task string, after int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+base+"tasks/"+task+"/stream?after="+strconv.FormatInt(after, 10), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("stream of %s: status %d", task, resp.StatusCode), resp.Body.Close())
	}
	return resp.Body, nil
}

// replay reads a history of events of 1 KiB from its first to stream_complete; the median of three counts.
func (b *streamBench) replay(ctx context.Context, task string) error {
	stored := 0
	path := b.url + base + "tasks/" + task + "/events"
	if err := fillTrace(ctx, b.admin, path, &stored, replayed); err != nil {
		return err
	}
	if err := send(ctx, b.admin, http.MethodPost, path, []byte(`{"type":"TaskCancelled"}`), nil); err != nil {
		return err
	}
	var times []float64
	for range 3 {
		from := time.Now()
		body, err := b.open(ctx, b.admin, task, 0)
		if err != nil {
			return err
		}
		events := 0
		for frames := sse.NewReader(body, sse.Options{}); ; events++ {
			f, err := frames.Next()
			if err != nil {
				return errors.Join(fmt.Errorf("replay ended after %d events: %w", events, err), body.Close())
			}
			if f.Type == "stream_complete" {
				break
			}
		}
		times = append(times, time.Since(from).Seconds())
		if err := body.Close(); err != nil {
			return err
		}
		if events < replayed {
			return fmt.Errorf("replay gave %d events", events)
		}
	}
	slices.Sort(times)
	return b.r.Add(report.Row{Name: rowReplay, Unit: "s", Better: report.Lower, Ours: times[1], Other: 0.3, OtherName: "(aim; peer: 18.1)"})
}

// arrival is an event at a client.
type arrival struct {
	text string
	at   time.Time
}

// openAll opens n streams, spread over the tasks. What they receive goes to the channel; end closes them.
func (b *streamBench) openAll(ctx context.Context, n int) (arrivals <-chan arrival, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan arrival, n)
	var c *http.Client
	for i := range n {
		if i%streamsPerClient == 0 {
			if c, _, err = b.s.client(""); err != nil {
				break
			}
		}
		task := taskName(i % streamTasks)
		var page struct{ LatestSeq int64 }
		if err = send(ctx, b.admin, http.MethodGet, b.url+base+"tasks/"+task+"/events?limit=1", nil, &page); err != nil {
			break
		}
		var body io.ReadCloser
		if body, err = b.open(ctx, c, task, page.LatestSeq); err != nil {
			break
		}
		go func() { // ends with ctx
			defer body.Close()
			for frames := sse.NewReader(body, sse.Options{}); ; {
				f, err := frames.Next()
				if err != nil {
					return
				}
				select {
				case out <- arrival{f.Data, time.Now()}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return out, cancel, nil
}

// idle measures the cost of streams on which nothing arrives.
func (b *streamBench) idle(ctx context.Context) error {
	const n = 1000
	before, err := b.s.rss()
	if err != nil {
		return err
	}
	_, end, err := b.openAll(ctx, n)
	if err != nil {
		return err
	}
	defer end()
	wait(ctx, 2*time.Second) // the cost of opening them is over
	from, cpu := time.Now(), 0.0
	if cpu, err = b.s.cpu(); err != nil {
		return err
	}
	wait(ctx, idleWindow)
	after, err := b.s.cpu()
	if err != nil {
		return err
	}
	percent := 100 * (after - cpu) / time.Since(from).Seconds()
	rss, err := b.s.rss()
	if err == nil && b.o.wants(rowIdleCPU) {
		err = b.r.Add(report.Row{Name: rowIdleCPU, Unit: "% of a core", Better: report.Lower, Ours: percent, Other: 12.5, OtherName: "peer"})
	}
	if err == nil && b.o.wants(rowIdleMemory) {
		err = b.r.Add(report.Row{Name: rowIdleMemory, Unit: "KiB", Better: report.Lower, Ours: (rss - before) * 1024 / n, Other: 90, OtherName: "peer"})
	}
	if err != nil || !b.o.wants(rowIdleMany) {
		return err
	}
	_, endMore, err := b.openAll(ctx, 2*n)
	if err != nil {
		return err
	}
	defer endMore()
	wait(ctx, 2*time.Second)
	if rss, err = b.s.rss(); err != nil {
		return err
	}
	return b.r.Add(report.Row{Name: rowIdleMany, Unit: "MiB", Better: report.Lower, Ours: rss, Other: 1041, OtherName: "(before)"})
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// delay appends one event after the other while streams are open, and syncs a file of the same disk before each.
func (b *streamBench) delay(ctx context.Context, n int) error {
	arrivals, end, err := b.openAll(ctx, n)
	if err != nil {
		return err
	}
	defer end()
	f, err := os.Create(filepath.Join(b.o.Dir, "fsync"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	readers := max(1, n/streamTasks) // of each task
	var delays, syncs []float64
	block := make([]byte, 1024)
	for began, i := time.Now(), 0; time.Since(began) < b.o.Window && ctx.Err() == nil; i++ {
		from := time.Now()
		if _, err := f.Write(block); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		syncs = append(syncs, millis(time.Since(from)))
		task := taskName(i % min(n, streamTasks))
		text := fmt.Sprintf("%d of %d", i, began.UnixNano())
		body, err := json.Marshal(map[string]any{"type": "ModelMessage", "summary": text, "content": map[string]any{"text": buildLog}})
		if err != nil {
			return err
		}
		sent, failed := time.Now(), make(chan error, 1)
		go func() {
			failed <- send(ctx, b.admin, http.MethodPost, b.url+base+"tasks/"+task+"/events", body, nil)
		}()
		for got, answered := 0, false; got < readers || !answered; {
			select {
			case a := <-arrivals:
				if strings.Contains(a.text, text) {
					got++
					delays = append(delays, millis(a.at.Sub(sent)))
				}
			case err := <-failed:
				if err != nil {
					return err
				}
				answered = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return b.addDelays(n, delays, syncs)
}

func (b *streamBench) addDelays(n int, delays, syncs []float64) error {
	slices.Sort(delays)
	slices.Sort(syncs)
	at := func(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	for _, row := range []report.Row{
		{Name: delayName(n, "median"), Ours: at(delays, 0.5), Other: at(syncs, 0.5), OtherName: "raw fsync"},
		{Name: delayName(n, "p99"), Ours: at(delays, 0.99), Other: at(syncs, 0.99), OtherName: "raw fsync"},
		{Name: delayName(n, "beyond fsync"), Ours: at(delays, 0.5) - at(syncs, 0.5), Other: 2, OtherName: "(aim; peer: 950)"},
	} {
		row.Unit, row.Better = "ms", report.Lower
		if b.o.wants(row.Name) {
			if err := b.r.Add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// clockTick is the unit of CPU times in /proc on Linux, in seconds.
const clockTick = 0.01

// cpu is the processor time that the server has used, in seconds.
func (s *server) cpu() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", s.cmd.Process.Pid, data)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) * clockTick, err
}
