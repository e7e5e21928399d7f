// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// Conversations keeps what is said in sessions of type chat. All fields are required except MaxBytes.
type Conversations struct {
	// Stored is what is stored of sessions.
	Stored      *resource.Stored[*v1alpha1.Session]
	Transcripts *transcript.Store
	Clock       clock.PassiveClock
	// MaxBytes bounds the transcript of a chat, in bytes. Default: DefaultChatBytes.
	MaxBytes int64
}

// Said returns all messages of a session, oldest first. It is meant for chats, whose sessions are bounded.
func (c Conversations) Said(ctx context.Context, s *v1alpha1.Session) ([]v1alpha1.SessionMessage, error) {
	var all []v1alpha1.SessionMessage
	for after := int64(0); ; {
		page, err := c.Transcripts.Page(ctx, s.UID, after, maxLimit, "")
		if err != nil {
			return nil, resource.StatusError(v1alpha1.Resource("sessions"), s.Name, err)
		}
		all = append(all, page.Messages...)
		if !page.More {
			return all, nil
		}
		after = page.Messages[len(page.Messages)-1].Order
	}
}

// Say appends the messages of a turn on behalf of the server, and adds tokens to the counts of the session. The
// messages have ids, and status.lastTurn says which turn was counted, so a call may be repeated after a crash. A session
// that is gone, or was deleted and created again, is a 404 or a conflict.
func (c Conversations) Say(ctx context.Context, s *v1alpha1.Session, turn string, messages []v1alpha1.SessionMessage, input, output *int64) error {
	ctx = request.WithNamespace(ctx, s.Namespace)
	_, err := c.Stored.UpdateStored(ctx, s.Name, func(now *v1alpha1.Session) error {
		if now.UID != s.UID || now.DeletionTimestamp != nil {
			return apierrors.NewNotFound(v1alpha1.Resource("sessions"), s.Name)
		}
		if now.Status.LastTurn == turn {
			return nil
		}
		if len(messages) > 0 {
			if _, err := c.Transcripts.AppendTo(ctx, Place(s), c.limitOf(s), messages); err != nil {
				return apiError(s, err)
			}
			messages = nil // a conflict repeats the update, and need not look for the messages again
		}
		now.Status.LastTurn = turn
		info, err := c.Transcripts.Info(ctx, s.UID)
		now.Status.MessageCount = int32(min(info.Messages, math.MaxInt32))
		now.Status.UpdatedAt = &metav1.Time{Time: c.Clock.Now()}
		now.Status.InputTokens, now.Status.OutputTokens = sum(now.Status.InputTokens, input), sum(now.Status.OutputTokens, output)
		return err
	})
	return resource.StatusError(v1alpha1.Resource("sessions"), s.Name, err)
}

// sum adds counts, of which nil is unknown.
func sum(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}
