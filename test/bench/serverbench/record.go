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

	"github.com/platform-ai/platform/test/bench/report"
)

// recordings measures a run of 200 model requests whose conversation grows to 400 KiB, with a recording and without: what is stored for
// each byte that is said, and what a request and its answer take to be stored.
func recordings(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	const stored, took, requests = "bytes stored for each byte that a run says", "store a model request and its answer, recorded", 200
	if !o.wants(stored) && !o.wants(took) {
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
	tasks := map[bool]string{true: "recorded", false: "unrecorded"}
	var ms [2][]float64
	said := 0
	for _, task := range tasks {
		if err := openTask(ctx, c, url, task); err != nil {
			return err
		}
	}
	for i := range requests { // in turns, so that both meet the same disk
		for n, rec := range []bool{false, true} {
			begin, end := exchange(i, rec)
			if rec {
				said += 2 * len(buildLog)
			}
			path, from := url+base+"tasks/"+tasks[rec]+"/events", time.Now()
			for _, e := range []map[string]any{begin, end} {
				body, err := json.Marshal(e)
				if err == nil {
					err = sendMinimal(ctx, c, path, body)
				}
				if err != nil {
					return err
				}
			}
			ms[n] = append(ms[n], time.Since(from).Seconds()*1000)
		}
	}
	var kept struct{ Bytes int64 }
	if err := send(ctx, c, http.MethodGet, url+base+"tasks/recorded/recording", nil, &kept); err != nil {
		return err
	}
	for _, task := range tasks {
		if err := deleteTask(ctx, c, url, task); err != nil {
			return err
		}
	}
	for n := range ms {
		slices.Sort(ms[n])
	}
	return errors.Join(
		r.Add(report.Row{Name: stored, Unit: "bytes", Better: report.Lower, Ours: float64(kept.Bytes) / float64(said), Other: 2, OtherName: "(aim)"}),
		r.Add(report.Row{Name: took, Unit: "ms", Better: report.Lower, Ours: ms[1][requests/2], Other: ms[0][requests/2], OtherName: "not recorded"}))
}

// exchange returns the events of the i-th model request of a run and of its answer. Each says 1 KiB that is new.
func exchange(i int, recorded bool) (begin, end map[string]any) {
	of := func(typ, key string, content map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "core.platform.ai/v1alpha1", "kind": "ExecutionEvent", "type": typ, "dedupKey": fmt.Sprintf("%s-%d", key, i), "attempt": 1,
			"content": content,
		}
	}
	request := map[string]any{"iteration": i + 1, "provider": "model", "model": "m", "attempt": 1}
	begin, end = of("ModelRequestStarted", "begin", request), of("ModelRequestCompleted", "end", request)
	if !recorded {
		return begin, end
	}
	part := func(role string) []any {
		return []any{map[string]any{"message": map[string]any{"role": role, "text": fmt.Sprintf("%d %s", i, buildLog)}}}
	}
	begin["recording"] = map[string]any{"first": 2 * i, "parts": part("user"), "conversation": []any{map[string]any{"from": 0, "to": 2 * i}}}
	end["recording"] = map[string]any{"first": 2*i + 1, "parts": part("assistant"), "message": 2*i + 1}
	return begin, end
}
