// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/redact"
)

// maxSaid bounds a message that a task adds to its session, in bytes. That is about 16,000
// tokens, and a later task reads up to maxMessages such messages. The whole result stays with
// the task.
const maxSaid = 64 << 10

// messageSource is the sourceType of messages that come from a task.
const messageSource = "task"

// conversation adds the prompt and the result of a task to the task's session.
type conversation struct {
	existing func(context.Context, *v1alpha1.Task) (*v1alpha1.Session, error)
	append   func(context.Context, *v1alpha1.Session, []v1alpha1.SessionMessage) error
}

// add appends the user's prompt and the answer, as long as the task holds its session. If the
// task no longer holds it, it has appended them before a crash, or its session was replaced.
// The ids of the messages make a repetition harmless. A permanent refusal by the server must
// not keep the task from ending, so add returns it as a note.
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

// said returns the messages that a task adds to its session: the prompt, unless the session has
// it already, and the result. A secret that one of them identifies is removed from both.
func said(t *v1alpha1.Task, result string) []v1alpha1.SessionMessage {
	var out []v1alpha1.SessionMessage
	var seen redact.Seen
	prompt, _ := seen.Text(plan.Prompt(&t.Spec))
	result, _ = seen.Text(result)
	prompt = seen.Remove(prompt)
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
		add(v1alpha1.RoleUser, "prompt", prompt)
	}
	add(v1alpha1.RoleAssistant, "result", result)
	return out
}

// shortenText cuts a text that is too long and marks the cut. The text must have no secrets, because a half of one would not be
// recognised.
func shortenText(text, what, task string) string {
	if len(text) <= maxSaid {
		return text
	}
	return fmt.Sprintf("%s\n[cut: this is the beginning of the %s of task %s, which has %d bytes]", clip.Text(text, maxSaid), what, task, len(text))
}
