// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// turn opens or closes a pull request.
func (h *Host) turn(p *Pull, state string) {
	now := time.Now().UTC()
	p.State, p.UpdatedAt = state, now
	switch {
	case state == "open":
		p.ClosedAt = nil
	case p.ClosedAt == nil:
		p.ClosedAt = &now
	}
}

// behind reports whether the base branch of a pull request has commits that the head lacks. One that a test made itself lacks none.
func (h *Host) behind(p *Pull) bool { return p.Has != "" && p.Has != h.branches[p.Base.Ref] }

// compare serves how many commits a branch has that a commit lacks. The commit is the head of a pull request.
func (h *Host) compare(w http.ResponseWriter, path string) {
	commit, branch, _ := strings.Cut(path, "...")
	i := slices.IndexFunc(h.pulls, func(p *Pull) bool { return p.Head.SHA == commit && p.Base.Ref == branch })
	if i < 0 {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	status, ahead := "behind", 0
	if h.behind(h.pulls[i]) {
		status, ahead = "diverged", 1
	}
	answer(w, http.StatusOK, map[string]any{"status": status, "ahead_by": ahead, "behind_by": 1, "total_commits": ahead, "commits": []any{}})
}

// update merges the base branch of a pull request into its head branch.
func (h *Host) update(w http.ResponseWriter, r *http.Request, p *Pull) {
	var in struct {
		Expected string `json:"expected_head_sha"`
	}
	if !read(w, r, &in) {
		return
	}
	switch {
	case in.Expected != "" && in.Expected != p.Head.SHA:
		unprocessable(w, "expected head sha didn't match current head ref.")
	case p.State != "open":
		unprocessable(w, "Pull request is closed")
	case !h.behind(p):
		unprocessable(w, "There are no new commits on the base branch.")
	case p.Mergeable == nil || !*p.Mergeable:
		unprocessable(w, "merge conflict between base and head")
	default:
		p.Has = h.branches[p.Base.Ref]
		p.Head.SHA, p.UpdatedAt = Commit(fmt.Sprintf("update-%d", h.next())), time.Now().UTC()
		if !p.Head.Repo.Fork {
			h.branches[p.Head.Ref] = p.Head.SHA
		}
		answer(w, http.StatusAccepted, map[string]string{"message": "Updating pull request branch.", "url": p.HTMLURL})
	}
}

// lacking returns what the rule of its base branch wants of a pull request; empty if it is nothing.
func (h *Host) lacking(p *Pull) string {
	rule := h.state.Protections[p.Base.Ref]
	approved, rejected := h.verdicts(p)
	switch missing := h.missing(p); {
	case missing != "":
		return fmt.Sprintf("Required status check %q is expected.", missing)
	case rule.Off:
		return ""
	case rule.Approvals > 0 && rejected:
		return "Changes were requested."
	case rule.Approvals > approved:
		return fmt.Sprintf("At least %d approving review is required by reviewers with write access.", rule.Approvals)
	case rule.Strict && h.behind(p):
		return "This branch is out-of-date with the base branch."
	}
	return ""
}

// verdicts returns how many users approve the present head, and whether one wants changes. The last word of each counts.
func (h *Host) verdicts(p *Pull) (approved int, rejected bool) {
	words := slices.DeleteFunc(slices.Clone(h.state.Reviews[p.Number]), func(r *Review) bool {
		return r.User == nil || r.State != "APPROVED" && r.State != "CHANGES_REQUESTED"
	})
	for _, r := range latest(words, func(r *Review) string { return r.User.Login }) {
		switch {
		case r.State == "CHANGES_REQUESTED":
			rejected = true
		case r.CommitID == p.Head.SHA:
			approved++
		}
	}
	return approved, rejected
}

// mergeState returns GitHub's word for whether a pull request can be merged.
func (h *Host) mergeState(p *Pull) string {
	rule := h.state.Protections[p.Base.Ref]
	switch {
	case p.MergeState != "":
		return p.MergeState
	case p.State != "open" || p.Mergeable == nil:
		return "unknown"
	case p.Draft:
		return "draft"
	case !*p.Mergeable:
		return "dirty"
	case rule.Strict && h.behind(p):
		return "behind"
	case h.lacking(p) != "":
		return "blocked"
	case h.failed(p.Head.SHA):
		return "unstable"
	}
	return "clean"
}

// failed reports whether a status or a check run of a commit has not passed.
func (h *Host) failed(sha string) bool {
	return slices.ContainsFunc(latest(h.state.Statuses[sha], func(s Status) string { return s.Context }), func(s Status) bool {
		return s.State != "success"
	}) || slices.ContainsFunc(latest(h.state.CheckRuns[sha], CheckRun.key), func(r CheckRun) bool {
		return r.Status != "completed" || r.Conclusion == nil || !slices.Contains([]string{"success", "neutral", "skipped"}, *r.Conclusion)
	})
}
