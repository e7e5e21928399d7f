// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"strings"

	"github.com/platform-ai/platform/pkg/harness"
)

// prompts are the checks of prompts and their streams.
func prompts() []Check {
	return []Check{
		{Number: "P1", Required: "A stream begins with accepted, counts without gaps, and ends with one result.", Advice: "Each line is one JSON object with the members of its type. Write the result last and close the stream.", needs: []string{"S1"}, run: streamed},
		{Number: "S3", Required: "The deletion of a session ends its prompt, with the outcome cancelled.", Advice: "End the agent and write the result; readers may still be there.", needs: []string{"S2", "P1"}, run: deletedMeanwhile},
		{Number: "P2", Required: "No line is longer than maxEventLineBytes, and a long text arrives whole.", Advice: "Divide texts into several events with the same messageID. A byte may take six in JSON.", needs: []string{"P1"}, run: longText},
		{Number: "P3", Required: "The line of the result is not longer than maxTerminalResultBytes.", Advice: "Cut result.text and set truncated.", needs: []string{"P2"}, run: longResult},
		{Number: "P5", Required: "GET of a prompt with after continues after that event.", Advice: "Keep at least maxBufferedEvents events until the next prompt.", needs: []string{"P1"}, run: resumed},
		{Number: "P6", Required: "A second prompt of a session is refused while one is running.", Advice: "Answer Busy.", needs: []string{"P1"}, run: secondPrompt},
		{Number: "P7", Required: "If the agent fails, the outcome is failed, with a reason.", Advice: "A turn that the agent ended with an error is not completed.", needs: []string{"P1"}, run: failing},
		{Number: "P8", Required: "At most maxConcurrentPrompts prompts are running.", Advice: "Refuse more with 429 LimitReached.", needs: []string{"P1"}, run: mostPrompts},
		{Number: "P9", Required: "What an agent does becomes events of the types of the protocol.", Advice: "See the table of types. What has no type belongs into no event.", needs: []string{"P1"}, run: allTypes},
	}
}

func streamed(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	events, err := s.completed(ctx, "say hello there")
	if err != nil {
		return err
	}
	if text := said(events); !strings.Contains(text, "hello there") {
		return found("the agent was told to say \"hello there\", and said %.100q: is it one that does what lines \"do: …\" say?", text)
	}
	return nil
}

func longText(ctx context.Context, p *probe) error {
	size := min(3**p.caps.Limits.MaxEventLineBytes, *p.caps.Limits.MaxRequestBytes/2)
	text := strings.Repeat("0123456789é\"", int(size)/13+1)
	if size < *p.caps.Limits.MaxEventLineBytes {
		return &inapplicable{"a request cannot be as long as an event"}
	}
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	events, err := s.completed(ctx, "say "+text, "say end")
	if err != nil {
		return err
	}
	if got := said(events); got != text+"end" && got != text+"\nend" {
		return found("the agent said %d bytes, of which %d arrived, or they differ", len(text)+3, len(got))
	}
	return nil
}

func longResult(ctx context.Context, p *probe) error {
	size := *p.caps.Limits.MaxTerminalResultBytes + 100
	if size > *p.caps.Limits.MaxRequestBytes/2 {
		return &inapplicable{"a request cannot be as long as a result"}
	}
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	_, err = s.completed(ctx, "say "+strings.Repeat("x", int(size)))
	return err // the stream checks the length of the result
}

func startedTwice(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	operation, prompt := harness.NewOperation(), p.name()
	// An agent that works again would wait for another cancellation.
	spec := s.spec(longLease, "say once", "await-cancel")
	var both [2][]*harness.Event
	for i := range both {
		stream, err := s.Start(ctx, operation, prompt, spec)
		if err != nil {
			return did("starting a prompt", err)
		}
		if i == 0 {
			if _, err := s.Cancel(ctx, harness.NewOperation(), prompt, ""); err != nil {
				_ = stream.Close()
				return did("cancelling a prompt", err)
			}
		}
		if both[i], err = p.rest(stream, shortLease); err != nil {
			return err
		}
	}
	if a, b := shown(both[0]), shown(both[1]); a != b || said(both[0]) != said(both[1]) {
		return found("the first stream has %s, the second %s", a, b)
	}
	return nil
}

func resumed(ctx context.Context, p *probe) error {
	s, stream, prompt, err := p.started(ctx, longLease, "say one", "think two", "say three")
	if err != nil {
		return err
	}
	all, err := p.rest(stream, longLease)
	if err != nil {
		return err
	}
	for _, after := range []int{0, 2, len(all)} {
		stream, err := s.Resume(ctx, prompt, uint64(after))
		if err != nil {
			return did("GET of the prompt", err)
		}
		if after == len(all) { // the result was before: the stream is empty
			_ = stream.Close()
			continue
		}
		rest, err := p.rest(stream, longLease)
		if err != nil {
			return err
		}
		if want := shown(all[after:]); shown(rest) != want {
			return found("after event %d there are %s; they must be %s", after, shown(rest), want)
		}
	}
	return nil
}

func secondPrompt(ctx context.Context, p *probe) error {
	s, stream, prompt, err := p.started(ctx, longLease, "await-cancel")
	if err != nil {
		return err
	}
	second, _, err := s.start(ctx, longLease, "say x")
	if err == nil {
		_ = second.Close()
		_ = stream.Close()
		return found("a second prompt was accepted while one was running")
	}
	_, again := s.Start(ctx, harness.NewOperation(), p.name(), s.spec(longLease, "say x"))
	if err := refused("a second prompt", again, harness.Busy); err != nil {
		_ = stream.Close()
		return err
	}
	return p.stop(ctx, s, prompt, stream)
}

// stop cancels a prompt and waits for its end, whatever that is.
func (p *probe) stop(ctx context.Context, s *session, prompt string, stream *harness.Stream) error {
	if _, err := s.Cancel(ctx, harness.NewOperation(), prompt, ""); err != nil {
		_ = stream.Close()
		return did("cancelling a prompt", err)
	}
	_, err := p.rest(stream, millis(p.lease(longLease)))
	return err
}

func failing(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	events, err := s.prompt(ctx, "error -32000")
	if err != nil {
		return err
	}
	return ended(events, harness.Failed)
}

func mostPrompts(ctx context.Context, p *probe) error {
	most := *p.caps.Limits.MaxConcurrentPrompts
	if most > mostTried || *p.caps.Limits.MaxResidentSessions <= most {
		return &inapplicable{"maxConcurrentPrompts is too large to be tried, or there can be no more sessions than prompts"}
	}
	var streams []*harness.Stream
	defer func() {
		for _, s := range streams {
			_ = s.Close()
		}
	}()
	for range most {
		s, err := p.empty(ctx)
		if err != nil {
			return err
		}
		stream, _, err := s.start(ctx, longLease, "await-cancel")
		if err != nil {
			return err
		}
		streams = append(streams, stream)
	}
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	stream, err := s.Start(ctx, harness.NewOperation(), p.name(), s.spec(longLease, "await-cancel"))
	if err == nil {
		streams = append(streams, stream)
	}
	return refused("one more prompt than maxConcurrentPrompts", err, harness.LimitReached)
}

func allTypes(ctx context.Context, p *probe) error {
	s, err := p.empty(ctx)
	if err != nil {
		return err
	}
	events, err := s.completed(ctx, "think hm", "plan a,b+", "tool read it", "usage", "shell env", "say end")
	if err != nil {
		return err
	}
	have := map[harness.EventType]bool{}
	for _, e := range events {
		have[e.Type] = true
	}
	for _, want := range []harness.EventType{harness.EventThought, harness.EventPlanChanged, harness.EventCallStarted, harness.EventCallEnded, harness.EventContextChanged, harness.EventMessage} {
		if !have[want] {
			return found("there is no event of type %s, but %s", want, shown(events))
		}
	}
	return nil
}
