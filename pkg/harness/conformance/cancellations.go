// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"

	"github.com/platform-ai/platform/pkg/harness"
)

// cancellations are the checks of cancellations.
func cancellations() []Check {
	return []Check{
		{Number: "X1", Required: "A prompt that is cancelled ends with cancelled, within one lease.", Advice: "Ask the agent to stop. However it answers, the outcome is cancelled and not failed.", needs: []string{"P1"}, run: cancelled},
		{Number: "P4", Required: "The repeated start of a prompt gets the same stream, and the agent works once.", Advice: "Keep the events, and look for the operation before anything is started.", needs: []string{"X1", "F3"}, run: startedTwice},
		{Number: "X2", Required: "After a cancellation the session can be used again.", Advice: "Keep the agent's session, or begin another one in the same folder.", needs: []string{"X1"}, run: usedAgain},
		{Number: "X3", Required: "After a cancellation nothing goes on.", Advice: "Wait until the agent's programs have ended, then write the result.", needs: []string{"X1", "W2"}, run: nothingGoesOn},
		{Number: "X4", Required: "The cancellation of a prompt that is over changes nothing.", Advice: "Answer settled, and keep the outcome.", needs: []string{"P1"}, run: cancelledLate},
		{Number: "X5", Required: "A prompt that is cancelled ends within one lease, even if the agent does not stop by itself.", Advice: "End the agent by force after a part of the lease.", needs: []string{"X1"}, run: cancelledForce},
	}
}

// cancel starts a prompt, cancels it, and returns an error unless it ends as cancelled.
func (p *probe) cancel(ctx context.Context, s *session, step string) error {
	stream, prompt, err := s.start(ctx, shortLease, step)
	if err != nil {
		return err
	}
	if _, err := s.Cancel(ctx, harness.NewOperation(), prompt, "the kit checks cancellations"); err != nil {
		_ = stream.Close()
		return did("cancelling a prompt", err)
	}
	events, err := p.rest(stream, millis(p.lease(shortLease)))
	if err != nil {
		return err
	}
	return ended(events, harness.CancelledThen)
}

func cancelled(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	return p.cancel(ctx, s, "await-cancel")
}

func usedAgain(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	if err := p.cancel(ctx, s, "await-cancel"); err != nil {
		return err
	}
	_, err = s.completed(ctx, "say again")
	return err
}

func nothingGoesOn(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	if err := p.cancel(ctx, s, "ticks ticks.txt"); err != nil {
		return err
	}
	return p.still(ctx, s)
}

// still returns a finding if the workspace changes although no prompt is running.
func (p *probe) still(ctx context.Context, s *session) error {
	var digests []string
	for range 2 {
		d, err := s.Freeze(ctx, harness.NewOperation(), p.name(), *p.caps.Limits.MaxWorkspaceDeltaBytes)
		if err != nil {
			return did("taking a delta after the result", err)
		}
		digests = append(digests, d.Digest)
		p.wait(ctx, pause)
	}
	if digests[0] != digests[1] {
		return found("the workspace still changed after the result")
	}
	return nil
}

func cancelledLate(ctx context.Context, p *probe) error {
	s, stream, prompt, err := p.started(ctx, longLease, "say x")
	if err != nil {
		return err
	}
	if _, err := p.rest(stream, longLease); err != nil {
		return err
	}
	state, err := s.Cancel(ctx, harness.NewOperation(), prompt, "")
	if err != nil {
		return did("cancelling a prompt that is over", err)
	}
	st, err := s.Get(ctx)
	if err != nil {
		return did("GET of the session", err)
	}
	if state != harness.PromptSettled || st.Prompt == nil || st.Prompt.Outcome != harness.Completed {
		return found("the answer is %s, and the session says %+v", state, st.Prompt)
	}
	return nil
}

func cancelledForce(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	return p.cancel(ctx, s, "stubborn ticks.txt")
}
