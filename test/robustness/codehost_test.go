// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// writingScript: an agent approves a pull request and comments on an issue, and says what became of that.
const writingScript = `
models: [scripted-1]
turns:
- match: {turn: 1, lastRole: user}
  reply: {toolCalls: [{name: post_review_comment, arguments: {pr_number: 1, event: APPROVE, body: "Good."}}]}
- match: {turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: comment_on_issue, arguments: {issue_number: 2, body: "See there."}}]}
- match: {turn: 3, lastRole: tool}
  reply: {text: "{{ .Results.post_review_comment.data.status }} {{ .Results.comment_on_issue.data.status }}"}
`

// TestCodeHostCallKilled kills the server at requests of calls on a code host: before the host has them, and after it did what it was asked
// for but before the answer arrives. The worker repeats its call, and there is exactly one review and one comment.
func TestCodeHostCallKilled(t *testing.T) {
	t.Parallel()
	const reviews, comments, pull = "/pulls/1/reviews", "/issues/2/comments", "/pulls/1"
	for name, tc := range map[string]struct {
		method, path string
		nth          int
		// done lets the code host do what it was asked for first.
		done bool
	}{
		"reviews are listed":    {http.MethodGet, reviews, 1, true},
		"review arrives":        {http.MethodPost, reviews, 1, false},
		"review is posted":      {http.MethodPost, reviews, 1, true},
		"head is read again":    {http.MethodGet, pull, 2, true},
		"comment arrives":       {http.MethodPost, comments, 1, false},
		"comment is posted":     {http.MethodPost, comments, 1, true},
		"comments are listed":   {http.MethodGet, comments, 1, false},
		"pull request, at once": {http.MethodGet, pull, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			git, forge := githost.New(t, gitToken), githubapi.New(t)
			repository := githubapi.Owner + "/" + githubapi.Name
			git.Create(t, repository)
			git.Commit(t, repository, "main", map[string]string{"a": "1"})
			forge.Token, forge.Server.URL = gitToken, git.URL
			head := githubapi.Commit("work")
			forge.Do(func(branches map[string]string, all *[]*githubapi.Pull) {
				branches["work"] = head
				*all = append(*all, &githubapi.Pull{
					ID: 1, Number: 1, State: "open", Title: "Mend", User: githubapi.Account("ada"), Head: githubapi.End{Ref: "work", SHA: head, Repo: githubapi.Repo{ID: 4711}}, Base: githubapi.End{Ref: "main", Repo: githubapi.Repo{ID: 4711}},
				})
			})
			forge.Report("ada", "broken", "why")
			var mu sync.Mutex
			seen := 0
			reached, killed := make(chan struct{}), make(chan struct{})
			git.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, "/api/") {
					return false
				}
				mu.Lock()
				if r.Method == tc.method && strings.HasSuffix(r.URL.Path, tc.path) {
					seen++
				}
				here := r.Method == tc.method && strings.HasSuffix(r.URL.Path, tc.path) && seen == tc.nth
				mu.Unlock()
				if !here {
					forge.ServeHTTP(w, r)
					return true
				}
				answer := httptest.NewRecorder()
				if tc.done {
					forge.ServeHTTP(answer, r)
				}
				close(reached)
				<-killed
				panic(http.ErrAbortHandler)
			}
			vendor := httptest.NewServer(script.New(kit.Must[*script.Script](t)(script.Parse([]byte(writingScript))), io.Discard))
			t.Cleanup(vendor.Close)
			s := kit.StartServer(t, t.TempDir(), "--repository-allow", git.Address())
			c := newChatClient(t, s.Kubeconfig)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := writer(ctx, c, vendor.URL, forge.Location()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-reached:
			case <-ctx.Done():
				t.Fatalf("the code host got %q", forge.Requests())
			}
			s.Kill()
			close(killed)
			s.Restart(t)
			ended, err := awaitEnd(ctx, newClient(t, s.Kubeconfig), "writer")
			if err != nil {
				t.Fatal(err)
			}
			if ended.Status.Phase != v1alpha1.TaskSucceeded || ended.Status.Attempts != 1 {
				t.Errorf("the task is %s after %d attempts: %s", ended.Status.Phase, ended.Status.Attempts, ended.Status.Message)
			}
			forge.Change(func(s *githubapi.State) {
				if len(s.Reviews[1]) != 1 || len(s.Comments[2]) != 1 || s.Reviews[1][0].State != "APPROVED" {
					t.Errorf("%d reviews, %d comments", len(s.Reviews[1]), len(s.Comments[2]))
				}
			})
			result := kit.Must[*v1alpha1.TaskResult](t)(c.api.CoreV1alpha1().Tasks("default").GetResult(ctx, "writer", metav1.GetOptions{}))
			if got := result.Result; !strings.Contains(got, "submitted commented") {
				t.Errorf("the agent says %q", got)
			}
		})
	}
}

// writer creates a task that writes on a code host.
func writer(ctx context.Context, c *chatClient, vendor, repository string) error {
	for name, value := range map[string]string{"git": gitToken, "vendor": "vendor-key-0123456789"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": value}}
		if _, err := c.core.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: vendor + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: "vendor", Key: "token"},
	}}
	if _, err := c.api.CoreV1alpha1().Providers("default").Create(ctx, provider, metav1.CreateOptions{}); err != nil {
		return err
	}
	ref := &v1alpha1.WorkspaceCredentialReference{Name: "git"}
	_, err := c.api.CoreV1alpha1().Tasks("default").Create(ctx, &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "writer"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Write.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"post_review_comment", "comment_on_issue"}},
		Workspace: &v1alpha1.TaskWorkspace{GitRepo: repository, ReadCredentialRef: ref, ForgeCredentialRef: ref},
	}}, metav1.CreateOptions{})
	return err
}
