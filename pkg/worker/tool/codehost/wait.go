// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// Times of the tools that wait.
const (
	// maxWait is the longest time that a call may wait.
	maxWait = 24 * time.Hour
	// defaultPoll, minPoll and maxPoll are for poll_interval of check_pull_request_ci.
	defaultPoll, minPoll, maxPoll = 30 * time.Second, 5 * time.Second, 10 * time.Minute
	// defaultMergeWait is for timeout of auto_merge_pull_request, and mergePoll is how often that tool looks.
	defaultMergeWait, mergePoll = 30 * time.Minute, 30 * time.Second
)

// Values in results.
const (
	statusPending  = "pending"
	outcomeTimeout = "timeout"
)

// check returns the checks of a pull request. With wait_timeout, it waits until none of them is pending.
func (t *serverTool) check(ctx context.Context, arguments json.RawMessage) (any, error) {
	a, err := decode[struct {
		pull

		WaitTimeout  string `json:"wait_timeout"`
		PollInterval string `json:"poll_interval"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	limit, err := duration("wait_timeout", a.WaitTimeout, 0, time.Second, maxWait)
	if err != nil {
		return nil, err
	}
	every, err := duration("poll_interval", a.PollInterval, defaultPoll, minPoll, maxPoll)
	if err != nil {
		return nil, err
	}
	s, err := t.look(ctx, request(ctx, t.of, arguments), limit, every, func(r result) bool { return r.text("status") != statusPending })
	if err != nil {
		return nil, err
	}
	if s.last == nil {
		return nil, Explain(s.failure)
	}
	t.heads.Checked(a.Repository, a.Number, s.last.text("head_sha"))
	return s.last.with("wait_timed_out", s.timedOut && limit > 0).with("attempts", s.looks), nil
}

// autoMerge repeats the call until the server reports an outcome. The first head that is seen stays the one that is merged.
func (t *serverTool) autoMerge(ctx context.Context, arguments json.RawMessage) (any, error) {
	a, err := decode[struct {
		pull

		Timeout string `json:"timeout"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	limit, err := duration("timeout", a.Timeout, defaultMergeWait, time.Second, maxWait)
	if err != nil {
		return nil, err
	}
	c := request(ctx, t.of, arguments)
	c.HeadSHA = t.heads.Of(a.Repository, a.Number)
	s, err := t.look(ctx, c, limit, mergePoll, func(r result) bool {
		if c.HeadSHA == "" {
			c.HeadSHA = r.text("head_sha")
		}
		return r.text("outcome") != ""
	})
	if err != nil {
		return nil, err
	}
	if s.last == nil {
		s.last = result{}.with("pr_number", a.Number).with("message", s.failure.Message)
	}
	if s.timedOut {
		s.last.with("outcome", outcomeTimeout)
	}
	return s.last, nil
}

// sight is what was seen while waiting.
type sight struct {
	// last is the last result; nil if the code host never gave one.
	last result
	// failure is why the last call failed; nil if it succeeded.
	failure *v1alpha1.TaskCodeHostFailure
	// looks is how often the call was made.
	looks    int
	timedOut bool
}

// look repeats a call until over says that a result is the last one, or the limit has passed. Failures that may pass by themselves do
// not end it. With a limit of 0 the call is made once.
func (t *serverTool) look(ctx context.Context, c *v1alpha1.TaskCodeHostCall, limit, every time.Duration, over func(result) bool) (*sight, error) {
	s, end := &sight{}, t.clock.Now().Add(limit)
	for {
		answer, err := t.send(ctx, c)
		if err != nil {
			return nil, err
		}
		s.looks++
		rest := time.Duration(0)
		if s.failure = answer.Failure; s.failure != nil && passing(s.failure) {
			rest = retryAfter(s.failure)
		} else {
			if s.last, err = t.read(answer); err != nil {
				return nil, err
			}
			if over(s.last) {
				return s, nil
			}
		}
		left := end.Sub(t.clock.Now())
		if left <= 0 || rest > left { // the code host would not answer before the end
			s.timedOut = true
			return s, nil
		}
		if !client.Sleep(ctx, t.clock, min(max(every, rest), left)) {
			return nil, ctx.Err()
		}
	}
}

// read returns the members of an answered call's result.
func (t *serverTool) read(answer *v1alpha1.TaskCodeHostCall) (result, error) {
	raw, err := t.resultOf(answer)
	if err != nil {
		return nil, err
	}
	r, err := read(raw)
	if err != nil {
		return nil, t.without("the platform's server has answered with a result that is no object")
	}
	return r, nil
}

// result has the members of a result.
type result map[string]json.RawMessage

func read(raw json.RawMessage) (result, error) {
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("null")
	}
	return r, nil
}

// text returns a member that is a text; empty if it is none.
func (r result) text(name string) string {
	var s string
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

// with sets a member, and returns the result. The value is a number, a text or a bool.
func (r result) with(name string, value any) result {
	raw, err := json.Marshal(value)
	if err == nil {
		r[name] = raw
	}
	return r
}

// duration reads a duration of the arguments.
func duration(argument, s string, otherwise, least, most time.Duration) (time.Duration, error) {
	if s == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		return 0, tool.InvalidArguments("%s: %.32q must be a duration from %s to %s", argument, s, least, most).Suggest(`write it like "90s", "20m" or "2h"`)
	}
	return d, nil
}
