// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/platform-ai/platform/test/bench/report"
)

// milestones are the events between which a task's time is divided, in their order, with the aim for the step that ends there.
var milestones = []struct {
	event string
	aim   float64 // in ms; 0 if there is none
}{{"TaskCreated", 0}, {"TaskStarted", 0}, {"WorkerStarted", 0}, {"WorkerCompleted", 0}, {"TaskSucceeded", 20}}

// steps returns the median time of each step of n tasks that alone has run, by when the server stored their events.
func (l *load) steps(ctx context.Context, prefix string, n int) ([]report.Row, error) {
	took := make([][]float64, len(milestones))
	for i := range n {
		at, err := l.events(ctx, fmt.Sprintf("%s-%d", prefix, i))
		if err != nil {
			return nil, err
		}
		for k := 1; k < len(milestones); k++ {
			from, to := at[milestones[k-1].event], at[milestones[k].event]
			if from.IsZero() || to.IsZero() {
				return nil, fmt.Errorf("task %s-%d lacks event %s or %s", prefix, i, milestones[k-1].event, milestones[k].event)
			}
			took[k] = append(took[k], to.Sub(from).Seconds()*1000)
		}
	}
	var rows []report.Row
	for k := 1; k < len(milestones); k++ {
		slices.Sort(took[k])
		row := report.Row{Name: fmt.Sprintf("%s to %s", milestones[k-1].event, milestones[k].event), Unit: "ms", Better: report.Lower, Ours: took[k][n/2]}
		if aim := milestones[k].aim; aim > 0 {
			row.Other, row.OtherName = aim, "(aim)"
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// events returns when the server stored the first event of each type of a task.
func (l *load) events(ctx context.Context, task string) (map[string]time.Time, error) {
	var page struct {
		Events []struct {
			Type      string
			CreatedAt time.Time
		}
	}
	if err := send(ctx, l.client, http.MethodGet, l.url+base+"tasks/"+task+"/events", nil, &page); err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, e := range page.Events {
		if _, ok := at[e.Type]; !ok {
			at[e.Type] = e.CreatedAt
		}
	}
	return at, nil
}

// medianRun returns the median time from the start of a task to its end, of all that measureMany has run, in ms.
func (l *load) medianRun(ctx context.Context) (float64, error) {
	var took []float64
	for i := range atOnce {
		at, err := l.events(ctx, fmt.Sprintf("many-%04d", i))
		if err != nil {
			return 0, err
		}
		took = append(took, at["TaskSucceeded"].Sub(at["TaskStarted"]).Seconds()*1000)
	}
	slices.Sort(took)
	return took[atOnce/2], nil
}
