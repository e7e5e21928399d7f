// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// refused checks the errors of requests, by what was asked.
func refused(t *testing.T, want error, got map[string]error) {
	t.Helper()
	for what, err := range got {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

// TestReviews: reviews, merges and the list of pull requests.
func TestReviews(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){
		"reviews": reviews, "merges": merges, "methods": methods, "moved head": moved, "conflict": conflict, "open pull requests": listed, "forks": forks, "viewer": viewer,
	})
}

func reviews(t *testing.T, p place) {
	sha := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	h, ctx := p.open(t, p.maintainer), t.Context()
	comment := codehost.NewReviewComment{Path: "file-1", Line: 2, Body: "this line"}
	submit := kit.Must[codehost.Review](t)
	approved := submit(h.Review(ctx, n, codehost.NewReview{Event: codehost.Approve, SHA: sha}))
	wants := submit(h.Review(ctx, n, codehost.NewReview{Event: codehost.RequestChanges, SHA: sha, Body: "no \u2713", Comments: []codehost.NewReviewComment{comment}}))
	says := submit(p.open(t, p.author).Review(ctx, n, codehost.NewReview{Event: codehost.Comment, SHA: sha, Body: "well"}))
	if got := p.lines(t, n, wants.ID); !slices.Equal(got, []codehost.NewReviewComment{comment}) {
		t.Errorf("comments on lines: %+v", got)
	}
	if err := h.DismissReview(ctx, n, wants.ID, "it was mended"); err != nil {
		t.Error(err)
	}
	all := kit.Must[[]codehost.Review](t)(p.open(t, p.readOnly).PullRequestReviews(ctx, n))
	want := []codehost.Review{
		{ID: approved.ID, State: codehost.Approved, Author: maintainer},
		{ID: wants.ID, State: codehost.Dismissed, Author: maintainer, Body: "no \u2713"},
		{ID: says.ID, State: codehost.Commented, Author: author, Body: "well"},
	}
	if len(all) != len(want) {
		t.Fatalf("%+v", all)
	}
	for i, r := range all {
		if r.SHA != sha || r.URL == "" || r.Submitted.IsZero() {
			t.Errorf("%+v", r)
		}
		if r.SHA, r.URL, r.Submitted = "", "", want[i].Submitted; r != want[i] {
			t.Errorf("%+v, want %+v", r, want[i])
		}
	}

	approve := codehost.NewReview{Event: codehost.Approve, SHA: sha}
	review := func(h codehost.Host, n int64, r codehost.NewReview) error {
		_, err := h.Review(ctx, n, r)
		return err
	}
	refused(t, codehost.ErrRefused, map[string]error{
		"approve one's own":   review(p.open(t, p.author), n, approve),
		"no commit":           review(h, n, codehost.NewReview{Event: codehost.Approve}),
		"another event":       review(h, n, codehost.NewReview{Event: "PENDING", SHA: sha}),
		"no line":             review(h, n, codehost.NewReview{Event: codehost.Approve, SHA: sha, Comments: []codehost.NewReviewComment{{Path: "file-1", Line: -2, Body: "text"}}}),
		"no words":            review(h, n, codehost.NewReview{Event: codehost.Comment, SHA: sha}),
		"no reason":           review(h, n, codehost.NewReview{Event: codehost.RequestChanges, SHA: sha, Body: " "}),
		"changes, no summary": review(h, n, codehost.NewReview{Event: codehost.RequestChanges, SHA: sha, Comments: []codehost.NewReviewComment{comment}}),
	})
	_, listed := h.PullRequestReviews(ctx, 4711)
	refused(t, codehost.ErrNotFound, map[string]error{
		"review": review(h, 4711, approve), "reviews": listed, "dismiss": h.DismissReview(ctx, n, 4711, "why"), "dismiss there": h.DismissReview(ctx, 4711, approved.ID, "why"),
	})
	reader := p.open(t, p.readOnly)
	refused(t, codehost.ErrCredential, map[string]error{"review": review(reader, n, approve), "dismiss": reader.DismissReview(ctx, n, approved.ID, "why")})
	if again := kit.Must[[]codehost.Review](t)(h.PullRequestReviews(ctx, n)); len(again) != len(want) {
		t.Errorf("%+v", again)
	}

	// More reviews than a page of a host has.
	for i := range 60 {
		submit(h.Review(ctx, n, codehost.NewReview{Event: codehost.Comment, SHA: sha, Body: fmt.Sprint("review ", i)}))
	}
	if all := kit.Must[[]codehost.Review](t)(h.PullRequestReviews(ctx, n)); len(all) != 63 || all[62].Body != "review 59" {
		t.Errorf("%d reviews", len(all))
	}
}

func merges(t *testing.T, p place) {
	sha := p.push(t, "work")
	pull := p.pull(t, "work", codehost.Clean)
	n := pull.Number
	h, ctx := p.open(t, p.maintainer), t.Context()
	at := kit.Must[codehost.Address](t)(codehost.ParseAddress(p.url))
	if pull.MergeSHA != "" || pull.Draft || pull.HeadRepository != at.Owner+"/"+at.Name || pull.Created.IsZero() || !pull.Merged.IsZero() || !pull.Closed.IsZero() {
		t.Errorf("%+v", pull)
	}
	right := codehost.Merge{SHA: sha, Method: codehost.Squash, Title: "Do the work", Message: "All of it."}
	merge := func(h codehost.Host, n int64, m codehost.Merge) error {
		_, err := h.Merge(ctx, n, m)
		return err
	}
	wrong := right
	wrong.SHA = strings.Repeat("1", 40)
	refused(t, codehost.ErrMoved, map[string]error{"another head": merge(h, n, wrong), "no head": merge(h, n, codehost.Merge{Method: codehost.Squash})})
	refused(t, codehost.ErrCredential, map[string]error{"merge": merge(p.open(t, p.readOnly), n, right)})
	refused(t, codehost.ErrNotFound, map[string]error{"merge": merge(h, 4711, right)})

	// A check is missing.
	p.require(t, "main", "ci/test")
	refused(t, codehost.ErrNotMergeable, map[string]error{"without the check": merge(h, n, right)})
	p.status(t, sha, "ci/test", "success")
	p.await(t, n, codehost.Clean) // Gitea looks again for what a new rule may change
	as := kit.Must[string](t)(h.Merge(ctx, n, right))
	merged := kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n))
	if merged.State != codehost.Merged || merged.MergeSHA != as || as == "" || merged.Mergeable != "" || merged.Merged.Before(pull.Created) || merged.Closed.Before(pull.Created) {
		t.Errorf("%q %+v", as, merged)
	}
	if got := p.message(t, as); !strings.HasPrefix(got, "Do the work\n\nAll of it.") { // Gitea adds who took part
		t.Errorf("message %q", got)
	}
	refused(t, codehost.ErrNotMergeable, map[string]error{"merged already": merge(h, n, right), "merged already, another head": merge(h, n, wrong)})

	// One that is closed, and a draft.
	right.SHA = p.push(t, "closed")
	closed := p.pull(t, "closed", codehost.Clean).Number
	if err := h.ClosePullRequest(ctx, closed); err != nil {
		t.Fatal(err)
	}
	if got := kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, closed)); got.State != codehost.Closed || !got.Merged.IsZero() || got.Closed.IsZero() {
		t.Errorf("%+v", got)
	}
	refused(t, codehost.ErrNotMergeable, map[string]error{"closed": merge(h, closed, right)})
	right.SHA = p.push(t, "draft")
	draft := p.pull(t, "draft", codehost.Clean).Number
	p.draft(t, draft)
	refused(t, codehost.ErrNotMergeable, map[string]error{"draft": merge(h, draft, right)})
	if got := kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, draft)); !got.Draft || got.State != codehost.Open || got.Mergeable == codehost.Conflicting {
		t.Errorf("%+v", got)
	}
}

// methods: each way of merging, with the host's own words.
func methods(t *testing.T, p place) {
	h := p.open(t, p.maintainer)
	for _, m := range []codehost.MergeMethod{codehost.MergeCommit, codehost.Squash, codehost.Rebase} {
		sha := p.push(t, string(m))
		n := p.pull(t, string(m), codehost.Clean).Number
		as, err := h.Merge(t.Context(), n, codehost.Merge{SHA: sha, Method: m})
		got := kit.Must[codehost.PullRequest](t)(h.PullRequest(t.Context(), n))
		if err != nil || got.State != codehost.Merged || got.MergeSHA != as || as == "" {
			t.Errorf("%s: %q %v %+v", m, as, err, got)
		}
	}
}

// moved: after a push, neither a merge nor a review takes the old commit for the head.
func moved(t *testing.T, p place) {
	old := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	now := p.push(t, "work")
	h, ctx := p.open(t, p.maintainer), t.Context()
	if _, err := h.Merge(ctx, n, codehost.Merge{SHA: old, Method: codehost.MergeCommit}); !errors.Is(err, codehost.ErrMoved) {
		t.Errorf("%v", err)
	}
	got := kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n))
	if got.State != codehost.Open || got.HeadSHA != now {
		t.Errorf("%+v", got)
	}
	if r, err := h.Review(ctx, n, codehost.NewReview{Event: codehost.Approve, SHA: old}); err == nil && r.SHA != old {
		t.Errorf("a review of %s was made for %s", old, r.SHA)
	}
}

func conflict(t *testing.T, p place) {
	p.clash(t, "work")
	pull := p.pull(t, "work", codehost.Conflicting)
	h := p.open(t, p.maintainer)
	for range 2 { // the second time, the host has certainly looked
		if _, err := h.Merge(t.Context(), pull.Number, codehost.Merge{SHA: pull.HeadSHA, Method: codehost.MergeCommit}); !errors.Is(err, codehost.ErrNotMergeable) {
			t.Errorf("%v", err)
		}
	}
}

func listed(t *testing.T, p place) {
	const many = 13
	for i := range many {
		branch := fmt.Sprint("work-", i)
		p.push(t, branch)
		made := kit.Must[codehost.PullRequest](t)(p.open(t, p.author).CreatePullRequest(t.Context(), codehost.NewPullRequest{Title: "Change " + branch, Base: "main", Head: branch}))
		if made.Title != "Change "+branch || made.Author != author || made.Labels != nil || made.Draft {
			t.Errorf("%+v", made)
		}
	}
	h, ctx := p.open(t, p.readOnly), t.Context()
	if err := p.open(t, p.maintainer).ClosePullRequest(ctx, 3); err != nil {
		t.Fatal(err)
	}
	p.label(t, 2, "bug \u2713")
	var all []codehost.PullRequest
	for page := 1; ; page++ {
		some := kit.Must[codehost.Listed[codehost.PullRequest]](t)(h.OpenPullRequests(ctx, codehost.Page{Number: page, Size: 5}))
		all = append(all, some.Items...)
		if some.More != (page < 3) {
			t.Fatalf("page %d: more %t", page, some.More)
		}
		if !some.More {
			break
		}
	}
	var numbers []int64
	for _, pull := range all {
		numbers = append(numbers, pull.Number)
	}
	if want := []int64{13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 1}; !slices.Equal(numbers, want) {
		t.Fatalf("%d, want %d", numbers, want)
	}
	if got := all[10]; got.Title != "Change work-1" || got.Author != author || !slices.Equal(got.Labels, []string{"bug \u2713"}) {
		t.Errorf("%+v", got)
	}
	whole := kit.Must[codehost.Listed[codehost.PullRequest]](t)(h.OpenPullRequests(ctx, codehost.Page{Number: 1, Size: 100}))
	if want := min(many-1, p.largest); len(whole.Items) != want || whole.More != (want < many-1) {
		t.Errorf("%d and more %t", len(whole.Items), whole.More)
	}
	past := kit.Must[codehost.Listed[codehost.PullRequest]](t)(h.OpenPullRequests(ctx, codehost.Page{Number: 9, Size: 5}))
	if len(past.Items) != 0 || past.More {
		t.Errorf("%+v", past)
	}
}

// forks: a pull request names the repository that its branch is in, as long as that exists.
func forks(t *testing.T, p place) {
	n := p.fork(t, "work")
	at := kit.Must[codehost.Address](t)(codehost.ParseAddress(p.url))
	h, ctx := p.open(t, p.readOnly), t.Context()
	is := func(got codehost.PullRequest, want string) {
		t.Helper()
		if got.Number != n || got.HeadRepository != want || got.HeadSHA == "" || got.Author != author {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	open := kit.Must[codehost.Listed[codehost.PullRequest]](t)(h.OpenPullRequests(ctx, codehost.Page{Number: 1, Size: 5})).Items
	if len(open) != 1 {
		t.Fatalf("%+v", open)
	}
	is(open[0], author+"/"+at.Name)
	is(kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n)), author+"/"+at.Name)
	if own := kit.Must[[]codehost.PullRequest](t)(h.PullRequests(ctx, "work", time.Time{})); len(own) != 0 {
		t.Errorf("%+v", own)
	}
	p.unfork(t)
	is(kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n)), "")
}

func viewer(t *testing.T, p place) {
	for token, want := range map[string]string{p.author: author, p.maintainer: maintainer, p.readOnly: "reader"} {
		if got, err := p.open(t, token).Viewer(t.Context()); err != nil || got != want {
			t.Errorf("%q %v, want %s", got, err, want)
		}
	}
	const wrong = "0123456789abcdef0123456789abcdef01234567"
	if _, err := p.open(t, wrong).Viewer(t.Context()); !errors.Is(err, codehost.ErrCredential) || strings.Contains(err.Error(), wrong) {
		t.Errorf("%v", err)
	}
}
