// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// events describes every type of event, in the order in which the types are declared.
func events(root string) (string, error) {
	src, err := readSource(filepath.Join(root, apiFolder))
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, c := range src.consts {
		if c.typ != "EventType" {
			continue
		}
		t := v1alpha1.EventType(c.value)
		if !event.Known(t) {
			return "", fmt.Errorf("%s is not in the table of pkg/event", t)
		}
		about := describe(c)
		if about == "" {
			return "", fmt.Errorf("%s has no comment", c.name)
		}
		rows = append(rows, []string{code(c.value), string(event.WrittenBy(t)), strings.Join(meaning(t), ", "), prose(about)})
	}
	if len(rows) != len(event.Types()) {
		return "", fmt.Errorf("%d types are declared, %d are in the table of pkg/event", len(rows), len(event.Types()))
	}
	p := &page{}
	p.heading(1, "Execution events")
	p.text("The list of types is closed. A *worker* event may be appended by whoever may create `tasks/events` or " +
		"`executionevents` of the task; the others need `create` on `executionevents/controlled`, too, which workers never have. " +
		"*Server* events are also appended by the server itself, for decisions, forks and plans.")
	p.text("Fields of an event are in [api.md](api.md#executionevent). Its `content` is an object whose keys depend on the type; " +
		"the lists below are of those that the platform writes. Secrets are removed from it, and long values are cut.")
	p.table([]string{"Type", "Written by", "Effect", "Meaning and content"}, rows)
	return p.String(), nil
}

// meaning returns the effects of a type beyond being recorded.
func meaning(t v1alpha1.EventType) []string {
	var words []string
	if event.Terminal(t) {
		words = append(words, "ends the task and closes its stream")
	}
	if event.Late(t) {
		words = append(words, "may follow the end")
	}
	if event.ApprovalDecision(t) {
		words = append(words, "ends the approval")
	}
	return words
}
