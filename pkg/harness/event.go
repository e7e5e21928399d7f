// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// EventType says what an Event is about.
type EventType string

// Types of events.
const (
	EventAccepted            EventType = "accepted"
	EventMessage             EventType = "message"
	EventThought             EventType = "thought"
	EventCallStarted         EventType = "callStarted"
	EventCallChanged         EventType = "callChanged"
	EventCallEnded           EventType = "callEnded"
	EventPlanChanged         EventType = "planChanged"
	EventContextChanged      EventType = "contextChanged"
	EventModeChanged         EventType = "modeChanged"
	EventCommandsChanged     EventType = "commandsChanged"
	EventPermissionRequested EventType = "permissionRequested"
	EventPermissionSettled   EventType = "permissionSettled"
	EventResult              EventType = "result"
	EventAlive               EventType = "alive"
)

// Event is one line of the stream of a prompt.
type Event struct {
	Seq  uint64    `json:"seq,omitempty"`
	Type EventType `json:"type"`

	Session     string `json:"session,omitempty"`
	Generation  uint64 `json:"generation,omitempty"`
	Prompt      string `json:"prompt,omitempty"`
	LeaseMillis int64  `json:"leaseMillis,omitempty"`

	Text      string `json:"text,omitempty"`
	MessageID string `json:"messageID,omitempty"`

	Call       *Call       `json:"call,omitempty"`
	Plan       []Step      `json:"plan,omitzero"`
	Context    *Context    `json:"context,omitempty"`
	Mode       string      `json:"mode,omitempty"`
	Commands   []string    `json:"commands,omitzero"`
	Permission *Permission `json:"permission,omitempty"`
	Result     *Result     `json:"result,omitempty"`
	Meta
}

// Call is a tool call of an agent.
type Call struct {
	ID            string          `json:"id"`
	Title         string          `json:"title,omitempty"`
	Kind          string          `json:"kind,omitempty"`
	Tool          string          `json:"tool,omitempty"`
	Arguments     json.RawMessage `json:"arguments,omitempty"`
	ArgumentBytes int64           `json:"argumentBytes,omitempty"`
	ResultBytes   int64           `json:"resultBytes,omitempty"`
	Paths         []string        `json:"paths,omitempty"`
	Diffs         []Diff          `json:"diffs,omitempty"`
	Failed        bool            `json:"failed,omitempty"`
}

// kinds are those of the Agent Client Protocol.
var kinds = []string{"", "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"}

// Diff is a change of a file.
type Diff struct {
	Path    string `json:"path"`
	Created bool   `json:"created,omitempty"`
	// Bytes is the size of the new content.
	Bytes int64 `json:"bytes"`
}

// Step is a step of a plan.
type Step struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// Context says how full a context window is, in tokens.
type Context struct {
	Used uint64 `json:"used"`
	Size uint64 `json:"size"`
}

// Permission is a question for a permission, or what holds.
type Permission struct {
	ID              string   `json:"id"`
	Call            *Call    `json:"call,omitempty"`
	ArgumentsDigest string   `json:"argumentsDigest,omitempty"`
	Decision        Decision `json:"decision,omitempty"`
}

// Outcome is how a prompt ended.
type Outcome string

// Outcomes of prompts.
const (
	Completed     Outcome = "completed"
	Failed        Outcome = "failed"
	CancelledThen Outcome = "cancelled"
	LostLease     Outcome = "leaseLost"
)

func (o Outcome) known() bool {
	return slices.Contains([]Outcome{Completed, Failed, CancelledThen, LostLease}, o)
}

// Result is how a prompt ended.
type Result struct {
	Outcome    Outcome `json:"outcome"`
	StopReason string  `json:"stopReason,omitempty"`
	Text       string  `json:"text,omitempty"`
	Truncated  bool    `json:"truncated,omitempty"`
	// Reason and Message say why it failed.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Usage   *Usage `json:"usage,omitempty"`
}

// Usage is what an agent reports as consumed. A count that it does not report is nil.
type Usage struct {
	InputTokens      *uint64 `json:"inputTokens,omitempty"`
	OutputTokens     *uint64 `json:"outputTokens,omitempty"`
	CacheReadTokens  *uint64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens *uint64 `json:"cacheWriteTokens,omitempty"`
}

// DecodeEvent decodes and checks one line of a stream.
func DecodeEvent(line []byte) (*Event, error) {
	e := &Event{}
	if err := Decode(line, e); err != nil {
		return nil, wrong("a line is not an event: %w", err)
	}
	if err := e.check(); err != nil {
		return nil, wrong("an event of type %.32q: %w", e.Type, err)
	}
	return e, nil
}

// members are those of an event beside its type and number.
const (
	mSession = 1 << iota
	mText
	mMessageID
	mCall
	mPlan
	mContext
	mMode
	mCommands
	mPermission
	mResult
)

// required and allowed are the members of each type.
var required = map[EventType]int{
	EventAccepted: mSession, EventMessage: mText, EventThought: mText, EventCallStarted: mCall, EventCallChanged: mCall, EventCallEnded: mCall,
	EventPlanChanged: mPlan, EventContextChanged: mContext, EventModeChanged: mMode, EventCommandsChanged: mCommands,
	EventPermissionRequested: mPermission, EventPermissionSettled: mPermission, EventResult: mResult, EventAlive: 0,
}

var allowed = map[EventType]int{EventMessage: mMessageID, EventThought: mMessageID}

// members returns which members are there.
func (e *Event) members() (have int) {
	for _, m := range []struct {
		filled bool
		member int
	}{
		{e.Session != "" || e.Generation != 0 || e.Prompt != "" || e.LeaseMillis != 0, mSession},
		{e.Text != "", mText},
		{e.MessageID != "", mMessageID},
		{e.Call != nil, mCall},
		{e.Plan != nil, mPlan},
		{e.Context != nil, mContext},
		{e.Mode != "", mMode},
		{e.Commands != nil, mCommands},
		{e.Permission != nil, mPermission},
		{e.Result != nil, mResult},
	} {
		if m.filled {
			have |= m.member
		}
	}
	return have
}

func (e *Event) check() error {
	need, known := required[e.Type]
	have := e.members()
	switch {
	case !known:
		return fmt.Errorf("the type is unknown")
	case (e.Type == EventAlive) != (e.Seq == 0) || e.Seq > maxInteger:
		return fmt.Errorf("seq must be 1 or more, and only an event of type alive has none")
	case have&need != need:
		return fmt.Errorf("a member of its type is missing or empty")
	case have&^(need|allowed[e.Type]) != 0:
		return fmt.Errorf("it has a member of another type")
	}
	switch {
	case e.Type == EventAccepted:
		if e.Generation < 1 || e.Generation > maxInteger || e.LeaseMillis < 1 {
			return fmt.Errorf("generation and leaseMillis must be at least 1")
		}
		return errors.Join(checkName("session", e.Session), checkName("prompt", e.Prompt))
	case e.Call != nil:
		return e.Call.check()
	case e.Plan != nil:
		return checkPlan(e.Plan)
	case e.Permission != nil:
		return e.Permission.check(e.Type)
	case e.Result != nil:
		return e.Result.check()
	case e.Context != nil && max(e.Context.Used, e.Context.Size) > maxInteger:
		return fmt.Errorf("context.used and context.size must be at most %d", uint64(maxInteger))
	}
	return nil
}

func checkPlan(plan []Step) error {
	for i, s := range plan {
		if s.Text == "" || !slices.Contains([]string{"pending", "in_progress", "completed"}, s.Status) {
			return fmt.Errorf("plan[%d] must have a text, and the status pending, in_progress or completed", i)
		}
	}
	return nil
}

// maxLabel is how long an agent's own name for something may be, in bytes.
const maxLabel = 1024

func (c *Call) check() error {
	switch {
	case c.ID == "" || len(c.ID) > maxLabel:
		return fmt.Errorf("call.id must have 1 to %d bytes", maxLabel)
	case !slices.Contains(kinds, c.Kind):
		return fmt.Errorf("call.kind is not one of the protocol")
	case len(c.Tool) > maxLabel:
		return fmt.Errorf("call.tool must have at most %d bytes", maxLabel)
	case c.ArgumentBytes < 0 || c.ResultBytes < 0:
		return fmt.Errorf("call.argumentBytes and call.resultBytes must not be negative")
	}
	for i, d := range c.Diffs {
		if d.Path == "" || d.Bytes < 0 {
			return fmt.Errorf("call.diffs[%d] must have a path, and bytes that are not negative", i)
		}
	}
	return nil
}

func (p *Permission) check(of EventType) error {
	if err := checkName("permission.id", p.ID); err != nil {
		return err
	}
	if of == EventPermissionSettled {
		if p.Call != nil || p.ArgumentsDigest != "" || !slices.Contains([]Decision{Allow, Deny, Withdrawn}, p.Decision) {
			return fmt.Errorf("permission must have an id and the decision allow, deny or cancelled, and nothing else")
		}
		return nil
	}
	if p.Call == nil || p.Decision != "" {
		return fmt.Errorf("permission must have a call, and no decision yet")
	}
	if err := p.Call.check(); err != nil {
		return fmt.Errorf("permission.%w", err)
	}
	want, err := ArgumentsDigest(p.Call.Arguments)
	if err != nil || want != p.ArgumentsDigest {
		return fmt.Errorf("permission.argumentsDigest is not that of permission.call.arguments")
	}
	return nil
}

func (r *Result) check() error {
	stops := []string{"end_turn", "max_tokens", "max_turn_requests", "refusal"}
	switch {
	case !r.Outcome.known():
		return fmt.Errorf("result.outcome must be completed, failed, cancelled or leaseLost")
	case (r.Outcome == Completed) != (r.StopReason != "") || r.StopReason != "" && !slices.Contains(stops, r.StopReason):
		return fmt.Errorf("result.stopReason must be end_turn, max_tokens, max_turn_requests or refusal if, and only if, the outcome is completed")
	case r.Outcome == Failed && !word.MatchString(r.Reason), r.Outcome != Failed && r.Reason+r.Message != "":
		return fmt.Errorf("result.reason must be one word of 1 to 64 letters if the outcome is failed, and otherwise absent like result.message")
	case len(r.Message) > maxMessage:
		return fmt.Errorf("result.message must have at most %d bytes", maxMessage)
	}
	if u := r.Usage; u != nil {
		for _, n := range []*uint64{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens} {
			if n != nil && *n > maxInteger {
				return fmt.Errorf("result.usage has a number above %d", uint64(maxInteger))
			}
		}
	}
	return nil
}
