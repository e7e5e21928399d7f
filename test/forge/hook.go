// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/test/kit"
)

// Hook is a webhook of a repository.
type Hook struct {
	repository *Repository
	id         int64
}

// Hook has the Gitea deliver what happens to issues and pull requests, as JSON, signed with a secret.
func (r *Repository) Hook(t testing.TB, to, secret string) Hook {
	t.Helper()
	made, _, err := r.API.CreateRepoHook(r.Owner, r.Name, gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Active: true, Events: []string{"issues", "issue_label", "pull_request", "pull_request_label", "pull_request_sync"},
		Config: map[string]string{"url": to, "content_type": "json", "secret": secret},
	})
	if err != nil {
		t.Fatalf("make a hook of %s: %v", r.Name, err)
	}
	return Hook{r, made.ID}
}

// Replay has the Gitea deliver once more what it delivered under an id, as the administrator does it in the settings of the hook; the API
// cannot. It gets another id.
func (h Hook) Replay(t testing.TB, delivery string) {
	t.Helper()
	client := &http.Client{Jar: kit.Must[*cookiejar.Jar](t)(cookiejar.New(nil))}
	post := func(path string, form url.Values) {
		t.Helper()
		answer, err := client.PostForm(h.repository.forge.Direct+path, form)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK { // after the redirection
			t.Fatalf("%s: %s", path, answer.Status)
		}
	}
	post("/user/login", url.Values{"user_name": {keeper}, "password": {password}})
	post(fmt.Sprintf("/%s/%s/settings/hooks/%d/replay/%s", h.repository.Owner, h.repository.Name, h.id, delivery), nil)
}
