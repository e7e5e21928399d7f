// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// maxUnfinished is how many tasks that run a model is told of.
const maxUnfinished = 20

// unfinished returns what a model is told that answers while tasks of the chat still run, those of earlier turns among them:
// nobody comes back to the user when they end. It is told so at most MaxPrematureEnds times in a turn. A model that repeats its
// answer has decided not to wait, and the client is not shown the repetition.
func (t *Turn) unfinished(ctx context.Context, answer llm.Response) string {
	told, repeats := toldToWait(t.said, t.clean.text(answer.Text))
	if told >= t.service.o.MaxPrematureEnds || repeats {
		return ""
	}
	running := t.running(ctx)
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

// ofSession selects what the chats of a session have created. Earlier versions shortened long names like those of other objects.
func ofSession(name string) string {
	values := slices.Compact([]string{v1alpha1.SessionLabel(name), v1alpha1.LabelValue(name)})
	return v1alpha1.LabelChatSession + " in (" + strings.Join(values, ",") + ")"
}

// running returns the tasks of the chat that have not ended, without those that wait for their schedule. Of a caller who may not
// list tasks, only those of this turn are known.
func (t *Turn) running(ctx context.Context) (names []string) {
	list, err := t.tools.caller.CoreV1alpha1().Tasks(t.tools.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: ofSession(t.session.Name),
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Cancelled", Limit: maxUnfinished,
	})
	if err == nil {
		for i := range list.Items {
			if list.Items[i].Spec.Schedule == "" {
				names = append(names, list.Items[i].Name)
			}
		}
		return names
	}
	for _, name := range created(t.calls) {
		task, err := t.tools.task(ctx, builtin.TaskArguments{Name: name})
		if err == nil && !task.Status.Phase.Terminal() && task.Spec.Schedule == "" {
			names = append(names, name)
		}
	}
	return names
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
