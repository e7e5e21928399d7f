// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Subject is the issue or pull request that a work request is about.
type Subject struct {
	// Kind is KindIssue or KindPullRequest.
	Kind string
	// Repository is OWNER/REPOSITORY in lower case. It is empty if Number is the code host's own identity of a pull request.
	Repository string
	Number     int64
}

// Pull returns a pull request.
func Pull(repository string, number int64) Subject {
	return Subject{KindPullRequest, strings.ToLower(repository), number}
}

// ID returns the ID of the work request of a namespace. It never changes.
func (s Subject) ID(namespaceUID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", namespaceUID, s.Kind, s.Repository, s.Number))
	return "work-" + hex.EncodeToString(sum[:16])
}

// Issue returns the issue that a task names.
func (t *Task) Issue() (Subject, bool) {
	w := t.Work
	return Subject{KindIssue, strings.ToLower(w.Repository), w.Number}, w.Kind == KindIssue && w.Repository != "" && w.Number > 0
}

// Pull returns the pull request that a task reviews or repairs.
func (t *Task) Pull() (Subject, bool) {
	if w := t.Work; w.Kind == KindPullRequest && w.Repository != "" && w.Number > 0 {
		return Pull(w.Repository, w.Number), true
	}
	return Pull(t.Repository, t.PRNumber), t.Repository != "" && t.PRNumber > 0
}

// Join is something that records have in common: a task, a subject, or the ID of a work request. Which requests a task
// belongs to follows from the records that are joined with it, directly or through others, and from no others.
type Join string

// JoinTask is what a task has in common with what it delegated, what was forked from it, and its links.
func JoinTask(uid string) Join { return Join("task " + uid) }

// JoinSubject is what the records about an issue or a pull request have in common.
func JoinSubject(s Subject) Join {
	return Join(fmt.Sprintf("%s %s#%d", s.Kind, s.Repository, s.Number))
}

// JoinWork leads from the ID of a work request to the tasks that name its subject.
func JoinWork(id string) Join { return Join("id " + id) }

// Joins returns what a task has in common with others.
func (t *Task) Joins() []Join {
	all := []Join{JoinTask(t.UID)}
	for _, uid := range []string{t.ParentTaskUID, t.ForkSourceUID} {
		if uid != "" {
			all = append(all, JoinTask(uid))
		}
	}
	if s, ok := t.Issue(); ok {
		all = append(all, JoinSubject(s), JoinWork(s.ID(t.NamespaceUID)))
	}
	if s, ok := t.Pull(); ok {
		all = append(all, JoinSubject(s), JoinWork(s.ID(t.NamespaceUID)))
	}
	return all
}

// Identity returns the code host's own identity of the pull request, which is the same after its repository was renamed.
func (l *Link) Identity() (Subject, bool) {
	return Subject{Kind: KindPullRequest, Number: l.GithubID}, l.GithubID != 0
}

// Joins returns what a link has in common with others.
func (l *Link) Joins() []Join {
	all := []Join{JoinTask(l.TaskUID), JoinSubject(Pull(l.Repository, l.Number))}
	if s, ok := l.Identity(); ok {
		all = append(all, JoinSubject(s))
	}
	return all
}
