// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost/webhook"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

// delivery is a request to a webhook.
type delivery struct {
	header http.Header
	body   []byte
}

// TestGitea: what a real Gitea delivers for what people do, as JSON and as a form. That it does not say which labels were added is
// what the comment of LabelUpdated is about.
func TestGitea(t *testing.T) {
	f := forge.Start(t)
	deliveries := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		deliveries <- delivery{r.Header, body}
	}))
	t.Cleanup(receiver.Close)

	r := f.Repository(t, "owner", "delivers", map[string]string{"README.md": "words"})
	r.Commit(t, "work", map[string]string{"work.txt": "work"})
	label := func(name string) int64 {
		t.Helper()
		l, _, err := r.API.CreateLabel(r.Owner, r.Name, gitea.CreateLabelOption{Name: name, Color: "#00aabb"})
		if err != nil {
			t.Fatal(err)
		}
		return l.ID
	}
	bug, agent := label("bug"), label("platform/do it")
	hook := func(media string, events ...string) {
		t.Helper()
		done(t)(r.API.CreateRepoHook(r.Owner, r.Name, gitea.CreateHookOption{
			Type: gitea.HookTypeGitea, Active: true, Events: events, Config: map[string]string{"url": receiver.URL, "content_type": media},
		}))
	}
	hook("json", "push", "issues", "issue_label", "pull_request", "pull_request_label", "pull_request_sync")

	base := webhook.Event{
		Gitea: true, Name: "issues", Kind: webhook.Issue, Body: "words", Repository: "owner/delivers", RepositoryURL: f.URL + "/owner/delivers", DefaultBranch: "main", Sender: "owner",
		Number: 1, Title: "Something is wrong", URL: f.URL + "/owner/delivers/issues/1",
	}
	expect := func(action string, labels ...string) {
		t.Helper()
		want := base
		want.Action, want.AllLabels = action, labels
		if got := next(t, deliveries); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
	}
	labels := func(ids ...int64) gitea.IssueLabelsOption { return gitea.IssueLabelsOption{Labels: ids} }

	done(t)(r.API.CreateIssue(r.Owner, r.Name, gitea.CreateIssueOption{Title: base.Title, Body: "words"}))
	expect("opened")
	done(t)(r.API.AddIssueLabels(r.Owner, r.Name, 1, labels(bug, agent)))
	expect(webhook.LabelUpdated, "bug", "platform/do it")
	kit.Must[*gitea.Response](t)(r.API.DeleteIssueLabel(r.Owner, r.Name, 1, bug))
	expect(webhook.LabelUpdated, "platform/do it")
	kit.Must[*gitea.Response](t)(r.API.ClearIssueLabels(r.Owner, r.Name, 1))
	expect(webhook.Unlabeled)
	closed := gitea.StateClosed
	done(t)(r.API.EditIssue(r.Owner, r.Name, 1, gitea.EditIssueOption{State: &closed}))
	expect("closed")

	done(t)(r.API.CreatePullRequest(r.Owner, r.Name, gitea.CreatePullRequestOption{Head: "work", Base: "main", Title: "WIP: a change"}))
	base.Name, base.Kind, base.Number, base.Title, base.Body, base.URL = "pull_request", webhook.PullRequest, 2, "WIP: a change", "", f.URL+"/owner/delivers/pulls/2"
	base.HeadRef, base.HeadSHA, base.HeadRepository, base.BaseRef, base.Draft = "work", r.Head("work"), base.Repository, "main", true
	expect("opened")
	done(t)(r.API.EditPullRequest(r.Owner, r.Name, 2, gitea.EditPullRequestOption{Title: "a change"}))
	base.Title, base.Draft = "a change", false
	expect("edited")
	done(t)(r.API.AddIssueLabels(r.Owner, r.Name, 2, labels(agent)))
	expect(webhook.LabelUpdated, "platform/do it")
	base.HeadSHA = r.Commit(t, "work", map[string]string{"more.txt": "more"})
	expect(webhook.Synchronize, "platform/do it")
	kit.Await(t, "the merge", func() bool { // refused while Gitea checks whether it is possible
		merged, _, err := r.API.MergePullRequest(r.Owner, r.Name, 2, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
		return err == nil && merged
	})
	base.Merged = true
	expect("closed", "platform/do it")

	// The first hook gets none of these.
	r = f.Repository(t, "owner", "delivers-forms", map[string]string{"README.md": "words"})
	hook("form", "issues")
	done(t)(r.API.CreateIssue(r.Owner, r.Name, gitea.CreateIssueOption{Title: "Something is wrong"}))
	base = webhook.Event{
		Gitea: true, Name: "issues", Kind: webhook.Issue, Repository: "owner/delivers-forms", RepositoryURL: f.URL + "/owner/delivers-forms", DefaultBranch: "main", Sender: "owner",
		Number: 1, Title: "Something is wrong", URL: f.URL + "/owner/delivers-forms/issues/1",
	}
	expect("opened")
}

// done fails the test if a call of Gitea's client fails.
func done(t *testing.T) func(any, *gitea.Response, error) {
	t.Helper()
	return func(_ any, _ *gitea.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// next returns the next event that is read, without its delivery. The ones before it have no kind.
func next(t *testing.T, deliveries <-chan delivery) webhook.Event {
	t.Helper()
	for {
		select {
		case d := <-deliveries:
			e, err := webhook.Parse(d.header, d.body)
			if err != nil {
				t.Fatal(err)
			}
			if form := d.header.Get("Content-Type") == "application/x-www-form-urlencoded"; form != (e.Repository == "owner/delivers-forms") {
				t.Errorf("%s of %s", d.header.Get("Content-Type"), e.Repository)
			}
			if e.Delivery == "" || e.Hook != "" || e.Name == "" {
				t.Errorf("%+v", e)
			}
			e.Delivery = ""
			if e.Kind != "" {
				return e
			}
		case <-time.After(kit.Patience): // Gitea delivers within milliseconds
			t.Fatal("nothing was delivered")
		}
	}
}
