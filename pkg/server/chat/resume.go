// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/turn"
	"github.com/platform-ai/platform/pkg/tool"
)

// Pauses between attempts of what may succeed later.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 5 * time.Second
)

// interruptions are the ordinary turns that ended with an earlier process and are not in their sessions yet.
type interruptions struct {
	mu      sync.Mutex
	records map[types.UID]*record // by session
}

// Resume takes over the turns that an earlier process did not end: background turns take their slots and sessions at
// once, and go on when the server is ready; other turns are added to their sessions, and those that cannot be read are set
// aside. It is called once, before the server answers. When ctx ends, background turns are interrupted, so that the next server
// continues them.
func (s *Service) Resume(ctx context.Context) error {
	if s == nil {
		return nil
	}
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { stop(errStopping) })
	s.serving.Store(&serving)
	s.lost.records = map[types.UID]*record{}
	found := &left{aside: map[types.UID]*record{}}
	if err := found.read(ctx, serving, s); err != nil {
		return err
	}
	background := found.background
	slices.SortStableFunc(background, func(a, b *Turn) int { return a.began.Compare(b.began) })
	lost := make([]types.UID, 0, len(s.lost.records))
	for uid := range s.lost.records {
		lost = append(lost, uid)
	}
	waiting := map[*Turn]bool{}
	for _, t := range background {
		if waiting[t] = !s.slots.take(t.request.Namespace); !waiting[t] {
			t.took()
		}
	}
	go func() { // ends with serving
		if s.patiently(serving, func() error { return s.ready(serving) }) != nil {
			return
		}
		for _, t := range background {
			go t.resume(waiting[t]) //nolint:contextcheck // a turn has its own context, and the goroutine ends with it
		}
		for _, uid := range lost {
			if err := s.settle(serving, uid); err != nil {
				klog.FromContext(serving).Error(err, "Cannot add an interrupted turn to its session; the session's next turn does it", "sessionUID", uid)
			}
		}
		for uid, r := range found.aside {
			if err := s.tellAside(serving, uid, r); err != nil {
				klog.FromContext(serving).Error(err, "Cannot say in a session that its turn was set aside", "sessionUID", uid)
			}
		}
	}()
	return nil
}

// left are the turns that an earlier process did not end, besides those that are lost.
type left struct {
	background []*Turn
	// aside are those that cannot be read, by session.
	aside map[types.UID]*record
}

// read reads the stored turns, and sets aside those that cannot be read.
func (l *left) read(ctx, serving context.Context, s *Service) error {
	return s.o.Turns.Owners(ctx, func(uid types.UID) error {
		raw, err := s.o.Turns.Record(uid)
		if err != nil || raw == nil {
			return err
		}
		r, err := decoded(raw)
		if err == nil && r.Caller == nil {
			s.lost.records[uid] = r
			return nil
		}
		var t *Turn
		if err == nil {
			t, err = s.revive(serving, uid, r)
		}
		switch {
		case unreadable(err):
			l.aside[uid] = r
			return setAside(ctx, s, uid, err)
		case err != nil:
			return fmt.Errorf("stored turn of session %s: %w", uid, err)
		}
		l.background = append(l.background, t)
		return nil
	})
}

// ready returns nil once the server answers its own requests.
func (s *Service) ready(ctx context.Context) error {
	return s.own.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// revive makes the turn of a record, with what was stored of it. It holds its session.
func (s *Service) revive(serving context.Context, uid types.UID, r *record) (*Turn, error) {
	past, err := stored(s.o.Turns, uid)
	if err != nil {
		return nil, err
	}
	first, frames := int64(0), []turn.Frame(nil)
	h, err := s.o.Turns.Head(uid)
	if err == nil {
		first = h.First
		err = s.o.Turns.Frames(uid, 0, func(f turn.Frame) error {
			frames = append(frames, f)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("frames of a stored turn: %w", err)
	}
	r.First = first
	if past == nil {
		past = []step{} // the loop is told that it was interrupted
	}
	t := s.turn(serving, Request{Caller: r.who(), Namespace: r.Namespace, Spec: r.Spec}, r.Began)
	t.session = &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: r.Session, Namespace: r.Namespace, UID: uid}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}
	t.release = append(t.release, s.busy.hold(uid, t.cancel))
	t.journal = &journal{store: s.o.Turns, uid: uid, record: *r, past: past, number: int64(len(past)), live: newLive(), fail: t.cancel}
	t.journal.live.begin(first, frames)
	for _, p := range past {
		t.said, t.created = append(t.said, p.Messages...), p.Created
	}
	t.remember()
	t.calls = t.clean.answered(t.said)
	t.goLive() //nolint:contextcheck // a turn has its own context
	return t, nil
}

// answered returns the calls that have results.
func (c cleaner) answered(said []llm.Message) []v1alpha1.ChatToolCall {
	var out []v1alpha1.ChatToolCall
	var last []llm.ToolCall
	for _, m := range said {
		switch m.Role {
		case llm.RoleAssistant:
			last = m.ToolCalls
		case llm.RoleTool:
			if at := slices.IndexFunc(last, func(c llm.ToolCall) bool { return c.ID == m.ToolCallID }); at >= 0 {
				out = append(out, c.called(last[at], m.Text))
			}
		case llm.RoleUser, llm.RoleSystem:
		}
	}
	return out
}

// record stores that the turn begins.
func (t *Turn) record(ctx context.Context) error {
	spec := t.request.Spec
	spec.Message, spec.SystemPrompt = t.clean.text(spec.Message), t.clean.text(spec.SystemPrompt)
	t.journal = &journal{store: t.service.o.Turns, uid: t.session.UID, fail: t.cancel, record: record{
		ID: digits(), Namespace: t.request.Namespace, Session: t.session.Name, Spec: spec, Began: t.began,
	}}
	if spec.Background {
		t.journal.record.Caller, t.journal.live = asked(t.request.Caller), newLive()
	}
	if err := t.journal.begin(ctx); err != nil {
		return err
	}
	if spec.Background {
		t.goLive() //nolint:contextcheck // a turn has its own context
	}
	return nil
}

// goLive shows the frames of the turn to clients from now on. The last of them are shown when slot and session are free,
// so that a client which has seen them may have the next turn.
func (t *Turn) goLive() {
	j := t.journal
	t.service.busy.show(j.uid, j.live)
	j.write()
	t.release = append(append([]func(){func() {
		j.live.show(j.rest)
		j.live.close()
	}}, t.release...), j.close)
}

// Start carries out a background turn, which outlives its request, and returns its frames. It ends neither with its client nor with
// the server: sessions/cancel ends it. Its frames are read at sessions/turn, until the next background turn of the session begins,
// whose numbers continue.
func (t *Turn) Start() *Stream {
	out := &Stream{store: t.journal.store, uid: t.journal.uid, live: t.journal.live, sent: t.journal.record.First - 1}
	go func() { // ends with the turn
		defer t.Close()
		_, _ = t.Run() // its last frame reports an error
	}()
	return out
}

// Started describes a background turn that has begun.
func (t *Turn) Started() *v1alpha1.ChatStatus {
	c := t.candidates[0]
	return &v1alpha1.ChatStatus{SessionID: t.session.Name, Provider: c.Provider, Model: c.Name, Outcome: v1alpha1.ChatRunning, Usage: &v1alpha1.ChatUsage{Duration: "0s"}}
}

// resume carries on a background turn of an earlier process.
func (t *Turn) resume(waits bool) {
	defer t.Close()
	if end := t.journal.record.End; end != nil {
		_, _ = t.finish(end.Status, end.Failure)
		return
	}
	err := t.again(waits)
	if t.stopping() {
		return
	}
	if err == nil {
		_, _ = t.Run() // its last frame reports an error
		return
	}
	total := &agentloop.Totals{}
	if n := len(t.journal.past); n > 0 {
		total = &t.journal.past[n-1].Usage
	}
	status := &v1alpha1.ChatStatus{SessionID: t.session.Name, Usage: t.usage(total)}
	_, _ = t.finish(status, t.failed(err, status))
}

// again prepares a turn that was interrupted, as for a new request: with today's rights, models and tools.
func (t *Turn) again(waits bool) error {
	if waits {
		if !t.service.slots.wait(t.ctx, t.request.Namespace) {
			return context.Cause(t.ctx)
		}
		t.took()
	}
	if err := t.mayAsk(t.ctx, nil); err != nil {
		return err
	}
	err := t.service.patiently(t.ctx, func() error {
		s, err := t.service.own.CoreV1alpha1().Sessions(t.request.Namespace).Get(t.ctx, t.session.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && s.UID != t.session.UID:
			return errLost
		case err != nil:
			return err
		}
		t.session = s
		if err := t.choose(t.ctx); err != nil {
			return err
		}
		return t.prepare(t.ctx)
	})
	if err != nil {
		return err
	}
	var shown int64
	if n := len(t.journal.past); n > 0 {
		shown = t.journal.past[n-1].Frame
	}
	frames, _, _ := t.journal.live.after(shown)
	if len(frames) == 0 {
		return nil
	}
	last := frames[len(frames)-1]
	var e Envelope
	if err := json.Unmarshal(last.Data, &e); err != nil {
		return fmt.Errorf("frame %d of a stored turn: %w", last.Seq, err)
	}
	switch {
	case last.Type == FrameToolCall && e.ToolCall != nil:
		t.shown = e.ToolCall.ID
	case last.Type == FrameMessage && e.Content != "": // an answer that was not complete is asked for again
		t.emit(FrameMessage, Envelope{Restart: true})
	}
	return nil
}

// announced reports whether the frame of a call was shown before the interruption.
func (t *Turn) announced(c llm.ToolCall) bool {
	shown := t.shown != "" && t.shown == c.ID
	t.shown = ""
	return shown
}

// interrupted decides about a call that has no result because the server ended. Reads are repeated, and so is what marks
// the objects that it creates. For all other calls the model has to look itself.
func (t *Turn) interrupted(c llm.ToolCall, begun bool) (tool.Result, bool) {
	past := t.journal.past
	switch {
	case slices.Contains(past[len(past)-1].Withheld, c.ID), len(past) > 1 && slices.ContainsFunc(past, func(s step) bool { return slices.Contains(s.Withheld, c.ID) }):
		return tool.Failure(tool.Errorf(tool.TypeUnavailable, "the server restarted, and the arguments of this call held what looks like a secret, which is not stored").
			Suggest("check whether the call was carried out; if not, make it again without the secret")), true
	case begun && !toolbox.Repeats(c.Name):
		return tool.Failure(tool.Errorf(tool.TypeUnavailable, "the server restarted during this call, which may or may not have been carried out").
			Suggest("look at the present state before you repeat it")), true
	}
	return tool.Result{}, false
}

// settle adds the interrupted turn of a session to it, if there is one, so that the next turn's model knows what was
// done.
func (s *Service) settle(ctx context.Context, uid types.UID) error {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	r := s.lost.records[uid]
	if r == nil {
		return nil
	}
	past, err := stored(s.o.Turns, uid)
	if unreadable(err) {
		if err := setAside(ctx, s, uid, err); err != nil {
			return resource.StatusError(v1alpha1.Resource("sessions"), r.Session, err)
		}
		delete(s.lost.records, uid)
		return s.tellAside(ctx, uid, r)
	}
	if err != nil {
		return resource.StatusError(v1alpha1.Resource("sessions"), r.Session, err)
	}
	var said []llm.Message
	total := &agentloop.Totals{}
	for i := range past {
		said, total = append(said, past[i].Messages...), &past[i].Usage
	}
	if r.End == nil {
		r.End = &ending{Status: &v1alpha1.ChatStatus{Message: interruptedText, Usage: used(total)}}
		said = append(said, unknown(said)...)
	}
	in := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: r.Session, Namespace: r.Namespace, UID: uid}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat}}
	err = s.keep(ctx, in, r, said)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	if err := s.o.Turns.Apply(ctx, uid, turn.Change{End: true}); err != nil {
		return resource.StatusError(v1alpha1.Resource("sessions"), r.Session, err)
	}
	delete(s.lost.records, uid)
	return nil
}

// unknown returns the result of the first call that has none: it may have been under way. The later ones were not made.
func unknown(said []llm.Message) []llm.Message {
	at := len(said) - 1
	for at >= 0 && said[at].Role == llm.RoleTool {
		at--
	}
	if results := len(said) - at - 1; at >= 0 && results < len(said[at].ToolCalls) {
		return []llm.Message{{Role: llm.RoleTool, ToolCallID: said[at].ToolCalls[results].ID, Text: uncertain}}
	}
	return nil
}

// Forget removes what is stored of the turns of a session that was deleted.
func (s *Service) Forget(ctx context.Context, session *v1alpha1.Session) {
	if s == nil {
		return
	}
	s.removed.forget(session.UID)
	if err := s.o.Turns.Delete(ctx, session.UID); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the turns of a deleted session; the next start removes them", "session", klog.KObj(session))
	}
}

// patiently repeats what failed for a reason that may pass, until ctx ends.
func (s *Service) patiently(ctx context.Context, do func() error) error {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := do()
		if err == nil || !temporary(err) {
			return err
		}
		timer := s.o.Clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

func temporary(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= 500 || apierrors.IsTooManyRequests(err)
	}
	_, refused := errors.AsType[*rightsError](err)
	return !refused && !errors.Is(err, errLost)
}
