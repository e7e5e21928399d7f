// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"slices"

	"github.com/platform-ai/platform/pkg/harness"
)

// permissions are the checks of permissions.
func permissions() []Check {
	return []Check{
		{Number: "Q1", Required: "What needs a permission is asked for with its arguments, and waits for the answer.", Advice: "Hold the agent's call until the answer comes. argumentsDigest covers the canonical form of call.arguments.", needs: []string{"P1"}, run: asks},
		{Number: "Q2", Required: "A call is made if it is allowed, and not if it is denied.", Advice: "Give the agent the answer that was decided.", needs: []string{"Q1"}, run: decided},
		{Number: "Q3", Required: "An answer for other arguments is refused.", Advice: "Compare argumentsDigest with the one that was shown: PermissionChanged.", needs: []string{"Q1"}, run: otherArguments},
		{Number: "Q4", Required: "A second, different answer is refused.", Advice: "The first answer holds: PermissionSettled.", needs: []string{"Q1"}, run: secondAnswer},
		{Number: "Q5", Required: "A permission that is open when the prompt ends is settled as cancelled, and later answers are refused.", Advice: "Write permissionSettled before the result.", needs: []string{"Q1", "X2"}, run: lateAnswer},
	}
}

// asked is a prompt whose agent asks for a permission.
type asked struct {
	s          *session
	prompt     string
	stream     *harness.Stream
	permission *harness.Permission
}

// ask starts a prompt whose agent asks for a permission, and returns when it has asked.
func (p *probe) ask(ctx context.Context, then ...string) (*asked, error) {
	s, err := p.empty(ctx)
	if err != nil {
		return nil, err
	}
	stream, prompt, err := s.start(ctx, longLease, append([]string{"permit execute remove everything"}, then...)...)
	if err != nil {
		return nil, err
	}
	a := &asked{s: s, prompt: prompt, stream: stream}
	timer := p.o.Clock.AfterFunc(longLease+p.o.Slack, func() { _ = stream.Close() })
	defer timer.Stop()
	for a.permission == nil {
		e, err := stream.Next()
		if err != nil {
			_ = stream.Close()
			return nil, found("the agent was told to ask for a permission, and there is no event permissionRequested: %v", err)
		}
		a.permission = e.Permission
	}
	return a, nil
}

func (a *asked) answer(ctx context.Context, d harness.Decision, digest string) error {
	return a.s.Answer(ctx, harness.NewOperation(), a.prompt, a.permission.ID, harness.PermissionAnswer{Decision: d, ArgumentsDigest: digest})
}

func asks(ctx context.Context, p *probe) error {
	a, err := p.ask(ctx)
	if err != nil {
		return err
	}
	type next struct {
		e   *harness.Event
		err error
	}
	came := make(chan next, 1)
	go func() {
		e, err := a.stream.Next()
		came <- next{e, err}
	}()
	select {
	case n := <-came:
		_ = a.stream.Close()
		return found("the agent did not wait for the answer: there is %s, %v", shown([]*harness.Event{n.e}), n.err)
	case <-p.o.Clock.After(pause):
	}
	if err := a.answer(ctx, harness.Allow, a.permission.ArgumentsDigest); err != nil {
		_ = a.stream.Close()
		<-came
		return did("allowing the call", err)
	}
	n := <-came
	if n.err != nil || n.e.Type != harness.EventPermissionSettled {
		_ = a.stream.Close()
		return found("after the answer there must be permissionSettled, and not %s, %v", shown([]*harness.Event{n.e}), n.err)
	}
	events, err := p.rest(a.stream, longLease)
	if err != nil {
		return err
	}
	return ended(events, harness.Completed)
}

func decided(ctx context.Context, p *probe) error {
	for decision, want := range map[harness.Decision]string{harness.Allow: "yes", harness.Deny: "no"} {
		a, err := p.ask(ctx)
		if err != nil {
			return err
		}
		if err := a.answer(ctx, decision, a.permission.ArgumentsDigest); err != nil {
			_ = a.stream.Close()
			return did("answering "+string(decision), err)
		}
		events, err := p.rest(a.stream, longLease)
		if err != nil {
			return err
		}
		if got := said(events); got != want {
			return found("the answer was %s, and the agent understood %.40q; it must say %q", decision, got, want)
		}
	}
	return nil
}

func otherArguments(ctx context.Context, p *probe) error {
	a, err := p.ask(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.stream.Close() }()
	other, _ := harness.ArgumentsDigest([]byte(`{"command":"something else"}`)) // it is JSON
	if err := refused("allowing a call with the digest of other arguments", a.answer(ctx, harness.Allow, other), harness.PermissionChanged); err != nil {
		return err
	}
	return did("allowing it with its own", a.answer(ctx, harness.Allow, a.permission.ArgumentsDigest))
}

func secondAnswer(ctx context.Context, p *probe) error {
	a, err := p.ask(ctx, "await-cancel")
	if err != nil {
		return err
	}
	defer func() { _ = a.stream.Close() }()
	if err := did("allowing a call", a.answer(ctx, harness.Allow, a.permission.ArgumentsDigest)); err != nil {
		return err
	}
	return refused("denying it afterwards", a.answer(ctx, harness.Deny, a.permission.ArgumentsDigest), harness.PermissionSettled)
}

func lateAnswer(ctx context.Context, p *probe) error {
	a, err := p.ask(ctx, "await-cancel")
	if err != nil {
		return err
	}
	if _, err := a.s.Cancel(ctx, harness.NewOperation(), a.prompt, ""); err != nil {
		_ = a.stream.Close()
		return did("cancelling the prompt", err)
	}
	events, err := p.rest(a.stream, longLease) // which checks that the permission is settled before the result
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(events, func(e *harness.Event) bool {
		return e.Type == harness.EventPermissionSettled && e.Permission.Decision == harness.Withdrawn
	}) {
		return found("the permission was not settled as cancelled: %s", shown(events))
	}
	return refused("allowing the call after the end of the prompt", a.answer(ctx, harness.Allow, a.permission.ArgumentsDigest), harness.PermissionSettled)
}
