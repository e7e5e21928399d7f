// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
)

// tick is how often a ticking agent writes.
const tick = 10 * time.Millisecond

// agent does what the lines of a prompt say.
type agent struct {
	*prompt
	// usage is what it has consumed, as it says; nil if it says nothing.
	usage *harness.Usage
}

// steps are what it can be told to do. A step returns an error to end the turn.
func (a *agent) steps() map[string]func(args string) error {
	return map[string]func(args string) error{
		"say":   a.say,
		"think": func(text string) error { a.emit(&harness.Event{Type: harness.EventThought, Text: text}); return nil },
		"plan": func(args string) error {
			plan := []harness.Step{}
			for one := range strings.SplitSeq(args, ",") {
				text, done := strings.CutSuffix(one, "+")
				plan = append(plan, harness.Step{Text: text, Status: map[bool]string{true: "completed", false: "pending"}[done]})
			}
			a.emit(&harness.Event{Type: harness.EventPlanChanged, Plan: plan})
			return nil
		},
		"tool": func(args string) error {
			kind, title, _ := strings.Cut(args, " ")
			if !a.may("t1", &harness.Call{ID: "t1", Kind: kind, Title: title, Arguments: command(title)}) {
				return nil
			}
			a.call("t1", kind, title, false)
			return nil
		},
		"system": func(string) error { return a.say(a.s.spec.SystemPrompt) },
		"model":  func(string) error { return a.say(a.s.spec.Model) },
		"consume": func(string) error {
			a.usage = &harness.Usage{InputTokens: new(uint64(1200)), OutputTokens: new(uint64(80)), CacheReadTokens: new(uint64(900)), CacheWriteTokens: new(uint64(0))}
			return nil
		},
		"usage": func(string) error {
			e := &harness.Event{Type: harness.EventContextChanged, Context: &harness.Context{Used: 10, Size: 100}}
			if a.r.broken("unknown-event") {
				e.Type = "usage"
			}
			a.emit(e)
			return nil
		},
		"read": func(path string) error {
			file, err := a.s.read(path)
			if err != nil {
				return a.say("there is no such file")
			}
			return a.say(string(file))
		},
		"touch": func(args string) error {
			path, text, _ := strings.Cut(args, " ")
			return a.s.write(path, []byte(text))
		},
		"permit": a.ask,
		"shell": func(string) error {
			text := "HOME=/nowhere"
			if a.r.broken("token-in-environment") {
				text += "\nPLATFORM_TOKEN=" + a.r.o.Token
			}
			return a.say(text)
		},
		"error": func(string) error { return errFailed },
		"await-cancel": func(string) error {
			select {
			case <-a.cancelled:
			case <-a.ctx.Done():
			}
			return errStopped
		},
		"ticks":    func(path string) error { return a.ticks(path, a.cancelled) },
		"stubborn": func(path string) error { return a.ticks(path, nil) },
	}
}

var (
	errFailed  = errors.New("the agent failed")
	errStopped = errors.New("the agent was stopped")
)

// run does the steps of the last text. Each is a turn.
func (a *agent) run(spec *harness.PromptSpec) *harness.Result {
	steps, turns := a.steps(), int64(0)
	said := ""
	for text := range strings.Lines(spec.Texts[len(spec.Texts)-1]) {
		step, ok := strings.CutPrefix(strings.TrimRight(text, "\n"), "do: ")
		name, args, _ := strings.Cut(step, " ")
		do := steps[name]
		if !ok || do == nil {
			continue
		}
		if turns++; spec.MaxTurns > 0 && turns > spec.MaxTurns {
			return &harness.Result{Outcome: harness.Completed, StopReason: "max_turn_requests", Text: said, Usage: a.usage}
		}
		if name == "say" {
			said = args
		}
		switch err := do(args); {
		case errors.Is(err, errStopped), a.ctx.Err() != nil:
			return &harness.Result{Outcome: harness.CancelledThen}
		case err != nil:
			result := &harness.Result{Outcome: harness.Failed, Reason: "AgentFailed", Message: "the agent failed"}
			if a.r.broken("fails-silently") {
				result = &harness.Result{Outcome: harness.Completed, StopReason: "end_turn"}
			}
			return result
		}
	}
	if turns == 0 {
		said = "done"
		_ = a.say(said) // never fails
	}
	return &harness.Result{Outcome: harness.Completed, StopReason: "end_turn", Text: said, Usage: a.usage}
}

func (a *agent) say(text string) error {
	a.emit(&harness.Event{Type: harness.EventMessage, Text: text, MessageID: "m1"})
	return nil
}

// command returns the arguments of a call.
func command(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"command": text})
	if err != nil { // texts have a JSON
		return nil
	}
	return raw
}

// call reports a tool call.
func (a *agent) call(id, kind, title string, failed bool) *harness.Call {
	call := harness.Call{ID: id, Kind: kind, Title: title, Tool: kind, Arguments: command(title)}
	a.emit(&harness.Event{Type: harness.EventCallStarted, Call: &call})
	a.emit(&harness.Event{Type: harness.EventCallEnded, Call: &harness.Call{ID: id, Failed: failed}})
	return &call
}

// ask asks for the permission of a call, and says what was decided.
func (a *agent) ask(args string) error {
	kind, title, _ := strings.Cut(args, " ")
	answer := "no"
	if call := (&harness.Call{ID: "c1", Kind: kind, Title: title, Arguments: command(title)}); a.allowed(kind) && a.permit("q1", call) {
		answer = "yes"
	}
	return a.say(answer)
}

// allowed reports whether the session's policy allows calls of a kind.
func (a *agent) allowed(kind string) bool {
	p := a.s.spec.ToolPolicy
	switch {
	case p == nil:
		return true
	case kind == "execute" && p.AllowBash != nil && !*p.AllowBash:
		return false
	}
	return !slices.Contains(p.DisallowedTools, kind) && (p.AllowedTools == nil || slices.Contains(p.AllowedTools, kind))
}

// may reports whether a call may be made: it is allowed, and if the policy says so, somebody has been asked.
func (a *agent) may(id string, call *harness.Call) bool {
	if p := a.s.spec.ToolPolicy; p != nil && slices.Contains(p.ApprovalRequiredTools, call.Kind) && !a.permit("ask-"+id, call) {
		return false
	}
	return a.allowed(call.Kind)
}

// ticks appends to a file until one of both ends.
func (a *agent) ticks(path string, cancelled <-chan struct{}) error {
	if !filepath.IsLocal(path) {
		return errFailed
	}
	clock := a.r.clock.NewTicker(tick)
	defer clock.Stop()
	for {
		if err := a.once(path); err != nil {
			return err
		}
		select {
		case <-a.ctx.Done():
			return a.left(path, "lost-lease-goes-on")
		case <-cancelled:
			return a.left(path, "cancel-goes-on")
		case <-clock.C():
		}
	}
}

// left ends the turn; what the agent began goes on if that is broken.
func (a *agent) left(path, unless string) error {
	if !a.r.broken(unless) {
		return errStopped
	}
	a.r.agents.Go(func() {
		clock := a.r.clock.NewTicker(tick)
		defer clock.Stop()
		for {
			select {
			case <-a.r.ctx.Done():
				return
			case <-clock.C():
				if a.once(path) != nil { // the session is gone
					return
				}
			}
		}
	})
	return errStopped
}

// once appends a line to a file.
func (a *agent) once(path string) error {
	file, err := os.OpenFile(filepath.Join(a.s.dir, path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ticks: %w", err)
	}
	_, err = file.WriteString("tick\n")
	return errors.Join(err, file.Close())
}
