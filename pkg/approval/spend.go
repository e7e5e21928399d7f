// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// Answer is how a request ended, as the agent that asked sees it.
type Answer struct {
	ApprovalID string
	// State is never pending.
	State v1alpha1.ApprovalState
	// Reason is the deciding person's own words.
	Reason string
}

// Unspent are approvals that an agent obtained before it makes the calls that they
// are for. An approval is spent by one call with exactly its arguments; the next
// call, even with equal arguments, needs one of its own. The zero value is empty.
type Unspent struct{ answers map[call][]Answer }

// call is a call as people approve it.
type call struct{ tool, argsDigest string }

// Keep keeps an approval for a later call. An answer that does not approve is not kept.
func (u *Unspent) Keep(tool, argsDigest string, a Answer) {
	if a.State != v1alpha1.ApprovalApproved {
		return
	}
	if u.answers == nil {
		u.answers = map[call][]Answer{}
	}
	c := call{tool, argsDigest}
	u.answers[c] = append(u.answers[c], a)
}

// Spend takes the oldest approval that is for a call, and reports whether there is one.
func (u *Unspent) Spend(tool, argsDigest string) (Answer, bool) {
	c := call{tool, argsDigest}
	ready := u.answers[c]
	if len(ready) == 0 {
		return Answer{}, false
	}
	u.answers[c] = ready[1:]
	return ready[0], true
}
