// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentloop is the loop of every agent: it asks the model, runs the tools that the
// model calls, and returns their results to it, until the model answers without calling a tool.
// Workers and chat share this loop, so that limits, repetition checks, truncation and events
// are the same everywhere.
//
// Rules
//
//   - An iteration is one question to the model. After MaxIterations the model gets one more
//     question, without tools, to sum up, and the run ends with ErrMaxIterations.
//   - The third and every further call of one tool with equal arguments adds a warning to the
//     conversation and counts as 5 additional iterations, whatever is called in between. A run
//     whose iterations end because of that ends with ErrRepeated instead.
//   - Premature may turn a final answer into one after which the model is asked again.
//   - If the final answer is blank, the model is asked once more, without tools.
//   - Before each question a conversation of more than MaxContext bytes is shortened to that. One that is too long for the
//     model is halved, at most once for each question.
//   - Invalid arguments, unknown tools, failing tools and calls that a person did not approve
//     are reported to the model as structured results. They never end a run.
package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
)

// Rules about calls that are repeated.
const (
	repeatsBeforeWarning = 3
	repeatPenalty        = 5
)

var (
	// ErrMaxIterations ends a run that used up its iterations. The Result that comes with it holds
	// the model's summary, if it gave one.
	ErrMaxIterations = errors.New("the model used up its iterations")
	// ErrRepeated ends a run that used up its iterations because of repeated calls. The Result that comes with it is
	// that of ErrMaxIterations.
	ErrRepeated = errors.New("the model repeated calls of tools")
	// ErrBlankAnswer ends a run whose model gave a blank answer twice.
	ErrBlankAnswer = errors.New("the model gave a blank answer")
)

// Config configures the loop of one run.
//
//large:fields each is one thing that the two callers of the loop, worker and chat, set differently
type Config struct {
	// Candidates are the model and its fallbacks; at least one.
	Candidates []llm.Candidate
	// Cooling, if set, returns until when each candidate is asked last because of what other runs met; see llm.Cooling.
	Cooling func(context.Context) []time.Time
	// Policy is the retry policy; the zero value means the defaults.
	Policy llm.Policy
	// Tools that the model may call; nil for none.
	Tools *tool.Catalogue
	// Gate holds back calls until a person has approved them; nil for none.
	Gate *Gate
	// StoredFirst are the tools of which a call is stored in the log before it is made.
	StoredFirst []string
	// Recorder receives the events; nil for none.
	Recorder Recorder
	// Begin stores the event that a model request starts, before the request is sent, and waits until the request may
	// be sent. An error ends the run. If it is nil, the Recorder is used.
	Begin func(ctx context.Context, e *v1alpha1.ExecutionEvent) error
	// Recording is what makes what is recorded beside the events; nil for nothing.
	Recording *Recording
	// AgentName is the agent's name in events.
	AgentName string
	// MaxIterations defaults to plan.DefaultMaxIterations.
	MaxIterations int
	// MaxTokens defaults to plan.DefaultMaxTokens.
	MaxTokens int64
	// Temperature is nil for the vendor's default.
	Temperature *float64
	// Format is that of llm.Request, for every question.
	Format json.RawMessage
	// MaxContext bounds the conversation that the model reads, in bytes, without the instructions. What cannot be removed, such
	// as the prompt, may be longer. 0 means no bound.
	MaxContext int
	// Judge asks the policies about each call before it is made; nil means that there are none. The arguments satisfy
	// the tool's schema. A *tool.Error is what the model is answered instead of making the call; any other error ends the run.
	// It needs a Gate.
	Judge func(ctx context.Context, callID, tool string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error)
	// ReminderEvery asks the model to sum up its progress every so many iterations. 0 means never.
	ReminderEvery int
	// Part receives each piece of an answer as it arrives. Restart is called when a retried
	// attempt begins the answer again. Either may be nil.
	Part    func(llm.Part)
	Restart func()
	// Calling is called before each call of a tool, and Called after it, with what the model is answered. Either may be
	// nil.
	Calling func(c llm.ToolCall)
	Called  func(c llm.ToolCall, r tool.Result)
	// Premature is asked about each answer without calls that is not blank, before it ends the run. It returns a notice
	// with which the run goes on instead, or "". Nil means that the first such answer is the last.
	Premature func(ctx context.Context, answer llm.Response) string
	// Journal stores what the run adds to the conversation, before the run goes on; nil for none. An error ends the run.
	// A final answer is not given to it.
	Journal func(ctx context.Context, s Step) error
	// Past are the steps of the same run that Journal stored before the process ended, in order. The run continues
	// after them; its messages are those with which it began.
	Past []Step
	// Interrupted is asked about each call of the last answer in Past that has no result. begun says that the call may
	// have been made. It returns what the model is answered instead, or false if the call is to be made. Nil means that
	// all of them are made.
	Interrupted func(c llm.ToolCall, begun bool) (tool.Result, bool)
	Clock       clock.Clock
}

// Totals is the usage of a run. Attempts whose usage the vendor did not report
// are counted, since their tokens are unknown and not zero.
type Totals struct {
	InputTokens, OutputTokens, CachedInputTokens, CacheWriteInputTokens int64
	// Attempts counts all attempts, Unreported those without usage figures.
	Attempts, Unreported int
}

// Result is what a run produced.
type Result struct {
	// Text is the final answer, or the summary of a run that was cut short.
	Text string
	// StopReason is why the model ended the final answer. StopLength means that Text is
	// incomplete.
	StopReason llm.StopReason
	Iterations int
	Usage      Totals
	// Messages is the conversation, including everything that the run added.
	Messages []llm.Message
}

// Run continues the conversation until the model's final answer. The error is ErrMaxIterations,
// ErrBlankAnswer, ErrApproval or an *llm.Error.
func Run(ctx context.Context, c Config, messages []llm.Message) (Result, error) {
	l := &loop{c: c, messages: slices.Clone(messages), repeats: map[string]int{}, cooling: llm.Cooling{Look: c.Cooling}}
	if n := len(messages); n > 0 && messages[n-1].Role == llm.RoleUser {
		l.prompt = messages[n-1].Text
	}
	if l.c.MaxIterations == 0 {
		l.c.MaxIterations = plan.DefaultMaxIterations
	}
	if l.c.MaxTokens == 0 {
		l.c.MaxTokens = plan.DefaultMaxTokens
	}
	text, err := l.run(ctx, l.resume())
	return Result{Text: text, StopReason: l.stop, Iterations: l.asked, Usage: l.usage, Messages: l.messages}, err
}

// loop is the state of one Run. Each step of a turn is a method, over the same conversation.
type loop struct {
	c        Config
	messages []llm.Message
	unsaved  []llm.Message // those that Journal has not stored
	// prompt is the last message that the run began with; the messages before it are history.
	prompt string
	// iteration counts questions and penalties, asked counts questions only.
	iteration, asked int
	repeats          map[string]int
	usage            Totals
	stop             llm.StopReason
	cooling          llm.Cooling
}

// run runs the loop. It begins with the calls of an answer that was interrupted, if there is one.
func (l *loop) run(ctx context.Context, open *interrupted) (string, error) {
	if open != nil {
		if err := l.act(ctx, open.answer, open.results); err != nil {
			return "", err
		}
	}
	for l.iteration < l.c.MaxIterations {
		l.iteration++
		resp, err := l.ask(ctx, l.tools())
		if err != nil {
			return "", err
		}
		if len(resp.ToolCalls) == 0 {
			more, err := l.premature(ctx, resp)
			if err != nil {
				return "", err
			}
			if more {
				continue
			}
			return l.final(ctx, resp)
		}
		l.add(resp.Message())
		if err := l.save(ctx); err != nil {
			return "", err
		}
		if err := l.act(ctx, resp, noResults); err != nil {
			return "", err
		}
	}
	return l.exhausted(ctx)
}

// act makes the calls of an answer and adds the notices that are due after them.
func (l *loop) act(ctx context.Context, answer llm.Response, results int) error {
	if err := l.callTools(ctx, answer, results); err != nil {
		return err
	}
	l.remind()
	return l.save(ctx)
}

func (l *loop) tools() []tool.Definition {
	if l.c.Tools == nil {
		return nil
	}
	return l.c.Tools.Definitions()
}

// premature reports whether the run goes on after an answer without calls. There must be an iteration left for it.
func (l *loop) premature(ctx context.Context, resp llm.Response) (bool, error) {
	if l.c.Premature == nil || l.iteration >= l.c.MaxIterations || resp.StopReason != llm.StopEnd || strings.TrimSpace(resp.Text) == "" {
		return false, nil
	}
	notice := l.c.Premature(ctx, resp)
	if notice == "" {
		return false, nil
	}
	l.add(resp.Message())
	l.notice(notice)
	return true, l.save(ctx)
}

// final handles an answer without tool calls. If it is blank, the model is asked once more.
func (l *loop) final(ctx context.Context, resp llm.Response) (string, error) {
	if strings.TrimSpace(resp.Text) == "" {
		l.notice("Your last answer was empty. Give your final answer now, as text.")
		var err error
		if resp, err = l.ask(ctx, nil); err != nil {
			return "", err
		}
		if strings.TrimSpace(resp.Text) == "" {
			return "", fmt.Errorf("%w (stop reason %q)", ErrBlankAnswer, resp.StopReason)
		}
	}
	l.messages = append(l.messages, resp.Message())
	return resp.Text, nil
}

// exhausted asks for a summary. The run has failed in any case.
func (l *loop) exhausted(ctx context.Context) (string, error) {
	end := fmt.Errorf("%w (%d)", ErrMaxIterations, l.c.MaxIterations)
	if l.asked < l.c.MaxIterations {
		end = fmt.Errorf("%w with equal arguments, which used up its %d iterations in %d turns", ErrRepeated, l.c.MaxIterations, l.asked)
	}
	l.notice("You have used up your iterations and cannot call tools any more. Sum up what was done, what was found and what is left to do.")
	resp, err := l.ask(ctx, nil)
	switch {
	case llm.ClassOf(err) == llm.ClassCanceled:
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w; no summary: %w", end, err)
	}
	l.messages = append(l.messages, resp.Message())
	return resp.Text, end
}

// notice adds a message of the platform to the conversation. It is a user message, because many
// servers accept a system message only at the beginning.
func (l *loop) notice(text string) {
	l.add(llm.Message{Role: llm.RoleUser, Text: "[platform notice] " + text})
}

func (l *loop) remind() {
	if l.c.ReminderEvery > 0 && l.asked%l.c.ReminderEvery == 0 && l.iteration < l.c.MaxIterations {
		l.notice(fmt.Sprintf("%d of %d iterations are used. State your progress in a sentence and go on.", l.iteration, l.c.MaxIterations))
	}
}

// ask asks the model, and asks again with half of the conversation if it was too long.
func (l *loop) ask(ctx context.Context, tools []tool.Definition) (llm.Response, error) {
	l.asked++
	if l.c.MaxContext > 0 {
		l.shorten(trim(l.messages, l.prompt, l.c.MaxContext))
	}
	resp, err := l.call(ctx, tools)
	if llm.ClassOf(err) != llm.ClassContextTooLong || !l.shorten(halve(l.messages, l.prompt)) {
		return resp, err
	}
	return l.call(ctx, tools)
}

// shorten replaces the conversation by a shorter one, if there is one.
func (l *loop) shorten(shorter []llm.Message, ok bool) bool {
	if ok {
		before := len(l.messages)
		l.messages = shorter
		l.contextTruncated(before)
	}
	return ok
}

func (l *loop) call(ctx context.Context, tools []tool.Definition) (llm.Response, error) {
	req := llm.Request{Messages: l.messages, Tools: tools, Temperature: l.c.Temperature, MaxTokens: l.c.MaxTokens, Format: l.c.Format}
	o := llm.Options{
		Candidates: l.c.Candidates, Policy: l.c.Policy, Clock: l.c.Clock, Cooling: &l.cooling,
		Observer: llm.Observer{
			Started: func(a llm.Attempt) {
				if a.Number > 1 && l.c.Restart != nil {
					l.c.Restart()
				}
				if l.c.Begin == nil {
					l.record(l.requestStart(a, &req))
				}
			},
			Ended: func(a llm.Attempt) {
				l.count(a.Response.Usage)
				l.requestEnded(a)
			},
			Part: l.c.Part,
		},
	}
	if begin := l.c.Begin; begin != nil {
		o.Begin = func(ctx context.Context, a llm.Attempt) error {
			e := l.requestStart(a, &req)
			e.AgentName = l.c.AgentName
			return begin(ctx, e)
		}
	}
	resp, err := llm.Call(ctx, o, req)
	if err == nil {
		l.stop = resp.StopReason
		l.message(resp)
	}
	return resp, err
}

func (l *loop) count(u llm.Usage) {
	l.usage.Attempts++
	if !u.Known() {
		l.usage.Unreported++
	}
	for total, figure := range map[*int64]*int64{
		&l.usage.InputTokens: u.InputTokens, &l.usage.OutputTokens: u.OutputTokens,
		&l.usage.CachedInputTokens: u.CachedInputTokens, &l.usage.CacheWriteInputTokens: u.CacheWriteInputTokens,
	} {
		if figure != nil {
			*total += *figure
		}
	}
}
