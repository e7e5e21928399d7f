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
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

// timed is how many requests, and how many calls, of a coding agent are timed.
const timed = 200

// codingAgents measures what stands between a coding agent and its model, and between an agent and those who watch it. The agent is the
// scripted one, which does nothing else, and the vendor is in this process.
func codingAgents(ctx context.Context, o Options, r *report.Report) (err error) {
	const (
		door   = "a coding agent's model request, beyond the vendor asked directly, median"
		beyond = "a coding agent's model request, beyond the vendor and one sync, median"
		update = "a coding agent's call, until a watch has it, median"
	)
	if !o.wants(door) && !o.wants(beyond) && !o.wants(update) {
		return nil
	}
	dir := filepath.Join(o.Dir, "coding")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	program, err := filepath.Abs(filepath.Join(o.Bin, "scriptedagent"))
	if err != nil {
		return err
	}
	s, err := start(ctx, o.Bin, dir, "--agent-runtime", "codex="+program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
	}))
	defer vendor.Close()
	if err := makeProvider(ctx, c, url, "default", vendor.URL); err != nil {
		return err
	}
	agent := []byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Agent","metadata":{"name":"coder"},"spec":{"runtime":{"type":"codex"},"model":{"provider":"openai","name":"m"}}}`)
	if err := send(ctx, c, http.MethodPost, url+base+"agents", agent, nil); err != nil {
		return err
	}
	l := &load{server: s, client: c, url: url, spec: `"type":"agent","agentRef":{"name":"coder"},"agentRuntime":{"maxTurns":1000},"prompt":"do: say done"`}
	if err := l.alone(ctx, "coding-warm", 1); err != nil { // makes the worker's account
		return err
	}
	if o.wants(door) || o.wants(beyond) {
		through, direct, err := l.throughDoor(ctx, vendor.URL)
		if err != nil {
			return err
		}
		rate, err := fsyncRate(dir, time.Second) // that a request begins is on disk before the vendor is asked
		if err != nil {
			return err
		}
		for name, ours := range map[string]float64{door: through - direct, beyond: through - direct - 1000/rate} {
			if !o.wants(name) {
				continue
			}
			if err := r.Add(report.Row{Name: name, Unit: "ms", Better: report.Lower, Ours: ours, Other: 1, OtherName: "(aim)"}); err != nil {
				return err
			}
		}
	}
	if !o.wants(update) {
		return nil
	}
	took, err := l.untilWatched(ctx)
	if err != nil {
		return err
	}
	return r.Add(report.Row{Name: update, Unit: "ms", Better: report.Lower, Ours: took, Other: 5, OtherName: "(aim)"})
}

// throughDoor returns the median time of a request that a coding agent sends to its model, and of one that is sent to the vendor
// directly, in ms.
func (l *load) throughDoor(ctx context.Context, vendor string) (through, direct float64, err error) {
	const task = "asks-0"
	l.spec = fmt.Sprintf(`"type":"agent","agentRef":{"name":"coder"},"agentRuntime":{"maxTurns":1000},"prompt":"do: asks-timed %d hello"`, timed)
	if err := l.alone(ctx, "asks", 1); err != nil {
		return 0, 0, err
	}
	var result struct{ Result string }
	if err := send(ctx, l.client, http.MethodGet, l.url+base+"tasks/"+task+"/result", nil, &result); err != nil {
		return 0, 0, err
	}
	var asked, alone []float64
	for line := range strings.Lines(result.Result) {
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, "Hello. ")), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the agent says %q: %w", line, err)
		}
		asked = append(asked, millis(time.Duration(n)))
	}
	if len(asked) != timed {
		return 0, 0, fmt.Errorf("the agent asked %d times, not %d", len(asked), timed)
	}
	body := []byte(`{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"hello"}]}`)
	for range timed {
		began := time.Now()
		if err := send(ctx, http.DefaultClient, http.MethodPost, vendor+"/chat/completions", body, nil); err != nil {
			return 0, 0, err
		}
		alone = append(alone, millis(time.Since(began)))
	}
	return median(asked), median(alone), nil
}

// untilWatched returns the median time from an agent's announcement of a call until a client that watches has its event, in ms.
func (l *load) untilWatched(ctx context.Context) (float64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.spec = fmt.Sprintf(`"type":"agent","agentRef":{"name":"coder"},"prompt":"do: tools-timed %d\ndo: say done"`, timed)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+base+"executionevents?watch=true&fieldSelector=taskName=calls-0", nil)
	if err != nil {
		return 0, err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := l.create(ctx, l.client, "calls-0", 500); err != nil {
		return 0, err
	}
	var took []float64
	for frames := json.NewDecoder(resp.Body); len(took) < timed; {
		var f struct {
			Object struct{ Type, ToolCallID, Summary string }
		}
		if err := frames.Decode(&f); err != nil {
			return 0, fmt.Errorf("watch events: %w", err)
		}
		now := time.Now()
		switch f.Object.Type {
		case "ToolCallStarted":
			n, err := strconv.ParseInt(f.Object.ToolCallID, 10, 64)
			if err != nil {
				return 0, err
			}
			took = append(took, millis(now.Sub(time.Unix(0, n))))
		case "TaskFailed":
			return 0, errors.New(f.Object.Summary)
		}
	}
	return median(took), nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
