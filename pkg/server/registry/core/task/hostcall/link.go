// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/usage"
)

// link records which pull request a confirmed call was about. A pull request that was opened belongs to the task whose branch it is of, and
// everything else to the task that called. If that fails, the worker repeats its call, which finds what it has written.
func (s *Calls) link(ctx context.Context, own, of *v1alpha1.Task, a *hostaccess.Answer) error {
	if s.o.Claim == nil {
		return nil
	}
	if l, ok := usage.ClaimOfPublication(of, a.Repository, a.Receipt, a.Adopted); ok {
		return s.o.Claim(ctx, of.Namespace, l)
	}
	w := a.Worked
	if w == nil {
		return nil
	}
	origin := v1alpha1.UsageLinkAssisted
	if w.Reviewed {
		origin = v1alpha1.UsageLinkReviewOnly
	}
	l := usage.Claim(own.UID, a.Repository, w.Number, origin, w.Evidence)
	l.URL, l.HeadSHA, l.GitHubID = w.URL, w.HeadSHA, usage.HostID(w.ID)
	switch w.State {
	case codehost.Open, codehost.Closed:
		l.State = v1alpha1.UsageLinkState(w.State)
	case codehost.Merged:
		l.State, l.ReadinessReason = v1alpha1.UsageLinkMerged, ""
	}
	return s.o.Claim(ctx, own.Namespace, l)
}
