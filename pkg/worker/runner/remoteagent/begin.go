// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/worker/client"
)

const (
	// awayPatience is how long a runtime may be unreachable, and busyPatience how long it may take on nothing new, before an attempt
	// fails for that. Between tries are firstPause to maxPause.
	awayPatience = time.Minute
	busyPatience = 5 * time.Minute
	firstPause   = 200 * time.Millisecond
	maxPause     = 10 * time.Second
)

// errReplaced is in the chain of the error for a runtime that is not the one for which the attempt was assigned.
var errReplaced = errors.New("the runtime was replaced")

// begin finds the runtime as it was when the attempt was assigned, sees to it that no earlier attempt goes on, and creates the session with the
// task's repository in it. After an error there is no session.
func (r *run) begin(ctx context.Context) error {
	if err := r.again(ctx, func(context.Context) error { return nil }); err != nil { // again has compared it
		return err
	}
	st, err := r.first.Status(ctx)
	if err != nil {
		return err
	}
	r.session = r.first.For(r.Remote.Instance, max(1, st.ControllerEpoch), r.limits).Session(r.sessionID(), uint64(r.Attempt))
	if r.Attempt > 1 {
		if err := r.endEarlier(ctx, max(1, st.ControllerEpoch)); err != nil {
			return err
		}
	}
	spec := harness.SessionSpec{ProfileDigest: r.Remote.ProfileDigest, Model: r.model(), SystemPrompt: r.plan.System(), ToolPolicy: r.talk.ToolPolicy()}
	if r.Repository != nil {
		spec.Workspace = &harness.WorkspaceSpec{Intent: harness.IntentRead}
		if r.Task.Spec.Workspace.Writes() {
			spec.Workspace.Intent = harness.IntentWrite
		}
	}
	err = r.again(ctx, func(ctx context.Context) error {
		_, err := r.session.Create(ctx, r.operation("create"), spec)
		return err
	})
	if err == nil && r.Repository != nil {
		err = r.sendWorkspace(ctx)
	}
	if err != nil {
		r.tidy(ctx)
	}
	return err
}

// sendWorkspace sends the task's repository.
func (r *run) sendWorkspace(ctx context.Context) error {
	file := filepath.Join(r.TempDir, "workspace.tar.gz")
	defer func() { _ = os.Remove(file) }()
	if err := r.Repository.Pack(ctx, file); err != nil {
		return err
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the archive of the workspace: %w", err)
	}
	return r.again(ctx, func(ctx context.Context) error {
		st, err := r.session.PutWorkspace(ctx, r.operation("workspace"), archive)
		if err == nil && st.Commit != r.Repository.Commit() {
			return fmt.Errorf("%w: the session has commit %q, and %s was sent", harness.ErrProtocol, st.Commit, r.Repository.Commit())
		}
		return err
	})
}

// endEarlier deletes the session of an earlier attempt, or waits until nothing can go on in one that the runtime does not know.
func (r *run) endEarlier(ctx context.Context, epoch uint64) error {
	generation := uint64(r.Attempt - 1)
	known := true
	err := r.again(ctx, func(ctx context.Context) error {
		st, err := r.session.Get(ctx)
		switch {
		case err == nil && st.Generation >= uint64(r.Attempt):
			return nil // its creation will be refused, or is the one that this attempt asked for
		case err == nil:
			generation = st.Generation
		case !harness.Refused(err, harness.NotFound):
			return err
		}
		earlier := r.first.For(r.Remote.Instance, epoch, r.limits).Session(r.sessionID(), generation)
		err = earlier.Delete(ctx, deletion(generation))
		if harness.Refused(err, harness.NotFound) || harness.Refused(err, harness.WrongGeneration) {
			known = false
			return nil
		}
		return err
	})
	if err != nil || known {
		return err
	}
	r.Log.Line("the runtime does not know the session of the earlier attempt: waiting for %s, after which its agent has been stopped wherever it was", 2*r.lease)
	if !client.Sleep(ctx, r.Clock, 2*r.lease) {
		return ctx.Err()
	}
	return nil
}

// deletion names the operation that deletes a generation of a session, which is the same for whoever wants that.
func deletion(generation uint64) string { return fmt.Sprintf("delete-%d", generation) }

// again makes a request, after it has compared the runtime with the one that the attempt was assigned to. It repeats both while the
// runtime is away or takes on nothing new; the request must be the same operation each time.
func (r *run) again(ctx context.Context, request func(context.Context) error) error {
	began := r.clock.Now()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := r.compare(ctx)
		if err == nil {
			err = request(ctx)
		}
		var patience time.Duration
		switch {
		case errors.Is(err, harness.ErrUnreachable):
			patience = awayPatience
		case busy(err):
			patience = busyPatience
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.clock.Since(began) >= patience {
			return err
		}
		if pause == firstPause {
			r.Log.Line("the runtime is asked again: %v", err)
		}
		if !client.Sleep(ctx, r.clock, pause) {
			return ctx.Err()
		}
	}
}

// busy reports whether a runtime may do later what it refuses now.
func busy(err error) bool {
	for _, reason := range []harness.Reason{harness.Busy, harness.Draining, harness.LimitReached, harness.Unavailable} {
		if harness.Refused(err, reason) {
			return true
		}
	}
	return false
}

// compare returns an error unless the runtime is the one that the attempt was assigned to.
func (r *run) compare(ctx context.Context) error {
	h, err := r.first.Health(ctx)
	if err != nil {
		return err
	}
	a, err := r.first.Capabilities(ctx)
	if err != nil {
		return err
	}
	c, profile := &a.Capabilities, ""
	if c.Profile != nil {
		profile = c.Profile.Digest
	}
	switch {
	case h.Instance != r.Remote.Instance || c.RuntimeInstanceID != r.Remote.Instance:
		return fmt.Errorf("%w: the attempt was assigned to its instance %s, and %s answers", errReplaced, r.Remote.Instance, h.Instance)
	case profile != r.Remote.ProfileDigest:
		return fmt.Errorf("%w: the attempt was assigned to its profile %q, and it has %q", errReplaced, r.Remote.ProfileDigest, profile)
	case *c.Limits.MinPromptLeaseMillis > r.Remote.LeaseMillis || *c.Limits.MaxPromptLeaseMillis < r.Remote.LeaseMillis:
		return fmt.Errorf("%w: it does not allow leases of %d milliseconds any more", errReplaced, r.Remote.LeaseMillis)
	case h.Status == harness.HealthUnhealthy:
		return harness.Refuse(harness.Unavailable, "the runtime says that it is unhealthy")
	}
	r.limits = c.Limits
	return nil
}
