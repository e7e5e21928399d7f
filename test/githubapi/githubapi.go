// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package githubapi is a stand-in for GitHub in tests: it serves what the platform uses of GitHub's REST API for one repository, at
// /api/v3 as GitHub Enterprise Server does. The statuses, headers and members of its answers are those of GitHub's documentation. The
// real one cannot be reached by tests.
//
// A test may register a webhook. The methods that cause an event send it there and return what the receiver answered.
package githubapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Owner and Name are in the address of the repository.
const (
	Owner = "ada"
	Name  = "shop"
)

// Host is a GitHub with one repository.
//
//large:lines each path of the API and each event of the hook is a method on the same state
type Host struct {
	*httptest.Server
	// Token is what each request must have; ReadOnly may read, and change nothing.
	Token, ReadOnly string
	// Answer, if set, may answer a request in place of the host; it reports whether it did.
	Answer func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	id       int64
	name     string
	branches map[string]string
	pulls    []*Pull
	state    State
	hidden   int
	made     int64
	requests []string
}

// State is what the host knows besides branches and pull requests. What is kept by number belongs to a pull request or an issue.
type State struct {
	// Viewer is the login of the user of Token. Users are the logins of more users, who may do as much, by their tokens.
	Viewer string
	Users  map[string]string
	// Files and Diffs are what pull requests change, by the branch that they come from. Those from Clashing branches conflict.
	Files    map[string][]File
	Diffs    map[string]string
	Clashing []string
	// Changed is how many files each pull request changes, if there are more than are listed.
	Changed int
	// Reviews are in the order in which they were made.
	Reviews map[int64][]*Review
	// Methods are the allowed ways of merging, and Messages those that were given for commits of merges.
	Methods  []string
	Messages map[string]string
	// Statuses are those of commits, in the order in which they were set, and CheckRuns in the order in which they were made.
	Statuses  map[string][]Status
	CheckRuns map[string][]CheckRun
	// Protections and Rules are those of branches.
	Protections map[string]Protection
	Rules       map[string][]Rule
	// Issues are in the order in which they were made. Pull requests are not among them.
	Issues   []*Issue
	Comments map[int64][]*Comment
	// Events are how labels were set and removed, the oldest first.
	Events map[int64][]Event
	// Roles are what users may do, by their logins. Roles of an organization are based on one of GitHub's, by Bases.
	Roles, Bases map[string]string
	// Hook gets the events that a test causes, except for the next ones: Lost is how many are not sent.
	Hook Hook
	Lost int
}

// User is a user as the API describes one.
type User struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
	Type  string `json:"type"`
}

// Label is a label as the API describes it.
type Label struct {
	Name string `json:"name"`
}

// Pull is a pull request as the API describes it.
type Pull struct {
	ID        int64      `json:"id"`
	Number    int64      `json:"number"`
	HTMLURL   string     `json:"html_url"`
	State     string     `json:"state"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	User      *User      `json:"user"`
	Labels    []Label    `json:"labels"`
	Draft     bool       `json:"draft"`
	MergedAt  *time.Time `json:"merged_at"`
	ClosedAt  *time.Time `json:"closed_at"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	Head      End        `json:"head"`
	Base      End        `json:"base"`
	// MergeCommitSHA is the commit of a trial until the pull request is merged.
	MergeCommitSHA *string `json:"merge_commit_sha"`
	// Mergeable is nil until the host has tried, and MergeState is its word for what is lacking, if a test gives one. Lists have
	// neither.
	Mergeable  *bool  `json:"-"`
	MergeState string `json:"-"`
	// Has is the commit of the base branch that the head has in it.
	Has string `json:"-"`
}

// End is a branch of a pull request.
type End struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo Repo   `json:"repo"`
}

// MarshalJSON leaves out a repository that does not exist, as that of a fork that was deleted.
func (e End) MarshalJSON() ([]byte, error) {
	out := map[string]any{"ref": e.Ref, "sha": e.SHA, "label": e.Repo.Owner.Login + ":" + e.Ref, "repo": nil}
	if e.Repo.ID != 0 {
		out["repo"] = e.Repo
	}
	return json.Marshal(out)
}

// Repo is a repository as the API describes it.
type Repo struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	FullName      string `json:"full_name"`
	Private       bool   `json:"private"`
	Fork          bool   `json:"fork"`
	HTMLURL       string `json:"html_url"`
	CloneURL      string `json:"clone_url"`
	DefaultBranch string `json:"default_branch"`
	Owner         User   `json:"owner"`
}

// New starts a host whose repository has a branch main. It ends with the test.
func New(t testing.TB) *Host {
	t.Helper()
	h := &Host{Token: "github-token-of-the-test", ReadOnly: "github-token-that-reads", id: 4711, name: Name, branches: map[string]string{"main": Commit("main")}}
	h.state = State{
		Viewer: "platform", Users: map[string]string{}, Files: map[string][]File{}, Diffs: map[string]string{}, Reviews: map[int64][]*Review{},
		Methods: []string{"merge", "squash", "rebase"}, Messages: map[string]string{}, Statuses: map[string][]Status{}, CheckRuns: map[string][]CheckRun{},
		Protections: map[string]Protection{}, Rules: map[string][]Rule{}, Comments: map[int64][]*Comment{},
		Events: map[int64][]Event{}, Roles: map[string]string{Owner: "admin"}, Bases: map[string]string{},
	}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// Commit is the name of a commit that is made up of a word.
func Commit(word string) string {
	return fmt.Sprintf("%.40s", fmt.Sprintf("%x", word)+strings.Repeat("0", 40))
}

// Location returns the address of the repository.
func (h *Host) Location() string { return h.URL + "/" + Owner + "/" + Name }

// Do changes the host while no request is served.
func (h *Host) Do(change func(branches map[string]string, pulls *[]*Pull)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h.branches, &h.pulls)
	for _, p := range h.pulls { // as the host does some time after a push
		for _, repo := range []*Repo{&p.Head.Repo, &p.Base.Repo} {
			if repo.ID == h.id {
				*repo = h.repo()
			}
		}
		if sha, ok := h.branches[p.Head.Ref]; ok && p.State == "open" && !p.Head.Repo.Fork {
			p.Head.SHA = sha
		}
	}
}

// Change changes what the host knows besides branches and pull requests, while no request is served.
func (h *Host) Change(change func(s *State)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.state)
}

// Rename gives the repository another name; its address redirects from then on. Replace makes another repository of the same name.
func (h *Host) Rename(name string) { h.mu.Lock(); h.name = name; h.mu.Unlock() }

// Replace puts another repository in the place of the one there is.
func (h *Host) Replace() { h.mu.Lock(); h.id++; h.pulls = nil; h.mu.Unlock() }

// Hide leaves new pull requests out of the next lists.
func (h *Host) Hide(lists int) { h.mu.Lock(); h.hidden = lists; h.mu.Unlock() }

// Pulls returns all pull requests.
func (h *Host) Pulls() []Pull {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Pull
	for _, p := range h.pulls {
		all = append(all, *p)
	}
	return all
}

// Requests returns method and path of the requests until now.
func (h *Host) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// ServeHTTP answers a request.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, r.Method+" "+r.URL.Path)
	if h.Answer != nil && h.Answer(w, r) {
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v3")
	if path == "/meta" && ok {
		answer(w, http.StatusOK, map[string]any{"verifiable_password_authentication": true, "installed_version": "3.20.0"})
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "Not Found")
	case h.viewer(token) == nil:
		refuse(w, http.StatusUnauthorized, "Bad credentials")
	case token == h.ReadOnly && r.Method != http.MethodGet:
		refuse(w, http.StatusForbidden, "Resource not accessible by personal access token")
	case path == "/user":
		answer(w, http.StatusOK, h.viewer(token))
	default:
		h.repository(w, r, path)
	}
}

// viewer returns the user of a token; nil if there is none.
func (h *Host) viewer(token string) *User {
	login := h.state.Users[token]
	switch token {
	case h.Token:
		login = h.state.Viewer
	case h.ReadOnly:
		login = "reader"
	}
	return Account(login)
}

// Account returns the user with a login; nil if that is empty.
func Account(login string) *User {
	if login == "" {
		return nil
	}
	return &User{Login: login, ID: int64(len(login)), Type: "User"}
}

// sender returns the user who sent a request.
func (h *Host) sender(r *http.Request) *User {
	return h.viewer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
}

func (h *Host) repository(w http.ResponseWriter, r *http.Request, path string) {
	rest, ok := strings.CutPrefix(path, "/repos/"+Owner+"/"+h.name)
	switch {
	case !ok && h.name != Name && strings.HasPrefix(path, "/repos/"+Owner+"/"+Name):
		w.Header().Set("Location", fmt.Sprintf("%s/api/v3/repositories/%d", h.URL, h.id))
		refuse(w, http.StatusMovedPermanently, "Moved Permanently")
	case ok && rest == "":
		answer(w, http.StatusOK, h.repo())
	case ok && strings.HasPrefix(rest, "/git/ref/heads/"):
		name := strings.TrimPrefix(rest, "/git/ref/heads/")
		if sha, ok := h.branches[name]; ok {
			answer(w, http.StatusOK, map[string]any{"ref": "refs/heads/" + name, "object": map[string]string{"type": "commit", "sha": sha}})
		} else {
			refuse(w, http.StatusNotFound, "Not Found")
		}
	case ok && rest == "/pulls" && r.Method == http.MethodGet:
		h.list(w, r)
	case ok && rest == "/pulls" && r.Method == http.MethodPost:
		h.create(w, r)
	case ok && strings.HasPrefix(rest, "/pulls/"):
		h.pull(w, r, strings.TrimPrefix(rest, "/pulls/"))
	case ok && strings.HasPrefix(rest, "/commits/"):
		h.commit(w, r, strings.TrimPrefix(rest, "/commits/"))
	case ok && strings.HasPrefix(rest, "/branches/"):
		h.branch(w, strings.TrimPrefix(rest, "/branches/"))
	case ok && strings.HasPrefix(rest, "/rules/branches/"):
		answer(w, http.StatusOK, paged(h, w, r, h.state.Rules[strings.TrimPrefix(rest, "/rules/branches/")]))
	case ok && strings.HasPrefix(rest, "/compare/"):
		h.compare(w, strings.TrimPrefix(rest, "/compare/"))
	case ok && strings.HasPrefix(rest, "/collaborators/"):
		h.collaborator(w, r, strings.TrimPrefix(rest, "/collaborators/"))
	case ok && (rest == "/issues" || strings.HasPrefix(rest, "/issues/")):
		h.issues(w, r, strings.Trim(strings.TrimPrefix(rest, "/issues"), "/"))
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

func (h *Host) repo() Repo { return h.repoOf(h.id, Owner) }

func (h *Host) repoOf(id int64, owner string) Repo {
	at := h.URL + "/" + owner + "/" + h.name
	return Repo{
		ID: id, Name: h.name, FullName: owner + "/" + h.name, Private: true, Fork: id != h.id, HTMLURL: at, CloneURL: at + ".git", DefaultBranch: "main",
		Owner: *Account(owner),
	}
}

// Fork returns the fork of the repository that a user has.
func (h *Host) Fork(owner string) Repo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repoOf(h.id+1000+Account(owner).ID, owner)
}

// list serves a page of pull requests, the newest first, and names the next one in the header Link.
func (h *Host) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	found := []*Pull{}
	for _, p := range h.pulls {
		if (q.Get("state") == "all" || p.State == cmp.Or(q.Get("state"), "open")) && (q.Get("head") == "" || q.Get("head") == Owner+":"+p.Head.Ref) {
			found = append([]*Pull{p}, found...)
		}
	}
	if h.hidden > 0 {
		h.hidden--
		found = nil
	}
	answer(w, http.StatusOK, paged(h, w, r, found))
}

// paged returns the page of a list that is asked for, and names the next one and the last one in the header Link.
func paged[T any](h *Host, w http.ResponseWriter, r *http.Request, all []T) []T {
	q := r.URL.Query()
	page, size := number(q.Get("page"), 1), min(number(q.Get("per_page"), 30), 100)
	from, to := min((page-1)*size, len(all)), min(page*size, len(all))
	if to < len(all) {
		link := func(page int, rel string) string {
			q.Set("page", strconv.Itoa(page))
			return fmt.Sprintf(`<%s%s?%s>; rel=%q`, h.URL, r.URL.EscapedPath(), q.Encode(), rel)
		}
		w.Header().Set("Link", link(page+1, "next")+", "+link((len(all)+size-1)/size, "last"))
	}
	return append([]T{}, all[from:to]...)
}

func (h *Host) create(w http.ResponseWriter, r *http.Request) {
	var in struct{ Title, Body, Head, Base string }
	if !read(w, r, &in) {
		return
	}
	head, ok := h.branches[in.Head]
	base, based := h.branches[in.Base]
	exists := slices.ContainsFunc(h.pulls, func(p *Pull) bool { return p.State == "open" && p.Head.Ref == in.Head && p.Base.Ref == in.Base })
	switch {
	case !ok:
		invalid(w, map[string]string{"resource": "PullRequest", "field": "head", "code": "invalid"})
	case !based:
		invalid(w, map[string]string{"resource": "PullRequest", "field": "base", "code": "invalid"})
	case exists:
		invalid(w, map[string]string{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for " + Owner + ":" + in.Head + "."})
	case head == base:
		invalid(w, map[string]string{"resource": "PullRequest", "code": "custom", "message": "No commits between " + in.Base + " and " + in.Head})
	default:
		p := h.open(Pull{User: h.sender(r), Title: in.Title, Body: in.Body, Head: End{Ref: in.Head}, Base: End{Ref: in.Base}})
		answer(w, http.StatusCreated, p)
	}
}

// open makes a pull request of what is said about it. Its branches are in this repository unless others are named.
func (h *Host) open(p Pull) *Pull {
	n, now := int64(len(h.pulls)+len(h.state.Issues)+1), time.Now().UTC()
	if p.Head.Repo.ID == 0 {
		p.Head.Repo = h.repo()
	}
	p.Head.SHA = cmp.Or(p.Head.SHA, h.branches[p.Head.Ref])
	p.Base.Repo, p.Base.SHA, p.Has = h.repo(), h.branches[p.Base.Ref], h.branches[p.Base.Ref]
	p.Labels, p.Mergeable, p.MergeCommitSHA = append([]Label{}, p.Labels...), new(!slices.Contains(h.state.Clashing, p.Head.Ref)), new(Commit("trial"))
	p.ID, p.Number, p.State, p.CreatedAt, p.UpdatedAt = 9000+n, n, "open", now, now
	p.HTMLURL = fmt.Sprintf("%s/%s/%s/pull/%d", h.URL, Owner, h.name, n)
	h.pulls = append(h.pulls, &p)
	return &p
}

// read reads the body of a request. If that fails, it answers and returns false.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return false
	}
	return true
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}

func answer(w http.ResponseWriter, code int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

func refuse(w http.ResponseWriter, code int, message string) {
	answer(w, code, map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

func invalid(w http.ResponseWriter, e map[string]string) {
	answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []any{e}, "documentation_url": "https://docs.github.com/rest/pulls/pulls#create-a-pull-request"})
}
