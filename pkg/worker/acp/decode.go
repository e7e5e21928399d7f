// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/platform-ai/platform/pkg/clip"
)

// Limits of what is kept of an update.
const (
	maxName     = 256
	maxTool     = 128
	maxTitle    = 4 << 10
	maxPaths    = 32
	maxCalls    = 1 << 14
	maxSteps    = 256
	maxStepText = 4 << 10
)

// decoder makes events of the updates of version 1.
type decoder struct {
	mu sync.Mutex
	// session is the session of the connection; empty before it is known. Agents send updates of a session before they say its id.
	session string
	// calls are the tool calls that were seen, by id.
	calls map[string]*Call
}

func newDecoder() *decoder { return &decoder{calls: map[string]*Call{}} }

// update makes the events of a notification session/update.
func (d *decoder) update(params json.RawMessage) ([]Event, error) {
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var u struct {
		SessionUpdate     string                  `json:"sessionUpdate"`
		Content           json.RawMessage         `json:"content"`
		MessageID         string                  `json:"messageId"`
		Entries           []json.RawMessage       `json:"entries"`
		CurrentModeID     string                  `json:"currentModeId"`
		AvailableCommands []struct{ Name string } `json:"availableCommands"`
		Used              uint64                  `json:"used"`
		Size              uint64                  `json:"size"`
	}
	err := json.Unmarshal(params, &p)
	if err == nil && d.foreign(p.SessionID) {
		return nil, fmt.Errorf("an update of another session, %q", shown([]byte(p.SessionID)))
	}
	if err == nil {
		if err = json.Unmarshal(p.Update, &u); u.SessionUpdate == "tool_call" || u.SessionUpdate == "tool_call_update" {
			return d.toolCall(p.Update) // whose optional fields may be anything
		}
	}
	if err != nil {
		return nil, fmt.Errorf("an update that cannot be read: %s", shown(params))
	}
	switch u.SessionUpdate {
	case "agent_message_chunk":
		return []Event{{Kind: Message, Text: textOf(u.Content), MessageID: u.MessageID}}, nil
	case "agent_thought_chunk":
		return []Event{{Kind: Thought, Text: textOf(u.Content), MessageID: u.MessageID}}, nil
	case "plan":
		return []Event{{Kind: PlanChanged, Plan: stepsOf(u.Entries)}}, nil
	case "current_mode_update":
		return []Event{{Kind: ModeChanged, Mode: clip.Text(u.CurrentModeID, maxName)}}, nil
	case "available_commands_update":
		e := Event{Kind: CommandsChanged}
		for _, c := range u.AvailableCommands[:min(len(u.AvailableCommands), maxPaths)] {
			e.Commands = append(e.Commands, clip.Text(c.Name, maxName))
		}
		return []Event{e}, nil
	case "usage_update":
		return []Event{{Kind: ContextChanged, Used: u.Used, Size: u.Size}}, nil
	case "user_message_chunk", "config_option_update", "session_info_update":
		return nil, nil
	}
	return nil, fmt.Errorf("an unknown update: %s", shown([]byte(u.SessionUpdate)))
}

// of says which session the connection has.
func (d *decoder) of(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = session
}

// foreign reports whether a session is known to be another one.
func (d *decoder) foreign(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session != "" && session != d.session
}

// textOf returns the text of a content block; empty for one of another type.
func textOf(block json.RawMessage) string {
	var b struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(block, &b) != nil || b.Type != "text" {
		return ""
	}
	return b.Text
}

func stepsOf(entries []json.RawMessage) []Step {
	var steps []Step
	for _, raw := range entries[:min(len(entries), maxSteps)] {
		var e struct{ Content, Priority, Status string }
		if json.Unmarshal(raw, &e) == nil {
			steps = append(steps, Step{Text: clip.Marked(e.Content, maxStepText), Status: clip.Text(e.Status, maxName)})
		}
	}
	return steps
}

// v1Call is a tool call, or a change of one. Optional fields that have another type than they should are left out, as the protocol
// demands.
type v1Call struct {
	ToolCallID string          `json:"toolCallId"`
	Title      lenient[string] `json:"title"`
	Kind       lenient[string] `json:"kind"`
	Status     lenient[string] `json:"status"`
	Content    lenient[[]struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		OldText *string         `json:"oldText"`
		NewText string          `json:"newText"`
	}] `json:"content"`
	Locations lenient[[]struct {
		Path string `json:"path"`
	}] `json:"locations"`
	RawInput  json.RawMessage                    `json:"rawInput"`
	RawOutput json.RawMessage                    `json:"rawOutput"`
	Meta      lenient[map[string]lenient[named]] `json:"_meta"`
}

// named is where agents put the name of a tool, for which version 1 has no field.
type named struct {
	ToolName string `json:"toolName"`
}

// lenient is a value that stays zero if it has another type than it should.
type lenient[T any] struct{ value T }

func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		l.value = v
	}
	return nil
}

// change applies what is set to the call.
func (v *v1Call) change(c *Call) {
	if v.Title.value != "" {
		c.Title = clip.Marked(v.Title.value, maxTitle)
	}
	if slices.Contains(kinds(), v.Kind.value) {
		c.Kind = v.Kind.value
	}
	for _, m := range v.Meta.value {
		if name := m.value.ToolName; name != "" {
			c.Tool = clip.Text(name, maxTool)
		}
	}
	c.Running = c.Running || v.Status.value == "in_progress"
	if set(v.RawInput) {
		c.Arguments, c.ArgumentBytes = v.RawInput, len(v.RawInput)
	}
	if set(v.RawOutput) {
		c.ResultBytes = len(v.RawOutput)
	}
	text := 0
	for _, part := range v.Content.value {
		switch part.Type {
		case "content":
			text += len(textOf(part.Content))
		case "diff":
			if len(c.Diffs) < maxPaths && !slices.ContainsFunc(c.Diffs, func(d Diff) bool { return d.Path == part.Path }) {
				c.Diffs = append(c.Diffs, Diff{Path: clip.Text(part.Path, maxStepText), Created: part.OldText == nil, Bytes: len(part.NewText)})
			}
		}
	}
	c.ResultBytes = max(c.ResultBytes, text)
	if len(v.Locations.value) > 0 {
		c.Paths = nil
		for _, l := range v.Locations.value[:min(len(v.Locations.value), maxPaths)] {
			c.Paths = append(c.Paths, clip.Text(l.Path, maxStepText))
		}
	}
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// kinds are the kinds of tools that the protocol knows.
func kinds() []string {
	return []string{KindRead, KindEdit, "delete", "move", "search", KindExecute, "think", "fetch", "switch_mode", KindOther}
}

// find returns the call with an id, and whether it is new.
func (d *decoder) find(id string) (c *Call, isNew bool, err error) {
	if c, ok := d.calls[id]; ok {
		return c, false, nil
	}
	if len(d.calls) >= maxCalls {
		return nil, false, errors.New("a tool call beyond the number that is recorded")
	}
	c = &Call{ID: clip.Text(id, maxName), Kind: KindOther}
	d.calls[id] = c
	return c, true, nil
}

// toolCall makes the events of a tool call that begins, changes or ends. An agent may report any number of them at once, and may
// report the end of a call again.
func (d *decoder) toolCall(raw json.RawMessage) ([]Event, error) {
	var v v1Call
	if err := json.Unmarshal(raw, &v); err != nil || v.ToolCallID == "" {
		return nil, fmt.Errorf("a tool call that cannot be read: %s", shown(raw))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, isNew, err := d.find(v.ToolCallID)
	if err != nil || c.Ended {
		return nil, err
	}
	v.change(c)
	isNew, c.started = isNew || !c.started, true
	var events []Event
	if isNew {
		events = append(events, Event{Kind: CallStarted, Call: c.copy()})
	}
	if status := v.Status.value; status == "completed" || status == "failed" {
		c.Ended, c.Failed = true, status == "failed"
		events = append(events, Event{Kind: CallEnded, Call: c.copy()})
		c.Arguments = nil // which may be long, and are not needed again
	} else if !isNew {
		events = append(events, Event{Kind: CallChanged, Call: c.copy()})
	}
	return events, nil
}

// asked returns the tool call for which a permission is asked, with what is known of it. It may not have begun.
func (d *decoder) asked(raw json.RawMessage) (*Call, error) {
	var v v1Call
	if err := json.Unmarshal(raw, &v); err != nil || v.ToolCallID == "" {
		return nil, errors.New("toolCall: cannot be read")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, _, err := d.find(v.ToolCallID)
	if err != nil {
		return nil, err
	}
	if !c.Ended {
		v.change(c)
	}
	return c.copy(), nil
}

// shown returns the beginning of something that an agent sent, on one line.
func shown(b []byte) string {
	return clip.Marked(strings.Join(strings.Fields(strings.ToValidUTF8(string(b[:min(len(b), maxReported+1)]), "\uFFFD")), " "), maxReported)
}
