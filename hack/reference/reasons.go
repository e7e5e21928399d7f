// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
)

// reasonsFile contains the reasons of conditions and of events, as documented
// constants.
const reasonsFile = "reasons.go"

// reasons lists the reasons, block by block.
func reasons(root string) (string, error) {
	src, err := readSource(filepath.Join(root, apiFolder))
	if err != nil {
		return "", err
	}
	p := &page{}
	p.heading(1, "Reasons")
	p.text("Words in the `reason` of a condition and of an event that ends a task. They are stable: scripts may compare them.")
	var group string
	var rows [][]string
	flush := func() {
		if rows == nil {
			return
		}
		if group != "" {
			p.text("%s", prose(group))
		}
		p.table([]string{"Reason", "Meaning"}, rows)
		rows = nil
	}
	for _, c := range src.consts {
		if c.file != reasonsFile {
			continue
		}
		about := describe(c)
		if about == "" {
			return "", fmt.Errorf("%s has no comment", c.name)
		}
		if c.group != group {
			flush()
			group = c.group
		}
		rows = append(rows, []string{code(c.value), prose(about)})
	}
	if rows == nil {
		return "", fmt.Errorf("no constants in %s", reasonsFile)
	}
	flush()
	return p.String(), nil
}
