// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	path = "/openai/v1/chat/completions"

	modelClients, parallel, streamEvents = 64, 200, 50
	// firsts is how many first events are timed.
	firsts = 200

	completion = `{"model":"m","stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Say hello."}]}`
)

// target is a server with a client for each connection.
type target struct {
	url     string
	pid     int    // of the server
	token   string // if the clients have none
	tools   bool   // of the server, which the proxy does not have
	clients []*http.Client
}

func (t target) close() {
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}

// ask sends a completion and returns when its first line arrived, in ms, after it read the whole answer.
func (t target) ask(ctx context.Context, i int, stream bool) (float64, error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(fmt.Appendf(nil, completion, stream)))
	if err != nil {
		return 0, err
	}
	tools := map[bool]string{false: "disabled", true: "enabled"}[t.tools]
	req.Header.Set("X-Platform-Tools", tools)
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.clients[i%len(t.clients)].Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	line, err := in.ReadString('\n')
	first := float64(time.Since(began).Microseconds()) / 1000
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", resp.Status, line)
	}
	if was := resp.Header.Get("X-Platform-Tools"); was != "" && was != tools {
		return 0, fmt.Errorf("the server's tools were %s instead of %s", was, tools)
	}
	rest, err := io.ReadAll(in)
	if err == nil && stream && !bytes.Contains(rest, []byte("[DONE]")) {
		err = errors.New("the stream broke off")
	}
	return first, err
}

// all runs n functions at the same time and returns their errors.
func all(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// send makes completions on all connections for a while, and returns how many, and how long that took.
func (t target) send(ctx context.Context, window time.Duration) (int64, time.Duration, error) {
	var answered atomic.Int64
	began := time.Now()
	err := all(modelClients, func(i int) error {
		for time.Since(began) < window {
			if _, err := t.ask(ctx, i, false); err != nil {
				return err
			}
			answered.Add(1)
		}
		return nil
	})
	return answered.Load(), time.Since(began), err
}

func smallRequests(ctx context.Context, t target, window time.Duration) (float64, error) {
	n, took, err := t.send(ctx, window)
	return float64(n) / took.Seconds(), err
}

func requestsWithTools(ctx context.Context, t target, window time.Duration) (float64, error) {
	t.tools = true
	return smallRequests(ctx, t, window)
}

// processorTime returns the processor time of the server for each request, in µs. Other programs do not change it much.
func processorTime(ctx context.Context, t target, window time.Duration) (float64, error) {
	if _, _, err := t.send(ctx, window/10); err != nil { // connects, and fills caches
		return 0, err
	}
	before, err := processor(t.pid)
	if err != nil {
		return 0, err
	}
	n, _, err := t.send(ctx, window)
	if err != nil {
		return 0, err
	}
	after, err := processor(t.pid)
	return float64((after - before).Microseconds()) / float64(n), err
}

// processor returns the processor time of a process.
func processor(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // after the name of the program, which may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] { // of user and system, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func firstEvents(ctx context.Context, t target, _ time.Duration) (float64, error) {
	var took []float64
	for range firsts {
		ms, err := t.ask(ctx, 0, true)
		if err != nil {
			return 0, err
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func parallelStreams(ctx context.Context, t target, _ time.Duration) (float64, error) {
	began := time.Now()
	err := all(parallel, func(i int) error {
		_, err := t.ask(ctx, i, true)
		return err
	})
	return float64(time.Since(began).Microseconds()) / 1000, err
}
