// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/conversation"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// maxSaid is how much of what a runtime says about a failure is repeated, in bytes.
const maxSaid = 1000

// explain returns the failure of the run for an error of a request.
func explain(err error) error {
	refused, isRefusal := errors.AsType[*harness.Error](err)
	_, known := errors.AsType[*runner.Error](err)
	said := clip.Marked(fmt.Sprint(err), maxSaid)
	switch {
	case err == nil || known:
		return err
	case errors.Is(err, errReplaced), isRefusal && replaced(refused.Reason):
		return runner.Unavailable(v1alpha1.ReasonRuntimeReplaced, "what the coding agent did is not known: %s", said)
	case errors.Is(err, errLease), isRefusal && (refused.Reason == harness.LeaseLost || refused.Reason == harness.SessionFenced):
		return runner.Unavailable(v1alpha1.ReasonRuntimeLeaseLost, "%s", said)
	case errors.Is(err, harness.ErrProtocol):
		return runner.Fail(v1alpha1.ReasonProtocolViolated, "%s", said)
	case errors.Is(err, harness.ErrUnreachable), busy(err):
		return runner.Unavailable(v1alpha1.ReasonRuntimeNotAvailable, "%s", said)
	case isRefusal && refused.Reason == harness.StaleEpoch:
		return runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "another controller has taken over the runtime: %s", said)
	case isRefusal:
		return runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "the runtime refuses the task: %s", said)
	}
	return runner.Fail(v1alpha1.ReasonInternalError, "%s", said)
}

// replaced reports whether a refusal says that the session of the attempt is not there.
func replaced(reason harness.Reason) bool {
	switch reason { //nolint:exhaustive // of the others it does not
	case harness.WrongInstance, harness.WrongGeneration, harness.WrongProfile, harness.NotFound, harness.SessionExists:
		return true
	}
	return false
}

// judge returns how the agent ended, and why the run failed, if it did.
func (r *run) judge(ctx context.Context, end *harness.Result, err error) (acp.StopReason, error) {
	switch {
	case err != nil:
		return "", explain(err)
	case end == nil:
		return "", runner.Fail(v1alpha1.ReasonInternalError, "there is no result")
	}
	r.recordUsage(end.Usage)
	said := clip.Marked(end.Message, maxSaid)
	switch end.Outcome {
	case harness.Completed:
		stop := acp.StopReason(end.StopReason)
		r.talk.Answered(end.Text)
		return stop, r.talk.Failure(stop)
	case harness.Failed:
		return "", runner.Fail(v1alpha1.ReasonAgentFailed, "the coding agent failed: %s: %s", end.Reason, said)
	case harness.LostLease:
		return "", runner.Unavailable(v1alpha1.ReasonRuntimeLeaseLost, "the runtime has stopped the coding agent because its lease had ended")
	case harness.CancelledThen:
	}
	if ctx.Err() != nil {
		return acp.StopCancelled, conversation.Stopped(ctx)
	}
	return acp.StopCancelled, r.talk.Failure(acp.StopCancelled)
}

// recordUsage records what the agent reports as consumed. The platform has not seen the requests, so nothing is counted as one.
func (r *run) recordUsage(u *harness.Usage) {
	if u == nil {
		return // the usage of the attempt is unavailable
	}
	content := map[string]any{}
	if n := u.CacheWriteTokens; n != nil {
		content["cacheWriteInputTokens"] = *n
	}
	e := event.New(v1alpha1.EventModelUsageUpdated, v1alpha1.SeverityInfo, "", "the coding agent reports what it has consumed", content)
	e.InputTokens, e.OutputTokens, e.CachedInputTokens, e.Model = count(u.InputTokens), count(u.OutputTokens), count(u.CacheReadTokens), r.model()
	r.talk.Record(e)
}

func count(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n)) // package harness has bounded it
}

// takeDelta makes what the agent changed in the working folder, from where it is published as what a run on this machine changed.
func (r *run) takeDelta(ctx context.Context) error {
	if r.Repository == nil || !r.Task.Spec.Workspace.Writes() {
		return nil
	}
	var frozen *harness.DeltaStatus
	err := r.again(ctx, func(ctx context.Context) (err error) {
		frozen, err = r.session.Freeze(ctx, r.operation("delta"), r.operation("delta"), r.Remote.MaxDeltaBytes)
		return err
	})
	switch {
	case harness.Refused(err, harness.TooLarge):
		return runner.Fail(v1alpha1.ReasonPublicationRefused, "the coding agent changed more than the runtime gives out: %v", err)
	case err != nil:
		return explain(err)
	case frozen.Commit != r.Repository.Commit():
		return explain(fmt.Errorf("%w: what changed is said to be on commit %s, and %s was sent", harness.ErrProtocol, frozen.Commit, r.Repository.Commit()))
	}
	name := filepath.Join(r.TempDir, "delta.tar.gz")
	defer func() { _ = os.Remove(name) }()
	if err := r.again(ctx, func(ctx context.Context) error { return r.fetch(ctx, frozen, name) }); err != nil {
		return explain(err)
	}
	files, err := r.Repository.Apply(ctx, name)
	if err != nil {
		return err
	}
	if int64(files) != frozen.Files {
		return explain(fmt.Errorf("%w: the delta changes %d files, and the runtime said %d", harness.ErrProtocol, files, frozen.Files))
	}
	r.Log.Line("the runtime has changed %d files", files)
	return nil
}

// fetch writes the file of a delta.
func (r *run) fetch(ctx context.Context, d *harness.DeltaStatus, name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("the file of what changed: %w", err)
	}
	return errors.Join(r.session.Fetch(ctx, d, file), file.Close())
}
