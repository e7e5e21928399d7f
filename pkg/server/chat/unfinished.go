// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// unfinished returns what a model is told that answers while tasks of the chat still run, those of earlier turns among them:
// nobody comes back to the user when they end. It is told so at most MaxPrematureEnds times in a turn. A model that repeats its
// answer has decided not to wait, and the client is not shown the repetition.
func (t *Turn) unfinished(ctx context.Context, answer llm.Response) string {
	told, repeats := toldToWait(t.said, t.clean.text(answer.Text))
	if told >= t.service.o.MaxPrematureEnds || repeats {
		return ""
	}
	running := t.tools.Running(ctx, t.calls)
	if len(running) == 0 {
		return ""
	}
	t.endText()
	t.echo.of = t.clean.text(answer.Text)
	return fmt.Sprintf(unfinishedText, strings.Join(running, ", "))
}

const (
	unfinishedBegin = "Your answer would end this turn, and these tasks of the chat have not ended: "
	unfinishedText  = unfinishedBegin + "%s. If the user expects their results, wait for them with wait_for_task and then " +
		"answer. If the user does not, repeat your answer word for word."
)

// toldToWait returns how often the model was told that tasks have not ended, and whether its answer to that, without
// secrets, is the one that it had given before.
func toldToWait(said []llm.Message, answer string) (times int, repeats bool) {
	answer = strings.TrimSpace(answer)
	before := ""
	for _, m := range said {
		switch {
		case m.Role == llm.RoleUser && strings.Contains(m.Text, unfinishedBegin):
			times, repeats = times+1, before == answer
		case m.Role == llm.RoleAssistant:
			before = strings.TrimSpace(m.Text)
			repeats = false
		}
	}
	return times, repeats
}
