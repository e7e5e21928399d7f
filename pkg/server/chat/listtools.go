// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

const (
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
	row := agentRow{Name: a.Name, Description: shorten(a.Annotations[description], maxDescription)}
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

func (b *toolbox) listAgents(ctx context.Context, a builtin.NamespaceArguments) (any, error) {
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

func (b *toolbox) listTools(ctx context.Context, a builtin.NamespaceArguments) (any, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	list, err := b.caller.CoreV1alpha1().Tools(b.Namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
	if err != nil {
		return nil, Explain(err)
	}
	rows := make([]toolRow, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, toolRow{Name: list.Items[i].Name, Description: shorten(list.Items[i].Spec.Description, maxDescription)})
	}
	return rows, nil
}

type taskRow struct {
	Name  string             `json:"name"`
	Phase v1alpha1.TaskPhase `json:"phase"`
	Type  v1alpha1.TaskType  `json:"type"`
	Age   string             `json:"age"`
}

func (b *toolbox) listTasks(ctx context.Context, a builtin.ListTasksArguments) (any, error) {
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
		rows = append(rows, taskRow{t.Name, phaseOf(t), t.Spec.Type, b.clock.Since(t.CreationTimestamp.Time).Round(time.Second).String()})
	}
	return rows, nil
}

// phaseOf returns the phase of a task. One that no controller has seen yet is pending.
func phaseOf(t *v1alpha1.Task) v1alpha1.TaskPhase {
	return cmp.Or(t.Status.Phase, v1alpha1.TaskPending)
}
