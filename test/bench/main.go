// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench compares our store with the API server's stock store on a real
// etcd, the event log with aims and the closest peer, workspaces with the git program,
// and the whole server with the raw disk. It prints the figures and writes them to a JSON file. The programs must
// have been built; make bench does so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/platform-ai/platform/test/bench/eventbench"
	"github.com/platform-ai/platform/test/bench/gitbench"
	"github.com/platform-ai/platform/test/bench/report"
	"github.com/platform-ai/platform/test/bench/serverbench"
	"github.com/platform-ai/platform/test/bench/storebench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	etcd := flag.String("etcd", "", "etcd program to compare the store with; without it the store is not measured")
	bin := flag.String("bin", "", "folder of our built programs; without it the server is not measured")
	kube := flag.String("kube", "", "folder of kube-apiserver and etcd to compare the server with; without it, it is not compared")
	rows := flag.String("rows", "", "regular expression of the rows to measure")
	seconds := flag.Float64("seconds", 3, "how long each row runs for each subject")
	records := flag.Int("gateway-rows", 1_000_000, "how many events of a gateway pages are read of; a million take minutes to make")
	repeat := flag.Int("repeat", 1, "how often each row of the store is measured; the median counts")
	json := flag.Bool("json", false, "store JSON instead of protobuf")
	dir := flag.String("dir", "", "folder on the disk to measure (default: the folder for temporary files)")
	out := flag.String("out", filepath.Join("_output", "bench.json"), "file to write the figures to")
	proxy := flag.String("proxy", "", "serve a proxy to this address, which the server is compared with, and measure nothing")
	proxyCert, proxyKey := flag.String("proxy-cert", "", "certificate of -proxy"), flag.String("proxy-key", "", "key of -proxy")
	flag.Parse()
	if *proxy != "" {
		return serverbench.Proxy(ctx, *proxyCert, *proxyKey, *proxy)
	}
	selected, err := regexp.Compile(*rows)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	window := time.Duration(*seconds * float64(time.Second))
	r := report.New(os.Stdout)
	if *etcd != "" {
		if err := storebench.Run(ctx, storebench.Options{Etcd: *etcd, Dir: work, Rows: selected, Window: window, Repeat: *repeat, JSON: *json}, r); err != nil {
			return err
		}
	}
	if err := storebench.Transcripts(ctx, storebench.Options{Dir: work, Rows: selected, Window: window, Repeat: *repeat}, r); err != nil {
		return err
	}
	if err := eventbench.Run(ctx, eventbench.Options{Dir: work, Rows: selected, Window: window}, r); err != nil {
		return err
	}
	if *bin != "" {
		if err := gitbench.Run(ctx, gitbench.Options{Bin: *bin, Dir: work, Rows: selected}, r); err != nil {
			return err
		}
		if err := serverbench.Run(ctx, serverbench.Options{Bin: *bin, Kube: *kube, Dir: work, Rows: selected, Window: window, Records: *records}, r); err != nil {
			return err
		}
	}
	return r.Write(*out)
}
