// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// callTools runs the calls of one answer in order and adds a result for each. The first of them have
// results already if the answer was interrupted. The error is that of the ended context or of
// Journal, or ErrApproval.
func (l *loop) callTools(ctx context.Context, resp llm.Response, results int) error {
	var repeated []string
	for i, c := range resp.ToolCalls {
		if i >= results {
			again := results != noResults
			if err := l.oneCall(ctx, c, resp, again, again && i == results); err != nil {
				return err
			}
		}
		if l.repeat(c) {
			repeated = append(repeated, c.Name)
		}
	}
	if len(repeated) > 0 {
		l.iteration += repeatPenalty * len(repeated)
		l.notice(fmt.Sprintf("You have called %s with the same arguments %d times or more, and the answer will not change. "+
			"Try another way or give your final answer.", strings.Join(repeated, " and "), repeatsBeforeWarning))
	}
	return nil
}

// CallTool makes one call that no loop has asked for, with its events, and under Gate and Judge as a call of a loop. The error says that it
// could not be asked whether the call may be made.
func CallTool(ctx context.Context, c Config, call llm.ToolCall) (tool.Result, error) {
	l := &loop{c: c}
	return l.callTool(ctx, call, llm.Response{})
}

// oneCall makes one call and adds its result. again says that the answer was interrupted, and begun that
// the call may have been made before.
func (l *loop) oneCall(ctx context.Context, c llm.ToolCall, resp llm.Response, again, begun bool) error {
	if f := l.c.Calling; f != nil {
		f(c)
	}
	var result tool.Result
	var err error
	answered := false
	if again && l.c.Interrupted != nil {
		result, answered = l.c.Interrupted(c, begun)
	}
	if !answered {
		result, err = l.callTool(ctx, c, resp)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	if f := l.c.Called; f != nil {
		f(c, result)
	}
	l.add(resultOf(c, result))
	err = l.save(ctx)
	if ctx.Err() != nil {
		return &llm.Error{Class: llm.ClassCanceled, Message: "the run was stopped", Err: ctx.Err()}
	}
	return err
}

func (l *loop) callTool(ctx context.Context, c llm.ToolCall, resp llm.Response) (tool.Result, error) {
	ctx = tool.WithCallID(ctx, c.ID)
	if l.c.Gate == nil || l.c.Tools == nil {
		return l.callFree(ctx, c), nil
	}
	return l.gate(c, func() (tool.Result, error) {
		gated := l.c.Gate.gated(c.Name)
		verdict, err := l.judge(ctx, c)
		failure, known := errors.AsType[*tool.Error](err)
		switch {
		case known:
			return l.notMade(c, failure), nil
		case err != nil:
			return tool.Result{}, err
		case verdict.Verdict == v1alpha1.ToolCallDenied:
			return tool.Failure(Denied(c.Name, verdict.Findings)), nil
		case verdict.Verdict == v1alpha1.ToolCallApprovalRequired:
			gated = true
		}
		if !gated {
			return l.callFree(ctx, c), nil
		}
		said := ""
		if resp.Text != "" {
			said = headline(resp)
		}
		return l.callGated(ctx, c, said)
	})
}

// callFree makes a call that needs no approval.
func (l *loop) callFree(ctx context.Context, c llm.ToolCall) tool.Result {
	started := l.c.Clock.Now()
	if l.c.Gate != nil && slices.Contains(l.c.StoredFirst, c.Name) {
		if err := l.commitStart(ctx, c, ""); err != nil {
			return tool.Failure(tool.Errorf(tool.TypeUnavailable, "the call could not be stored, and was not made"))
		}
	} else {
		l.toolStarted(c)
	}
	var result tool.Result
	if l.c.Tools == nil {
		result = tool.Failure(tool.Errorf(tool.TypeUnknownTool, "there are no tools").Suggest("answer without tools"))
	} else {
		result = l.c.Tools.Call(ctx, c.Name, c.Arguments)
	}
	l.toolEnded(c, "", result, l.c.Clock.Since(started))
	return result
}

// notMade records a call that fails before it is made, and returns its result.
func (l *loop) notMade(c llm.ToolCall, err error) tool.Result {
	result := tool.Failure(err)
	l.toolStarted(c)
	l.toolEnded(c, "", result, 0)
	return result
}

// repeat notes a call and reports whether it was made too often.
func (l *loop) repeat(c llm.ToolCall) bool {
	key := c.Name + "\x00" + c.Arguments
	if form, err := canonical.Form([]byte(c.Arguments)); err == nil {
		key = c.Name + "\x00" + string(form)
	}
	l.repeats[key]++
	return l.repeats[key] >= repeatsBeforeWarning
}
