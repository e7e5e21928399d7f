// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// unfinished returns what a model is told that answers while tasks which this turn created still run: nobody comes back to
// the user when they end. It is told so at most MaxPrematureEnds times in a turn, and not again before it has called a tool,
// because a model that repeats its answer has decided not to wait.
func (t *Turn) unfinished(ctx context.Context, _ llm.Response) string {
	told, acted := toldToWait(t.said)
	if told >= t.service.o.MaxPrematureEnds || told > 0 && !acted {
		return ""
	}
	var running []string
	for _, name := range created(t.calls) {
		task, err := t.tools.task(ctx, oneTask{Name: name})
		if err == nil && !task.Status.Phase.Terminal() && task.Spec.Schedule == "" {
			running = append(running, name)
		}
	}
	if len(running) == 0 {
		return ""
	}
	t.say(t.text.rest() + "\n\n")
	return fmt.Sprintf(unfinishedText, strings.Join(running, ", "))
}

const (
	unfinishedBegin = "Your answer would end this turn, and these tasks of it have not ended: "
	unfinishedText  = unfinishedBegin + "%s. If the user expects their results, wait for them with wait_for_task and then " +
		"answer. If the user does not, repeat your answer."
)

// toldToWait returns how often the model was told that tasks have not ended, and whether it has called a tool since.
func toldToWait(said []llm.Message) (times int, acted bool) {
	for _, m := range said {
		switch {
		case m.Role == llm.RoleUser && strings.Contains(m.Text, unfinishedBegin):
			times, acted = times+1, false
		case len(m.ToolCalls) > 0:
			acted = true
		}
	}
	return times, acted
}

// created returns the names of the tasks that calls have created.
func created(calls []v1alpha1.ChatToolCall) (names []string) {
	for _, c := range calls {
		if !strings.HasPrefix(c.Name, "create_") || c.Result == nil {
			continue
		}
		var r struct {
			Data struct {
				Name     string             `json:"name"`
				Phase    v1alpha1.TaskPhase `json:"phase"`
				TaskName string             `json:"taskName"`
			} `json:"data"`
		}
		if json.Unmarshal(c.Result.Raw, &r) != nil {
			continue
		}
		name := r.Data.TaskName
		if name == "" && r.Data.Phase != "" { // other objects have no phase
			name = r.Data.Name
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
