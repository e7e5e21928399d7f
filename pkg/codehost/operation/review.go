// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/lines"
	"github.com/platform-ai/platform/pkg/codehost/marker"
)

type reviewArguments struct {
	Number   int64                `json:"pr_number"`
	Body     string               `json:"body"`
	Event    codehost.ReviewEvent `json:"event"`
	Comments []inlineComment      `json:"comments"`
}

type inlineComment struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Body string `json:"body"`
}

// dropped is a comment that was not posted, and why.
type dropped struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

type reviewed struct {
	ReviewID int64  `json:"review_id"`
	Status   string `json:"status"`
	HTMLURL  string `json:"html_url"`
	HeadSHA  string `json:"head_sha"`
	// Dropped are comments on lines that the change does not have.
	Dropped []dropped `json:"dropped_comments,omitempty"`
	Message string    `json:"message,omitempty"`
}

// Results of a review. One that is stale is of a commit that is the head no longer.
const (
	submitted = "submitted"
	stale     = "stale"
)

func postReview(ctx context.Context, p *Place, c Call, a reviewArguments) (any, error) {
	if err := p.checkReview(a); err != nil {
		return nil, err
	}
	is, err := p.Host.PullRequest(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	find := func(ctx context.Context) (*codehost.Review, error) {
		all, err := p.Host.PullRequestReviews(ctx, a.Number)
		return ours(all, func(r *codehost.Review) string { return r.Body }, c.Key), err
	}
	var left []dropped
	made, err := written(ctx, p, find, func(ctx context.Context) (codehost.Review, error) {
		if is.State != codehost.Open {
			return codehost.Review{}, refused("pull request %d is %s", is.Number, is.State)
		}
		if err := sameHead(c, is); err != nil {
			return codehost.Review{}, err
		}
		if err := p.checkMarks(a.Body, is); err != nil {
			return codehost.Review{}, err
		}
		r := codehost.NewReview{Event: a.Event, SHA: is.HeadSHA, Body: a.Body + "\n\n" + mark(c.Key, is.HeadSHA)}
		var err error
		if r.Comments, left, err = p.placed(ctx, a); err != nil {
			return codehost.Review{}, err
		}
		return p.Host.Review(ctx, a.Number, r)
	})
	if err != nil {
		return nil, err
	}
	p.Worked = worked(is, fmt.Sprintf("review-%d", made.ID))
	p.Worked.Reviewed = true
	out := reviewed{ReviewID: made.ID, Status: submitted, HTMLURL: made.URL, Dropped: left}
	if out.HeadSHA, _ = marked(made.Body, c.Key); out.HeadSHA == "" {
		out.HeadSHA = is.HeadSHA // the host's answer to the creation has no body
	}
	if made.State == codehost.Dismissed { // by an earlier request of this call, whose answer was lost, or by a person
		out.Status, out.Message = stale, "the review was dismissed"
		return out, nil
	}
	return p.verify(ctx, a, out)
}

// checkReview checks the texts of a review, without their marks.
func (p *Place) checkReview(a reviewArguments) error {
	text, _ := marker.Remove(a.Body)
	if err := checkText("body", text); err != nil {
		return err
	}
	for i, c := range a.Comments {
		if err := checkText(fmt.Sprintf("comments[%d].body", i), c.Body); err != nil {
			return err
		}
	}
	return nil
}

// checkMarks refuses a body that has a mark, but not that of the head.
func (p *Place) checkMarks(body string, is codehost.PullRequest) error {
	_, n := marker.Remove(body)
	if n == 0 || n == 1 && p.Markers.Find(body, p.subject(is.Number, is.HeadSHA)) {
		return nil
	}
	return refused("body: the marker in it is not the one of the head %s: ask check_pr_review_marker again, and review that head", is.HeadSHA)
}

func (p *Place) subject(number int64, head string) marker.Subject {
	return marker.Subject{Repository: p.Repository, PullRequest: number, HeadSHA: head}
}

// placed returns the comments on lines that the change has, and the others.
func (p *Place) placed(ctx context.Context, a reviewArguments) ([]codehost.NewReviewComment, []dropped, error) {
	if len(a.Comments) == 0 {
		return nil, nil, nil
	}
	files, _, err := p.Host.Files(ctx, a.Number)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]lines.Lines{}
	for _, f := range files {
		known[f.Name] = lines.Commentable(f.Patch)
	}
	var kept []codehost.NewReviewComment
	var left []dropped
	for _, c := range a.Comments {
		switch of, ok := known[c.Path]; {
		case !ok:
			left = append(left, dropped{c.Path, c.Line, "the pull request does not change this file"})
		case !of.Has(c.Line):
			left = append(left, dropped{c.Path, c.Line, "the line is not in the change"})
		default:
			kept = append(kept, codehost.NewReviewComment{Path: c.Path, Line: c.Line, Body: c.Body})
		}
	}
	return kept, left, nil
}

// verify reads the head again. A review of another one is stale, and does not stay an approval.
func (p *Place) verify(ctx context.Context, a reviewArguments, out reviewed) (any, error) {
	now, err := p.Host.PullRequest(ctx, a.Number)
	switch {
	case err == nil && now.HeadSHA == out.HeadSHA:
		if n := len(out.Dropped); n > 0 {
			out.Message = fmt.Sprintf("%d of %d comments were left out", n, len(a.Comments))
		}
		return out, nil
	case err == nil:
		out.Status, out.Message = stale, fmt.Sprintf("the head of the pull request moved to %s: the review is of %s", now.HeadSHA, out.HeadSHA)
	default:
		out.Message = "the review was posted, and whether the head moved meanwhile is not known"
	}
	if a.Event != codehost.Approve {
		return out, nil
	}
	switch err := p.Host.DismissReview(ctx, a.Number, out.ReviewID, "The head of the pull request moved, or could not be read again, after it was reviewed."); {
	case err == nil:
		out.Status, out.Message = stale, out.Message+"; the approval was dismissed"
	case errors.Is(err, codehost.ErrCredential), errors.Is(err, codehost.ErrRefused):
		out.Message += "; the approval could not be dismissed, because the code host refuses that to this credential: tell a person"
	default:
		return nil, errUnknown
	}
	return out, nil
}

type markerArguments struct {
	Number  int64  `json:"pr_number"`
	HeadSHA string `json:"head_sha"`
}

type found struct {
	Found   bool   `json:"found"`
	Number  int64  `json:"pr_number"`
	HeadSHA string `json:"head_sha"`
	Marker  string `json:"marker"`
	// Source is signature or author; empty if there is no mark.
	Source  string `json:"source"`
	HTMLURL string `json:"html_url"`
	Author  string `json:"author"`
	Message string `json:"message"`
}

func checkMarker(ctx context.Context, p *Place, _ Call, a markerArguments) (any, error) {
	is, err := p.Host.PullRequest(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	head := strings.ToLower(a.HeadSHA)
	if head == "" {
		head = is.HeadSHA
	}
	s := p.subject(is.Number, head)
	out := found{Number: is.Number, HeadSHA: head, Marker: p.Markers.Marker(s)}
	switch {
	case is.State != codehost.Open:
		out.Message = fmt.Sprintf("the pull request is %s", is.State)
	case head != is.HeadSHA:
		out.Message = "the head is another commit: " + is.HeadSHA
	}
	all, err := p.Host.PullRequestReviews(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	trusted := p.TrustedAuthor
	for _, r := range all {
		source := ""
		switch {
		case p.Markers.Find(r.Body, s):
			source = "signature"
		case marker.Legacy(r.Body, s):
			if trusted == "" {
				if trusted, err = p.Host.Viewer(ctx); err != nil {
					return nil, err
				}
			}
			if strings.EqualFold(r.Author, trusted) {
				source = "author"
			}
		}
		if source != "" {
			out.Found, out.Source, out.HTMLURL, out.Author = true, source, r.URL, r.Author
			out.Message = strings.TrimPrefix(out.Message+"; this head was reviewed", "; ")
			return out, nil
		}
	}
	out.Message = strings.TrimPrefix(out.Message+"; this head was not reviewed: put the marker unchanged into the body of the review", "; ")
	return out, nil
}
