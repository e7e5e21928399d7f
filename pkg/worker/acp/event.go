// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package acp

import (
	"encoding/json"
	"slices"
)

// EventKind says what an Event is about.
type EventKind string

// Kinds of events.
const (
	// Message and Thought: a part of what the agent says, or thinks. Text is the part.
	Message EventKind = "message"
	Thought EventKind = "thought"
	// CallStarted, CallChanged and CallEnded: a tool call. Each call starts and ends at most once, and in this order.
	CallStarted EventKind = "callStarted"
	CallChanged EventKind = "callChanged"
	CallEnded   EventKind = "callEnded"
	// PlanChanged: the agent has a new plan.
	PlanChanged EventKind = "planChanged"
	// ModeChanged: the session is in another mode.
	ModeChanged EventKind = "modeChanged"
	// CommandsChanged: the session has other commands.
	CommandsChanged EventKind = "commandsChanged"
	// ContextChanged: how full the context window is. It says nothing about the tokens that were consumed.
	ContextChanged EventKind = "contextChanged"
)

// Event is something that an agent does.
type Event struct {
	Kind EventKind
	Text string
	// MessageID differs between messages; it is empty if the agent does not say.
	MessageID string
	Call      *Call
	Plan      []Step
	Mode      string
	Commands  []string
	// Used and Size are tokens.
	Used, Size uint64
}

// Kinds of tools that have a meaning here.
const (
	KindRead    = "read"
	KindEdit    = "edit"
	KindExecute = "execute"
	KindOther   = "other"
)

// Call is a tool call of an agent, as the agent describes it.
type Call struct {
	ID string
	// Title is what the agent shows to people. It often contains arguments.
	Title string
	// Kind is one of the kinds of the protocol, such as read, edit or execute.
	Kind string
	// Tool is the agent's own name of the tool; empty if it does not say.
	Tool string
	// Arguments is JSON; nil if the agent does not say.
	Arguments                  json.RawMessage
	ArgumentBytes, ResultBytes int
	// Paths are the files that the call is about, and Diffs those that it changes.
	Paths []string
	Diffs []Diff
	// Running is set once the agent says that the call is being made. Not all agents say it.
	Running bool
	// Ended is set once the call has ended, and Failed if it failed.
	Ended, Failed bool

	started bool
}

func (c *Call) copy() *Call {
	out := *c
	out.Paths, out.Diffs = slices.Clone(c.Paths), slices.Clone(c.Diffs)
	return &out
}

// Name is the name of the tool, or else its kind.
func (c *Call) Name() string {
	if c.Tool != "" {
		return c.Tool
	}
	return c.Kind
}

// Diff is a change of a file.
type Diff struct {
	Path    string
	Created bool
	// Bytes is the size of the new text.
	Bytes int
}

// Step is a step of a plan.
type Step struct {
	Text string
	// Status is pending, in_progress or completed.
	Status string
}
