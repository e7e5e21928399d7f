// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks whether a runtime keeps to the protocol platform.harness.v2 (docs/harness-v2.md). Each check has a number,
// makes sessions of its own, and asks the runtime for one thing. Checks that cannot say anything because another one failed are not run,
// so that the report names what is broken and not what follows from it.
//
// The agent of the runtime must do what the lines "do: …" of a prompt say, which the documentation lists.
package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/harness"
)

// Options say which runtime is checked, and how.
type Options struct {
	Endpoint  *url.URL
	Transport http.RoundTripper
	// Token is the controller token, and Key the operation key.
	Token string
	Key   []byte
	// Skip are patterns of numbers, such as X5 or Q*.
	Skip []string
	// Slack is what the network and the machine may take beyond the times of the protocol.
	Slack time.Duration
	// Clock is required.
	Clock clock.WithDelayedExecution
	// Each, if not nil, is called with each result.
	Each func(Result)
}

// State is how a check ended.
type State string

// States of checks.
const (
	Passed        State = "passed"
	Failed        State = "failed"
	Skipped       State = "skipped"
	NotApplicable State = "notApplicable"
	NotRun        State = "notRun"
)

// Result is the end of one check.
type Result struct {
	Number string `json:"number"`
	State  State  `json:"state"`
	// Required is what the protocol says.
	Required string `json:"required"`
	// Happened is what was seen instead, or why nothing was.
	Happened string `json:"happened,omitempty"`
	// Advice is what to do.
	Advice string `json:"advice,omitempty"`
}

// Report is what all checks said.
type Report struct {
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	Instance string `json:"instance,omitempty"`
	Runtime  string `json:"runtime,omitempty"`
	// Conforms is set if no check failed.
	Conforms bool            `json:"conforms"`
	Counts   map[State]int   `json:"counts"`
	Results  []Result        `json:"results"`
	failed   map[string]bool // checks that failed or were not run
}

// ErrCannotRun is in the chain of the error for a runtime that cannot be checked at all.
var ErrCannotRun = errors.New("the runtime cannot be checked")

// Check describes one check.
type Check struct {
	Number, Required, Advice string
	// needs are checks without which this one says nothing.
	needs []string
	run   func(ctx context.Context, p *probe) error
}

// finding is what a check saw that must not be.
type finding struct{ happened string }

func (f *finding) Error() string { return f.happened }

func found(format string, args ...any) error { return &finding{fmt.Sprintf(format, args...)} }

// inapplicable is why a check says nothing about a runtime.
type inapplicable struct{ why string }

func (i *inapplicable) Error() string { return i.why }

// Checks returns all checks, in the order in which they are run.
func Checks() []Check {
	return slices.Concat(readings(), fences(), requests(), sessions(), prompts(), workspaces(), leases(), cancellations(), permissions(), drainings(), secrets())
}

// Run runs the checks. An error of ErrCannotRun says that there is no report.
func Run(ctx context.Context, o Options) (*Report, error) {
	for _, pattern := range o.Skip {
		if !slices.ContainsFunc(Checks(), func(c Check) bool { return matches(pattern, c.Number) }) {
			return nil, fmt.Errorf("%w: no check has a number like %q", ErrCannotRun, pattern)
		}
	}
	p := newProbe(o)
	if err := p.greet(ctx); err != nil {
		return nil, err
	}
	r := &Report{Protocol: harness.Protocol, Endpoint: o.Endpoint.String(), Counts: map[State]int{}, failed: map[string]bool{}}
	for _, c := range Checks() {
		result := r.check(ctx, p, c)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the checks did not come to their end: %w", context.Cause(ctx))
		}
		r.Results = append(r.Results, result)
		r.Counts[result.State]++
		r.failed[c.Number] = result.State == Failed || result.State == NotRun
		if o.Each != nil {
			o.Each(result)
		}
	}
	r.Conforms = r.Counts[Failed] == 0
	r.Instance, r.Runtime = p.instance, strings.TrimSpace(p.runtime)
	return r, nil
}

func matches(pattern, number string) bool {
	ok, err := path.Match(pattern, number)
	return ok && err == nil
}

// check runs one check, unless it is skipped or says nothing.
func (r *Report) check(ctx context.Context, p *probe, c Check) Result {
	result := Result{Number: c.Number, Required: c.Required}
	if slices.ContainsFunc(p.o.Skip, func(pattern string) bool { return matches(pattern, c.Number) }) {
		result.State = Skipped
		return result
	}
	for _, need := range c.needs {
		if r.failed[need] {
			result.State, result.Happened = NotRun, "it says nothing unless "+need+" passes"
			return result
		}
	}
	err := c.run(ctx, p)
	p.tidy(ctx)
	var not *inapplicable
	switch {
	case err == nil:
		result.State = Passed
	case errors.As(err, &not):
		result.State, result.Happened = NotApplicable, not.why
	default:
		result.State, result.Happened, result.Advice = Failed, err.Error(), c.Advice
		for _, secret := range harness.Spellings(p.o.Token, p.o.Key) { // a runtime may have repeated one
			result.Happened = strings.ReplaceAll(result.Happened, secret, "[a secret]")
		}
	}
	return result
}

// suffix makes names that nobody else uses.
func suffix() string { return strings.ToLower(rand.Text()[:10]) }
