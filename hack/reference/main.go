// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program reference writes artifacts/reference, the reference for users, from the code itself. Types, reasons and
// metrics are read from the source; commands and flags are those that the programs parse.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// notice is the first line of every page.
const notice = "<!-- Written by hack/reference (make generate). Do not edit. -->\n"

// pages lists the files of the reference, with the func that writes each from the sources below the given root.
var pages = []struct {
	file  string
	write func(root string) (string, error)
}{
	{"api.md", api},
	{"events.md", events},
	{"reasons.md", reasons},
	{"cli.md", commands},
	{"flags.md", flags},
	{"metrics.md", metrics},
	{"rest.md", restPaths},
	{"vendor-apis.md", vendorAPIs},
}

func main() {
	out := flag.String("o", "artifacts/reference", "folder to write to")
	flag.Parse()
	if err := run(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run writes all pages for the repository at root.
func run(root, out string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	for _, p := range pages {
		text, err := p.write(root)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(out, p.file), []byte(notice+text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
