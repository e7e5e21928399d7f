// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// TestReadiness: what pull requests lack to be merged, and their branches.
func TestReadiness(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){"ready": ready, "reviewed": reviewed, "outdated": outdated, "update": update})
}

// is checks that a pull request lacks what a reason says; that it is ready if that is empty.
func (p place) is(t *testing.T, when string, n int64, reason string) codehost.Readiness {
	t.Helper()
	got := kit.Must[codehost.Readiness](t)(p.open(t, p.maintainer).Readiness(t.Context(), n))
	if got.Ready != (reason == "") || got.Ready != (got.Reason == "") || !strings.Contains(got.Reason, reason) || got.PullRequest.Number != n {
		t.Errorf("%s: %+v, want %q", when, got, reason)
	}
	return got
}

func ready(t *testing.T, p place) {
	p.clash(t, "clash")
	p.is(t, "one that conflicts", p.pull(t, "clash", codehost.Conflicting).Number, "conflicts")
	sha := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	if got := p.is(t, "nothing is required", n, ""); got.PullRequest.HeadSHA != sha || got.PullRequest.State != codehost.Open {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ state, reason string }{{"pending", "check"}, {"failure", "check"}, {"success", ""}} {
		p.status(t, sha, "ci/test", c.state)
		p.is(t, "a check that is not required: "+c.state, n, c.reason)
	}
	p.require(t, "main", "ci/required")
	p.await(t, n, codehost.Clean)
	required := "check"
	if p.provider == codehost.GitHub {
		required = "rules of the base branch"
	}
	p.is(t, "a required check is missing", n, required)
	p.status(t, sha, "ci/required", "success")
	p.is(t, "a required check has passed", n, "")

	h, ctx := p.open(t, p.maintainer), t.Context()
	p.push(t, "draft")
	draft := p.pull(t, "draft", codehost.Clean).Number
	p.draft(t, draft)
	p.is(t, "a draft", draft, "draft")
	if err := h.ClosePullRequest(ctx, draft); err != nil {
		t.Fatal(err)
	}
	p.is(t, "a closed one", draft, "closed")
	kit.Must[string](t)(h.Merge(ctx, n, codehost.Merge{SHA: sha, Method: codehost.Squash}))
	p.is(t, "a merged one", n, "merged")

	_, gone := h.Readiness(ctx, 4711)
	refused(t, codehost.ErrNotFound, map[string]error{"nothing": gone})
	_, wrong := p.open(t, "0123456789abcdef0123456789abcdef01234567").Readiness(ctx, n)
	refused(t, codehost.ErrCredential, map[string]error{"a wrong token": wrong})
}

// reviewed: approvals count if they are of the head, and a review that requests changes is in the way.
func reviewed(t *testing.T, p place) {
	sha := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	h, ctx := p.open(t, p.maintainer), t.Context()
	lacks, rejected := "approval", "requests changes"
	if p.provider == codehost.GitHub {
		lacks, rejected = "approves", "rules of the base branch"
	}
	p.protect(t, 1, false)
	p.await(t, n, codehost.Clean)
	p.is(t, "nobody has approved", n, lacks)
	submit := func(event codehost.ReviewEvent) int64 {
		t.Helper()
		return kit.Must[codehost.Review](t)(h.Review(ctx, n, codehost.NewReview{Event: event, SHA: sha, Body: "text"})).ID
	}
	submit(codehost.Comment)
	p.is(t, "somebody has commented", n, lacks)
	approval := submit(codehost.Approve)
	p.is(t, "approved", n, "")
	if err := h.DismissReview(ctx, n, approval, "why"); err != nil {
		t.Fatal(err)
	}
	p.is(t, "the approval was dismissed", n, lacks)
	submit(codehost.Approve)
	p.is(t, "approved again", n, "")
	sha = p.push(t, "work")
	for range 2 { // at once, and when the host has looked at it
		if got := kit.Must[codehost.Readiness](t)(h.Readiness(ctx, n)); got.Ready || got.PullRequest.HeadSHA != sha {
			t.Errorf("after a push: %+v", got)
		}
		p.await(t, n, codehost.Clean)
	}
	p.is(t, "another commit was approved", n, lacks)
	submit(codehost.Approve)
	p.is(t, "the new commit was approved", n, "")
	submit(codehost.RequestChanges)
	p.is(t, "changes are requested", n, rejected)
	submit(codehost.Approve)
	p.is(t, "and approved again", n, "")

	// Who may only read cannot see the rules of a Gitea.
	got := kit.Must[codehost.Readiness](t)(p.open(t, p.readOnly).Readiness(ctx, n))
	if got.Ready != (p.provider == codehost.GitHub) || got.Ready != (got.Reason == "") {
		t.Errorf("%+v", got)
	}
}

// outdated: the base branch may have to be in the head.
func outdated(t *testing.T, p place) {
	p.protect(t, 0, true)
	sha := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	p.is(t, "up to date", n, "")
	p.push(t, "main")
	kit.Await(t, "it is outdated", func() bool { // in between, the host looks at it again
		got := kit.Must[codehost.Readiness](t)(p.open(t, p.maintainer).Readiness(t.Context(), n))
		return !got.Ready && strings.Contains(got.Reason, "commits that the pull request lacks")
	})
	if err := p.open(t, p.maintainer).UpdateBranch(t.Context(), n, sha); err != nil {
		t.Fatal(err)
	}
	p.await(t, n, codehost.Clean)
	if got := p.is(t, "updated", n, ""); got.PullRequest.HeadSHA == sha {
		t.Errorf("%+v", got)
	}
}

func update(t *testing.T, p place) {
	sha := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	h, ctx := p.open(t, p.maintainer), t.Context()
	head := func() string {
		t.Helper()
		return kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n)).HeadSHA
	}
	if err := h.UpdateBranch(ctx, n, sha); err != nil || head() != sha {
		t.Errorf("up to date: %v, %s", err, head())
	}
	p.push(t, "main")
	refused(t, codehost.ErrMoved, map[string]error{"another head": h.UpdateBranch(ctx, n, strings.Repeat("1", 40)), "no commit": h.UpdateBranch(ctx, n, "main")})
	refused(t, codehost.ErrCredential, map[string]error{"one who may only read": p.open(t, p.readOnly).UpdateBranch(ctx, n, sha)})
	refused(t, codehost.ErrNotFound, map[string]error{"nothing": h.UpdateBranch(ctx, 4711, sha)})
	if head() != sha {
		t.Fatalf("the head is %s", head())
	}
	if err := h.UpdateBranch(ctx, n, sha); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the head moves", func() bool { return head() != sha })
	now := head()
	refused(t, codehost.ErrMoved, map[string]error{"the old head": h.UpdateBranch(ctx, n, sha)})
	p.await(t, n, codehost.Clean)
	if err := h.UpdateBranch(ctx, n, now); err != nil || head() != now {
		t.Errorf("up to date again: %v, %s", err, head())
	}

	p.push(t, "main")
	if err := h.ClosePullRequest(ctx, n); err != nil {
		t.Fatal(err)
	}
	p.clash(t, "clash")
	clash := p.pull(t, "clash", codehost.Conflicting)
	p.push(t, "main")
	refused(t, codehost.ErrNotMergeable, map[string]error{"closed": h.UpdateBranch(ctx, n, now), "a conflict": h.UpdateBranch(ctx, clash.Number, clash.HeadSHA)})
}
