// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"time"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/checks"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
)

const (
	// maxTitle is how much of a title is read, in characters.
	maxTitle = 512
	// maxRead is how much of all texts of strangers an answer has, in bytes, and maxPatch how much of them are patches of files, which are
	// in the diff, too.
	maxRead  = 512 << 10
	maxPatch = 192 << 10
	// maxName and maxURL are how much of the name and of the address of a check is read, in bytes.
	maxName, maxURL = 256, 2048
	// maxListed is how many files are listed.
	maxListed = 500
)

// budget is how many bytes of texts an answer may still have.
type budget int

// take returns at most most bytes of a text, and whether something is missing.
func (b *budget) take(text string, most int) (string, bool) {
	out := clip.Text(text, min(most, int(*b)))
	*b -= budget(len(out))
	return out, len(out) < len(text)
}

// list returns an array that is never null.
func list(all []string) []string { return append([]string{}, all...) }

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

type pullArguments struct {
	Number int64 `json:"pr_number"`
}

type listArguments struct {
	PerPage int `json:"per_page"`
	Page    int `json:"page"`
}

type listedPullRequest struct {
	Number     int64    `json:"number"`
	Title      string   `json:"title"`
	Body       string   `json:"body"`
	Author     string   `json:"author"`
	BaseBranch string   `json:"base_branch"`
	HeadBranch string   `json:"head_branch"`
	HeadSHA    string   `json:"head_sha"`
	Labels     []string `json:"labels"`
	CreatedAt  string   `json:"created_at"`
	HTMLURL    string   `json:"html_url"`
	Draft      bool     `json:"draft"`
}

type pullRequestList struct {
	PullRequests []listedPullRequest `json:"pull_requests"`
	// TotalCount is how many there are on this page.
	TotalCount  int  `json:"total_count"`
	HasNextPage bool `json:"has_next_page"`
}

func listPullRequests(ctx context.Context, p *Place, _ Call, a listArguments) (any, error) {
	found, err := p.Host.OpenPullRequests(ctx, page(a.Page, a.PerPage))
	if err != nil {
		return nil, err
	}
	out, left := pullRequestList{PullRequests: []listedPullRequest{}, TotalCount: len(found.Items), HasNextPage: found.More}, budget(maxRead)
	for _, is := range found.Items {
		body, _ := left.take(is.Body, maxText)
		out.PullRequests = append(out.PullRequests, listedPullRequest{
			Number: is.Number, Title: characters(is.Title, maxTitle), Body: body, Author: is.Author, BaseBranch: is.Base, HeadBranch: is.Head, HeadSHA: is.HeadSHA,
			Labels: list(is.Labels), CreatedAt: date(is.Created), HTMLURL: is.URL, Draft: is.Draft,
		})
	}
	return out, nil
}

type changedFile struct {
	Filename  string `json:"filename"`
	Status    string `json:"status"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Patch     string `json:"patch"`
}

type pullRequestRead struct {
	Number     int64         `json:"pr_number"`
	Title      string        `json:"pr_title"`
	Body       string        `json:"pr_body"`
	Author     string        `json:"pr_author"`
	State      string        `json:"state"`
	Draft      bool          `json:"draft"`
	BaseBranch string        `json:"base_branch"`
	HeadBranch string        `json:"head_branch"`
	HeadSHA    string        `json:"head_sha"`
	Diff       string        `json:"diff"`
	Files      []changedFile `json:"files"`
	Status     string        `json:"status"`
	// Shortened is set if the diff, patches or files are missing in part, and Message then says so.
	Shortened bool   `json:"shortened,omitempty"`
	Message   string `json:"message,omitempty"`
}

// readPullRequest reads a pull request. What is read after its head belongs to that head, or the call fails.
func readPullRequest(ctx context.Context, p *Place, _ Call, a pullArguments) (any, error) {
	before, err := p.Host.PullRequest(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	change, err := p.Host.Change(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	after, err := p.Host.PullRequest(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	if after.HeadSHA != before.HeadSHA {
		return nil, refused("the head of the pull request moved while it was read; read it again")
	}
	left, patches := budget(maxRead), budget(maxPatch)
	out := pullRequestRead{
		Number: after.Number, Title: characters(after.Title, maxTitle), Author: after.Author, State: string(after.State), Draft: after.Draft,
		BaseBranch: after.Base, HeadBranch: after.Head, HeadSHA: after.HeadSHA, Files: []changedFile{}, Status: "fetched",
	}
	out.Shortened = change.MoreDiff || change.MoreFiles || len(change.Files) > maxListed
	keep := func(text string, cut bool) string { out.Shortened = out.Shortened || cut; return text }
	out.Body = keep(left.take(after.Body, maxText))
	out.Diff = keep(left.take(change.Diff, maxRead-2*maxText))
	for _, f := range change.Files[:min(len(change.Files), maxListed)] {
		out.Files = append(out.Files, changedFile{Filename: f.Name, Status: f.Status, Additions: f.Additions, Deletions: f.Deletions, Patch: keep(patches.take(f.Patch, maxText))})
	}
	if out.Shortened {
		out.Message = "the change is too large to be shown whole; what is missing was not read"
	}
	return out, nil
}

// check is one check of checks_details.
type check struct {
	Name  string              `json:"name"`
	State codehost.CheckState `json:"state"`
	// Said is the code host's own word.
	Said     string `json:"conclusion,omitempty"`
	URL      string `json:"url,omitempty"`
	Required bool   `json:"required"`
}

func details(v checks.Verdict) []check {
	all := []check{}
	for _, d := range v.Details {
		all = append(all, check{clip.Marked(d.Name, maxName), d.State, clip.Marked(d.Said, maxName), clip.Text(d.URL, maxURL), d.Required})
	}
	return all
}

// checked is what check_pull_request_ci returns. wait_timed_out and attempts are set by the worker, which repeats the call.
type checked struct {
	Status        checks.Status `json:"status"`
	Number        int64         `json:"pr_number"`
	HeadSHA       string        `json:"head_sha"`
	ChecksPassed  int           `json:"checks_passed"`
	ChecksFailed  int           `json:"checks_failed"`
	ChecksPending int           `json:"checks_pending"`
	Details       []check       `json:"checks_details"`
	LeftOut       int           `json:"checks_left_out,omitempty"`
	TimedOut      bool          `json:"wait_timed_out"`
	Attempts      int           `json:"attempts"`
	Message       string        `json:"message"`
}

func checkCI(ctx context.Context, p *Place, _ Call, a pullArguments) (any, error) {
	is, v, err := p.verdict(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	return checked{
		Status: v.Status, Number: is.Number, HeadSHA: is.HeadSHA, ChecksPassed: v.Passed, ChecksFailed: v.Failed, ChecksPending: v.Pending,
		Details: details(v), LeftOut: v.LeftOut, Attempts: 1, Message: v.Message,
	}, nil
}

// verdict returns a pull request, and what the checks of its head say.
func (p *Place) verdict(ctx context.Context, number int64) (codehost.PullRequest, checks.Verdict, error) {
	is, err := p.settled(ctx, number)
	if err != nil || is.State != codehost.Open {
		return is, checks.Evaluate(is, nil, codehost.Required{}), err
	}
	found, err := p.Host.CommitChecks(ctx, is.HeadSHA)
	if err != nil {
		return is, checks.Verdict{}, err
	}
	required, err := p.Host.RequiredChecks(ctx, is.Base)
	if err != nil {
		return is, checks.Verdict{}, err
	}
	return is, checks.Evaluate(is, found, required), nil
}

// settled returns a pull request. One that conflicts is looked at again a few seconds later: Gitea says that of each that it has not tried
// since the last push, too.
func (p *Place) settled(ctx context.Context, number int64) (codehost.PullRequest, error) {
	is, err := p.Host.PullRequest(ctx, number)
	for _, pause := range lag() {
		if err != nil || is.State != codehost.Open || is.Mergeable != codehost.Conflicting {
			break
		}
		select {
		case <-ctx.Done():
			return is, context.Cause(ctx)
		case <-p.Clock.After(pause):
			is, err = p.Host.PullRequest(ctx, number)
		}
	}
	return is, err
}

type createArguments struct {
	HeadBranch string `json:"head_branch"`
	BaseBranch string `json:"base_branch"`
	Title      string `json:"title"`
	Body       string `json:"body"`
}

type created struct {
	URL    string `json:"pr_url"`
	Number int64  `json:"pr_number"`
	Status string `json:"status"`
}

// createPullRequest makes the pull request of a publication. There is one, however many calls ask for it.
func createPullRequest(ctx context.Context, p *Place, _ Call, a createArguments) (any, error) {
	d := p.Publication
	if d == nil {
		return nil, refused("the task has published no branch that was seen on the code host afterwards")
	}
	if a.HeadBranch != d.Branch {
		return nil, invalid("head_branch: the task has published the branch %s", d.Branch)
	}
	answer, err := pullrequest.Reconcile(ctx, p.Host, pullrequest.Order{
		Key: d.Key, Generation: d.Generation, Since: d.Since, Head: d.Branch, HeadSHA: d.SHA, Base: a.BaseBranch, Title: a.Title, Body: a.Body,
	})
	if err != nil {
		return nil, err
	}
	r := answer.Receipt
	if r == nil {
		return nil, refused("no pull request was made: the code host says %s", answer.Outcome)
	}
	if answer.Outcome == pullrequest.Retargeted || answer.Outcome == pullrequest.BaseMissing {
		return nil, refused("pull request %d of this branch goes to another branch, or its base is missing (%s)", r.Number, answer.Outcome)
	}
	p.Receipt, p.Adopted = r, answer.How == pullrequest.Adopted
	return created{URL: r.URL, Number: r.Number, Status: r.State}, nil
}
