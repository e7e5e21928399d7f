// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// In a session of a gateway a message is stored when it arrives, which may be before those before it are answered. The answer to the first is
// then behind the second. A task that answers the second has to know it, so what it reads is in the order of the conversation: each answer
// follows its question, and questions after its own are left out.

// answered returns the newest messages of a session of a gateway up to one of the user, in the order of the conversation.
func (r *Resource) answered(ctx context.Context, s *v1alpha1.Session, q query) (transcript.Page, error) {
	upto, err := r.transcripts.Newest(ctx, s.UID, 1, q.through)
	if err != nil || len(upto.Messages) == 0 {
		return upto, err
	}
	// Behind the message there may be an answer for each question that waited then, and questions that came later.
	page, err := r.transcripts.Newest(ctx, s.UID, maxLimit, "")
	if err != nil {
		return page, err
	}
	last := upto.Messages[0].Order
	if oldest := page.Messages[0].Order; oldest > last { // very many came later
		return r.transcripts.Newest(ctx, s.UID, q.newest, q.through)
	}
	page.Messages = conversation(page.Messages, last)
	page.Messages = page.Messages[max(0, len(page.Messages)-q.newest):]
	return page, nil
}

// conversation puts each answer behind its question, and leaves out what was asked after the message with an order.
func conversation(all []v1alpha1.SessionMessage, last int64) []v1alpha1.SessionMessage {
	answers := map[string]v1alpha1.SessionMessage{}
	asked := map[string]bool{}
	key := func(m *v1alpha1.SessionMessage) string {
		return strings.TrimSuffix(strings.TrimSuffix(m.ID, ":"+string(v1alpha1.RoleAssistant)), ":"+string(v1alpha1.RoleUser))
	}
	for i := range all {
		if m := &all[i]; m.Role == v1alpha1.RoleUser {
			asked[key(m)] = true
		} else if m.Role == v1alpha1.RoleAssistant && asked[key(m)] {
			answers[key(m)] = *m
		}
	}
	out := make([]v1alpha1.SessionMessage, 0, len(all))
	for i := range all {
		m := &all[i]
		if m.Role == v1alpha1.RoleAssistant && answers[key(m)].ID == m.ID || m.Order > last {
			continue
		}
		out = append(out, *m)
		if answer, ok := answers[key(m)]; ok && m.Role == v1alpha1.RoleUser && m.Order != last {
			out = append(out, answer)
		}
	}
	return slices.Clip(out)
}
