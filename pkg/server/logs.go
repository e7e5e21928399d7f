// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"flag"
	"io"

	"k8s.io/klog/v2"
)

// QuietLogs keeps warnings and errors in the process's log and drops lines that only report progress. A program calls
// it once, before Run, unless its user requested a verbosity.
func QuietLogs() error {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	for _, f := range [][2]string{{"logtostderr", "false"}, {"stderrthreshold", "WARNING"}} {
		if err := fs.Set(f[0], f[1]); err != nil {
			return err
		}
	}
	klog.SetOutput(io.Discard) // what would otherwise go to files
	return nil
}
