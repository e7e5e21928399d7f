// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost/webhook"
)

// headers are those of a delivery of GitHub, with others that names and values are.
func headers(event string, others ...string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	h.Set("X-GitHub-Event", event)
	h.Set("X-GitHub-Hook-ID", "292430182")
	for i := 0; i < len(others); i += 2 {
		h.Set(others[i], others[i+1])
	}
	return h
}

// giteaHeaders are those that Gitea 1.26 sends (services/webhook/deliver.go), as far as they are of interest.
func giteaHeaders(event, kind string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	for _, host := range []string{"Gitea", "Gogs", "GitHub"} {
		h.Set("X-"+host+"-Delivery", "ecf2a777-204a-476c-bc7d-b185a8265554")
		h.Set("X-"+host+"-Event", event)
		h.Set("X-"+host+"-Event-Type", kind)
	}
	h.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
	return h
}

const (
	sha = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"

	githubRepository = `"repository":{"id":186853002,"name":"Hello-World","full_name":"Codertocat/Hello-World","private":false,"html_url":"https://github.com/Codertocat/Hello-World","default_branch":"main"}`
	githubSender     = `"sender":{"login":"Codertocat","id":21031067,"type":"User","site_admin":false}`
	githubIssue      = `"issue":{"number":1,"html_url":"https://github.com/Codertocat/Hello-World/issues/1","title":"Spelling error","user":{"login":"Codertocat"},"labels":[{"id":1,"name":"bug","color":"d73a4a"},{"id":2,"name":"agent: fix"}],"state":"open","body":"words"}`
	githubPull       = `"number":2,"pull_request":{"number":2,"html_url":"https://github.com/Codertocat/Hello-World/pull/2","title":"Update the README","labels":[],"draft":true,"merged":false,` +
		`"head":{"label":"someone:changes","ref":"changes","sha":"` + sha + `","repo":{"full_name":"someone/Hello-World","html_url":"https://github.com/someone/Hello-World"}},` +
		`"base":{"label":"Codertocat:main","ref":"main","sha":"` + sha + `","repo":{"full_name":"Codertocat/Hello-World"}}}`

	// What Gitea's structs become (modules/structs), with fewer members of users, and of repositories in branches.
	giteaUser       = `{"id":2,"login":"owner","login_name":"","source_id":0,"full_name":"","email":"2+owner@noreply.127.0.0.1","html_url":"http://127.0.0.1:3000/owner","is_admin":false,"created":"2026-11-29T23:49:27Z","visibility":"public","username":"owner"}`
	giteaRepository = `"repository":{"id":1,"owner":` + giteaUser + `,"name":"repo","full_name":"owner/repo","description":"","empty":false,"private":true,"fork":false,"html_url":"http://127.0.0.1:3000/owner/repo","url":"http://127.0.0.1:3000/api/v1/repos/owner/repo","clone_url":"http://127.0.0.1:3000/owner/repo.git","default_branch":"main","object_format_name":"sha1","topics":[],"licenses":[]}`
	giteaSender     = `"sender":` + giteaUser
	giteaBug        = `{"id":1,"name":"bug","exclusive":false,"is_archived":false,"color":"00aabb","description":"","url":"http://127.0.0.1:3000/api/v1/repos/owner/repo/labels/1"}`
	giteaAgent      = `{"id":2,"name":"platform/do it","exclusive":true,"is_archived":false,"color":"00aabb","description":"","url":"http://127.0.0.1:3000/api/v1/repos/owner/repo/labels/2"}`
	giteaPull       = `"pull_request":{"id":1,"url":"http://127.0.0.1:3000/owner/repo/pulls/2","number":2,"user":` + giteaUser + `,"title":"a change","body":"","labels":[` + giteaBug + `],"milestone":null,"assignee":null,"assignees":[],"requested_reviewers":[],"requested_reviewers_teams":[],"state":"open","draft":false,"is_locked":false,"comments":0,` +
		`"html_url":"http://127.0.0.1:3000/owner/repo/pulls/2","mergeable":true,"merged":false,"merged_at":null,"merge_commit_sha":null,"merged_by":null,"allow_maintainer_edit":true,` +
		`"base":{"label":"main","ref":"main","sha":"` + sha + `","repo_id":1,"repo":{"id":1,"full_name":"owner/repo"}},"head":{"label":"work","ref":"work","sha":"` + sha + `","repo_id":1,"repo":{"id":1,"full_name":"owner/repo"}},` +
		`"merge_base":"` + sha + `","due_date":null,"created_at":"2026-11-29T23:49:31Z","closed_at":null,"pin_order":0,"content_version":0},"requested_reviewer":null`
	giteaPullEnd  = `,"commit_id":"","review":null}`
	giteaIssueEnd = `,"commit_id":""}`
)

// giteaIssue is an issue of Gitea with these labels.
func giteaIssue(labels string) string {
	return `"issue":{"id":1,"url":"http://127.0.0.1:3000/api/v1/repos/owner/repo/issues/1","html_url":"http://127.0.0.1:3000/owner/repo/issues/1","number":1,"user":` + giteaUser +
		`,"original_author":"","original_author_id":0,"title":"Something is wrong","body":"words","ref":"","assets":[],"labels":[` + labels + `],"milestone":null,"assignee":null,"assignees":null,"state":"open","is_locked":false,"comments":0,` +
		`"created_at":"2026-11-29T23:49:30Z","closed_at":null,"due_date":null,"time_estimate":0,"pull_request":null,"repository":{"id":1,"name":"repo","owner":"owner","full_name":"owner/repo"},"pin_order":0,"content_version":0}`
}

func object(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

// with returns an event with a change.
func with(e webhook.Event, change func(*webhook.Event)) webhook.Event {
	change(&e)
	return e
}

var (
	wantIssue = webhook.Event{
		Delivery: "72d3162e-cc78-11e3-81ab-4c9367dc0958", Hook: "292430182", Name: "issues", Kind: webhook.Issue, Action: "opened", AllLabels: []string{"bug", "agent: fix"},
		Repository: "Codertocat/Hello-World", RepositoryURL: "https://github.com/Codertocat/Hello-World", DefaultBranch: "main", Number: 1, Title: "Spelling error", Body: "words",
		URL: "https://github.com/Codertocat/Hello-World/issues/1", Sender: "Codertocat", SenderType: "User",
	}
	wantPull = webhook.Event{
		Delivery: wantIssue.Delivery, Hook: wantIssue.Hook, Name: "pull_request", Kind: webhook.PullRequest, Action: "opened",
		Repository: wantIssue.Repository, RepositoryURL: wantIssue.RepositoryURL, DefaultBranch: "main", Number: 2, Title: "Update the README",
		URL: "https://github.com/Codertocat/Hello-World/pull/2", Sender: "Codertocat", SenderType: "User",
		HeadRef: "changes", HeadSHA: sha, HeadRepository: "someone/Hello-World", BaseRef: "main", Draft: true,
	}
	wantGiteaIssue = webhook.Event{
		Delivery: "ecf2a777-204a-476c-bc7d-b185a8265554", Gitea: true, Name: "issues", Kind: webhook.Issue, Repository: "owner/repo", RepositoryURL: "http://127.0.0.1:3000/owner/repo",
		DefaultBranch: "main", Number: 1, Title: "Something is wrong", Body: "words", URL: "http://127.0.0.1:3000/owner/repo/issues/1", Sender: "owner", AllLabels: []string{"bug"},
	}
	wantGiteaPull = webhook.Event{
		Delivery: wantGiteaIssue.Delivery, Gitea: true, Name: "pull_request", Kind: webhook.PullRequest, Repository: "owner/repo", RepositoryURL: wantGiteaIssue.RepositoryURL,
		DefaultBranch: "main", Number: 2, Title: "a change", URL: "http://127.0.0.1:3000/owner/repo/pulls/2", Sender: "owner", AllLabels: []string{"bug"},
		HeadRef: "work", HeadSHA: sha, HeadRepository: "owner/repo", BaseRef: "main",
	}
)

// TestGitHub: what GitHub delivers.
func TestGitHub(t *testing.T) {
	replaced := func(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
	issue := func(e func(*webhook.Event)) webhook.Event { return with(wantIssue, e) }
	pull := func(e func(*webhook.Event)) webhook.Event { return with(wantPull, e) }
	for name, c := range map[string]struct {
		event, body string
		want        webhook.Event
	}{
		"issue opened": {"issues", object(`"action":"opened"`, githubIssue, githubRepository, githubSender), wantIssue},
		"issue labeled": {
			"issues", object(`"action":"labeled"`, githubIssue, `"label":{"id":2,"name":"agent: fix"}`, githubRepository, githubSender),
			issue(func(e *webhook.Event) { e.Action, e.Labels = webhook.Labeled, []string{"agent: fix"} }),
		},
		"issue unlabeled": {
			"issues", object(`"action":"unlabeled"`, githubIssue, `"label":{"name":"gone"}`, githubRepository, githubSender),
			issue(func(e *webhook.Event) { e.Action, e.Labels = webhook.Unlabeled, []string{"gone"} }),
		},
		"label of a label that was removed from the repository": {
			"issues", object(`"action":"unlabeled"`, githubIssue, githubRepository, githubSender),
			issue(func(e *webhook.Event) { e.Action = webhook.Unlabeled }),
		},
		"a label where none is expected": {
			"issues", object(`"action":"opened"`, githubIssue, `"label":{"name":"bug"}`, githubRepository, githubSender), wantIssue,
		},
		"issue of a pull request": {
			"issues", object(`"action":"milestoned"`, replaced(githubIssue, `"state"`, `"pull_request":{"url":"https://api.github.com"},"state"`), githubRepository, githubSender),
			issue(func(e *webhook.Event) { e.Action, e.IsPullRequest = "milestoned", true }),
		},
		"no sender, labels or default branch": {
			"issues", object(`"action":"edited"`, `"issue":{"number":9007199254740993}`, `"repository":{"full_name":"o/.github"}`),
			webhook.Event{Delivery: wantIssue.Delivery, Hook: wantIssue.Hook, Name: "issues", Kind: webhook.Issue, Action: "edited", Number: 9007199254740993, Repository: "o/.github"},
		},
		"pull request opened": {"pull_request", object(`"action":"opened"`, githubPull, githubRepository, githubSender), wantPull},
		"pull request ready": {
			"pull_request", object(`"action":"ready_for_review"`, replaced(githubPull, `"draft":true`, `"draft":false`), githubRepository, githubSender),
			pull(func(e *webhook.Event) { e.Action, e.Draft = "ready_for_review", false }),
		},
		"pull request merged": {
			"pull_request", object(`"action":"closed"`, replaced(githubPull, `"merged":false`, `"merged":true`), githubRepository, githubSender),
			pull(func(e *webhook.Event) { e.Action, e.Merged = "closed", true }),
		},
		"pull request from a repository that is gone": {
			"pull_request", object(`"action":"synchronize"`, replaced(githubPull, `{"full_name":"someone/Hello-World","html_url":"https://github.com/someone/Hello-World"}`, `null`), githubRepository, githubSender),
			pull(func(e *webhook.Event) { e.Action, e.HeadRepository = webhook.Synchronize, "" }),
		},
		"pull request labeled": {
			"pull_request", object(`"action":"labeled"`, replaced(githubPull, `"labels":[]`, `"labels":[{"name":"x"}]`), `"label":{"name":"x"}`, githubRepository, githubSender),
			pull(func(e *webhook.Event) {
				e.Action, e.Labels, e.AllLabels = webhook.Labeled, []string{"x"}, []string{"x"}
			}),
		},
		"a commit of SHA-256, and no commit": {
			"pull_request", object(`"action":"opened"`, replaced(githubPull, `"changes","sha":"`+sha+`"`, `"changes","sha":"`+strings.Repeat("0a", 32)+`"`), githubRepository, githubSender),
			pull(func(e *webhook.Event) { e.HeadSHA = strings.Repeat("0a", 32) }),
		},
		"no commit": {
			"pull_request", object(`"action":"opened"`, replaced(githubPull, `"changes","sha":"`+sha+`"`, `"changes","sha":""`), githubRepository, githubSender),
			pull(func(e *webhook.Event) { e.HeadSHA = "" }),
		},
		"members in another case are others": {
			"issues", object(`"action":"opened"`, `"Action":"closed"`, `"ISSUE":{"number":7}`, githubIssue, githubRepository, githubSender), wantIssue,
		},
	} {
		t.Run(name, func(t *testing.T) { same(t, headers(c.event), c.body, c.want) })
	}
}

// TestGiteaWords: what Gitea delivers has GitHub's words.
func TestGiteaWords(t *testing.T) {
	none := `"changes":{"added_labels":null,"removed_labels":null}`
	for name, c := range map[string]struct {
		event, kind, body string
		want              webhook.Event
	}{
		"issue opened": {
			"issues", "issues", object(`"action":"opened"`, `"number":1`, giteaIssue(giteaBug), giteaRepository, giteaSender+giteaIssueEnd[:len(giteaIssueEnd)-1]),
			with(wantGiteaIssue, func(e *webhook.Event) { e.Action = "opened" }),
		},
		"labels without a difference": {
			"issues", "issue_label", object(`"action":"label_updated"`, `"number":1`, giteaIssue(giteaBug), giteaRepository, giteaSender),
			with(wantGiteaIssue, func(e *webhook.Event) { e.Action = webhook.LabelUpdated }),
		},
		"labels with an empty difference": {
			"issues", "issue_label", object(`"action":"label_updated"`, `"number":1`, none, giteaIssue(giteaBug), giteaRepository, giteaSender),
			with(wantGiteaIssue, func(e *webhook.Event) { e.Action = webhook.LabelUpdated }),
		},
		"labels added and removed": {
			"issues", "issue_label", object(`"action":"label_updated"`, `"number":1`, `"changes":{"added_labels":[`+giteaAgent+`,`+giteaBug+`],"removed_labels":[`+giteaBug+`]}`, giteaIssue(giteaBug), giteaRepository, giteaSender),
			with(wantGiteaIssue, func(e *webhook.Event) {
				e.Action, e.Labels = webhook.Labeled, []string{"platform/do it", "bug"}
			}),
		},
		"labels removed": {
			"pull_request", "pull_request_label", object(`"action":"label_updated"`, `"number":2`, `"changes":{"added_labels":null,"removed_labels":[`+giteaAgent+`]}`, giteaPull, giteaRepository, giteaSender+giteaPullEnd[:len(giteaPullEnd)-1]),
			with(wantGiteaPull, func(e *webhook.Event) { e.Action, e.Labels = webhook.Unlabeled, []string{"platform/do it"} }),
		},
		"labels cleared": { // Gitea lists the labels from before
			"issues", "issue_label", object(`"action":"label_cleared"`, `"number":1`, giteaIssue(giteaBug), giteaRepository, giteaSender),
			with(wantGiteaIssue, func(e *webhook.Event) { e.Action, e.AllLabels = webhook.Unlabeled, nil }),
		},
		"labels cleared, with the difference": {
			"issues", "issue_label", object(`"action":"label_cleared"`, `"number":1`, `"changes":{"added_labels":[`+giteaAgent+`],"removed_labels":[`+giteaBug+`]}`, giteaIssue(giteaBug), giteaRepository, giteaSender),
			with(wantGiteaIssue, func(e *webhook.Event) { e.Action, e.Labels, e.AllLabels = webhook.Unlabeled, []string{"bug"}, nil }),
		},
		"title changed": {
			"pull_request", "pull_request", object(`"action":"edited"`, `"number":2`, `"changes":{"title":{"from":"WIP: a change"},"added_labels":null,"removed_labels":null}`, giteaPull, giteaRepository, giteaSender),
			with(wantGiteaPull, func(e *webhook.Event) { e.Action = "edited" }),
		},
		"other commits": {
			"pull_request", "pull_request_sync", object(`"action":"synchronized"`, `"number":2`, giteaPull, giteaRepository, giteaSender),
			with(wantGiteaPull, func(e *webhook.Event) { e.Action = webhook.Synchronize }),
		},
		"branch that is gone": {
			"pull_request", "pull_request", object(`"action":"closed"`, `"number":2`, strings.Replace(giteaPull, `"ref":"work"`, `"ref":"refs/pull/2/head"`, 1), giteaRepository, giteaSender),
			with(wantGiteaPull, func(e *webhook.Event) { e.Action, e.HeadRef = "closed", "refs/pull/2/head" }),
		},
	} {
		t.Run(name, func(t *testing.T) { same(t, giteaHeaders(c.event, c.kind), c.body, c.want) })
	}
}

// same checks what a body means, sent as JSON and as a form.
func same(t *testing.T, h http.Header, body string, want webhook.Event) {
	t.Helper()
	if !json.Valid([]byte(body)) {
		t.Fatalf("the test is wrong: %s", body)
	}
	got, err := webhook.Parse(h, []byte(body))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got\n%+v, want\n%+v", err, got, want)
	}
	if fault := outside(got); fault != "" {
		t.Error(fault)
	}
	h = h.Clone()
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	if form, err := webhook.Parse(h, []byte(url.Values{"payload": {body}}.Encode())); err != nil || !reflect.DeepEqual(form, want) {
		t.Errorf("as a form: %v %+v", err, form)
	}
}

// TestOtherEvents: the body of an event that is about neither issues nor pull requests is not looked at.
func TestOtherEvents(t *testing.T) {
	for _, name := range []string{"ping", "push", "issue_comment", "pull_request_review", "pull_request_approved", "Issues"} {
		for _, body := range []string{"", "{", "\xff", strings.Repeat("[", 1000)} {
			want := webhook.Event{Delivery: wantIssue.Delivery, Hook: wantIssue.Hook, Name: name}
			if got, err := webhook.Parse(headers(name, "Content-Type", "text/plain"), []byte(body)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v %+v", name, err, got)
			}
		}
	}
}

// TestHeaders: what headers may say.
func TestHeaders(t *testing.T) {
	twice := headers("ping")
	twice.Add("X-GitHub-Event", "issues")
	for name, c := range map[string]struct {
		header http.Header
		want   webhook.Event
		err    string
	}{
		"only Gitea's": {http.Header{"X-Gitea-Event": {"push"}, "X-Gitea-Delivery": {"1"}}, webhook.Event{Name: "push", Delivery: "1", Gitea: true}, ""},
		"GitHub's before Gitea's": {
			headers("ping", "X-Gitea-Event", "push", "X-Gitea-Delivery", "1"),
			webhook.Event{Name: "ping", Delivery: wantIssue.Delivery, Hook: wantIssue.Hook, Gitea: true},
			"",
		},
		"only the event":     {http.Header{"X-Github-Event": {"ping"}}, webhook.Event{Name: "ping"}, ""},
		"none":               {nil, webhook.Event{}, "X-GitHub-Event: must name the event"},
		"an empty event":     {headers(""), webhook.Event{}, "X-GitHub-Event: must name the event"},
		"the event twice":    {twice, webhook.Event{}, "X-GitHub-Event: must not be there twice"},
		"as long as allowed": {headers(strings.Repeat("x", 128)), webhook.Event{Name: strings.Repeat("x", 128), Delivery: wantIssue.Delivery, Hook: wantIssue.Hook}, ""},
		"too long":           {headers(strings.Repeat("x", 129)), webhook.Event{}, "X-GitHub-Event: must be at most 128 visible characters of ASCII"},
		"a space":            {headers("ping", "X-GitHub-Delivery", "a b"), webhook.Event{}, "X-GitHub-Delivery: must be at most 128 visible characters of ASCII"},
		"not ASCII":          {headers("ping", "X-GitHub-Delivery", "ä"), webhook.Event{}, "X-GitHub-Delivery: must be at most 128 visible characters of ASCII"},
		"no hook number":     {headers("ping", "X-GitHub-Hook-ID", "12a"), webhook.Event{}, "X-GitHub-Hook-ID: must be a number"},
		"another media type": {headers("issues", "Content-Type", "text/json"), webhook.Event{}, "Content-Type: must be application/json or application/x-www-form-urlencoded"},
		"no media type":      {headers("issues", "Content-Type", ";"), webhook.Event{}, "Content-Type: must be application/json or application/x-www-form-urlencoded"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := webhook.Parse(c.header, []byte("{}"))
			if c.err != "" {
				refused(t, err, c.err)
			} else if err != nil {
				t.Error(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
	good := object(`"action":"opened"`, githubIssue, githubRepository, githubSender)
	for _, media := range []string{"application/json; charset=utf-8", "Application/JSON", ""} {
		if got, err := webhook.Parse(headers("issues", "Content-Type", media), []byte(good)); err != nil || !reflect.DeepEqual(got, wantIssue) {
			t.Errorf("%q: %v %+v", media, err, got)
		}
	}
}

// refused checks an error.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, webhook.ErrMalformed) || err.Error() != webhook.ErrMalformed.Error()+": "+want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestMalformed: an error names the member and its rule, and nothing of what was sent.
func TestMalformed(t *testing.T) {
	const (
		ref    = "must be 1 to 512 bytes and a name that git allows a branch, and must not begin with '-'"
		repo   = "must be OWNER/NAME, each of 1 to 128 letters, digits, '.', '_' and '-', without '..' and not beginning with '-'"
		login  = "must be the name of a user: 1 to 128 letters, digits, '.', '_' and '-', with or without [bot] at the end"
		secret = "s3cret"
	)
	issue := object(`"action":"opened"`, githubIssue, githubRepository, githubSender)
	pull := object(`"action":"opened"`, githubPull, githubRepository, githubSender)
	many := strings.Repeat(`{"name":"x"},`, 101)
	for name, c := range map[string]struct{ event, old, new, want string }{
		"no JSON":            {"issues", issue, secret, "body: must be one JSON object"},
		"nothing":            {"issues", issue, "", "body: must be one JSON object"},
		"null":               {"issues", issue, "null", "body: must be one JSON object"},
		"a list":             {"issues", issue, "[]", "body: must be one JSON object"},
		"text after it":      {"issues", issue, issue + secret, "body: must be one JSON object"},
		"not UTF-8":          {"issues", "Spelling error", "\xff", "body: must be UTF-8"},
		"a member twice":     {"issues", `"action":"opened"`, `"action":"opened","action":"closed"`, "body: must not have a member twice"},
		"deep":               {"issues", `"words"`, strings.Repeat("[", 200) + strings.Repeat("]", 200), "body: must have at most 20000 values (members, entries and elements), nested at most 100 deep"},
		"no action":          {"issues", `"action":"opened"`, `"a":1`, "action: must be 1 to 64 lower-case letters and '_'"},
		"another action":     {"issues", `"opened"`, `"` + secret + `"`, "action: must be 1 to 64 lower-case letters and '_'"},
		"a list of actions":  {"issues", `"opened"`, `["opened"]`, "action: must be a string"},
		"no issue":           {"issues", `"issue"`, `"x"`, "issue: must be there"},
		"issue is null":      {"issues", issue, object(`"action":"opened","issue":null`, githubRepository), "issue: must be there"},
		"issue is a text":    {"issues", issue, object(`"action":"opened","issue":"`+secret+`"`, githubRepository), "issue: must be an object"},
		"no pull request":    {"pull_request", pull, issue, "pull_request: must be there"},
		"no repository":      {"issues", `"repository"`, `"x"`, "repository: must be there"},
		"number 0":           {"issues", `"number":1`, `"number":0`, "issue.number: must be at least 1"},
		"no number":          {"issues", `"number":1`, `"x":0`, "issue.number: must be at least 1"},
		"a fraction":         {"issues", `"number":1`, `"number":1.5`, "issue.number: must be a whole number"},
		"too large":          {"issues", `"number":1`, `"number":9223372036854775808`, "issue.number: must be a whole number"},
		"number as a text":   {"issues", `"number":1`, `"number":"` + secret + `"`, "issue.number: must be a whole number"},
		"another number":     {"pull_request", `"number":2,"pull`, `"number":3,"pull`, "number: must be the number in pull_request"},
		"title is a list":    {"issues", `"Spelling error"`, `[]`, "issue.title: must be a string"},
		"draft is a text":    {"pull_request", `"draft":true`, `"draft":"` + secret + `"`, "pull_request.draft: must be true or false"},
		"labels are a text":  {"issues", `"labels":[`, `"labels":"` + secret + `","x":[`, "issue.labels: must be a list"},
		"too many labels":    {"issues", `"labels":[`, `"labels":[` + many, "issue.labels: must have at most 100 entries"},
		"a label's name":     {"issues", `"bug"`, `""`, "issue.labels: must be 1 to 1024 bytes without control characters"},
		"a label too long":   {"issues", `"bug"`, `"` + strings.Repeat("x", 1025) + `"`, "issue.labels: must be 1 to 1024 bytes without control characters"},
		"a label of the end": {"issues", `"opened"`, `"labeled","label":{"name":"a\u0000"}`, "label: must be 1 to 1024 bytes without control characters"},
		"too many added":     {"issues", `"opened"`, `"label_updated","changes":{"added_labels":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, 33), ",") + `]}`, "changes.added_labels: must have at most 32 entries"},
		"sender":             {"issues", `"login":"Codertocat","id"`, `"login":"a b","id"`, "sender.login: " + login},
		"no login":           {"issues", `"login":"Codertocat","id"`, `"id"`, "sender.login: " + login},
		"sender's type":      {"issues", `"User"`, `"a\nb"`, "sender.type: must be 1 to 64 bytes without spaces and control characters"},
		"default branch":     {"issues", `"default_branch":"main"`, `"default_branch":"-x"`, "repository.default_branch: " + ref},
		"repository's name":  {"issues", `"Codertocat/Hello-World"`, `"Codertocat"`, "repository.full_name: " + repo},
		"head":               {"pull_request", `"ref":"changes"`, `"ref":"a..b"`, "pull_request.head.ref: " + ref},
		"no head":            {"pull_request", `"ref":"changes"`, `"x":""`, "pull_request.head.ref: " + ref},
		"base":               {"pull_request", `"ref":"main"`, `"ref":"` + strings.Repeat("x", 513) + `"`, "pull_request.base.ref: " + ref},
		"commit":             {"pull_request", sha, strings.ToUpper(sha), "pull_request.head.sha: must be 40 or 64 lower-case hexadecimal digits"},
		"fork":               {"pull_request", "someone/Hello-World", "someone/..", "pull_request.head.repo.full_name: " + repo},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]string{"issues": issue, "pull_request": pull}[c.event]
			if !strings.Contains(body, c.old) {
				t.Fatal("the test is wrong")
			}
			got, err := webhook.Parse(headers(c.event), []byte(strings.Replace(body, c.old, c.new, 1)))
			refused(t, err, c.want)
			if !reflect.DeepEqual(got, webhook.Event{}) {
				t.Errorf("%+v", got)
			}
		})
	}
	for name, form := range map[string]string{"no field": "x=1", "nothing": "", "two fields": "payload=%7B%7D&payload=%7B%7D", "a wrong escape": "payload=%zz"} {
		t.Run("form with "+name, func(t *testing.T) {
			_, err := webhook.Parse(headers("issues", "Content-Type", "application/x-www-form-urlencoded"), []byte(form))
			refused(t, err, `body: must be a form with one field "payload"`)
		})
	}
}

// TestNames: which names of branches and repositories are taken.
func TestNames(t *testing.T) {
	try := func(event, old, text string) (webhook.Event, error) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		body := map[string]string{"issues": object(`"action":"opened"`, githubIssue, githubRepository, `"sender":{"login":"someone"}`), "pull_request": object(`"action":"opened"`, githubPull, githubRepository)}[event]
		return webhook.Parse(headers(event), []byte(strings.Replace(body, old, string(quoted), 1)))
	}
	for ref, want := range map[string]bool{
		"main": true, "feature/x.y_z-1": true, "a@b": true, "ü/日本": true, "refs/pull/2/head": true, "a.lock.b": true, "@@": true, strings.Repeat("x", 512): true, "\u00a0": true,
		"@": false, "-x": false, "a b": false, "a\tb": false, "a\x00b": false, "a\x7fb": false, "a\u0085b": false, "a..b": false, "..": false, "a.": false, "a.lock": false, "a.lock/b": false,
		".a": false, "a/.b": false, "/a": false, "a/": false, "a//b": false, "a@{b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[b": false, `a\b`: false,
		strings.Repeat("x", 513): false,
	} {
		if got, err := try("pull_request", `"changes"`, ref); (err == nil) != want || want && got.HeadRef != ref {
			t.Errorf("%.40q: %v", ref, err)
		}
	}
	part := strings.Repeat("x", 128)
	for repo, want := range map[string]bool{
		"a/b": true, "A-1_b/c.d": true, "o/.github": true, "_/_": true, part + "/" + part: true,
		"a": false, "a/": false, "/b": false, "a/b/c": false, "a/..": false, "../b": false, "a/.": false, "./b": false, "a/b..c": false, "-a/b": false, "a/-b": false, "a b/c": false, "a/b\n": false,
		"a/b\x00": false, "ä/b": false, "a/b?c": false, part + "x/b": false, "a/" + part + "x": false,
	} {
		if got, err := try("issues", `"Codertocat/Hello-World"`, repo); (err == nil) != want || want && (got.Repository != repo || got.RepositoryURL != "") {
			t.Errorf("%.40q: %v %q", repo, err, got.RepositoryURL)
		}
	}
	const address = `"https://github.com/Codertocat/Hello-World"`
	for url, want := range map[string]bool{
		"https://github.com/Codertocat/Hello-World": true, "http://host:3000/below/Codertocat/Hello-World": true,
		"": false, "https://user:secret@github.com/Codertocat/Hello-World": false, "https://github.com/Codertocat/Hello-World?x": false, "https://github.com/Codertocat/Hello-World#x": false,
		"ftp://github.com/Codertocat/Hello-World": false, "//github.com/Codertocat/Hello-World": false, "https://github.com/Codertocat/Other": false,
		"https://github.com/" + strings.Repeat("x/", 1100) + "Codertocat/Hello-World": false,
	} {
		if got, err := try("issues", address, url); err != nil || (got.RepositoryURL != "") != want || want && got.RepositoryURL != url {
			t.Errorf("%.60q: %v %q", url, err, got.RepositoryURL)
		}
	}
	for url, want := range map[string]bool{"https://github.com/o/r/issues/1#x": true, "javascript:alert(1)": false, "https://a:b@github.com/o": false, "": false} {
		if got, err := try("issues", `"https://github.com/Codertocat/Hello-World/issues/1"`, url); err != nil || (got.URL == url) != (want || url == "") || !want && got.URL != "" {
			t.Errorf("%q: %v %q", url, err, got.URL)
		}
	}
	for login, want := range map[string]bool{"dependabot[bot]": true, "a_b": true, "x-": true, strings.Repeat("x", 128) + "[bot]": true, "": false, "-x": false, "a/b": false, "..": false, "a[b]": false, "ä": false} {
		if got, err := try("issues", `"someone"`, login); (err == nil) != want || want && got.Sender != login {
			t.Errorf("%.40q: %v", login, err)
		}
	}
	for title, want := range map[string]string{
		"a\x00b\u009b31mc": "abc", strings.Repeat("x", 2000): strings.Repeat("x", 1024), "x" + strings.Repeat("ä", 2000): "x" + strings.Repeat("ä", 511), "\u202ea": "\u202ea",
	} {
		if got, err := try("issues", `"Spelling error"`, title); err != nil || got.Title != want {
			t.Errorf("%.40q: %v %q", title, err, got.Title)
		}
	}
}
