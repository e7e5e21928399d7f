// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"strconv"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
)

// Operations of monitors, which are no tools of models.
const (
	OpenPullRequests = "monitor_pull_requests"
	OpenIssues       = "monitor_issues"
	PullRequestState = "monitor_pull_request"
	IssueState       = "monitor_issue"
	ActorPermission  = "monitor_permission"
	RemoveLabel      = "monitor_remove_label"
	UpdateBranch     = "monitor_update_branch"
	LabelActor       = "monitor_label_actor"
	PostedReview     = "monitor_posted_review"
	Repository       = "monitor_repository"
)

// maxOpen is how many open pull requests or issues a monitor sees, the newest ones.
const maxOpen = 1000

// ItemArguments name a pull request or an issue.
type ItemArguments struct {
	Number int64 `json:"number"`
}

// ActorArguments name a user of the host.
type ActorArguments struct {
	Login string `json:"login"`
}

// LabelArguments name a label of a pull request or issue.
type LabelArguments struct {
	Number int64  `json:"number"`
	Label  string `json:"label"`
}

// NoArguments are those of an operation that needs none.
type NoArguments struct{}

// Item is a pull request or an issue, without its text.
type Item struct {
	Number    int64      `json:"number"`
	ID        string     `json:"id,omitempty"`
	State     string     `json:"state"`
	Title     string     `json:"title"`
	URL       string     `json:"url"`
	Author    string     `json:"author"`
	Labels    []string   `json:"labels"`
	CreatedAt *time.Time `json:"createdAt,omitempty"`

	// The rest is of pull requests.
	HeadSHA        string     `json:"headSHA,omitempty"`
	HeadBranch     string     `json:"headBranch,omitempty"`
	HeadRepository string     `json:"headRepository,omitempty"`
	BaseBranch     string     `json:"baseBranch,omitempty"`
	Draft          bool       `json:"draft,omitempty"`
	MergedAt       *time.Time `json:"mergedAt,omitempty"`
	ClosedAt       *time.Time `json:"closedAt,omitempty"`
	MergeSHA       string     `json:"mergeSHA,omitempty"`
}

// Items are what is open.
type Items struct {
	Items []Item `json:"items"`
	// More is set if there are more than a monitor sees.
	More bool `json:"more,omitempty"`
}

// ItemState is one pull request or issue as it is now.
type ItemState struct {
	Item
	// Body is the text, shortened.
	Body string `json:"body"`
	// Ready is set if the pull request could be merged now, and Reason says what it lacks.
	Ready  bool   `json:"ready,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Actor is what a user of the host may do.
type Actor struct {
	Permission codehost.Permission `json:"permission"`
}

// Labeling says who set a label last, and when.
type Labeling struct {
	Login string    `json:"login"`
	At    time.Time `json:"at"`
}

// Posted is the review that a call has posted, if it has.
type Posted struct {
	Found bool   `json:"found"`
	URL   string `json:"url,omitempty"`
}

// RepositoryState is what a repository is.
type RepositoryState struct {
	DefaultBranch string `json:"defaultBranch"`
}

// Done is the result of an operation that has none.
type Done struct{}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func itemOfPullRequest(p *codehost.PullRequest) Item {
	return Item{
		Number: p.Number, ID: p.ID, State: string(p.State), Title: characters(p.Title, maxTitle), URL: p.URL, Author: p.Author, Labels: list(p.Labels), CreatedAt: moment(p.Created),
		HeadSHA: p.HeadSHA, HeadBranch: p.Head, HeadRepository: p.HeadRepository, BaseBranch: p.Base, Draft: p.Draft, MergedAt: moment(p.Merged), ClosedAt: moment(p.Closed), MergeSHA: p.MergeSHA,
	}
}

func itemOfIssue(i *codehost.Issue) Item {
	return Item{Number: i.Number, State: string(i.State), Title: characters(i.Title, maxTitle), URL: i.URL, Author: i.Author, Labels: list(i.Labels), CreatedAt: moment(i.Created)}
}

// pages reads a list from its first page on.
func pages[T any](read func(codehost.Page) (codehost.Listed[T], error), item func(*T) Item) (Items, error) {
	const size = 100
	out := Items{Items: []Item{}}
	for n := 1; ; n++ {
		found, err := read(codehost.Page{Number: n, Size: size})
		if err != nil {
			return Items{}, err
		}
		for i := range found.Items {
			out.Items = append(out.Items, item(&found.Items[i]))
		}
		if !found.More || len(out.Items) >= maxOpen {
			out.More = found.More
			return out, nil
		}
	}
}

func openPullRequests(ctx context.Context, p *Place, _ Call, _ NoArguments) (any, error) {
	return pages(func(at codehost.Page) (codehost.Listed[codehost.PullRequest], error) {
		return p.Host.OpenPullRequests(ctx, at)
	}, itemOfPullRequest)
}

func openIssues(ctx context.Context, p *Place, _ Call, _ NoArguments) (any, error) {
	return pages(func(at codehost.Page) (codehost.Listed[codehost.Issue], error) {
		return p.Host.OpenIssues(ctx, false, at)
	}, itemOfIssue)
}

func pullRequestState(ctx context.Context, p *Place, _ Call, a ItemArguments) (any, error) {
	is, err := p.Host.Readiness(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	body, _ := new(budget(maxText)).take(is.PullRequest.Body, maxText)
	return ItemState{Item: itemOfPullRequest(&is.PullRequest), Body: body, Ready: is.Ready, Reason: is.Reason}, nil
}

func issueState(ctx context.Context, p *Place, _ Call, a ItemArguments) (any, error) {
	is, err := p.Host.Issue(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	body, _ := new(budget(maxText)).take(is.Body, maxText)
	return ItemState{Item: itemOfIssue(&is), Body: body}, nil
}

func actorPermission(ctx context.Context, p *Place, _ Call, a ActorArguments) (any, error) {
	may, err := p.Host.Permission(ctx, a.Login)
	if err != nil {
		return nil, err
	}
	return Actor{may}, nil
}

func removeLabel(ctx context.Context, p *Place, _ Call, a LabelArguments) (any, error) {
	return Done{}, p.Host.RemoveLabel(ctx, a.Number, a.Label)
}

// updateBranch brings the base branch into the head, if that is still the commit that the caller has seen.
func updateBranch(ctx context.Context, p *Place, c Call, a ItemArguments) (any, error) {
	if c.HeadSHA == "" {
		return nil, invalid("headSHA: is needed to update the branch of pull request %s", strconv.FormatInt(a.Number, 10))
	}
	return Done{}, p.Host.UpdateBranch(ctx, a.Number, c.HeadSHA)
}

// labelActor finds out who set a label that is set now.
func labelActor(ctx context.Context, p *Place, _ Call, a LabelArguments) (any, error) {
	by, err := p.Host.Labeling(ctx, a.Number, a.Label)
	if err != nil {
		return nil, err
	}
	return Labeling{by.Login, by.At.UTC()}, nil
}

// postedReview looks for the review that a call with the same key has posted.
func postedReview(ctx context.Context, p *Place, c Call, a ItemArguments) (any, error) {
	all, err := p.Host.PullRequestReviews(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	if r := ours(all, func(r *codehost.Review) string { return r.Body }, c.Key); r != nil {
		return Posted{true, r.URL}, nil
	}
	return Posted{}, nil
}

func repositoryState(ctx context.Context, p *Place, _ Call, _ NoArguments) (any, error) {
	r, err := p.Host.Repository(ctx)
	if err != nil {
		return nil, err
	}
	return RepositoryState{r.DefaultBranch}, nil
}
