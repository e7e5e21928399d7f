// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/platform-ai/platform/pkg/llm/members"
)

// vendorAPIs lists what becomes of the members of requests in the vendors' APIs.
func vendorAPIs(string) (string, error) {
	p := &page{}
	p.heading(1, "Members of the vendors' APIs")
	p.text("A request to a Provider of the same protocol is passed on as it is, with all of its members. These tables are for all others: " +
		"requests to a Provider of another protocol, and those that are answered with the server's tools. Providers of type `anthropic` " +
		"have the messages protocol; those of all other types get chat completions.")
	p.text("*carried* means under the same name, or as what is named. *left out* is a hint that the Provider has no place for; the header " +
		"`X-Platform-Left-Out` of the answer names it. *refused* changes the answer and has no equivalent: the request gets 400, which names " +
		"it. So does a member that is in no table. A member that is null, empty or has its default is as if it were not there.")
	p.text("Elements of a list are told apart by their types: `content[text]`, or `tools[custom|]` for those of type custom and those " +
		"without a type; `[*]` is any other type. `**.` stands for any object that is not the client's own, such as a schema. With the server's tools, the client's own tools, their calls and results, and choices " +
		"among them are left out before.")
	for _, api := range members.APIs() {
		p.heading(2, "Requests of "+string(api))
		var rows [][]string
		for _, r := range members.Table(api) {
			rows = append(rows, []string{code(r.Path), code(r.Default), cell(r.OpenAI), cell(r.Anthropic), prose(r.Why)})
		}
		p.table([]string{"Member", "Default", "OpenAI", "Anthropic", "Notes"}, rows)
	}
	return p.String(), nil
}

// cell is what becomes of a member at one protocol.
func cell(c members.Cell) string {
	if c.As != "" {
		return "as " + prose(c.As)
	}
	return string(c.Fate)
}
