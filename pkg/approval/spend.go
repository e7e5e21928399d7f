// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// Answer is the result of a request, as the requesting agent sees it.
type Answer struct {
	ApprovalID string
	// State is never pending.
	State v1alpha1.ApprovalState
	// Reason is the deciding person's own words.
	Reason string
}

// Unspent holds approvals that an agent obtained before it makes the calls that they are for. One call with
// exactly the approved arguments uses up an approval. The next call, even with equal arguments, needs its
// own. The zero value is empty.
type Unspent struct{ answers map[call][]Answer }

// call identifies a call as people approve it.
type call struct{ tool, argsDigest string }

// Keep stores an approval for a later call. It ignores an answer that does not approve.
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

// Spend removes and returns the oldest approval for a call, and reports whether there is one.
func (u *Unspent) Spend(tool, argsDigest string) (Answer, bool) {
	c := call{tool, argsDigest}
	ready := u.answers[c]
	if len(ready) == 0 {
		return Answer{}, false
	}
	u.answers[c] = ready[1:]
	return ready[0], true
}
