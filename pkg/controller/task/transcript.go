// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/redact"
)

// maxSaid bounds a message that a task leaves in its session, in bytes; about
// 16,000 tokens, of which a later task reads up to maxMessages. The whole result
// stays with the task.
const maxSaid = 64 << 10

// messageSource is the sourceType of messages that come from a task.
const messageSource = "task"

// conversation adds what was said in a task to the task's session.
type conversation struct {
	existing func(context.Context, *v1alpha1.Task) (*v1alpha1.Session, error)
	append   func(context.Context, *v1alpha1.Session, []v1alpha1.SessionMessage) error
}

// add appends the user's prompt and the answer, while the task holds its
// session. One that holds it no more has done so before a crash, or its session
// was replaced. The ids of the messages make a repetition harmless. What the
// server refuses for good must not keep the task from its end: the note tells.
func (c *conversation) add(ctx context.Context, t *v1alpha1.Task, result string) (note string, err error) {
	ref := t.Spec.SessionRef
	if ref == nil || ref.Append != nil && !*ref.Append {
		return "", nil
	}
	sess, err := c.existing(ctx, t)
	if err != nil {
		return "", err
	}
	if sess == nil || sess.Status.ActiveTaskUID != t.UID {
		return "", nil
	}
	messages := said(t, result)
	if len(messages) == 0 {
		return "", nil
	}
	err = c.append(ctx, sess, messages)
	if refusedForGood(err) {
		return fmt.Sprintf("its messages were not added to session %s: %v", sess.Name, err), nil
	}
	return "", err
}

func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) ||
		apierrors.IsNotFound(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// said is what a task leaves in its session: the prompt, unless the session has
// it already, and the result.
func said(t *v1alpha1.Task, result string) []v1alpha1.SessionMessage {
	var out []v1alpha1.SessionMessage
	add := func(role v1alpha1.MessageRole, what, text string) {
		if strings.TrimSpace(text) == "" {
			return
		}
		out = append(out, v1alpha1.SessionMessage{
			ID: fmt.Sprintf("task:%s:%s", t.UID, role), Role: role, Content: shortenText(text, what, t.Name),
			SourceType: messageSource, SourceRef: t.Name,
		})
	}
	if !plan.PromptInSession(&t.Spec) {
		add(v1alpha1.RoleUser, "prompt", plan.Prompt(&t.Spec))
	}
	add(v1alpha1.RoleAssistant, "result", result)
	return out
}

// shortenText cuts what is too long and says so. Secrets leave before the cut,
// which could leave half of one, in which nobody would recognise it.
func shortenText(text, what, task string) string {
	if len(text) <= maxSaid {
		return text
	}
	whole := len(text)
	text, _ = redact.Text(text)
	end := min(len(text), maxSaid)
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[cut: this is the beginning of the %s of task %s, which has %d bytes]", text[:end], what, task, whole)
}
