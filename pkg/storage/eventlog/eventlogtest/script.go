// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Run runs every script in dir. With -rewrite it writes their expected output.
func Run(t *testing.T, dir string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		d := New(t)
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			c := Command{Name: td.Cmd, Input: td.Input}
			for _, a := range td.CmdArgs {
				c.Args = append(c.Args, Arg{a.Key, strings.Join(a.Vals, ",")})
			}
			out, err := d.Exec(c)
			if err != nil {
				td.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}
