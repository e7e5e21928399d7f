// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Issue is an issue as the API describes it.
type Issue struct {
	ID          int64             `json:"id"`
	Number      int64             `json:"number"`
	Title       string            `json:"title"`
	Body        string            `json:"body"`
	State       string            `json:"state"`
	HTMLURL     string            `json:"html_url"`
	User        *User             `json:"user"`
	Labels      []Label           `json:"labels"`
	Assignees   []*User           `json:"assignees"`
	Comments    int               `json:"comments"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	PullRequest map[string]string `json:"pull_request,omitempty"`
}

// Comment is a comment of an issue or of a pull request as the API describes it.
type Comment struct {
	ID        int64     `json:"id"`
	User      *User     `json:"user"`
	Body      string    `json:"body"`
	HTMLURL   string    `json:"html_url"`
	CreatedAt time.Time `json:"created_at"`
}

// Report makes an issue and returns its number.
func (h *Host) Report(author, title, body string, assignees ...string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.report(author, title, body, assignees...).Number
}

func (h *Host) report(author, title, body string, assignees ...string) *Issue {
	n, now := int64(len(h.pulls)+len(h.state.Issues)+1), time.Now().UTC()
	i := &Issue{
		ID: h.next(), Number: n, Title: title, Body: body, State: "open", User: Account(author), Labels: []Label{}, Assignees: []*User{},
		HTMLURL: fmt.Sprintf("%s/%s/%s/issues/%d", h.URL, Owner, h.name, n), CreatedAt: now, UpdatedAt: now,
	}
	for _, login := range assignees {
		i.Assignees = append(i.Assignees, Account(login))
	}
	h.state.Issues = append(h.state.Issues, i)
	return i
}

// all returns the issues and, as GitHub does, the pull requests, the newest first.
func (h *Host) all() []*Issue {
	var all []*Issue
	for _, i := range h.state.Issues {
		i.Comments = len(h.state.Comments[i.Number])
		all = append(all, i)
	}
	for _, p := range h.pulls {
		all = append(all, &Issue{
			ID: p.ID, Number: p.Number, Title: p.Title, Body: p.Body, State: p.State, HTMLURL: p.HTMLURL, User: p.User, Labels: p.Labels,
			Assignees: []*User{}, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, PullRequest: map[string]string{"html_url": p.HTMLURL},
		})
	}
	slices.SortFunc(all, func(a, b *Issue) int { return cmp.Compare(b.Number, a.Number) })
	return all
}

// issues serves the list of issues, an issue, and its comments.
func (h *Host) issues(w http.ResponseWriter, r *http.Request, path string) {
	n, what, _ := strings.Cut(path, "/")
	all := h.all()
	if n == "" {
		q := r.URL.Query()
		state := cmp.Or(q.Get("state"), "open")
		answer(w, http.StatusOK, paged(h, w, r, slices.DeleteFunc(all, func(i *Issue) bool {
			return state != "all" && i.State != state || q.Get("assignee") == "none" && len(i.Assignees) > 0
		})))
		return
	}
	i := slices.IndexFunc(all, func(i *Issue) bool { return strconv.FormatInt(i.Number, 10) == n })
	switch {
	case i < 0:
		refuse(w, http.StatusNotFound, "Not Found")
	case r.Method == http.MethodGet && what == "":
		answer(w, http.StatusOK, all[i])
	case r.Method == http.MethodGet && what == "comments":
		answer(w, http.StatusOK, paged(h, w, r, h.state.Comments[all[i].Number]))
	case r.Method == http.MethodGet && what == "events":
		answer(w, http.StatusOK, paged(h, w, r, h.state.Events[all[i].Number]))
	case r.Method == http.MethodPost && what == "comments":
		h.comment(w, r, all[i])
	case r.Method == http.MethodDelete && strings.HasPrefix(what, "labels/"):
		h.unlabel(w, r, all[i].Number, strings.TrimPrefix(what, "labels/"))
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

func (h *Host) comment(w http.ResponseWriter, r *http.Request, i *Issue) {
	var in struct{ Body string }
	if !read(w, r, &in) {
		return
	}
	if strings.TrimSpace(in.Body) == "" {
		unprocessable(w, "Body cannot be blank")
		return
	}
	id := h.next()
	c := &Comment{ID: id, User: h.sender(r), Body: in.Body, HTMLURL: fmt.Sprintf("%s#issuecomment-%d", i.HTMLURL, id), CreatedAt: time.Now().UTC()}
	h.state.Comments[i.Number] = append(h.state.Comments[i.Number], c)
	i.UpdatedAt = c.CreatedAt
	answer(w, http.StatusCreated, c)
}
