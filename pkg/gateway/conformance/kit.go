// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks whether an adapter keeps to the protocol platform.gateway.v1 (docs/gateway-v1.md). Each check has a number and
// asks the adapter for one thing, with deliveries of its own. A check that cannot say anything because another one failed is skipped, so that
// the report names what is broken and not what follows from it.
//
// The kit behaves as the platform does: it waits 15 seconds for an answer, follows no redirect, and repeats a delivery with the same
// idempotencyId when the answer is retryable. What it sees of the chat is the providerMessageId; a caller that can look into the chat gives
// Options.Count, and the kit then also checks that what it delivered is there once.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Options say which adapter is checked, and how. URL, Token, AccountID and ContextID are required.
type Options struct {
	// URL is the address of the adapter, without /v1.
	URL string
	// Token is the bearer token of the platform's requests.
	Token string
	// AccountID, ContextID, ThreadID and ReplyTarget are where the kit may post.
	AccountID, ContextID, ThreadID, ReplyTarget string
	// Client carries the requests; nil means one of the kit's own. Its timeout and its rule for redirects are not used.
	Client *http.Client
	// Restart ends the adapter without a warning and starts it with the same disk. It may return before the adapter answers again. Without
	// it the checks that need a restart are skipped.
	Restart func(ctx context.Context) error
	// Count, if not nil, returns how many messages of the chat have the marker in their text.
	Count func(ctx context.Context, marker string) (int, error)
	// Patience is how long a delivery is repeated, and a restarted adapter waited for; 0 means two minutes.
	Patience time.Duration
	// Clock is for waiting between repetitions; nil means the real one.
	Clock clock.WithDelayedExecution
	// Each, if not nil, is called with each result.
	Each func(Result)
}

// State is how a check ended.
type State string

// States of checks.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Result is the end of one check.
type Result struct {
	Number string `json:"number"`
	State  State  `json:"state"`
	// Required is what the protocol says.
	Required string `json:"required"`
	// Reason is what was seen instead, or why the check was skipped.
	Reason string `json:"reason,omitempty"`
	// Advice is what to do; of a check that failed.
	Advice string `json:"advice,omitempty"`
}

// Report is what all checks said.
type Report struct {
	Protocol string `json:"protocol"`
	URL      string `json:"url"`
	// Adapter is the name and the version that the adapter gives itself.
	Adapter string `json:"adapter,omitempty"`
	// Conforms is set if all checks came to their end and none failed. Some may have been skipped.
	Conforms bool          `json:"conforms"`
	Counts   map[State]int `json:"counts"`
	Results  []Result      `json:"results"`
}

// Check describes one check.
type Check struct {
	Number, Required, Advice string
	// needs are checks without which this one says nothing.
	needs []string
	run   func(ctx context.Context, p *probe) error
}

// Checks returns all checks, in the order in which they are run.
func Checks() []Check {
	return slices.Concat(readings(), refusals(), deliveries(), failures(), answers())
}

// skip is why a check says nothing about an adapter.
type skip struct{ why string }

func (s *skip) Error() string { return s.why }

// Run runs the checks. When the context ends, those that are left are skipped.
func Run(ctx context.Context, o Options) Report {
	r := Report{Protocol: protocol.Version, URL: o.URL, Counts: map[State]int{}}
	p := newProbe(o)
	silent := map[string]bool{} // checks that others cannot build on
	for _, c := range Checks() {
		result := p.check(ctx, c, silent)
		silent[c.Number] = result.State != Passed
		r.Results = append(r.Results, result)
		r.Counts[result.State]++
		if o.Each != nil {
			o.Each(result)
		}
	}
	r.Adapter = strings.TrimSpace(p.caps.AdapterName + " " + p.caps.AdapterVersion)
	r.Conforms = r.Counts[Failed] == 0 && ctx.Err() == nil
	return r
}

// check runs one check, unless it would say nothing.
func (p *probe) check(ctx context.Context, c Check, silent map[string]bool) Result {
	result := Result{Number: c.Number, Required: c.Required}
	for _, need := range c.needs {
		if silent[need] {
			result.State, result.Reason = Skipped, "it says nothing unless "+need+" passes"
			return result
		}
	}
	err := context.Cause(ctx)
	if err == nil {
		err = c.run(ctx, p)
	}
	var not *skip
	switch {
	case ctx.Err() != nil:
		result.State, result.Reason = Skipped, fmt.Sprintf("the checks were ended: %v", context.Cause(ctx))
	case err == nil:
		result.State = Passed
	case errors.As(err, &not):
		result.State, result.Reason = Skipped, not.why
	default:
		result.State, result.Reason, result.Advice = Failed, err.Error(), c.Advice
		if p.o.Token != "" { // the adapter may have repeated it
			result.Reason = strings.ReplaceAll(result.Reason, p.o.Token, "[the token]")
		}
	}
	return result
}

// Text returns the report for people: a line for each check, and lines below it that say why.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s: %s\n", r.Protocol, r.URL, r.Adapter)
	for _, result := range r.Results {
		b.WriteString(result.Text())
	}
	verdict := "keeps to"
	if !r.Conforms {
		verdict = "does not keep to"
		if r.Counts[Failed] == 0 {
			verdict = "was not checked completely for"
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped: the adapter %s %s\n", r.Counts[Passed], r.Counts[Failed], r.Counts[Skipped], verdict, r.Protocol)
	return b.String()
}

// Text returns the result for people.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s  %-2s  %s\n", r.State, r.Number, r.Required)
	for _, line := range []string{r.Reason, r.Advice} {
		if line != "" {
			fmt.Fprintf(&b, "             %s\n", line)
		}
	}
	return b.String()
}
