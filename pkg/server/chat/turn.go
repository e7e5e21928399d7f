// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/tool"
)

const (
	// summaryEvery is after how many questions the model is asked to state its progress.
	summaryEvery = 5
	// saveTime is how long the end of a turn may take to be stored.
	saveTime = 10 * time.Second
)

const timeoutText = "I had to stop here, because this turn took as long as the server allows. Tasks that were created go on; ask me about them in your next message."

// Turn is one turn of a conversation. It holds a slot and its session; a second turn of the session is a conflict. An ordinary turn
// ends when its client disconnects, and any turn after Limits.MaxDuration from its beginning, or when its session is deleted, which
// waits for it. A turn that ends, also one that failed, is added to its session as a whole.
//
// It is for one goroutine. Each step of its life is a method: what can refuse it, the hooks of the loop, its end, and its
// continuation after a restart.
type Turn struct {
	service *Service
	request Request
	ctx     context.Context //nolint:containedctx // ends with the turn
	cancel  context.CancelCauseFunc
	release []func() // in the order of acquisition
	began   time.Time

	choice     *models.Choice
	candidates []llm.Candidate
	session    *v1alpha1.Session
	tools      *toolbox.Box
	messages   []llm.Message // that the model reads

	journal *journal
	said    []llm.Message // what the turn has added to the conversation
	created int32         // tasks that an earlier process had created in this turn
	held    *Frame        // belongs to the step that is stored next
	shown   string        // id of the call whose frame was shown before an interruption, and that has no result

	clean    cleaner
	text     text
	echo     echo
	seq      int64
	calls    []v1alpha1.ChatToolCall
	observed error // the first error of Observe
}

// Close gives back the session and the slot. It may be called again.
func (t *Turn) Close() {
	for _, release := range slices.Backward(t.release) {
		release()
	}
	t.release = nil
}

// choose finds the models.
func (t *Turn) choose(ctx context.Context) (err error) {
	spec := &t.request.Spec
	t.choice, err = t.service.o.Models.Resolve(ctx, models.Query{
		Namespace: t.request.Namespace, Provider: spec.Provider, Model: spec.Model, Agent: spec.AgentRef,
	})
	if err != nil {
		return shown(err)
	}
	if t.candidates, err = t.choice.LLM(); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// open finds or creates the session, and holds it for this turn.
func (t *Turn) open(ctx context.Context) (err error) {
	t.session, err = t.service.openSession(ctx, t.request.Namespace, t.request.Spec.SessionID)
	if err != nil {
		return err
	}
	release := t.service.busy.hold(t.session.UID, t.cancel)
	if release == nil {
		return apierrors.NewConflict(v1alpha1.Resource("sessions"), t.session.Name, errors.New("another turn of this session runs; wait for its end, or cancel it by deleting the chat"))
	}
	t.release = append(t.release, release)
	t.remember()
	return t.service.settle(ctx, t.session.UID)
}

// remember makes the turn remove what earlier turns of its session removed.
func (t *Turn) remember() {
	t.clean = cleaner{t.service.removed.of(t.session.UID)}
	t.text = text{clean: t.clean}
}

// prepare makes the tools, the instructions and the conversation.
func (t *Turn) prepare(ctx context.Context) (err error) {
	history, err := t.service.o.Sessions.Said(ctx, t.session)
	if err != nil {
		return err
	}
	scope := toolbox.ForSession(t.session)
	scope.Caller, scope.Provider, scope.Model = t.request.Caller, t.candidates[0].Provider, t.candidates[0].Name
	scope.Words, scope.Said, scope.Created = toolbox.Words(t.request.Spec.Message, history), toolbox.Said(t.request.Spec.Message, history), t.created
	if t.tools, err = t.service.o.Tools.Make(ctx, scope); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	t.tools.LoadAgain(ctx, t.said)
	// System messages that somebody put into the session are not instructions of the orchestrator, and are left out.
	_, before := agentloop.Replay(history)
	t.messages = append([]llm.Message{{Role: llm.RoleSystem, Text: t.prompt(ctx)}}, before...)
	t.messages = append(t.messages, llm.Message{Role: llm.RoleUser, Text: t.request.Spec.Message})
	return nil
}

// Run carries out the turn and returns its answer. The error is an API error. Frames are observed on this goroutine.
func (t *Turn) Run() (*v1alpha1.ChatStatus, error) {
	c := t.candidates[0]
	if t.journal.live == nil || t.journal.live.last() < t.journal.record.First {
		t.emit(FrameStatus, Envelope{SessionID: t.session.Name, Provider: c.Provider, Model: c.Name})
	}
	result, err := agentloop.Run(t.ctx, t.config(), t.messages)
	if t.stopping() {
		return nil, apierrors.NewServiceUnavailable(errStopping.Error())
	}
	status := &v1alpha1.ChatStatus{
		SessionID: t.session.Name, Provider: c.Provider, Model: c.Name, Message: result.Text, Outcome: v1alpha1.ChatCompleted,
		ToolCalls: t.calls, Usage: t.usage(&result.Usage),
	}
	t.endText()
	var failed *Failure
	switch {
	case err == nil:
	case errors.Is(err, agentloop.ErrMaxIterations), errors.Is(err, agentloop.ErrRepeated):
		status.Outcome = v1alpha1.ChatIterationLimit
		if status.Message == "" {
			status.Message = "I used up the iterations of this turn and could not sum up. Ask me about the tasks in your next message."
			t.say(status.Message)
		}
	default:
		failed = t.failed(err, status)
	}
	status.Message = t.clean.text(status.Message)
	return t.finish(status, failed)
}

// stopping reports whether the turn is interrupted, and goes on in the next server.
func (t *Turn) stopping() bool { return errors.Is(context.Cause(t.ctx), errStopping) }

// failed classifies the error of a turn.
func (t *Turn) failed(err error, status *v1alpha1.ChatStatus) *Failure {
	failed := failure(t.ctx, err)
	if failed.Code == CodeTimeout {
		status.Outcome, status.Message = v1alpha1.ChatTimedOut, timeoutText
		t.say(timeoutText)
	}
	if failed.Code == CodeInternal {
		klog.FromContext(t.ctx).Error(err, "Chat turn failed", "namespace", t.request.Namespace)
	}
	return failed
}

// finish stores how the turn ended, adds it to the session and reports the end. A crash in between repeats what is left.
func (t *Turn) finish(status *v1alpha1.ChatStatus, failed *Failure) (*v1alpha1.ChatStatus, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), saveTime)
	defer cancel()
	if t.journal.record.End == nil {
		if err := t.journal.ending(ctx, ending{status, failed}); err != nil && failed == nil {
			failed = (&storageError{err}).failure()
			t.journal.record.End.Failure = failed
		}
	}
	if lost := t.service.save(ctx, t.session, &t.journal.record, t.said); lost != nil {
		failed = lost
	}
	t.service.metrics.ended(status, failed, t.service.o.Clock.Since(t.began))
	last := Frame{Type: FrameDone, Envelope: Envelope{SessionID: status.SessionID, Outcome: status.Outcome, Usage: status.Usage}}
	if failed != nil {
		last = Frame{Type: FrameError, Envelope: Envelope{SessionID: status.SessionID, Error: failed, Usage: status.Usage}}
	}
	if err := t.journal.end(ctx, last); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot store the end of a turn of a chat; the next start of the server completes it", "session", klog.KObj(t.session))
	}
	t.Close() // a client that has seen the last frame may have the next turn
	if t.journal.live == nil {
		t.emit(last.Type, last.Envelope)
	}
	if failed != nil && failed.Code != CodeTimeout {
		return nil, failed.status()
	}
	return status, nil
}

func (t *Turn) config() agentloop.Config {
	o, spec := &t.service.o, &t.request.Spec
	tokens := int64(defaultTokens)
	if t.choice.Agent != nil {
		tokens = cmp.Or(t.choice.MaxTokens, tokens)
	}
	if spec.MaxTokens != nil {
		tokens = *spec.MaxTokens
	}
	temperature := t.choice.Temperature
	if spec.Temperature != nil {
		temperature = spec.Temperature
	}
	candidates := t.candidates
	if o.Meter != nil {
		candidates = models.Metered(candidates, models.Metering{Meter: o.Meter, Clock: o.Clock, Asked: models.Asked{
			Namespace: t.request.Namespace, Caller: t.request.Caller, Session: t.session.Name, ID: string(uuid.NewUUID()), Agent: t.request.Spec.AgentRef,
		}})
	}
	var past []agentloop.Step
	if t.journal.past != nil {
		past = make([]agentloop.Step, len(t.journal.past))
		for i := range past {
			past[i] = t.journal.past[i].Step
		}
	}
	return agentloop.Config{
		Past: past, Journal: t.store, Interrupted: t.interrupted, Begin: t.mayAsk,
		Candidates: candidates, Tools: t.tools.Catalogue(), MaxIterations: o.MaxIterations, MaxTokens: tokens, Temperature: temperature,
		MaxContext: int(o.MaxSessionBytes), ReminderEvery: summaryEvery, Clock: o.Clock, Premature: t.unfinished,
		Part: func(p llm.Part) {
			t.say(t.echo.add(t.text.add(p.Text)))
		},
		Restart: func() {
			t.text, t.echo.held = text{clean: t.clean}, ""
			t.emit(FrameMessage, Envelope{Restart: true})
		},
		Calling: func(c llm.ToolCall) {
			t.endText()
			t.tools.Calling(fmt.Sprintf("%s-%d", t.journal.record.ID, len(t.calls)+1))
			if t.announced(c) {
				return
			}
			t.emit(FrameToolCall, Envelope{ToolCall: &v1alpha1.ChatToolCall{ID: c.ID, Name: c.Name, Args: asJSON(t.clean.json(c.Arguments))}})
		},
		Called: func(c llm.ToolCall, r tool.Result) {
			call := t.clean.called(c, r.Text)
			t.calls = append(t.calls, call)
			t.service.metrics.called(t.tools.Catalogue(), c.Name, r)
			f := Frame{Type: FrameToolResult, Envelope: Envelope{ToolCall: &v1alpha1.ChatToolCall{ID: call.ID, Name: call.Name, Result: call.Result}}}
			if t.journal.live != nil {
				t.held = &f // a result is shown with the step that has it, so that it is never shown twice
				return
			}
			t.emit(f.Type, f.Envelope)
		},
	}
}

// called returns a call and its result without secrets.
func (c cleaner) called(call llm.ToolCall, result string) v1alpha1.ChatToolCall {
	return v1alpha1.ChatToolCall{ID: call.ID, Name: call.Name, Args: asJSON(c.json(call.Arguments)), Result: asJSON(c.json(result))}
}

// store stores a step of the loop.
func (t *Turn) store(ctx context.Context, s agentloop.Step) error {
	if t.stopping() { // what the end of the server did to a call is not its result
		return errStopping
	}
	if s.Messages[0].Role == llm.RoleAssistant {
		t.endText()
	}
	var frames []Frame
	if t.held != nil {
		frames, t.held = []Frame{*t.held}, nil
	}
	messages, withheld := t.clean.messages(s.Messages)
	s.Messages = messages
	t.said = append(t.said, messages...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return t.journal.step(ctx, step{Step: s, Created: t.tools.Created(), Withheld: withheld}, frames...)
}

// mayAsk is called before each request to a model. A caller of a background turn who has lost their rights gets no more.
func (t *Turn) mayAsk(ctx context.Context, _ *v1alpha1.ExecutionEvent) error {
	if t.journal.live == nil {
		return nil
	}
	return t.service.patiently(ctx, func() error {
		err := t.service.o.Models.Present(ctx, t.request.Caller)
		if err == nil {
			err = t.service.authorize(ctx, &t.request)
		}
		if apierrors.IsForbidden(err) {
			return &rightsError{err}
		}
		return err
	})
}

// endText reports what is left of an answer that is complete.
func (t *Turn) endText() { t.say(t.echo.add(t.text.rest()) + t.echo.rest()) }

// say reports more of the answer's text.
func (t *Turn) say(more string) {
	if more != "" {
		t.emit(FrameMessage, Envelope{Content: more})
	}
}

// emit reports a frame. If the observer fails, the turn ends.
func (t *Turn) emit(kind string, e Envelope) {
	if t.journal.live != nil {
		t.journal.frame(Frame{Type: kind, Envelope: e})
		return
	}
	if t.request.Observe == nil || t.observed != nil {
		return
	}
	t.seq++
	if t.observed = t.request.Observe(Frame{Type: kind, Seq: t.seq, Envelope: e}); t.observed != nil {
		t.cancel(errClient)
	}
}

func (t *Turn) usage(total *agentloop.Totals) *v1alpha1.ChatUsage {
	u := used(total)
	u.ToolCalls, u.Duration = int32(len(t.calls)), t.service.o.Clock.Since(t.began).Round(time.Millisecond).String()
	if t.tools != nil {
		u.TasksCreated = t.tools.Created()
	}
	return u
}

// used returns what models were asked.
func used(total *agentloop.Totals) *v1alpha1.ChatUsage {
	u := &v1alpha1.ChatUsage{LLMCalls: int32(total.Attempts), UnreportedCalls: int32(total.Unreported)}
	if total.Attempts > total.Unreported {
		u.InputTokens, u.OutputTokens = new(total.InputTokens), new(total.OutputTokens)
	}
	return u
}
