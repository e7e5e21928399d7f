// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/cli"
)

// commands describes every command of the program platform.
func commands(string) (string, error) {
	root := cli.Command()
	p := &page{}
	p.heading(1, "The command platform")
	p.text("Also a plugin of kubectl: `kubectl platform …`. Flags of kubectl that are not listed here work, too.")
	addCommand(p, root)
	return p.String(), nil
}

func addCommand(p *page, cmd *cobra.Command) {
	p.heading(2, cmd.CommandPath())
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	p.text("```\n%s\n```", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		p.text("Also: %s.", code(strings.Join(cmd.Aliases, "`, `")))
	}
	for paragraph := range strings.SplitSeq(about, "\n\n") {
		if strings.Contains(paragraph, "\n  ") { // a list that is laid out by hand
			p.text("```\n%s\n```", paragraph)
		} else {
			p.text("%s", prose(paragraph))
		}
	}
	if cmd.Example != "" {
		p.text("```sh\n%s\n```", cmd.Example)
	}
	addFlags(p, cmd.LocalFlags())
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			addCommand(p, c)
		}
	}
}

// addFlags adds a table of flags, except those that every command hides.
func addFlags(p *page, fs *pflag.FlagSet) {
	var rows [][]string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := code("--" + f.Name)
		if f.Shorthand != "" {
			name += ", " + code("-"+f.Shorthand)
		}
		typ, about := pflag.UnquoteUsage(f)
		fallback := f.DefValue
		if fallback == "[]" || fallback == "<nil>" {
			fallback = ""
		}
		if typ == "" {
			typ = f.Value.Type()
		}
		rows = append(rows, []string{name, typ, code(fallback), prose(about)})
	})
	if rows != nil {
		p.table([]string{"Flag", "Type", "Default", "Meaning"}, rows)
	}
}
