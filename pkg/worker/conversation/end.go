// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"errors"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// Result returns what the run produced: the agent's last message. It is called after Finish.
func (t *Talk) Result(stop acp.StopReason) runner.Result {
	return runner.Result{Text: t.last, Content: map[string]any{"stopReason": stop, "toolCalls": t.count, "resultLength": len(t.last)}}
}

// Answered takes the last message as the agent's runtime reports it, if the agent has said nothing. It is called after Finish.
func (t *Talk) Answered(text string) {
	if t.last == "" {
		t.last = text
	}
}

// Stopped returns why a run fails whose ctx has ended: because of what ended it, or because it was asked to stop.
func Stopped(ctx context.Context) error {
	if ended, ok := errors.AsType[*runner.Error](context.Cause(ctx)); ok {
		return ended
	}
	return runner.Fail(v1alpha1.ReasonWorkerStopped, "the coding agent was stopped")
}

// Failure returns why a turn has failed that ended for a reason; nil if it has not. It is called after Finish.
func (t *Talk) Failure(stop acp.StopReason) error {
	switch {
	case stop == acp.StopRefusal:
		return runner.Fail(v1alpha1.ReasonAgentRefused, "the coding agent refused to do this")
	case stop == acp.StopMaxTokens:
		return runner.Fail(v1alpha1.ReasonAgentLimitReached, "the coding agent stopped because its model wrote as much as it may at once")
	case stop == acp.StopMaxTurns:
		return runner.Fail(v1alpha1.ReasonAgentLimitReached, "the coding agent stopped because it asked its model as often as it may")
	case stop == acp.StopCancelled:
		return runner.Fail(v1alpha1.ReasonAgentFailed, "the coding agent ended its turn as cancelled, and nobody had cancelled it")
	case t.last == "" && !t.Task.Spec.Workspace.Writes(): // an agent whose model failed may end like this
		return runner.Fail(v1alpha1.ReasonBlankAnswer, "the coding agent ended its turn without saying anything")
	}
	return nil
}

// RecordEnd records how the agent ended, with the error of the run.
func (t *Talk) RecordEnd(stop acp.StopReason, err error, took time.Duration) {
	content := map[string]any{"stopReason": stop, "toolCalls": t.count, "durationMs": took.Milliseconds()}
	kind, severity, summary := v1alpha1.EventAgentRuntimeCompleted, v1alpha1.SeverityInfo, "the coding agent is done"
	failed, ok := errors.AsType[*runner.Error](err)
	switch {
	case ok && failed.Reason == v1alpha1.ReasonWorkerStopped:
		kind, summary = v1alpha1.EventAgentRuntimeCancelled, "the coding agent was stopped"
	case ok:
		kind, severity, summary = v1alpha1.EventAgentRuntimeFailed, v1alpha1.SeverityError, failed.Error()
		content["reason"] = failed.Reason
	default:
		content["resultLength"] = len(t.last)
	}
	e := event.New(kind, severity, "", summary, content)
	e.AgentName = t.agent
	t.Recorder.Record(e)
}
