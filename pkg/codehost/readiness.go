// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

// Readiness is what a pull request lacks to be merged. It says nothing of who may merge it, nor of the ways of merging that are allowed.
type Readiness struct {
	// PullRequest is the pull request as it was looked at. All else is said of its HeadSHA alone.
	PullRequest PullRequest
	// Ready is set if the pull request is open, is not a draft, does not conflict with its base branch, has no check that has not
	// passed, and has the approvals that its base branch requires. What the host does not show counts as lacking.
	Ready bool
	// Reason is what the pull request lacks, in words of the platform; empty if it is ready.
	Reason string
}
