// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"

	"github.com/platform-ai/platform/pkg/harness"
)

// drainings are the checks of draining. They come last, because a runtime that stays so cannot be checked further.
func drainings() []Check {
	return []Check{
		{Number: "D1", Required: "While draining, new sessions and prompts are refused.", Advice: "Answer 503 Draining. A runtime without supportsDrain answers NotSupported.", needs: []string{"P1"}, run: draining},
		{Number: "D3", Required: "The end of draining is the end of its refusals.", Advice: "{\"drain\": false} makes the runtime serve again.", needs: []string{"D1"}, run: drained},
		{Number: "D2", Required: "While draining, prompts that are running go on.", Advice: "Draining is no cancellation: answer permissions and renewals as before.", needs: []string{"D3", "Q1"}, run: finishing},
	}
}

// drain drains, calls f, and ends draining.
func (p *probe) drain(ctx context.Context, f func() error) error {
	if !p.caps.SupportsDrain {
		_, err := p.client.Drain(ctx, harness.NewOperation(), true)
		if err := refused("PUT /v2/drain", err, harness.NotSupported); err != nil {
			return err
		}
		return &inapplicable{"the runtime does not support draining"}
	}
	d, err := p.client.Drain(ctx, harness.NewOperation(), true)
	if err != nil {
		return did("PUT /v2/drain", err)
	}
	if err = f(); err == nil && d.Lifecycle != harness.DrainingDown {
		err = found("the answer to PUT /v2/drain says %s", d.Lifecycle)
	}
	if _, undone := p.client.Drain(ctx, harness.NewOperation(), false); err == nil {
		err = did("the end of draining", undone)
	}
	return err
}

func draining(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	return p.drain(ctx, func() error {
		_, err := p.unmade(1).Create(ctx, harness.NewOperation(), harness.SessionSpec{})
		if err := refused("creating a session while draining", err, harness.Draining); err != nil {
			return err
		}
		stream, err := s.Start(ctx, harness.NewOperation(), p.name(), s.spec(longLease, "say x"))
		if err == nil {
			_ = stream.Close()
		}
		return refused("starting a prompt while draining", err, harness.Draining)
	})
}

func finishing(ctx context.Context, p *probe) error {
	a, err := p.ask(ctx)
	if err != nil {
		return err
	}
	return p.drain(ctx, func() error {
		if err := a.answer(ctx, harness.Allow, a.permission.ArgumentsDigest); err != nil {
			_ = a.stream.Close()
			return did("answering a permission while draining", err)
		}
		events, err := p.rest(a.stream, longLease)
		if err != nil {
			return err
		}
		return ended(events, harness.Completed)
	})
}

func drained(ctx context.Context, p *probe) error {
	if err := p.drain(ctx, func() error { return nil }); err != nil {
		return err
	}
	st, err := p.client.Status(ctx)
	if err != nil {
		return did("GET /v2/status", err)
	}
	if st.Lifecycle != harness.Serving {
		return found("after the end of draining the status says %s", st.Lifecycle)
	}
	_, err = p.empty(ctx)
	return err
}
