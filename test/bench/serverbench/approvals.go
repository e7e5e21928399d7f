// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	// approvalsOf is the number of approvals of a measured task.
	approvalsOf = 15
	// peerApprovals is how long the closest peer takes to list the approvals of a task
	// of 100,000 events, in ms.
	peerApprovals = 85
	// fillBatch is how many events are appended at a time.
	fillBatch = 500
)

// approvals measures the list of a task's approvals, in a short stream and in a
// long one, over HTTPS.
func approvals(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	lengths := []int{100, 100_000}
	name := func(events int) string { return fmt.Sprintf("list of %d approvals in %d events", approvalsOf, events) }
	lengths = slices.DeleteFunc(lengths, func(n int) bool { return !o.wants(name(n)) })
	if len(lengths) == 0 {
		return nil
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	for i, events := range lengths {
		task := fmt.Sprintf("approvals-%d", i)
		if err := openTask(ctx, c, url, task); err != nil {
			return err
		}
		if err := fillTask(ctx, c, url, task, events); err != nil {
			return err
		}
		took, err := listApprovals(ctx, c, url, task, o.Window)
		if err != nil {
			return err
		}
		if err := r.Add(report.Row{Name: name(events), Unit: "ms", Better: report.Lower, Ours: took, Other: peerApprovals, OtherName: "peer at 100,000"}); err != nil {
			return err
		}
		if err := deleteTask(ctx, c, url, task); err != nil {
			return err
		}
	}
	return nil
}

// fillTask appends events to a task, with approvals evenly among them.
func fillTask(ctx context.Context, c *http.Client, url, name string, events int) error {
	var t v1alpha1.Task
	if err := send(ctx, c, http.MethodGet, url+base+"tasks/"+name, nil, &t); err != nil {
		return err
	}
	batch := v1alpha1.ExecutionEventList{}
	batch.APIVersion, batch.Kind = v1alpha1.SchemeGroupVersion.String(), "ExecutionEventList"
	for i := range events {
		e := v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: "the model answered in thirty-nine bytes"}
		if every := events / approvalsOf; i%every == 0 && i/every < approvalsOf {
			digest, err := approval.Digest(fmt.Appendf(nil, `{"n":%d}`, i))
			if err != nil {
				return err
			}
			e = *approval.RequestEvent(t.Namespace, v1alpha1.ApprovalSpec{
				TaskName: t.Name, TaskUID: t.UID, TargetTool: "exec", TargetArgsDigest: digest, Action: "run one more command",
			})
		}
		batch.Items = append(batch.Items, e)
		if len(batch.Items) < fillBatch && i < events-1 {
			continue
		}
		body, err := json.Marshal(batch)
		if err != nil {
			return err
		}
		if err := send(ctx, c, http.MethodPost, url+base+"tasks/"+name+"/events", body, nil); err != nil {
			return err
		}
		batch.Items = batch.Items[:0]
	}
	return nil
}

// listApprovals is the median time of a list, in ms.
func listApprovals(ctx context.Context, c *http.Client, url, task string, window time.Duration) (float64, error) {
	var took []float64
	for end := time.Now().Add(window); time.Now().Before(end); {
		var l v1alpha1.ApprovalList
		begin := time.Now()
		if err := send(ctx, c, http.MethodGet, url+base+"approvals?fieldSelector=spec.taskName%3D"+task, nil, &l); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
		if len(l.Items) != approvalsOf {
			return 0, fmt.Errorf("task %s has %d approvals", task, len(l.Items))
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
