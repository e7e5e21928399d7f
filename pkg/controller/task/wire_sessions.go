// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// sessionAPI writes transcripts of sessions.
type sessionAPI struct{ *wire }

// appendMessages adds to the transcript of a session, in one commit. Repeated
// messages are recognised by their id.
func (w sessionAPI) appendMessages(ctx context.Context, s *v1alpha1.Session, messages []v1alpha1.SessionMessage) error {
	err := w.group.Post().Namespace(s.Namespace).Resource("sessions").Name(s.Name).SubResource("transcript").
		Body(&v1alpha1.SessionTranscript{Items: messages}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("append messages: %w", err)
	}
	return nil
}
