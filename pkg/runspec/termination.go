// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

// Exit codes of the worker.
const (
	// ExitSucceeded means that the work is done and the API accepted the result.
	ExitSucceeded = 0
	// ExitFailed means that the work failed. The Termination says why.
	ExitFailed = 1
	// ExitUsage means that the worker was started with an invalid configuration.
	ExitUsage = 2
	// ExitUnavailable means that the API or the model could not be reached. Another attempt may succeed.
	ExitUnavailable = 75
)

// Termination is what the worker writes to EnvTerminationLog, as JSON of at most 4096 bytes.
type Termination struct {
	// Reason is one CamelCase word, for use as the reason of a condition.
	Reason string `json:"reason"`
	// Message is redacted text for people.
	Message string `json:"message,omitempty"`
	// ExitCode is the code the worker exits with.
	ExitCode int `json:"exitCode"`
	// Ended is set for work that failed before the worker was asked to stop. A deadline that passed while the failure was
	// being delivered is then not the reason.
	Ended bool `json:"ended,omitempty"`
}
