// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/platform-ai/platform/pkg/codehost"

// Reasons why a pull request is not ready to be merged.
const (
	NotOpen     = "the pull request is closed"
	WasMerged   = "the pull request has been merged"
	IsDraft     = "the pull request is a draft"
	Conflicts   = "the pull request conflicts with its base branch"
	NotYetKnown = "the code host has not found out yet whether the pull request can be merged"
	Outdated    = "the base branch has commits that the pull request lacks, and its rules want them in it"
	CheckFailed = "a check of the pull request has not passed"
)

// Unready returns why a pull request is not ready to be merged, as far as the pull request itself says it; empty if it says nothing.
func Unready(p codehost.PullRequest) string {
	switch {
	case p.State == codehost.Merged:
		return WasMerged
	case p.State != codehost.Open:
		return NotOpen
	case p.Draft:
		return IsDraft
	case p.Mergeable == codehost.Conflicting:
		return Conflicts
	case p.Mergeable != codehost.Clean:
		return NotYetKnown
	}
	return ""
}
