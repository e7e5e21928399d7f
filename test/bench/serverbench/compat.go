// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowSmall = "chat completions, 64 connections"
	// rowTools is of requests that a model with the server's tools answers, without calling one.
	rowTools   = "completions with tools, 64 connections"
	rowWork    = "processor time of a chat completion"
	rowFirst   = "first event of a streamed completion, median"
	rowStreams = "200 parallel streams of 50 events"
	// rowBeyond is how much later than the proxy's the first event comes, beside what one sync of the disk takes: the start of a
	// request is on disk before the vendor gets it.
	rowBeyond = "first event, beyond the proxy's, median"
	// viaRouter begins the names of the router's rows.
	viaRouter = "router: "
)

// modelRow is a row of the servers of model APIs.
type modelRow struct {
	name, unit string
	better     report.Better
	measure    func(context.Context, target, time.Duration) (float64, error)
	// aims says that the figure of an API may be worse than the proxy's by modelAim percent, and that of the router by routerAim.
	aims bool
}

// modelAim and routerAim are how much worse than a bare proxy the APIs and the router may be, in percent.
const modelAim, routerAim = 25, 10

func modelRows() []modelRow {
	return []modelRow{
		{rowSmall, "requests/s", report.Higher, smallRequests, true},
		{rowTools, "requests/s", report.Higher, requestsWithTools, false},
		{rowWork, "µs", report.Lower, processorTime, false},
		{rowFirst, "ms", report.Lower, firstEvents, true},
		{rowStreams, "ms", report.Lower, parallelStreams, true},
	}
}

// modelAPIs measures the OpenAI API of the server, used with a ServiceAccount token, and platform-router, beside a bare
// httputil.ReverseProxy with TLS, which authenticates nobody, reads nothing and counts nothing. Each of them is a process of
// its own. The vendor behind all of them, and the clients, are in this process.
func modelAPIs(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	wanted := o.wants(rowBeyond)
	for _, row := range modelRows() {
		wanted = wanted || o.wants(row.name) || o.wants(viaRouter+row.name)
	}
	if !wanted {
		return nil
	}
	vendor := httptest.NewServer(http.HandlerFunc(answerCompat))
	defer vendor.Close()
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	admin, base, err := s.client("")
	if err != nil {
		return err
	}
	if err := makeProvider(ctx, admin, base, "default", vendor.URL); err != nil {
		return err
	}
	token, err := accountToken(ctx, admin, base, "chats", `{"apiGroups":["core.platform.ai"],"resources":["chats"],"verbs":["create"]},{"apiGroups":["core.platform.ai"],"resources":["providers"],"verbs":["list"]}`)
	if err != nil {
		return err
	}
	ours := target{url: base + path, pid: s.cmd.Process.Pid}
	for range modelClients {
		c, _, err := s.client(token)
		if err != nil {
			return err
		}
		ours.clients = append(ours.clients, c)
	}
	pair, err := newPair(o.Dir)
	if err != nil {
		return err
	}
	proxy, err := startProxy(ctx, pair, vendor.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.stop()) }()
	if o.wants(rowBeyond) {
		if err := firstBeyond(ctx, o, ours, proxy.target(pair, ""), r); err != nil {
			return err
		}
	}
	if err := compare(ctx, o, "", modelAim, ours, proxy.target(pair, ""), r); err != nil {
		return err
	}
	if err := recorded(ctx, admin, base); err != nil {
		return err
	}
	router, err := startRouter(ctx, o.Bin, pair, filepath.Join(dir, "kubeconfig"), vendor.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, router.stop()) }()
	return compare(ctx, o, viaRouter, routerAim, router.target(pair, token), proxy.target(pair, token), r)
}

// firstBeyond times first events of both servers and syncs of a file on the same disk, in turns.
func firstBeyond(ctx context.Context, o Options, ours, other target, r *report.Report) error {
	f, err := os.Create(filepath.Join(o.Dir, "fsync"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	defer other.close()
	block := make([]byte, 1024)
	var times [3][]float64
	for range firsts {
		for i, measure := range []func() (float64, error){
			func() (float64, error) { return ours.ask(ctx, 0, true) },
			func() (float64, error) { return other.ask(ctx, 0, true) },
			func() (float64, error) {
				began := time.Now()
				if _, err := f.Write(block); err != nil {
					return 0, err
				}
				err := f.Sync()
				return millis(time.Since(began)), err
			},
		} {
			took, err := measure()
			if err != nil {
				return fmt.Errorf("%s: %w", rowBeyond, err)
			}
			times[i] = append(times[i], took)
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	return r.Add(report.Row{
		Name: rowBeyond, Unit: "ms", Better: report.Lower, Ours: times[0][firsts/2] - times[1][firsts/2], Other: times[2][firsts/2], OtherName: "raw fsync",
	})
}

// rounds is how often each row is measured at both servers, in turns. The medians count.
const rounds = 5

// compare measures each row that is wanted at both servers. Aim is how much worse than the other one ours may be, in percent.
func compare(ctx context.Context, o Options, prefix string, aim int, ours, other target, r *report.Report) error {
	defer ours.close()
	defer other.close()
	for _, m := range modelRows() {
		row := report.Row{Name: prefix + m.name, Unit: m.unit, Better: m.better, OtherName: "ReverseProxy"}
		if m.aims {
			row.Within = aim
		}
		if !o.wants(row.Name) || prefix == viaRouter && m.name == rowTools { // a router has no tools
			continue
		}
		var values [2][]float64
		for range rounds {
			for i, t := range []target{ours, other} {
				value, err := m.measure(ctx, t, o.Window/rounds)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", row.Name, []string{"ours", "proxy"}[i], err)
				}
				values[i] = append(values[i], value)
			}
		}
		for i := range values {
			slices.Sort(values[i])
		}
		row.Ours, row.Other = values[0][rounds/2], values[1][rounds/2]
		if err := r.Add(row); err != nil {
			return err
		}
	}
	return nil
}
