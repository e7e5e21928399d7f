// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

const (
	besidePath = base + "skills"
	// besideObjects is how many objects there are when they are listed in pages.
	besideObjects = 2000
	// besideChanges is how many changes each watch sees.
	besideChanges = 20
	besideName    = "over HTTPS, "
	besidePeer    = "CRD, kube-apiserver"
)

// httpSubject is a server under the same load.
type httpSubject struct {
	url    string
	client func() (*http.Client, error)
}

// besideRow is one measurement: operations a second.
type besideRow struct {
	name, unit string
	times      float64 // the aim: how many times the rate of the peer
	measure    func(ctx context.Context, s httpSubject, d time.Duration) (float64, error)
}

func besideRows() []besideRow {
	create := func(ctx context.Context, c *http.Client, url, who string, i int64) error {
		return send(ctx, c, http.MethodPost, url+besidePath, skill(fmt.Sprintf("%s-%d", who, i)), nil)
	}
	get := func(ctx context.Context, c *http.Client, url, _ string, i int64) error {
		return send(ctx, c, http.MethodGet, fmt.Sprintf("%s%s/page-%d", url, besidePath, i%besideObjects), nil, nil)
	}
	patch := func(ctx context.Context, c *http.Client, url, _ string, i int64) error {
		return patchSkill(ctx, c, fmt.Sprintf("%s%s/page-%d", url, besidePath, i%besideObjects), i)
	}
	rows := []besideRow{{"pages of 500", "objects/s", 8, pageRate}}
	for _, clients := range []int{1, 64} {
		times := map[int]float64{1: 3, 64: 8}[clients]
		for _, op := range []struct {
			name string
			do   operation
		}{{"create", create}, {"get", get}, {"patch", patch}} {
			rows = append(rows, besideRow{fmt.Sprintf("%s, %d clients", op.name, clients), "requests/s", times, repeated(clients, fmt.Sprint(op.name, clients), op.do)})
		}
	}
	rows = append(rows, besideRow{"100 watches", "frames/s", 0, watchRate(100)}, besideRow{"1000 watches", "frames/s", 3, watchRate(1000)})
	return rows
}

// beside runs each row on our server and on the peer, one after the other.
func beside(ctx context.Context, o Options, r *report.Report) (err error) {
	var rows []besideRow
	for _, row := range besideRows() {
		if o.wants(besideName + row.name) {
			rows = append(rows, row)
		}
	}
	if _, missing := os.Stat(filepath.Join(o.Kube, "kube-apiserver")); len(rows) == 0 || o.Kube == "" || missing != nil {
		return nil
	}
	dir := filepath.Join(o.Dir, "beside")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ours, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	admin, url, err := ours.client("")
	if err != nil {
		return err
	}
	token, err := accountToken(ctx, admin, url, "beside", `{"apiGroups":["core.platform.ai"],"resources":["skills"],"verbs":["*"]}`)
	if err != nil {
		return err
	}
	theirs, err := startPeer(ctx, o.Kube, filepath.Join(dir, "peer"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.stop()) }()
	subjects := []httpSubject{{url, func() (*http.Client, error) {
		c, _, err := ours.client(token)
		return c, err
	}}, {theirs.url, func() (*http.Client, error) { return theirs.client(), nil }}}
	for _, s := range subjects {
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	for _, row := range rows {
		var rates [2]float64
		for i, s := range subjects {
			if rates[i], err = row.measure(ctx, s, o.Window); err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
		}
		if err := r.Add(report.Row{Name: besideName + row.name, Unit: row.unit, Better: report.Higher, Ours: rates[0], Other: rates[1], OtherName: besidePeer, Times: row.times}); err != nil {
			return err
		}
	}
	return nil
}

func skill(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Skill","metadata":{"name":%q},"spec":{"description":"a skill","content":{"inline":%q}}}`, name, buildLog)
}

func patchSkill(ctx context.Context, c *http.Client, url string, i int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, i)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("PATCH %s: status %d: %s", url, resp.StatusCode, data))
	}
	return errors.Join(err, resp.Body.Close())
}

// fill makes the objects that are read.
func (s httpSubject) fill(ctx context.Context) error {
	var next atomic.Int64
	return s.all(16, func(c *http.Client) error {
		for i := next.Add(1) - 1; i < besideObjects; i = next.Add(1) - 1 {
			if err := send(ctx, c, http.MethodPost, s.url+besidePath, skill(fmt.Sprintf("page-%d", i)), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// all runs f with n clients at the same time.
func (s httpSubject) all(n int, f func(*http.Client) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c, err := s.client()
			if err == nil {
				defer c.CloseIdleConnections()
				err = f(c)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

type operation func(ctx context.Context, c *http.Client, url, who string, i int64) error

// repeated measures an operation that some clients repeat.
func repeated(clients int, who string, op operation) func(context.Context, httpSubject, time.Duration) (float64, error) {
	return func(ctx context.Context, s httpSubject, d time.Duration) (float64, error) {
		var next atomic.Int64
		from := time.Now()
		err := s.all(clients, func(c *http.Client) error {
			for time.Since(from) < d {
				if err := op(ctx, c, s.url, who, next.Add(1)); err != nil {
					return err
				}
			}
			return nil
		})
		return float64(next.Load()) / time.Since(from).Seconds(), err
	}
}

// pageRate walks through all objects in pages of 500, and returns objects a second.
func pageRate(ctx context.Context, s httpSubject, d time.Duration) (float64, error) {
	c, err := s.client()
	if err != nil {
		return 0, err
	}
	n, token := 0, ""
	defer c.CloseIdleConnections()
	from := time.Now()
	for time.Since(from) < d {
		body, err := fetch(ctx, c, s.url+besidePath+"?limit=500&continue="+token, "")
		if err != nil {
			return 0, err
		}
		// A client that decoded everything would be what is measured.
		n += bytes.Count(body, []byte(`"uid":"`))
		_, after, _ := bytes.Cut(body, []byte(`"continue":"`))
		next, _, _ := bytes.Cut(after, []byte(`"`))
		token = string(next)
	}
	return float64(n) / time.Since(from).Seconds(), nil
}

// fetch returns the body of an answer, undecoded. accept is the kinds that the client takes; empty for any.
func fetch(ctx context.Context, c *http.Client, url, accept string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("GET %s: status %d", url, resp.StatusCode))
	}
	return body, errors.Join(err, resp.Body.Close())
}

// watchRate opens watches, changes an object, and returns how many frames a second all of them get together.
func watchRate(n int) func(context.Context, httpSubject, time.Duration) (float64, error) {
	return func(ctx context.Context, s httpSubject, _ time.Duration) (float64, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c, err := s.client()
		if err != nil {
			return 0, err
		}
		defer c.CloseIdleConnections()
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := send(ctx, c, http.MethodGet, s.url+besidePath+"?limit=1", nil, &list); err != nil {
			return 0, err
		}
		begin := time.Now().UnixNano() // labels that no earlier row used
		last := strconv.FormatInt(begin+besideChanges-1, 10)
		var frames sync.WaitGroup
		var broken atomic.Bool
		frames.Add(n)
		for range n {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+besidePath+"?watch=true&fieldSelector=metadata.name=page-0&resourceVersion="+list.Metadata.ResourceVersion, nil)
			if err != nil {
				return 0, err
			}
			resp, err := c.Do(req) //nolint:bodyclose // the goroutine below closes it
			if err != nil {
				return 0, err
			}
			go func() { // ends with ctx
				defer resp.Body.Close()
				defer frames.Done()
				in := json.NewDecoder(resp.Body)
				for seen := ""; seen != last; {
					var frame struct {
						Object struct {
							Metadata struct{ Labels map[string]string }
						}
					}
					if in.Decode(&frame) != nil {
						broken.Store(true)
						return
					}
					seen = frame.Object.Metadata.Labels["n"]
				}
			}()
		}
		from := time.Now()
		for i := range int64(besideChanges) {
			if err := patchSkill(ctx, c, s.url+besidePath+"/page-0", begin+i); err != nil {
				return 0, err
			}
		}
		frames.Wait()
		took := time.Since(from)
		if broken.Load() {
			return 0, errors.New("a watch ended early")
		}
		return float64(n*besideChanges) / took.Seconds(), nil
	}
}
