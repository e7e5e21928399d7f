// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

const (
	// maxPromptAgents is how many agents the instructions of a chat name. list_agents shows more.
	maxPromptAgents = 50
	// maxListed is how many agents and tools are listed.
	maxListed = 200
	// defaultTasks is how many tasks are listed, and maxTasks how many at most, whatever is asked for.
	defaultTasks, maxTasks = 20, 100
	// taskPage is how many tasks are read at a time.
	taskPage = 500
	// maxDescription is how much of a description is shown, in bytes.
	maxDescription = 200
)

type agentRow struct {
	Name        string   `json:"name"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools,omitempty"`
	Runtime     string   `json:"runtime,omitempty"`
	Description string   `json:"description,omitempty"`
}

// description is the annotation in which people describe an object to others.
const description = "kubernetes.io/description"

func rowOf(a *v1alpha1.Agent) agentRow {
	row := agentRow{Name: a.Name, Description: clip.Marked(a.Annotations[description], maxDescription)}
	if a.Spec.ProviderRef != nil {
		row.Model = a.Spec.ProviderRef.Name
	}
	if m := a.Spec.Model; m != nil && m.Name != "" {
		row.Model += "/" + m.Name
	}
	for _, t := range a.Spec.Tools {
		row.Tools = append(row.Tools, t.Name)
	}
	if a.Spec.Runtime != nil {
		row.Runtime = string(a.Spec.Runtime.Type)
	}
	return row
}

// Agents returns the agents that the caller may list, one on each line as JSON, because their texts are data.
func (b *Box) Agents(ctx context.Context) string {
	list, err := b.caller.CoreV1alpha1().Agents(b.Namespace).List(ctx, metav1.ListOptions{Limit: maxPromptAgents})
	switch {
	case apierrors.IsForbidden(err):
		return "The user may not list agents."
	case err != nil:
		return "The agents could not be read; use list_agents."
	case len(list.Items) == 0:
		return "There are none."
	}
	lines := make([]string, 0, len(list.Items)+1)
	for i := range list.Items {
		line, err := json.Marshal(rowOf(&list.Items[i]))
		if err == nil { // rows are always encodable
			lines = append(lines, string(line))
		}
	}
	if list.Continue != "" {
		lines = append(lines, "There are more; use list_agents.")
	}
	return strings.Join(lines, "\n")
}

func (b *Box) listAgents(ctx context.Context, a builtin.NamespaceArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	list, err := b.caller.CoreV1alpha1().Agents(b.Namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
	if err != nil {
		return nil, Explain(err)
	}
	rows := make([]agentRow, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, rowOf(&list.Items[i]))
	}
	return rows, nil
}

type toolRow struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Builtin     bool   `json:"builtin"`
}

func (b *Box) listTools(ctx context.Context, a builtin.NamespaceArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	list, err := b.caller.CoreV1alpha1().Tools(b.Namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
	if err != nil {
		return nil, Explain(err)
	}
	rows := make([]toolRow, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, toolRow{Name: list.Items[i].Name, Description: clip.Marked(list.Items[i].Spec.Description, maxDescription)})
	}
	return rows, nil
}

type taskRow struct {
	Name  string             `json:"name"`
	Phase v1alpha1.TaskPhase `json:"phase"`
	Type  v1alpha1.TaskType  `json:"type"`
	Age   string             `json:"age"`
}

func (b *Box) listTasks(ctx context.Context, a builtin.ListTasksArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	limit := defaultTasks
	if a.Limit != nil {
		limit = min(int(*a.Limit), maxTasks)
	}
	var newest []v1alpha1.Task
	for o := (metav1.ListOptions{Limit: taskPage}); ; {
		page, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).List(ctx, o)
		if err != nil {
			return nil, Explain(err)
		}
		for i := range page.Items {
			if a.Status == "" || string(phaseOf(&page.Items[i])) == a.Status {
				newest = append(newest, page.Items[i])
			}
		}
		slices.SortStableFunc(newest, func(x, y v1alpha1.Task) int { return y.CreationTimestamp.Compare(x.CreationTimestamp.Time) })
		newest = newest[:min(len(newest), limit)]
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	rows := make([]taskRow, 0, len(newest))
	for i := range newest {
		t := &newest[i]
		rows = append(rows, taskRow{t.Name, phaseOf(t), t.Spec.Type, b.o.Clock.Since(t.CreationTimestamp.Time).Round(time.Second).String()})
	}
	return rows, nil
}

// phaseOf returns the phase of a task. One that no controller has seen yet is pending.
func phaseOf(t *v1alpha1.Task) v1alpha1.TaskPhase {
	return cmp.Or(t.Status.Phase, v1alpha1.TaskPending)
}
