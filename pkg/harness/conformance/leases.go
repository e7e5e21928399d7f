// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
)

// leases are the checks of leases.
func leases() []Check {
	return []Check{
		{Number: "L1", Required: "A lease outside of minPromptLeaseMillis to maxPromptLeaseMillis is refused.", Advice: "Check it at the start and at each renewal.", needs: []string{"P1"}, run: leaseRange},
		{Number: "L2", Required: "A renewed lease keeps a prompt running.", Advice: "Count each lease from the moment when the renewal was received.", needs: []string{"P1"}, run: renewed},
		{Number: "L3", Required: "A renewal whose sequence is not higher is refused.", Advice: "Keep the highest sequence; the start has 1.", needs: []string{"L2"}, run: leaseOrder},
		{Number: "L4", Required: "A prompt whose lease is not renewed ends with leaseLost, not before the lease ends and within one more.", Advice: "Set a timer at the start and at each renewal, and stop the agent when it fires.", needs: []string{"P1"}, run: leaseLost},
		{Number: "L5", Required: "After a lost lease the session is fenced: renewals and prompts are refused.", Advice: "Set the state before the result is written.", needs: []string{"L4"}, run: fencedOff},
		{Number: "L6", Required: "After a lost lease nothing goes on, even if the agent does not stop by itself.", Advice: "End the agent with all of its processes before the result is written.", needs: []string{"L4", "W2"}, run: lostForce},
	}
}

func leaseRange(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	for _, lease := range []int64{*p.caps.Limits.MinPromptLeaseMillis - 1, *p.caps.Limits.MaxPromptLeaseMillis + 1} {
		stream, err := s.Start(ctx, harness.NewOperation(), p.name(), harness.PromptSpec{Texts: []string{"do: say x"}, LeaseMillis: lease})
		if err == nil {
			_ = stream.Close()
		}
		if err := refused("a lease outside of the limits", err, harness.BadRequest); err != nil {
			return err
		}
	}
	return nil
}

func renewed(ctx context.Context, p *probe) error {
	s, stream, prompt, err := p.started(ctx, shortLease, "await-cancel")
	if err != nil {
		return err
	}
	lease := p.lease(shortLease)
	for sequence := uint64(2); sequence < 6; sequence++ {
		p.wait(ctx, millis(lease)/2)
		if err := s.Renew(ctx, harness.NewOperation(), prompt, harness.Lease{Sequence: sequence, LeaseMillis: lease}); err != nil {
			_ = stream.Close()
			return did("renewing a lease after half of it", err)
		}
	}
	return p.stop(ctx, s, prompt, stream)
}

func leaseOrder(ctx context.Context, p *probe) error {
	s, stream, prompt, err := p.started(ctx, longLease, "await-cancel")
	if err != nil {
		return err
	}
	lease := p.lease(longLease)
	err = did("renewing a lease", s.Renew(ctx, harness.NewOperation(), prompt, harness.Lease{Sequence: 5, LeaseMillis: lease}))
	for _, sequence := range []uint64{5, 4} {
		if err == nil {
			err = refused("a renewal with a sequence that is not higher", s.Renew(ctx, harness.NewOperation(), prompt, harness.Lease{Sequence: sequence, LeaseMillis: lease}), harness.LeaseSequence)
		}
	}
	if err != nil {
		_ = stream.Close()
		return err
	}
	return p.stop(ctx, s, prompt, stream)
}

// lose starts a prompt, renews nothing, and returns how it ended.
func (p *probe) lose(ctx context.Context, s *session, steps ...string) (prompt string, took time.Duration, err error) {
	began := p.o.Clock.Now()
	stream, prompt, err := s.start(ctx, shortLease, steps...)
	if err != nil {
		return "", 0, err
	}
	events, err := p.rest(stream, 2*millis(p.lease(shortLease)))
	if err != nil {
		return "", 0, err
	}
	return prompt, p.o.Clock.Now().Sub(began), ended(events, harness.LostLease)
}

func leaseLost(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	_, took, err := p.lose(ctx, s, "await-cancel")
	if err == nil && took < millis(p.lease(shortLease)) {
		return found("the prompt ended %s after its start; its lease was %s", took, millis(p.lease(shortLease)))
	}
	return err
}

func fencedOff(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	prompt, _, err := p.lose(ctx, s, "await-cancel")
	if err != nil {
		return err
	}
	st, err := s.Get(ctx)
	if err != nil {
		return did("GET of the session", err)
	}
	if st.State != harness.SessionFencedOff {
		return found("the session is %s; it must be fenced", st.State)
	}
	err = s.Renew(ctx, harness.NewOperation(), prompt, harness.Lease{Sequence: 2, LeaseMillis: p.lease(longLease)})
	if err := refused("a renewal", err, harness.LeaseLost, harness.SessionFenced); err != nil {
		return err
	}
	stream, err := s.Start(ctx, harness.NewOperation(), p.name(), s.spec(longLease, "say x"))
	if err == nil {
		_ = stream.Close()
	}
	return refused("another prompt", err, harness.SessionFenced)
}

func lostForce(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	if _, _, err := p.lose(ctx, s, "stubborn ticks.txt"); err != nil {
		return err
	}
	return p.still(ctx, s)
}
