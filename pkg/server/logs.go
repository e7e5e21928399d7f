// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/sparse"
)

// SetUpLog sends the process's log to its standard error. If quiet is set, it keeps warnings and errors and drops lines that
// only report progress. From then on whatever else is written to os.Stderr is a line of that log, by the logger of ctx, one for
// each cause and interval: the library's HTTPS listener writes there what its clients cause, and takes no other logger. What
// the process says when it ends must be written to the file that os.Stderr was before. A program calls it once, before it
// starts anything.
func SetUpLog(ctx context.Context, quiet bool, lines *sparse.Log) error {
	stderr := os.Stderr
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	for _, f := range [][2]string{{"logtostderr", "false"}, {"stderrthreshold", "FATAL"}, {"one_output", "true"}} {
		if err := fs.Set(f[0], f[1]); err != nil {
			return err
		}
	}
	klog.SetOutput(stderr)
	if quiet {
		klog.SetOutputBySeverity("INFO", io.Discard)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	os.Stderr = w
	into := lines.Logger(ctx)
	go func() { // until the process ends
		for in := bufio.NewReaderSize(r, maxLine); ; {
			line, cut, err := in.ReadLine()
			if err != nil {
				return
			}
			into.Print(string(line))
			for cut && err == nil {
				_, cut, err = in.ReadLine()
			}
		}
	}()
	return nil
}

// maxLine is how much of a line that a library writes is logged, in bytes.
const maxLine = 4 << 10
