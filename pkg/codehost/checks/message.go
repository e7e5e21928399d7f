// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost"
)

const (
	// maxQuoted is how many bytes of a text that somebody else wrote a message quotes.
	maxQuoted = 100
	// maxNamed is how many checks a message names.
	maxNamed = 3
)

// message says why the status is as it is, and what else a reader has to know about an open pull request.
func message(s Status, p codehost.PullRequest, o outcomes, required codehost.Required) string {
	parts := []string{reason(s, p, o, required)}
	switch {
	case s == Closed || s == Merged:
		return parts[0]
	case s == Failed && p.Mergeable == codehost.Conflicting:
		parts = append(parts, "the pull request conflicts with its base branch")
	case (s == Passed || s == NoChecks) && p.Mergeable != codehost.Clean:
		parts = append(parts, "the code host has not found out yet whether the pull request conflicts with its base branch")
	}
	if p.Draft {
		parts = append(parts, "the pull request is a draft")
	}
	return strings.Join(parts, "; ")
}

func reason(s Status, p codehost.PullRequest, o outcomes, required codehost.Required) string {
	switch s {
	case Merged:
		return "the pull request has been merged"
	case Closed:
		return "the pull request is closed"
	case Failed:
		return whatFailed(o.failed, required.Unknown)
	case Pending:
		return whatIsAwaited(o)
	case NoChecks:
		return "no checks are defined"
	case Passed:
		return whatPassed(o)
	default:
		return whatIsUnknown(p, o)
	}
}

func whatIsUnknown(p codehost.PullRequest, o outcomes) string {
	switch n := len(o.unknown); {
	case p.Mergeable == codehost.Conflicting:
		return "the pull request conflicts with its base branch, so the code host runs no checks; resolve the conflict first"
	case n == 1:
		return fmt.Sprintf("the code host says %s of check %s, which is not a known outcome", quote(o.unknown[0].Said), names(o.unknown))
	case n > 1:
		return fmt.Sprintf("%d checks have outcomes that are not known: %s", n, names(o.unknown))
	case len(o.passed) == 0:
		return "no check has been reported, and the code host does not say which checks are required"
	}
	return "all reported checks passed, but the code host does not say which checks are required"
}

func whatFailed(failed []Detail, requiredUnknown bool) string {
	required := 0
	for _, d := range failed {
		if d.Required {
			required++
		}
	}
	n := len(failed)
	switch {
	case n == 1 && required == 1:
		return fmt.Sprintf("required check %s failed", names(failed))
	case n == 1 && requiredUnknown:
		return fmt.Sprintf("check %s failed; the code host does not say whether it is required", names(failed))
	case n == 1:
		return fmt.Sprintf("check %s failed, which is not required", names(failed))
	case requiredUnknown:
		return fmt.Sprintf("%d checks failed: %s; the code host does not say which checks are required", n, names(failed))
	}
	return fmt.Sprintf("%d checks failed: %s; %d of them required", n, names(failed), required)
}

func whatIsAwaited(o outcomes) string {
	var parts []string
	switch n := len(o.pending); {
	case n == 1:
		parts = append(parts, fmt.Sprintf("waiting for check %s", names(o.pending)))
	case n > 1:
		parts = append(parts, fmt.Sprintf("waiting for %d checks", n))
	}
	switch n := len(o.absent); {
	case n == 1:
		parts = append(parts, fmt.Sprintf("required check %s has not been reported yet", names(o.absent)))
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d required checks have not been reported yet: %s", n, names(o.absent)))
	}
	if len(parts) == 0 {
		return "the base branch requires at least one check, and none has been reported yet"
	}
	return strings.Join(parts, "; ")
}

func whatPassed(o outcomes) string {
	switch n := len(o.passed); {
	case n == 1 && o.skipped == 1:
		return fmt.Sprintf("check %s was skipped, which counts as passed", names(o.passed))
	case n == 1:
		return fmt.Sprintf("check %s passed", names(o.passed))
	case o.skipped > 0:
		return fmt.Sprintf("all %d checks passed, %d of them because they were skipped", n, o.skipped)
	default:
		return fmt.Sprintf("all %d checks passed", n)
	}
}

// names lists checks, as far as a sentence can.
func names(details []Detail) string {
	var quoted []string
	for _, d := range details[:min(len(details), maxNamed)] {
		quoted = append(quoted, quote(d.Name))
	}
	list := strings.Join(quoted, ", ")
	if more := len(details) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

func quote(text string) string { return strconv.Quote(clip.Marked(text, maxQuoted)) }
