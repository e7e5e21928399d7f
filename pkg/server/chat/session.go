// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/llm"
)

// Limits of what is kept of a call and its result, in bytes. The whole result is in the task.
const (
	keptArguments = 2 << 10
	keptResult    = 500
)

// Sessions keeps what is said in sessions.
type Sessions interface {
	// Said returns the messages of a session, oldest first.
	Said(ctx context.Context, s *v1alpha1.Session) ([]v1alpha1.SessionMessage, error)
	// Say appends the messages of a turn, and adds its tokens to the counts of the session; nil means that they are
	// unknown. A turn that was added before is not added again. A session that is gone or was re-created is a 404.
	Say(ctx context.Context, s *v1alpha1.Session, turn string, messages []v1alpha1.SessionMessage, input, output *int64) error
}

// openSession returns the session of a turn. One that does not exist is created.
func (s *Service) openSession(ctx context.Context, ns, name string) (*v1alpha1.Session, error) {
	all := s.own.CoreV1alpha1().Sessions(ns)
	if name == "" {
		name = newSessionName()
	} else {
		found, err := all.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return usable(found)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	made, err := all.Create(ctx, &v1alpha1.Session{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByOrchestrator}},
		Spec:       v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeChat},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // another first turn was faster
		if made, err = all.Get(ctx, name, metav1.GetOptions{}); err == nil {
			return usable(made)
		}
	}
	return made, err
}

func newSessionName() string { return v1alpha1.PrefixChatSession + digits() }

// digits returns 64 random bits as hexadecimal digits.
func digits() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// usable refuses sessions that are not chats.
func usable(s *v1alpha1.Session) (*v1alpha1.Session, error) {
	switch {
	case s.Spec.SessionType == v1alpha1.SessionTypeGateway:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("sessions"), s.Name)
	case s.Spec.SessionType != v1alpha1.SessionTypeChat:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("sessionId: session %q is of type %s, and chats continue sessions of type chat only", s.Name, s.Spec.SessionType))
	case s.DeletionTimestamp != nil:
		return nil, apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("the session is being deleted"))
	}
	return s, nil
}

// interruptedText is what a session keeps as the end of a turn that ended with the server, and uncertain as the result of
// the call that may have been under way.
const (
	interruptedText = "[this turn was interrupted: the server stopped before it ended]"
	uncertain       = `{"success":false,"error":"the server stopped during this call, which may or may not have been carried out",` +
		`"errorType":"unavailable","suggestion":"look at the present state before you repeat it"}`
)

// save appends the turn to the session. A turn that failed is kept, too, so that the next one knows what was done; its
// last message says how it ended.
func (s *Service) save(ctx context.Context, in *v1alpha1.Session, r *record, said []llm.Message) *Failure {
	failed := r.End.Failure
	err := s.keep(ctx, in, r, said)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		if failed != nil {
			return failed
		}
		return &Failure{Code: CodeSessionLost, Message: errLost.Error()}
	}
	klog.FromContext(ctx).Error(err, "Cannot store a turn of a chat", "session", klog.KObj(in))
	if failed != nil {
		return failed
	}
	return (&storageError{err}).failure()
}

// keep adds a turn to its session, with summaries of calls and results. The whole turn is one append, so that turns and
// tasks of a session never mix. It may be repeated.
func (s *Service) keep(ctx context.Context, in *v1alpha1.Session, r *record, said []llm.Message) error {
	last := r.End.Status.Message
	if failed := r.End.Failure; failed != nil && failed.Code != CodeTimeout {
		last = "[this turn ended without an answer: " + failed.Code + "]"
	}
	all := append([]v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: r.Spec.Message}}, summaries(r.ID, said)...)
	all = append(all, v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant, Content: last})
	for i := range all {
		all[i].ID = fmt.Sprintf("turn-%s-%d", r.ID, i+1)
	}
	return s.o.Sessions.Say(ctx, in, r.ID, all, r.End.Status.Usage.InputTokens, r.End.Status.Usage.OutputTokens)
}

// summaries returns the calls of a turn and what they brought, as they are kept. The final answer is not among them. A
// call without a result is left out, because nothing was done. Models may use the same ids in each turn, so the ids are
// made from that of the turn.
func summaries(turn string, said []llm.Message) []v1alpha1.SessionMessage {
	var out []v1alpha1.SessionMessage
	n := 0
	for i, m := range said {
		if m.Role != llm.RoleAssistant {
			continue
		}
		message := v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant, Content: m.Text}
		var answers []v1alpha1.SessionMessage
		for _, c := range m.ToolCalls {
			result, ok := answerTo(c.ID, said[i+1:])
			if !ok {
				continue
			}
			arguments := c.Arguments
			if len(arguments) > keptArguments || !json.Valid([]byte(arguments)) {
				arguments = `{"summary":"not kept"}`
			}
			n++
			id := fmt.Sprintf("call-%s-%d", turn, n)
			message.ToolCalls = append(message.ToolCalls, v1alpha1.MessageToolCall{ID: id, Name: c.Name, Arguments: arguments})
			answers = append(answers, v1alpha1.SessionMessage{Role: v1alpha1.RoleTool, ToolCallID: id, Name: c.Name, Content: clip.Marked(result, keptResult)})
		}
		if len(answers) > 0 {
			out = append(append(out, message), answers...)
		}
	}
	return out
}

// answerTo finds the result of a call in the messages that follow it directly.
func answerTo(id string, follows []llm.Message) (string, bool) {
	for _, m := range follows {
		if m.Role != llm.RoleTool {
			break
		}
		if m.ToolCallID == id {
			return m.Text, true
		}
	}
	return "", false
}
