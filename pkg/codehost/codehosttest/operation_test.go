// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/test/kit"
)

// noWait is a clock that waits for nothing.
type noWait struct{ clock.RealClock }

func (noWait) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

// disturbed is a host that calls after when it has answered the requests of an operation, and may lose what it answers.
type disturbed struct {
	codehost.Host
	// after is called with the number of the request, from 1, and what was asked.
	after func(n int, what string)
	// lost are the requests whose answers do not come; hidden is set to show no reviews and comments any more.
	lost   map[string]bool
	hidden bool
	n      int
}

// answered ends a request.
func answered[T any](d *disturbed, what string, v T, err error) (T, error) {
	d.n++
	if d.after != nil {
		d.after(d.n, what)
	}
	if d.lost[what] && err == nil {
		var none T
		return none, codehost.ErrUnavailable
	}
	return v, err
}

func (d *disturbed) PullRequest(ctx context.Context, n int64) (codehost.PullRequest, error) {
	p, err := d.Host.PullRequest(ctx, n)
	return answered(d, "pull request", p, err)
}

func (d *disturbed) PullRequestReviews(ctx context.Context, n int64) ([]codehost.Review, error) {
	all, err := d.Host.PullRequestReviews(ctx, n)
	if d.hidden {
		all = nil
	}
	return answered(d, "reviews", all, err)
}

func (d *disturbed) IssueComments(ctx context.Context, n int64) ([]codehost.IssueComment, error) {
	all, err := d.Host.IssueComments(ctx, n)
	if d.hidden {
		all = nil
	}
	return answered(d, "comments", all, err)
}

func (d *disturbed) Files(ctx context.Context, n int64) ([]codehost.File, bool, error) {
	all, more, err := d.Host.Files(ctx, n)
	all, err = answered(d, "files", all, err)
	return all, more, err
}

func (d *disturbed) Review(ctx context.Context, n int64, r codehost.NewReview) (codehost.Review, error) {
	made, err := d.Host.Review(ctx, n, r)
	return answered(d, "review", made, err)
}

func (d *disturbed) CommentOnIssue(ctx context.Context, n int64, body string) (codehost.IssueComment, error) {
	made, err := d.Host.CommentOnIssue(ctx, n, body)
	return answered(d, "comment", made, err)
}

func (d *disturbed) Merge(ctx context.Context, n int64, m codehost.Merge) (string, error) {
	sha, err := d.Host.Merge(ctx, n, m)
	return answered(d, "merge", sha, err)
}

// site is where operations are carried out as the maintainer.
type site struct {
	*operation.Place
	host *disturbed
	keys marker.Keys
}

func (p place) site(t *testing.T) site {
	t.Helper()
	at := kit.Must[codehost.Address](t)(codehost.ParseAddress(p.url))
	keys := kit.Must[marker.Keys](t)(marker.NewKeys([]byte("a key of reviews, 0123456789")))
	d := &disturbed{Host: p.open(t, p.maintainer)}
	return site{&operation.Place{Host: d, Repository: at.Owner + "/" + at.Name, Markers: keys, Clock: noWait{}}, d, keys}
}

// do carries out a call and returns its result.
func (s site) do(t *testing.T, key, head, tool string, arguments map[string]any) (map[string]any, error) {
	t.Helper()
	s.host.n = 0
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := operation.Do(t.Context(), s.Place, operation.Call{Tool: tool, Arguments: raw, Key: key, HeadSHA: head})
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(kit.Must[[]byte](t)(json.Marshal(result)), &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// fails checks why a call was not made.
func fails(t *testing.T, err error, want v1alpha1.TaskCodeHostFailureReason) {
	t.Helper()
	if e, ok := errors.AsType[*operation.Error](err); !ok || e.Reason != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestOperations: what the tools of runs do on each host.
func TestOperations(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){
		"moving heads": movingHeads, "read heads": readHeads, "once": once, "markers": markers, "merging": merging, "auto merging": autoMerging, "lines of reviews": inlines,
	})
}

// movingHeads: however a push comes between the requests of a review, no approval of the call stays on another head than the one that was
// read, and what was read and what is approved are one commit. A push that comes after the last request is after the review.
func movingHeads(t *testing.T, p place) {
	for at := 1; ; at++ {
		branch := fmt.Sprintf("work-%d", at)
		head := p.push(t, branch)
		n := p.pull(t, branch, codehost.Clean).Number
		s, pushed := p.site(t), ""
		s.host.after = func(request int, _ string) {
			if request == at {
				pushed = p.push(t, branch)
			}
		}
		key := fmt.Sprintf("k%d", at)
		body := "Good.\n" + s.keys.Marker(marker.Subject{Repository: s.Repository, PullRequest: n, HeadSHA: head})
		got, err := s.do(t, key, head, "post_review_comment", map[string]any{"pr_number": n, "event": "APPROVE", "body": body, "comments": []any{map[string]any{"path": "file-1", "line": 1, "body": "x"}}})
		last := s.host.n
		s.host.after = nil
		if at >= last {
			if at < 5 || err != nil || got["status"] != "submitted" {
				t.Errorf("after %d requests: %v %v", last, got, err)
			}
			return
		}
		live := kit.Must[codehost.PullRequest](t)(s.host.Host.PullRequest(t.Context(), n)).HeadSHA
		for _, r := range kit.Must[[]codehost.Review](t)(s.host.Host.PullRequestReviews(t.Context(), n)) {
			if r.State == codehost.Approved && live != head {
				t.Errorf("a push after request %d: an approval of %s stays on %s", at, head, live)
			}
			if s.keys.Find(r.Body, marker.Subject{Repository: s.Repository, PullRequest: n, HeadSHA: pushed}) {
				t.Errorf("a push after request %d: the new head counts as reviewed", at)
			}
		}
		if err == nil && got["status"] != "stale" {
			t.Errorf("a push after request %d: %v", at, got)
		}
		if err == nil { // a call that is repeated finds its review, which is dismissed already
			again, err := s.do(t, key, head, "post_review_comment", map[string]any{"pr_number": n, "event": "APPROVE", "body": body})
			if message, _ := again["message"].(string); err != nil || again["status"] != "stale" || !strings.Contains(message, "was dismissed") {
				t.Errorf("again after a push after request %d: %v %v", at, again, err)
			}
		}
	}
}

// readHeads: a review and a merge of another head than the one that was read are not made.
func readHeads(t *testing.T, p place) {
	read := p.push(t, "work")
	s := p.site(t)
	n := p.pull(t, "work", codehost.Clean).Number
	now := p.push(t, "work")
	kit.Await(t, "the host shows the new head", func() bool {
		return kit.Must[codehost.PullRequest](t)(s.host.Host.PullRequest(t.Context(), n)).HeadSHA == now
	})
	for _, tool := range []string{"post_review_comment", "merge_pull_request", "auto_merge_pull_request"} {
		_, err := s.do(t, "k", read, tool, map[string]any{"pr_number": n, "event": "COMMENT", "body": "x"})
		fails(t, err, v1alpha1.CodeHostRefused)
	}
	if got, err := s.do(t, "k", now, "post_review_comment", map[string]any{"pr_number": n, "event": "COMMENT", "body": "x"}); err != nil || got["head_sha"] != now {
		t.Errorf("%v %v", got, err)
	}
}

// once: a review and a comment whose answers were lost are found and not made again; if they do not show, that is said, and they are not
// made again either.
func once(t *testing.T, p place) {
	p.push(t, "work")
	n, issue := p.pull(t, "work", codehost.Clean).Number, p.issue(t, "broken")
	count := func(s site) (reviews, comments int) {
		for _, r := range kit.Must[[]codehost.Review](t)(s.host.Host.PullRequestReviews(t.Context(), n)) {
			if strings.Contains(r.Body, "platform:call") {
				reviews++
			}
		}
		return reviews, len(kit.Must[[]codehost.IssueComment](t)(s.host.Host.IssueComments(t.Context(), issue)))
	}
	review := map[string]any{"pr_number": n, "event": "COMMENT", "body": "Well."}
	comment := map[string]any{"issue_number": issue, "body": "Well."}
	s := p.site(t)
	s.host.lost = map[string]bool{"review": true, "comment": true}
	for range 3 {
		a, err := s.do(t, "one", "", "post_review_comment", review)
		b, other := s.do(t, "one", "", "comment_on_issue", comment)
		if err != nil || other != nil || a["review_id"] == 0.0 || b["comment_id"] == 0.0 {
			t.Errorf("%v %v, %v %v", a, err, b, other)
		}
	}
	if r, c := count(s); r != 1 || c != 1 {
		t.Errorf("%d reviews and %d comments", r, c)
	}
	s.host.hidden = true
	_, err := s.do(t, "two", "", "post_review_comment", review)
	fails(t, err, v1alpha1.CodeHostOutcomeUnknown)
	_, err = s.do(t, "two", "", "comment_on_issue", comment)
	fails(t, err, v1alpha1.CodeHostOutcomeUnknown)
	if r, c := count(s); r != 2 || c != 2 {
		t.Errorf("%d reviews and %d comments", r, c)
	}
	got, err := s.do(t, "three", "", "get_issue", map[string]any{"issue_number": issue})
	if err != nil || got["title"] != "broken" || got["state"] != "open" {
		t.Errorf("%v %v", got, err)
	}
}

// markers: a head counts as reviewed by a signed mark of this repository, pull request and head, whoever posted it, or by one without a
// signature of the trusted author.
func markers(t *testing.T, p place) {
	head := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	s := p.site(t)
	look := func(want bool, source string) (mark string) {
		t.Helper()
		got, err := s.do(t, "k", "", "check_pr_review_marker", map[string]any{"pr_number": n})
		if err != nil || got["found"] != want || got["source"] != source || got["head_sha"] != head {
			t.Errorf("%v %v, want %t by %q", got, err, want, source)
		}
		mark, _ = got["marker"].(string)
		return mark
	}
	mark := look(false, "")
	unsigned, _, _ := strings.Cut(mark, " sig=")
	post := func(token, body string) {
		t.Helper()
		kit.Must[codehost.Review](t)(p.open(t, token).Review(t.Context(), n, codehost.NewReview{Event: codehost.Comment, SHA: head, Body: body}))
	}
	post(p.author, unsigned+" -->")
	post(p.maintainer, strings.Replace(mark, "pr=", "pr=1", 1))
	look(false, "")
	post(p.maintainer, unsigned+" -->")
	look(true, "author")
	s.TrustedAuthor = author
	look(true, "author")
	s.TrustedAuthor = "nobody"
	look(false, "")
	post(p.author, "Good. "+mark)
	look(true, "signature")
	head = p.push(t, "work")
	kit.Await(t, "the host shows the new head", func() bool {
		return kit.Must[codehost.PullRequest](t)(s.host.Host.PullRequest(t.Context(), n)).HeadSHA == head
	})
	look(false, "")
	for _, foreign := range []string{mark, strings.Replace(mark, "sig=", "sig=0", 1), "<!-- platform:call x -->"} {
		if _, err := s.do(t, "k", "", "post_review_comment", map[string]any{"pr_number": n, "event": "COMMENT", "body": "Good. " + foreign}); err == nil {
			t.Errorf("a review with %s was posted", foreign)
		}
	}
}

// merging: only a pull request whose checks have passed is merged, of the head that was seen, and once.
func merging(t *testing.T, p place) {
	head := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	s := p.site(t)
	try := func(merged, passed bool, says string) {
		t.Helper()
		got, err := s.do(t, "k", head, "merge_pull_request", map[string]any{"pr_number": n, "commit_title": "Mend the shop"})
		if message, _ := got["message"].(string); err != nil || got["merged"] != merged || got["checks_passed"] != passed || !strings.Contains(message, says) {
			t.Errorf("%v %v, want merged %t, passed %t, %q", got, err, merged, passed, says)
		}
	}
	p.status(t, head, "ci/test", "pending")
	try(false, false, "ci/test")
	p.status(t, head, "ci/test", "failure")
	try(false, false, "failed")
	p.require(t, "main", "ci/deploy")
	p.status(t, head, "ci/test", "success")
	kit.Await(t, "the host has tried the merge again", func() bool {
		return kit.Must[codehost.PullRequest](t)(s.host.Host.PullRequest(t.Context(), n)).Mergeable == codehost.Clean
	})
	try(false, false, "ci/deploy")
	p.status(t, head, "ci/deploy", "success")
	s.host.lost = map[string]bool{"merge": true}
	try(true, true, "was merged")
	try(true, true, "was merged already")
	if m := p.message(t, kit.Must[codehost.PullRequest](t)(s.host.Host.PullRequest(t.Context(), n)).MergeSHA); !strings.HasPrefix(m, "Mend the shop") {
		t.Errorf("the commit says %q", m)
	}
	if _, err := s.do(t, "k", "", "merge_pull_request", map[string]any{"pr_number": n, "commit_message": "<!-- platform:x -->"}); err == nil {
		t.Error("a message with a comment of ours was accepted")
	}
}

// autoMerging: the outcomes of one look.
func autoMerging(t *testing.T, p place) {
	s := p.site(t)
	try := func(n int64, want string) {
		t.Helper()
		if got, err := s.do(t, "k", "", "auto_merge_pull_request", map[string]any{"pr_number": n}); err != nil || got["outcome"] != want {
			t.Errorf("%v %v, want %q", got, err, want)
		}
	}
	head := p.push(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	p.status(t, head, "ci/test", "pending")
	try(n, "")
	p.status(t, head, "ci/test", "failure")
	try(n, "ci_failed")
	p.status(t, head, "ci/test", "success")
	try(n, "merged")
	try(n, "already_merged")
	p.push(t, "other")
	other := p.pull(t, "other", codehost.Clean).Number
	if err := s.host.Host.ClosePullRequest(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	try(other, "closed")
	p.push(t, "draft")
	draft := p.pull(t, "draft", codehost.Clean).Number
	p.draft(t, draft)
	try(draft, "")
	p.clash(t, "clash")
	try(p.pull(t, "clash", codehost.Conflicting).Number, "")
}

// inlines: comments on lines that the change does not have are left out with a reason, and the others are posted.
func inlines(t *testing.T, p place) {
	p.change(t, "work")
	n := p.pull(t, "work", codehost.Clean).Number
	s := p.site(t)
	at := func(path string, line int) map[string]any {
		return map[string]any{"path": path, "line": line, "body": "look"}
	}
	got, err := s.do(t, "k", "", "post_review_comment", map[string]any{"pr_number": n, "event": "REQUEST_CHANGES", "body": "No.", "comments": []any{
		at("new.txt", 9), at("new.txt", 1), at("gone.txt", 1), at("../etc/passwd", 1), at("added.txt", 1), at("added.txt", 4711),
	}})
	if dropped, _ := got["dropped_comments"].([]any); err != nil || len(dropped) != 4 {
		t.Fatalf("%v %v", got, err)
	}
	id, _ := got["review_id"].(float64)
	if lines := p.lines(t, n, int64(id)); len(lines) != 2 {
		t.Errorf("%+v", lines)
	}
	read, err := s.do(t, "k", "", "review_pull_request", map[string]any{"pr_number": n})
	if files, _ := read["files"].([]any); err != nil || read["status"] != "fetched" || len(files) != len(workChanges) || read["pr_author"] != author {
		t.Errorf("%v %v", read, err)
	}
}
