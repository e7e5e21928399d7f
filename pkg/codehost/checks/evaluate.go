// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	"github.com/platform-ai/platform/pkg/codehost"
)

// Evaluate returns the verdict on a pull request from all checks of its head and from what its base branch requires.
//
// With required.Patterns, a required name that no check has is a pattern if it contains "*", for any characters including slashes, or "?",
// for one character. Other patterns of Gitea ([a-z], {a,b} and \) are compared as plain text, so a check that is required by one of them
// stays pending.
func Evaluate(p codehost.PullRequest, found []codehost.Check, required codehost.Required) Verdict {
	o := byOutcome(found, newDemand(required, found))
	v := Verdict{
		Passed:  len(o.passed),
		Failed:  len(o.failed),
		Pending: len(o.pending),
		Unknown: len(o.unknown),
		Absent:  len(o.absent),
		Details: slices.Concat(o.failed, o.pending, o.absent, o.unknown, o.passed),
	}
	if more := len(v.Details) - MaxDetails; more > 0 {
		v.Details, v.LeftOut = slices.Clone(v.Details[:MaxDetails]), more
	}
	v.Status = status(p, o, required)
	v.Waiting = v.Status == Pending
	v.Message = message(v.Status, p, o, required)
	return v
}

// status decides. The first case that holds wins.
func status(p codehost.PullRequest, o outcomes, required codehost.Required) Status {
	switch {
	case p.State == codehost.Merged:
		return Merged
	case p.State == codehost.Closed:
		return Closed
	case len(o.failed) > 0:
		return Failed
	case p.Mergeable == codehost.Conflicting, len(o.unknown) > 0:
		return Unknown
	case len(o.pending) > 0, len(o.absent) > 0, required.Any && len(o.passed) == 0:
		return Pending
	case required.Unknown:
		return Unknown
	case len(o.passed) == 0:
		return NoChecks
	}
	return Passed
}

// outcomes are the checks by their outcome.
type outcomes struct {
	failed, pending, absent, unknown, passed []Detail
	// skipped is how many of passed did not run.
	skipped int
}

func byOutcome(found []codehost.Check, d demand) outcomes {
	var o outcomes
	for _, c := range found {
		detail := Detail{Name: c.Name, State: c.State, Said: c.Said, URL: c.URL, Required: d.includes(c.Name)}
		switch c.State {
		case codehost.CheckFailed:
			o.failed = append(o.failed, detail)
		case codehost.CheckPending:
			o.pending = append(o.pending, detail)
		case codehost.CheckSkipped:
			o.skipped++
			o.passed = append(o.passed, detail)
		case codehost.CheckPassed:
			o.passed = append(o.passed, detail)
		default:
			o.unknown = append(o.unknown, detail)
		}
	}
	for _, name := range d.absent {
		o.absent = append(o.absent, Detail{Name: name, State: Absent, Required: true})
	}
	for _, group := range [][]Detail{o.failed, o.pending, o.unknown, o.passed} {
		slices.SortStableFunc(group, requiredFirst)
	}
	return o
}

func requiredFirst(a, b Detail) int {
	switch {
	case a.Required == b.Required:
		return 0
	case a.Required:
		return -1
	}
	return 1
}
