// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// File is a file that a pull request changes, as the API describes it.
type File struct {
	Filename         string `json:"filename"`
	Status           string `json:"status"`
	Additions        int    `json:"additions"`
	Deletions        int    `json:"deletions"`
	Changes          int    `json:"changes"`
	Patch            string `json:"patch,omitempty"`
	PreviousFilename string `json:"previous_filename,omitempty"`
}

// Review is a review as the API describes it.
type Review struct {
	ID          int64     `json:"id"`
	User        *User     `json:"user"`
	Body        string    `json:"body"`
	State       string    `json:"state"`
	HTMLURL     string    `json:"html_url"`
	CommitID    string    `json:"commit_id"`
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	// Comments are those on lines, which another request lists, and Why is why the review was dismissed.
	Comments []ReviewComment `json:"-"`
	Why      string          `json:"-"`
}

// ReviewComment is a comment on a line as a request has it.
type ReviewComment struct {
	Path, Body, Side string
	Line             int
}

// pull serves what is below one pull request.
func (h *Host) pull(w http.ResponseWriter, r *http.Request, path string) {
	n, below, _ := strings.Cut(path, "/")
	i := slices.IndexFunc(h.pulls, func(p *Pull) bool { return strconv.FormatInt(p.Number, 10) == n })
	if i < 0 {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	p := h.pulls[i]
	id, dismissal := strings.CutSuffix(strings.TrimPrefix(below, "reviews/"), "/dismissals")
	switch route := r.Method + " " + below; {
	case route == "GET ":
		h.one(w, r, p)
	case route == "PATCH ":
		if read(w, r, p) {
			h.turn(p, p.State)
			h.one(w, r, p)
		}
	case route == "GET files":
		answer(w, http.StatusOK, paged(h, w, r, h.state.Files[p.Head.Ref]))
	case route == "GET reviews":
		answer(w, http.StatusOK, paged(h, w, r, h.reviewsFor(h.sender(r), p.Number)))
	case route == "POST reviews":
		h.review(w, r, p)
	case dismissal && r.Method == http.MethodPut:
		h.dismiss(w, r, p, id)
	case route == "PUT merge":
		h.merge(w, r, p)
	case route == "PUT update-branch":
		h.update(w, r, p)
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

// wholePull is a pull request that is not in a list.
type wholePull struct {
	*Pull
	Merged         bool   `json:"merged"`
	Mergeable      *bool  `json:"mergeable"`
	MergeableState string `json:"mergeable_state"`
	ChangedFiles   int    `json:"changed_files"`
}

func (h *Host) whole(p *Pull) wholePull {
	return wholePull{p, p.MergedAt != nil, p.Mergeable, h.mergeState(p), max(h.state.Changed, len(h.state.Files[p.Head.Ref]))}
}

// one serves a pull request, or its diff if that is asked for. There is no diff of more than 20,000 lines.
func (h *Host) one(w http.ResponseWriter, r *http.Request, p *Pull) {
	const most = 20_000
	switch diff := h.state.Diffs[p.Head.Ref]; {
	case r.Header.Get("Accept") != "application/vnd.github.v3.diff":
		answer(w, http.StatusOK, h.whole(p))
	case strings.Count(diff, "\n") > most:
		answer(w, http.StatusNotAcceptable, map[string]any{
			"message":           fmt.Sprintf("Sorry, the diff exceeded the maximum number of lines (%d)", most),
			"errors":            []any{map[string]string{"resource": "PullRequest", "field": "diff", "code": "too_large"}},
			"documentation_url": "https://docs.github.com/rest/pulls/pulls#list-pull-requests-files",
		})
	default:
		w.Header().Set("Content-Type", "application/vnd.github.v3.diff; charset=utf-8")
		_, _ = w.Write([]byte(diff))
	}
}

// reviewsFor returns the reviews that a user sees: pending ones only if they are the user's own.
func (h *Host) reviewsFor(u *User, number int64) []*Review {
	return slices.DeleteFunc(slices.Clone(h.state.Reviews[number]), func(r *Review) bool { return r.State == "PENDING" && r.User.Login != u.Login })
}

func (h *Host) review(w http.ResponseWriter, r *http.Request, p *Pull) {
	var in struct {
		CommitID string `json:"commit_id"`
		Body     string
		Event    string
		Comments []ReviewComment
	}
	if !read(w, r, &in) {
		return
	}
	state, ok := map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED", "": "PENDING"}[in.Event]
	own := p.User != nil && p.User.Login == h.sender(r).Login
	files := h.state.Files[p.Head.Ref]
	lost := slices.ContainsFunc(in.Comments, func(c ReviewComment) bool {
		return c.Line <= 0 || c.Side != "RIGHT" || !slices.ContainsFunc(files, func(f File) bool { return f.Filename == c.Path })
	})
	switch {
	case !ok:
		unprocessable(w, "Variable $event of type PullRequestReviewEvent was provided invalid value")
	case in.Event == "APPROVE" && own:
		unprocessable(w, "Review Can not approve your own pull request")
	case in.Event == "REQUEST_CHANGES" && own:
		unprocessable(w, "Review Can not request changes on your own pull request")
	case strings.TrimSpace(in.Body) == "" && (in.Event == "REQUEST_CHANGES" || in.Event == "COMMENT" && len(in.Comments) == 0):
		unprocessable(w, "Could not comment pull request review.")
	case in.CommitID != "" && !isCommit(in.CommitID):
		unprocessable(w, "The commit_id is not part of the pull request")
	case lost:
		unprocessable(w, "Path could not be resolved", "Line could not be resolved")
	default:
		if in.CommitID == "" {
			in.CommitID = p.Head.SHA
		}
		id := h.next()
		made := &Review{
			ID: id, User: h.sender(r), Body: in.Body, State: state, CommitID: in.CommitID, HTMLURL: fmt.Sprintf("%s#pullrequestreview-%d", p.HTMLURL, id),
			SubmittedAt: time.Now().UTC(), Comments: in.Comments,
		}
		h.state.Reviews[p.Number] = append(h.state.Reviews[p.Number], made)
		answer(w, http.StatusOK, made)
	}
}

func (h *Host) dismiss(w http.ResponseWriter, r *http.Request, p *Pull, id string) {
	var in struct{ Message, Event string }
	if !read(w, r, &in) {
		return
	}
	all := h.state.Reviews[p.Number]
	i := slices.IndexFunc(all, func(r *Review) bool { return strconv.FormatInt(r.ID, 10) == id })
	switch {
	case i < 0:
		refuse(w, http.StatusNotFound, "Not Found")
	case in.Message == "" || in.Event != "" && in.Event != "DISMISS":
		unprocessable(w, "Message can't be blank")
	case all[i].State != "APPROVED" && all[i].State != "CHANGES_REQUESTED":
		unprocessable(w, "Can not dismiss a "+strings.ToLower(all[i].State)+" pull request review")
	default:
		all[i].State, all[i].Why = "DISMISSED", in.Message
		answer(w, http.StatusOK, all[i])
	}
}

func (h *Host) merge(w http.ResponseWriter, r *http.Request, p *Pull) {
	var in struct {
		SHA           string
		MergeMethod   string `json:"merge_method"`
		CommitTitle   string `json:"commit_title"`
		CommitMessage string `json:"commit_message"`
	}
	if !read(w, r, &in) {
		return
	}
	if in.MergeMethod == "" {
		in.MergeMethod = "merge"
	}
	switch lacking := h.lacking(p); {
	case !slices.Contains([]string{"merge", "squash", "rebase"}, in.MergeMethod) || in.SHA != "" && !isCommit(in.SHA):
		unprocessable(w, "Invalid request")
	case p.State != "open" || p.Mergeable == nil || !*p.Mergeable:
		refuse(w, http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case in.SHA != "" && in.SHA != p.Head.SHA:
		refuse(w, http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case p.Draft:
		refuse(w, http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case !slices.Contains(h.state.Methods, in.MergeMethod):
		refuse(w, http.StatusMethodNotAllowed, "This way of merging is not allowed on this repository.")
	case lacking != "":
		refuse(w, http.StatusMethodNotAllowed, lacking)
	default:
		sha := Commit(fmt.Sprintf("merge-%d", p.Number))
		p.MergedAt, p.MergeCommitSHA, h.branches[p.Base.Ref] = new(time.Now().UTC()), &sha, sha
		h.turn(p, "closed")
		h.state.Messages[sha] = in.CommitTitle + "\n\n" + in.CommitMessage
		answer(w, http.StatusOK, map[string]any{"sha": sha, "merged": true, "message": "Pull Request successfully merged"})
	}
}

// next returns a number for something new.
func (h *Host) next() int64 {
	h.made++
	return 70_000 + h.made
}

func isCommit(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 20
}

// unprocessable answers that a request has errors. Some answers have texts where others have objects.
func unprocessable(w http.ResponseWriter, errors ...string) {
	answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Unprocessable Entity", "errors": errors, "documentation_url": "https://docs.github.com/rest"})
}
