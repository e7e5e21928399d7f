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
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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
	// Say appends messages, and adds the tokens to the counts of the session; nil means that they are unknown. A session
	// that is gone or was made anew is a 404.
	Say(ctx context.Context, s *v1alpha1.Session, messages []v1alpha1.SessionMessage, input, output *int64) error
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

// save appends the turn to the session, with summaries of calls and results. A turn that failed is kept, too, so that
// the next one knows what was done; its last message says how it ended. The whole turn is one append, so that turns and
// tasks of a session never mix.
func (t *Turn) save(r *agentloop.Result, status *v1alpha1.ChatStatus, failed *Failure) *Failure {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), saveTime)
	defer cancel()
	said := append([]v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: t.request.Spec.Message}}, t.summaries(r.Messages)...)
	last := status.Message
	if failed != nil && failed.Code != CodeTimeout {
		last = "[this turn ended without an answer: " + failed.Code + "]"
	}
	said = append(said, v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant, Content: last})
	err := t.service.said.Say(ctx, t.session, said, status.Usage.InputTokens, status.Usage.OutputTokens)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		if failed != nil {
			return failed
		}
		return &Failure{Code: CodeSessionLost, Message: errLost.Error()}
	}
	klog.FromContext(ctx).Error(err, "Cannot store a turn of a chat", "session", klog.KObj(t.session))
	if failed != nil {
		return failed
	}
	return &Failure{Code: CodeInternal, Message: "the answer could not be stored in the session"}
}

// summaries returns the calls of a turn and what they brought, as they are kept. The final answer is not among them.
func (t *Turn) summaries(messages []llm.Message) []v1alpha1.SessionMessage {
	mine := map[string]bool{}
	for _, c := range t.calls {
		mine[c.ID] = true
	}
	var out []v1alpha1.SessionMessage
	for i, m := range messages {
		if m.Role != llm.RoleAssistant {
			continue
		}
		said := v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant, Content: m.Text}
		var answers []v1alpha1.SessionMessage
		for _, c := range m.ToolCalls {
			result, ok := answerTo(c.ID, messages[i+1:])
			if !ok || !mine[c.ID] {
				continue
			}
			arguments := c.Arguments
			if len(arguments) > keptArguments || !json.Valid([]byte(arguments)) {
				arguments = `{"summary":"not kept"}`
			}
			id := "call-" + digits() // models may use the same ids in each turn
			said.ToolCalls = append(said.ToolCalls, v1alpha1.MessageToolCall{ID: id, Name: c.Name, Arguments: arguments})
			answers = append(answers, v1alpha1.SessionMessage{Role: v1alpha1.RoleTool, ToolCallID: id, Name: c.Name, Content: shorten(result, keptResult)})
		}
		if len(answers) > 0 {
			out = append(append(out, said), answers...)
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

// shorten cuts a text to at most limit bytes and says so.
func shorten(s string, limit int) string {
	const mark = " … [shortened]"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
