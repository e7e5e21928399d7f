// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks decides what the checks of a pull request say together. It is strict: what the code host has not said never counts as
// a pass.
//
//   - A required check that has not been reported is awaited. A check that failed makes the verdict failed, required or not.
//   - A pull request that conflicts with its base branch gets no new checks, because the code host cannot make the merge commit that it
//     would check. It never passes, and waiting does not help.
//   - A check with an outcome that the platform does not know makes the verdict unknown, and so does a host that does not say which
//     checks are required.
//   - Statuses and check runs of one name are different checks. All of them have to pass.
package checks

import "github.com/platform-ai/platform/pkg/codehost"

// Status is the verdict in one word.
type Status string

// Verdicts.
const (
	// Passed means that every check passed or was skipped, and no required one is missing.
	Passed Status = "passed"
	// Failed means that at least one check failed.
	Failed Status = "failed"
	// Pending means that a check has not ended, or that a required one has not been reported. It is the only status that may change
	// without a change of the pull request.
	Pending Status = "pending"
	// NoChecks means that nothing was reported and nothing is required.
	NoChecks Status = "no_checks"
	// Closed and Merged mean that the pull request is not open. What its checks say does not matter then.
	Closed Status = "closed"
	Merged Status = "merged"
	// Unknown means that there is no answer, and that waiting does not bring one. Message says why.
	Unknown Status = "unknown"
)

// MaxDetails is how many details a verdict has at most.
const MaxDetails = 200

// Absent is the state of a required check that has not been reported.
const Absent codehost.CheckState = "absent"

// Verdict is what the checks of a pull request say together.
type Verdict struct {
	Status Status
	// Waiting is set if the status may be another one later although nobody changes the pull request.
	Waiting bool
	// Passed, Failed, Pending and Unknown are how many of the reported checks had this outcome. Skipped ones count as passed.
	Passed, Failed, Pending, Unknown int
	// Absent is how many required checks have not been reported.
	Absent int
	// Details are the checks: failed, pending, absent, unknown and then all others, in each group the required ones first.
	Details []Detail
	// LeftOut is how many checks Details lacks because there are more than MaxDetails.
	LeftOut int
	// Message is a sentence that says why the status is as it is. Names of checks, which anybody may have chosen, are quoted in it.
	Message string
}

// Detail is one check.
type Detail struct {
	// Name is the name of the check. For an absent one it is the name that is required, which may be a pattern.
	Name string
	// State is the outcome, or Absent, and Said the word that the code host has for it.
	State codehost.CheckState
	Said  string
	// URL is its page for people; empty if there is none.
	URL string
	// Required is set if the base branch requires the check.
	Required bool
}
