// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// TestIssues: issues and their comments.
func TestIssues(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){"issues": issues, "comments": comments, "labels": labels})
}

// allIssues returns the numbers of the open issues, by pages.
func allIssues(t *testing.T, h codehost.Host, unassigned bool) (pages [][]int64) {
	t.Helper()
	for page := 1; ; page++ {
		some := kit.Must[codehost.Listed[codehost.Issue]](t)(h.OpenIssues(t.Context(), unassigned, codehost.Page{Number: page, Size: 4}))
		var numbers []int64
		for _, i := range some.Items {
			numbers = append(numbers, i.Number)
		}
		if pages = append(pages, numbers); !some.More {
			return pages
		}
	}
}

func issues(t *testing.T, p place) {
	for i := range 9 {
		switch title := fmt.Sprint("Issue \u2713 ", i+1); i {
		case 2, 6:
			p.issue(t, title, maintainer)
		default:
			p.issue(t, title)
		}
	}
	p.push(t, "work")
	pull := p.pull(t, "work", codehost.Clean).Number
	p.end(t, 5)
	p.label(t, 3, "bug")
	h, ctx := p.open(t, p.readOnly), t.Context()
	if got, want := slices.Concat(allIssues(t, h, false)...), []int64{9, 8, 7, 6, 4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if got, want := slices.Concat(allIssues(t, h, true)...), []int64{9, 8, 6, 4, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("without an assignee: %d, want %d", got, want)
	}
	third := kit.Must[codehost.Issue](t)(h.Issue(ctx, 3))
	if third.Number != 3 || third.Title != "Issue \u2713 3" || third.Body != "what is wrong" || third.Author != author || third.State != codehost.Open || third.URL == "" ||
		third.Created.IsZero() || third.Updated.IsZero() || !slices.Equal(third.Labels, []string{"bug"}) || !slices.Equal(third.Assignees, []string{maintainer}) {
		t.Errorf("%+v", third)
	}
	if fifth := kit.Must[codehost.Issue](t)(h.Issue(ctx, 5)); fifth.State != codehost.Closed || len(fifth.Assignees) != 0 {
		t.Errorf("%+v", fifth)
	}
	for _, i := range kit.Must[codehost.Listed[codehost.Issue]](t)(h.OpenIssues(ctx, false, codehost.Page{Number: 1, Size: 10})).Items {
		if i.Number == pull {
			t.Error("a pull request is among the issues")
		}
		if one := kit.Must[codehost.Issue](t)(h.Issue(ctx, i.Number)); !reflect.DeepEqual(i, one) || one.Updated.Before(one.Created) {
			t.Errorf("%+v in the list, %+v alone", i, one)
		}
	}
	_, isPull := h.Issue(ctx, pull)
	_, gone := h.Issue(ctx, 4711)
	refused(t, codehost.ErrNotFound, map[string]error{"a pull request": isPull, "nothing": gone})
}

func comments(t *testing.T, p place) {
	issue := p.issue(t, "Issue")
	p.push(t, "work")
	pull := p.pull(t, "work", codehost.Clean).Number
	h, ctx := p.open(t, p.author), t.Context()
	for _, n := range []int64{issue, pull} {
		if none, err := h.IssueComments(ctx, n); err != nil || len(none) != 0 {
			t.Errorf("%+v %v", none, err)
		}
		const many = 55
		for i := range many {
			body := fmt.Sprint("comment \u2713 ", i)
			made := kit.Must[codehost.IssueComment](t)(h.CommentOnIssue(ctx, n, body))
			if made.ID <= 0 || made.Author != author || made.Body != body || made.URL == "" || made.Created.IsZero() {
				t.Fatalf("%+v", made)
			}
		}
		all := kit.Must[[]codehost.IssueComment](t)(p.open(t, p.readOnly).IssueComments(ctx, n))
		if len(all) != many || all[0].Body != "comment \u2713 0" || all[many-1].Body != fmt.Sprint("comment \u2713 ", many-1) || all[0].Author != author {
			t.Errorf("%d comments: %+v", len(all), all)
		}
	}
	if got := kit.Must[codehost.Issue](t)(h.Issue(ctx, issue)); got.CommentCount != 55 {
		t.Errorf("%+v", got)
	}
	_, empty := h.CommentOnIssue(ctx, issue, "")
	refused(t, codehost.ErrRefused, map[string]error{"an empty comment": empty})
	_, forbidden := p.open(t, p.readOnly).CommentOnIssue(ctx, issue, "text")
	refused(t, codehost.ErrCredential, map[string]error{"comment": forbidden})
	_, list := h.IssueComments(ctx, 4711)
	_, zero := h.IssueComments(ctx, 0)
	_, comment := h.CommentOnIssue(ctx, 4711, "text")
	refused(t, codehost.ErrNotFound, map[string]error{"comments": list, "number 0": zero, "comment": comment})
}

// labels: whose a label is, and how it is taken from an issue or a pull request, whatever its name is.
func labels(t *testing.T, p place) {
	const odd = "a/b?c#d%2f g \u2713"
	issue := p.issue(t, "Issue")
	p.push(t, "work")
	pull := p.pull(t, "work", codehost.Clean).Number
	h, ctx := p.open(t, p.maintainer), t.Context()
	has := func(n int64) []string {
		t.Helper()
		if n == pull {
			return kit.Must[codehost.PullRequest](t)(h.PullRequest(ctx, n)).Labels
		}
		return kit.Must[codehost.Issue](t)(h.Issue(ctx, n)).Labels
	}
	for i, n := range []int64{issue, pull} {
		kept, gone := fmt.Sprint("kept ", i), fmt.Sprint(odd, i)
		p.label(t, n, kept)
		for range 12 { // more than a page of events
			p.label(t, n, gone)
			if err := h.RemoveLabel(ctx, n, gone); err != nil {
				t.Fatal(err)
			}
		}
		_, removed := h.Labeling(ctx, n, gone)
		refused(t, codehost.ErrNotFound, map[string]error{"removed": removed})
		p.label(t, n, gone)
		for _, name := range []string{kept, gone, strings.ToUpper(gone)} {
			if by := kit.Must[codehost.Labeling](t)(p.open(t, p.readOnly).Labeling(ctx, n, name)); by.Login != maintainer || by.At.IsZero() {
				t.Errorf("%q: %+v", name, by)
			}
		}
		refused(t, codehost.ErrCredential, map[string]error{"remove": p.open(t, p.readOnly).RemoveLabel(ctx, n, gone)})
		for range 2 { // the second time it is not there
			if err := h.RemoveLabel(ctx, n, gone); err != nil {
				t.Error(err)
			}
			if got := has(n); !slices.Equal(got, []string{kept}) {
				t.Errorf("%q, want %q", got, kept)
			}
		}
		refused(t, codehost.ErrRefused, map[string]error{"no name": h.RemoveLabel(ctx, n, ""), "above": h.RemoveLabel(ctx, n, ".."), "here": h.RemoveLabel(ctx, n, ".")})
		if got := has(n); !slices.Equal(got, []string{kept}) {
			t.Errorf("%q, want %q", got, kept)
		}
	}
	_, nothing := h.Labeling(ctx, 4711, "kept 0")
	_, zero := h.Labeling(ctx, 0, "kept 0")
	_, never := h.Labeling(ctx, issue, "never")
	refused(t, codehost.ErrNotFound, map[string]error{"no issue": h.RemoveLabel(ctx, 4711, "kept 0"), "nothing": nothing, "number 0": zero, "never set": never})
}
