// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/tool"
)

const (
	timeText      = "I had to stop here, because this request took as long as the server allows. Tasks that were created go on."
	exhaustedText = "I used up the iterations of this request and could not sum up. Tasks that were created go on."
	restartText   = "\n\n(The answer broke off and begins again.)\n\n"
	// maxProgress is how much of a result of a tool is shown in a stream, in bytes.
	maxProgress = 200
	// summaryEvery is after how many questions the model is asked to state its progress.
	summaryEvery = 5
)

var errTime = errors.New("the request took as long as this server allows")

// turn is one request that is answered by a model with the server's tools. The loop is that of the workers (agentloop), with the
// tools of chats and those of reach.go.
//
//   - The instructions of the server come first. The last message of the model begins with a mark that says whether the goal is
//     reached. Without the mark the model is told to go on, --chat-max-premature-end-retries times at most (goal.go).
//   - If an answer only looks at tasks, the model is not asked again until one of them has changed (watchful).
//   - A client that asks for JSON gets the last answer and nothing else: no mark is asked for, and neither texts between calls
//     nor results of tools are shown.
//   - Each operation on objects is a request to this server as the caller.
//   - The limits are those of chats, but the slots are those of this API. If chats are disabled, requests are only passed on.
type turn struct {
	*attempt

	out    *speaker
	looks  *watchful
	lead   lead
	stop   stopper
	stops  []string
	shown  bool // the present answer of the model has been shown in part
	quiet  bool // nothing but the last answer is shown, because the client expects JSON
	used   agentloop.Totals
	answer agentloop.Config
	// removed are the secrets that were removed from the results of tools.
	removed redact.Seen
}

// act answers with the server's tools. It returns an error only if nothing was written.
func (x *exchange) act(in *incoming, choice *models.Choice) error {
	req, err := in.conversation(choice.Candidates[0].Protocol())
	if err != nil {
		return err
	}
	passed := x.able(in, choice)
	candidates, err := choice.LLM()
	if err != nil {
		return invalid("model", "model: %v", err)
	}
	limits := &x.h.o.Limits
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	defer x.h.o.Clock.AfterFunc(limits.MaxDuration, func() { cancel(errTime) }).Stop()
	a := &attempt{exchange: x, in: in, candidate: choice.Candidates[0], release: func() {}, ctx: ctx}
	t := &turn{attempt: a, out: a.writer(req), looks: &watchful{inner: map[string]tool.Tool{}}, stops: req.stops, quiet: req.Format != nil}
	t.looks.beat = t.beat
	catalogue, notes, err := x.toolset(candidates[0], req.Messages[len(req.Messages)-1].Text, t.looks.wrap)
	if err != nil {
		return err
	}
	req.instruct(notes)
	for i := range candidates {
		candidates[i].Model = observed{candidates[i].Model, t.looks}
	}
	t.answer = agentloop.Config{
		Candidates: models.Metered(candidates, models.Metering{Meter: x.meter, Clock: x.h.o.Clock, Asked: models.Asked{
			Namespace: x.call.namespace, Caller: x.caller, ID: x.call.id, Candidate: passed, Agent: x.call.query.Get("agent"),
		}}),
		Tools: catalogue, MaxTokens: req.MaxTokens, Temperature: req.Temperature, Format: req.Format, ReminderEvery: summaryEvery, Clock: x.h.o.Clock,
		Part: func(p llm.Part) { t.say(t.stop.add(t.lead.add(p.Text))) }, Restart: t.restart, Called: t.called,
	}
	if t.answer.Temperature == nil {
		t.answer.Temperature = choice.Temperature
	}
	if req.MaxTokens == 0 {
		t.answer.MaxTokens = choice.MaxTokens
	}
	x.w.Header().Set(headerTools, toolsEnabled)
	x.leftOut(req)
	return t.run(req.Messages)
}

// able leaves out the fallbacks that a request cannot be carried to, and returns how many.
func (x *exchange) able(in *incoming, c *models.Choice) (passed int) {
	first := c.Candidates[0].Protocol()
	c.Candidates = slices.DeleteFunc(c.Candidates, func(c models.Candidate) bool {
		if c.Protocol() == first {
			return false
		}
		_, err := in.conversation(c.Protocol())
		if !x.passesOver(c, passed+1, err) {
			return false
		}
		passed++
		return true
	})
	return passed
}

// observed tells watchful of the calls in each answer, which need not be a stream.
type observed struct {
	llm.Model

	looks *watchful
}

// Generate makes one attempt.
func (o observed) Generate(ctx context.Context, req llm.Request, parts func(llm.Part)) (llm.Response, error) {
	req.Whole = true
	resp, err := o.Model.Generate(ctx, req, parts)
	if err == nil {
		o.looks.answered(resp.ToolCalls)
	}
	return resp, err
}

// run runs the loop until the model says that it has ended, or a limit is reached.
func (t *turn) run(messages []llm.Message) error {
	limits := &t.h.o.Limits
	left := limits.MaxIterations
	for ends := 0; ; ends++ {
		t.begin()
		t.answer.MaxIterations = left
		result, err := agentloop.Run(t.ctx, t.answer, messages)
		t.endText()
		t.count(result.Usage)
		left -= result.Iterations
		text, ended := unmarked(result.Text)
		text, stopped := cutAt(text, t.stops)
		switch {
		case errors.Is(err, agentloop.ErrMaxIterations), errors.Is(err, agentloop.ErrRepeated):
			if text == "" {
				text = exhaustedText
				t.say(text)
			}
			return t.finish(text, llm.StopEnd)
		case err != nil:
			return t.failed(err)
		case stopped != "":
			t.out.form.stoppedBy(stopped)
			return t.finish(text, stopSequence)
		case ended, t.quiet, ends >= limits.MaxPrematureEnds, left <= 0, result.StopReason != llm.StopEnd:
			return t.finish(text, result.StopReason)
		}
		t.say("\n\n")
		messages = slices.Concat(result.Messages, []llm.Message{{Role: llm.RoleUser, Text: goOn}})
	}
}

// failed ends the request after an error.
func (t *turn) failed(err error) error {
	if errors.Is(context.Cause(t.ctx), errTime) {
		t.separate()
		t.say(timeText)
		return t.finish(timeText, llm.StopEnd)
	}
	p, own := asProblem(err) // a limit, or a full disk
	switch {
	case errors.Is(err, agentloop.ErrBlankAnswer):
		p = problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q: the model gave a blank answer twice", t.candidate.Provider.Name)}
	case !own:
		p = ofModel(t.candidate, err)
	}
	if !t.out.begun {
		return p
	}
	t.out.fail(p)
	return nil
}

// finish sends the end of the answer; of an answer that is not a stream, the whole.
func (t *turn) finish(text string, stop llm.StopReason) error {
	if stop == llm.StopToolCalls {
		stop = llm.StopEnd // the server has made the calls
	}
	if t.quiet {
		t.out.part(llm.Part{Text: text})
	}
	r := &llm.Response{Text: text, StopReason: stop, Usage: usageOf(t.used)}
	err := t.out.finish(r)
	if err == nil || !t.out.begun {
		return err
	}
	p, _ := asProblem(err)
	t.out.fail(p)
	return nil
}

// say shows text to the client of a stream.
func (t *turn) say(text string) {
	if text != "" && !t.quiet {
		t.shown = true
		t.out.part(llm.Part{Text: text})
	}
}

// beat sends a comment to the client of a stream, so that nothing between takes the connection for a dead one.
func (t *turn) beat() {
	if t.in.stream {
		t.out.open(true)
		t.out.send([]byte(": waiting\n\n"))
	}
}

func (t *turn) separate() {
	if t.shown {
		t.say("\n\n")
	}
}

// restart is called when the model begins an answer again.
func (t *turn) restart() {
	shown := t.shown
	t.begin()
	t.shown = shown
	if t.shown {
		t.say(restartText)
	}
}

// called shows the result of a tool, and prepares for the model's next answer.
func (t *turn) called(c llm.ToolCall, r tool.Result) {
	t.endText()
	t.separate()
	shown, _ := t.removed.Text(r.Text)
	if len(shown) > maxProgress {
		shown = strings.ToValidUTF8(shown[:maxProgress], "") + "…"
	}
	t.say(fmt.Sprintf("(%s: %s)\n\n", c.Name, shown))
	if t.quiet {
		t.beat()
	}
	t.begin()
}

// begin prepares for the next answer of the model.
func (t *turn) begin() { t.lead, t.stop, t.shown = lead{}, stopper{sequences: t.stops}, false }

// endText shows what is left of an answer that is complete.
func (t *turn) endText() { t.say(t.stop.add(t.lead.rest()) + t.stop.rest()) }

func (t *turn) count(u agentloop.Totals) {
	t.used.InputTokens += u.InputTokens
	t.used.OutputTokens += u.OutputTokens
	t.used.CachedInputTokens += u.CachedInputTokens
	t.used.CacheWriteInputTokens += u.CacheWriteInputTokens
	t.used.Attempts += u.Attempts
	t.used.Unreported += u.Unreported
}

// usageOf returns the usage of all requests, which is unknown if that of one is.
func usageOf(u agentloop.Totals) llm.Usage {
	if u.Unreported > 0 || u.Attempts == 0 {
		return llm.Usage{}
	}
	return llm.Usage{
		InputTokens: &u.InputTokens, OutputTokens: &u.OutputTokens,
		CachedInputTokens: &u.CachedInputTokens, CacheWriteInputTokens: &u.CacheWriteInputTokens,
	}
}
