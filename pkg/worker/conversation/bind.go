// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"bytes"
	"encoding/json"

	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/worker/acp"
)

// bound is what a decision on a call is about.
type bound struct {
	// arguments is an object, and digest that of its canonical form.
	arguments json.RawMessage
	digest    string
	// note tells people what they would not expect of it.
	note string
	err  error
}

// Without tells people that there are no arguments.
const Without = "The coding agent gave no arguments with this call. The decision is about its title, kind and files, as the agent describes them."

// bind returns what a decision on a call is about: its arguments, or else what the agent says of it. Arguments that are no object become
// the member input of one.
func bind(c *acp.Call) (b bound) {
	switch raw := bytes.TrimSpace(c.Arguments); {
	case len(raw) == 0 || string(raw) == "{}" || string(raw) == "[]" || string(raw) == `""`:
		type change struct {
			Path    string `json:"path"`
			Created bool   `json:"created"`
			Bytes   int    `json:"bytes"`
		}
		var d struct {
			Title   string   `json:"title"`
			Kind    string   `json:"kind"`
			Paths   []string `json:"paths,omitempty"`
			Changes []change `json:"changes,omitempty"`
		}
		d.Title, d.Kind, d.Paths = c.Title, c.Kind, c.Paths
		for _, f := range c.Diffs {
			d.Changes = append(d.Changes, change(f))
		}
		b.arguments, b.err = json.Marshal(d)
		b.note = Without
	case raw[0] == '{':
		b.arguments = raw
	default:
		b.arguments, b.err = json.Marshal(map[string]json.RawMessage{"input": raw})
	}
	if b.err == nil {
		b.digest, b.err = approval.Digest(b.arguments)
	}
	return b
}
