// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/github"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

func ordered(t *testing.T) (*githubapi.Host, codehost.Host, pullrequest.Order) {
	t.Helper()
	h := githubapi.New(t)
	h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches["work"] = githubapi.Commit("work") })
	host := kit.Must[*github.Host](t)(github.New(codehost.Remote{URL: h.Location(), Token: h.Token, Transport: http.DefaultTransport}))
	return h, host, pullrequest.Order{Key: "pub-1", Head: "work", HeadSHA: githubapi.Commit("work"), Title: "Do the work", Body: "What was done."}
}

// TestListLags: lists that do not show what exists lead neither to a second pull request nor to an answer that nobody can rely on.
func TestListLags(t *testing.T) {
	h, host, o := ordered(t)
	h.Hide(2) // the look before it is made, and the one after it
	if a, _, err := pullrequest.ReconcileAtOnce(t.Context(), host, o); err != nil || a.Outcome != pullrequest.Open || a.How != pullrequest.Created {
		t.Errorf("%+v %v", a, err)
	}
	h.Hide(4)
	if a, paused, err := pullrequest.ReconcileAtOnce(t.Context(), host, o); err != nil || a.How != pullrequest.Found || paused == 0 {
		t.Errorf("%+v %v after %s", a, err, paused)
	}
	h.Hide(1000)
	if a, paused, err := pullrequest.ReconcileAtOnce(t.Context(), host, o); !errors.Is(err, pullrequest.ErrUnknown) || !errors.Is(err, codehost.ErrConflict) || paused > 10*time.Second {
		t.Errorf("%+v %v after %s", a, err, paused)
	}
	posts := 0
	for _, r := range h.Requests() {
		if strings.HasPrefix(r, http.MethodPost) {
			posts++
		}
	}
	if len(h.Pulls()) != 1 || posts != 3 {
		t.Errorf("%d pull requests after %d requests for one", len(h.Pulls()), posts)
	}
}

// late is a host whose pull requests are at an old commit for some time after a push.
type late struct {
	codehost.Host
	reads int
}

func (l *late) PullRequest(ctx context.Context, n int64) (codehost.PullRequest, error) {
	p, err := l.Host.PullRequest(ctx, n)
	if l.reads--; l.reads > 0 {
		p.HeadSHA = githubapi.Commit("old")
	}
	return p, err
}

func (l *late) PullRequests(ctx context.Context, head string, since time.Time) ([]codehost.PullRequest, error) {
	all, err := l.Host.PullRequests(ctx, head, since)
	for i := range all {
		all[i].HeadSHA = githubapi.Commit("old")
	}
	return all, err
}

// TestCommitLags: the commit of a pull request is read again while the branch is at the ordered one.
func TestCommitLags(t *testing.T) {
	_, host, o := ordered(t)
	if _, _, err := pullrequest.ReconcileAtOnce(t.Context(), host, o); err != nil {
		t.Fatal(err)
	}
	if a, paused, err := pullrequest.ReconcileAtOnce(t.Context(), &late{host, 3}, o); err != nil || a.Outcome != pullrequest.Open || a.Receipt.HeadSHA != o.HeadSHA || paused == 0 {
		t.Errorf("%+v %v after %s", a, err, paused)
	}
	if a, paused, err := pullrequest.ReconcileAtOnce(t.Context(), &late{host, 1000}, o); err != nil || a.Outcome != pullrequest.HeadMoved || paused > 10*time.Second {
		t.Errorf("%+v %v after %s", a, err, paused)
	}
}

// TestInterrupted: a caller that gives up while it waits for a list hears that the outcome is not known.
func TestInterrupted(t *testing.T) {
	h, host, o := ordered(t)
	if _, _, err := pullrequest.ReconcileAtOnce(t.Context(), host, o); err != nil {
		t.Fatal(err)
	}
	h.Hide(1000)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	n := 0
	h.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			n++
		} else if n > 0 {
			cancel(enough)
		}
		return false
	}
	if a, err := pullrequest.Reconcile(ctx, host, o); !errors.Is(err, pullrequest.ErrUnknown) || n != 1 {
		t.Errorf("%+v %v", a, err)
	}
}

// TestRefusedOrders: nothing is sent of an order that may not be carried out, and the error does not repeat it.
func TestRefusedOrders(t *testing.T) {
	h, host, good := ordered(t)
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for name, c := range map[string]struct {
		change func(*pullrequest.Order)
		says   string
	}{
		"a secret in the title":        {func(o *pullrequest.Order) { o.Title = "use " + secret }, "title: looks like it contains a secret"},
		"a secret in the body":         {func(o *pullrequest.Order) { o.Body = "token: " + secret }, "body: looks like it contains a secret"},
		"our comment":                  {func(o *pullrequest.Order) { o.Body = "x <!-- platform: pull-request pub-2 --> y" }, "body: must not contain comments"},
		"our comment in other letters": {func(o *pullrequest.Order) { o.Body = "<!--\n\tPLATFORM :x -->" }, "body: must not contain comments"},
		"our comment in the title":     {func(o *pullrequest.Order) { o.Title = "<!-- platform: pull-request pub-2 -->" }, "title: must not contain comments"},
		"no title":                     {func(o *pullrequest.Order) { o.Title = " \t" }, "title: must not be empty"},
		"two lines":                    {func(o *pullrequest.Order) { o.Title = "a\nb" }, "title: must be one line"},
		"a long title":                 {func(o *pullrequest.Order) { o.Title = strings.Repeat("ä", 257) }, "title: must be text of at most 256"},
		"a long body":                  {func(o *pullrequest.Order) { o.Body = strings.Repeat("a", 32769) }, "body: must be text of at most 32768"},
		"bytes":                        {func(o *pullrequest.Order) { o.Body = "\xff" }, "body: must be text"},
		"no key":                       {func(o *pullrequest.Order) { o.Key = "" }, "key:"},
		"a key that ends the comment":  {func(o *pullrequest.Order) { o.Key = "a-->b" }, "key:"},
		"a key with --":                {func(o *pullrequest.Order) { o.Key = "a--b" }, "key:"},
		"no branch":                    {func(o *pullrequest.Order) { o.Head = "" }, "head:"},
		"a branch of another owner":    {func(o *pullrequest.Order) { o.Head = "mallory:work" }, "head:"},
		"a branch that leads away":     {func(o *pullrequest.Order) { o.Base = "../../pulls" }, "base:"},
		"a short commit":               {func(o *pullrequest.Order) { o.HeadSHA = "abc123" }, "headSHA:"},
		"a negative number":            {func(o *pullrequest.Order) { o.Number = -1 }, "number:"},
	} {
		o := good
		c.change(&o)
		_, err := pullrequest.Reconcile(t.Context(), host, o)
		if !errors.Is(err, pullrequest.ErrOrder) || !strings.Contains(err.Error(), ": "+c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(h.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	// Addresses and code are no secrets.
	good.Body = "See https://example.com/issues?id=3#comment-4 and `go test ./...` of " + good.HeadSHA
	if a, err := pullrequest.Reconcile(t.Context(), host, good); err != nil || a.Outcome != pullrequest.Open {
		t.Errorf("%+v %v", a, err)
	}
}
