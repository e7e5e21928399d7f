// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// servers is how many tests of a package run at a time, each with a server of its own. They wait more than they work, so the number
// exceeds that of the smallest machine's processors; packages run beside each other, so it does not exceed it by more.
const servers = 4

// Main runs the tests of a package whose tests start servers, and ends the program. It sets -parallel unless the command line does.
func Main(m *testing.M) { os.Exit(MainCode(m)) }

// MainCode does the same, and returns the exit code.
func MainCode(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", fmt.Sprint(servers)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
