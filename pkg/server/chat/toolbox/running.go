// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// maxUnfinished is how many tasks that run a model is told of.
const maxUnfinished = 20

// ofSession selects what the chats of a session have created. Earlier versions shortened long names like those of other objects.
func ofSession(name string) string {
	values := slices.Compact([]string{v1alpha1.SessionLabel(name), v1alpha1.LabelValue(name)})
	return v1alpha1.LabelChatSession + " in (" + strings.Join(values, ",") + ")"
}

// Running returns the tasks of the chat that have not ended, without those that wait for their schedule. Of a caller who may not
// list tasks, only those that the given calls have created are known.
func (b *Box) Running(ctx context.Context, calls []v1alpha1.ChatToolCall) (names []string) {
	list, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: ofSession(b.Session),
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
	for _, name := range created(calls) {
		task, err := b.task(ctx, builtin.TaskArguments{Name: name})
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
