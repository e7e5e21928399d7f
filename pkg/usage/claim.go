// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Claim returns the link of a task with a pull request of a repository, OWNER/REPOSITORY, that the task created, changed or reviewed. The
// evidence proves that. Nothing is known of the pull request's state yet.
func Claim(taskUID types.UID, repository string, number int64, origin v1alpha1.UsageLinkOrigin, evidence string) v1alpha1.UsageLinkSpec {
	return v1alpha1.UsageLinkSpec{
		TaskUID: taskUID, Repository: repository, Number: number, Origin: origin, EvidenceID: evidence,
		State: v1alpha1.UsageLinkUnknown, ReadinessReason: "the code host was not asked since the task worked on it",
	}
}

// ClaimOfPublication returns the link of a task with the pull request of its publication; false if there is none. One that was adopted was
// created by somebody else.
func ClaimOfPublication(t *v1alpha1.Task, repository string, r *v1alpha1.PullRequestReceipt, adopted bool) (v1alpha1.UsageLinkSpec, bool) {
	if repository == "" || r == nil || r.Number < 1 || t.Status.Delivery == nil {
		return v1alpha1.UsageLinkSpec{}, false
	}
	origin, evidence := v1alpha1.UsageLinkCreated, t.Status.Delivery.PublicationID
	if adopted {
		origin, evidence = v1alpha1.UsageLinkAssisted, ""
	}
	l := Claim(t.UID, repository, r.Number, origin, evidence)
	l.URL, l.HeadSHA, l.GitHubID = r.URL, r.HeadSHA, HostID(r.ID)
	l.ReadinessReason = "the code host was asked when the pull request was opened, and not since"
	// A receipt does not say when something was merged, so a merge is not recorded from it.
	if state := v1alpha1.UsageLinkState(r.State); state == v1alpha1.UsageLinkOpen || state == v1alpha1.UsageLinkClosed {
		l.State = state
	}
	return l, true
}

// HostID returns the identity that a code host gave a pull request; 0 if it is not a positive number.
func HostID(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
