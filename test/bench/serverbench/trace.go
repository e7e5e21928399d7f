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
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

// traceRows are traces of tasks of several lengths, with the figure of the
// closest peer where it has one and our aim elsewhere.
var traceRows = []struct {
	events    int
	other     float64 // ms
	otherName string
}{
	{5_000, 194, "peer"},
	{10_000, 100, "(aim; peer: 413)"},
	{100_000, 0, "(peer: 413)"},
}

// traces measures whole traces of growing length, including the timeline, and how
// much more memory the longest took than the one before it.
func traces(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	longest := traceRows[len(traceRows)-1].events
	memory := fmt.Sprintf("trace of %d events, memory growth", longest)
	wanted := o.wants(memory)
	for _, row := range traceRows {
		wanted = wanted || o.wants(traceName(row.events))
	}
	if !wanted {
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
	const name = "bench-trace"
	if err := openTask(ctx, c, url, name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deleteTask(context.WithoutCancel(ctx), c, url, name)) }()
	stored := 0
	for _, row := range traceRows {
		if err := fillTrace(ctx, c, url+base+"tasks/"+name+"/events", &stored, row.events); err != nil {
			return err
		}
		before, err := s.rss()
		if err == nil {
			err = s.resetPeak()
		}
		if err != nil {
			return err
		}
		took, size, err := readTrace(ctx, c, url+base+"tasks/"+name+"/trace", row.events)
		if err != nil {
			return err
		}
		peak, err := s.peak()
		if err == nil && o.wants(traceName(row.events)) {
			err = r.Add(report.Row{Name: traceName(row.events), Unit: "ms", Better: report.Lower, Ours: took, Other: row.other, OtherName: row.otherName})
		}
		if err == nil && row.events == longest && o.wants(memory) {
			err = r.Add(report.Row{Name: memory, Unit: "MiB", Better: report.Lower, Ours: peak - before, Other: size, OtherName: "MiB of JSON"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func traceName(events int) string { return fmt.Sprintf("trace of %d events", events) }

// loopTypes are the events of one turn of a model and tool loop.
var loopTypes = []string{"ModelRequestStarted", "ModelRequestCompleted", "ModelMessage", "ToolCallStarted", "ToolCallCompleted"}

// fillTrace appends events of 1 KiB until the task has about n of its own.
func fillTrace(ctx context.Context, c *http.Client, url string, stored *int, n int) error {
	const batch = 500
	for ; *stored < n; *stored += batch {
		items := make([]any, batch)
		for i := range items {
			typ := loopTypes[i%len(loopTypes)]
			item := map[string]any{"type": typ, "summary": "one step of the loop", "content": map[string]any{"iteration": (*stored+i)/len(loopTypes) + 1, "model": "m", "text": buildLog}}
			if strings.HasPrefix(typ, "Tool") {
				item["toolName"], item["toolCallID"] = "x", fmt.Sprint("call-", (*stored+i)/len(loopTypes))
			}
			items[i] = item
		}
		body, err := json.Marshal(map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "ExecutionEventList", "items": items})
		if err != nil {
			return err
		}
		if err := send(ctx, c, http.MethodPost, url, body, nil); err != nil {
			return err
		}
	}
	return nil
}

// traceRuns is how often a trace is read; the median counts. During the first runs
// the store is still busy with what was just appended.
func traceRuns(events int) int {
	if events > 10_000 {
		return 5
	}
	return 21
}

// readTrace reads a trace to its end and returns the time in ms and its size in MiB.
func readTrace(ctx context.Context, c *http.Client, url string, events int) (took, size float64, err error) {
	var times []float64
	for range traceRuns(events) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, 0, err
		}
		from := time.Now()
		resp, err := c.Do(req)
		if err != nil {
			return 0, 0, err
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			return 0, 0, err
		case resp.StatusCode != http.StatusOK || n < int64(events)*1024:
			return 0, 0, fmt.Errorf("trace of %d events: status %d, %d bytes", events, resp.StatusCode, n)
		}
		times = append(times, float64(time.Since(from).Microseconds())/1000)
		size = float64(n) / (1 << 20)
	}
	slices.Sort(times)
	return times[len(times)/2], size, nil
}
