// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

// Breaks returns the ways in which a Runtime can break the protocol, one requirement each.
func Breaks() []string {
	return []string{
		"health-without-state", "limits-missing", "status-without-lifecycle", "status-without-sessions", "changing-instance", "plain-errors",
		"open-status", "any-token", "no-capability-needed", "any-capability", "expired-capability", "reused-capability", "takes-new-credentials", "token-in-environment", "token-in-errors",
		"any-instance", "any-digest", "does-again", "changed-digest", "stale-epoch", "stale-epoch-repeated", "early-epoch", "any-generation",
		"forgets-generation", "digest-of-bytes",
		"unknown-members", "fence-optional", "any-length", "twice",
		"session-without-generation", "stays-after-deletion", "deletion-keeps-agent", "any-profile", "no-session-limit",
		"gap-in-numbers", "no-result", "two-results", "long-line", "long-result", "prompt-again", "resume-from-start", "two-prompts", "fails-silently", "no-prompt-limit", "unknown-event",
		"any-lease", "no-renewal", "any-sequence", "lost-lease-ignored", "lost-lease-usable", "lost-lease-goes-on",
		"cancel-ignored", "cancel-fails", "cancel-fences", "cancel-goes-on", "cancel-changes-outcome", "cancel-polite",
		"asks-late", "allows-denied", "any-arguments", "changes-answer", "late-answer",
		"no-files", "delta-of-nothing", "delta-digest", "delta-moves", "delta-while-running", "delta-any-size", "shared-files", "finalizing-ignored", "takes-anything",
		"drain-ignored", "drain-kills", "drain-for-ever",
	}
}
