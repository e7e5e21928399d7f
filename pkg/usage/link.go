// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Origin is how a pull request came to be linked with a task.
type Origin string

// Origins.
const (
	// OriginCreated: the task published the pull request, and the receipt of its creation is retained.
	OriginCreated Origin = "created"
	// OriginAssisted: the task worked on a pull request that somebody else created, or whose receipt is not retained.
	OriginAssisted Origin = "assisted"
	// OriginReviewOnly: the task only reviewed it.
	OriginReviewOnly Origin = "review_only"
)

// Proves reports whether an origin claims more than another one: a creation more than assistance, and that more than a review.
func (o Origin) Proves(other Origin) bool { return o.rank() > other.rank() }

func (o Origin) rank() int {
	return slices.Index([]Origin{OriginReviewOnly, OriginAssisted, OriginCreated}, o)
}

// PRState is the state of a pull request at the code host.
type PRState string

// States of pull requests.
const (
	PROpen    PRState = "open"
	PRClosed  PRState = "closed"
	PRMerged  PRState = "merged"
	PRUnknown PRState = "unknown"
)

// Link is the retained record that a task worked on a pull request: what proves it, and what the code host said last.
// A controller fills it; nothing is inferred from names or texts.
type Link struct {
	// ID identifies the link in its namespace, also in later states.
	ID           string `json:"id"`
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	// TaskUID is the task that created, changed or reviewed the pull request.
	TaskUID string `json:"taskUID"`
	// Repository is OWNER/REPOSITORY in lower case. GithubID is the code host's own identity of the pull request, which
	// outlives a renamed repository; 0 if it is not known.
	Repository string `json:"repository"`
	Number     int64  `json:"number"`
	GithubID   int64  `json:"githubID,omitempty"`
	URL        string `json:"url,omitempty"`
	// HeadSHA is the revision that State and Ready are about.
	HeadSHA string  `json:"headSHA,omitempty"`
	Origin  Origin  `json:"origin"`
	State   PRState `json:"state"`
	// Ready is that the pull request could be merged when it was observed. It is void ReadyFor after ObservedAt.
	Ready           bool   `json:"ready,omitempty"`
	ReadinessReason string `json:"readinessReason,omitempty"`
	// EvidenceID is the receipt of what Origin claims: the delivery, review or commit that proves it.
	EvidenceID string    `json:"evidenceID,omitempty"`
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	MergedAt   time.Time `json:"mergedAt,omitzero"`
	ClosedAt   time.Time `json:"closedAt,omitzero"`
	// ObservedAt is when the code host was asked for this state, and RecordedAt when it was recorded.
	ObservedAt time.Time `json:"observedAt"`
	RecordedAt time.Time `json:"recordedAt"`
}

// LinkID returns the ID of the link of a task with a pull request of a repository, OWNER/REPOSITORY. It never changes.
func LinkID(taskUID, repository string, number int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", taskUID, strings.ToLower(repository), number))
	return hex.EncodeToString(sum[:16])
}

// ReadyFor is how long readiness holds without a new observation.
const ReadyFor = 10 * time.Minute

// ReadyAt reports whether the pull request is ready as of a time.
func (l *Link) ReadyAt(t time.Time) bool {
	return l.Ready && l.State == PROpen && !t.Before(l.ObservedAt) && t.Before(l.ObservedAt.Add(ReadyFor))
}
