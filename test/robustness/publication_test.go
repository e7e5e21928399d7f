// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
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
	"github.com/platform-ai/platform/test/kit"
)

const gitToken = "gt-77665544332211aabbcc"

// TestPublicationKilled kills the server at each request of a publication: before the git server has it, and after it did what it was
// asked for but before the answer arrives. The branch has exactly one commit, which was pushed once, and the task ends once, delivered.
// A worker that is killed at its end, with the server, is no different.
func TestPublicationKilled(t *testing.T) {
	t.Parallel()
	const (
		lookList = "GET git-upload-pack"
		lookPack = "POST git-upload-pack"
		pushList = "GET git-receive-pack"
		pushPack = "POST git-receive-pack"
	)
	for name, tc := range map[string]struct {
		// request is what the server is killed at, and nth which of those that follow the preparation.
		request string
		nth     int
		// done lets the git server do what it was asked for first.
		done bool
	}{
		"look before, asked":       {lookList, 1, false},
		"look before, answered":    {lookList, 1, true},
		"push is prepared":         {pushList, 1, false},
		"push is prepared, told":   {pushList, 1, true},
		"push arrives":             {pushPack, 1, false},
		"push is done":             {pushPack, 1, true},
		"look after, asked":        {lookList, 2, false},
		"look after, answered":     {lookList, 2, true},
		"commit is read, asked":    {lookPack, 1, false},
		"commit is read, answered": {lookPack, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := githost.New(t, gitToken)
			h.Create(t, "r")
			start := h.Commit(t, "r", "main", map[string]string{"a": "1"})
			var mu sync.Mutex
			seen := map[string]int{}
			reached, killed := make(chan struct{}), make(chan struct{})
			h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				what := r.Method + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				if r.Method == http.MethodGet {
					what = r.Method + " " + r.URL.Query().Get("service")
				}
				_, password, _ := r.BasicAuth()
				mu.Lock()
				if password == gitToken && seen["prepared"] < 2 { // what prepares the workspace asks twice
					seen["prepared"]++
					mu.Unlock()
					return false
				}
				seen[what]++
				here := what == tc.request && seen[what] == tc.nth && password == gitToken
				mu.Unlock()
				if !here {
					return false
				}
				answer := httptest.NewRecorder()
				if tc.done {
					h.Serve(answer, r)
				}
				close(reached)
				<-killed
				if tc.done {
					w.WriteHeader(answer.Code)
					_, _ = io.Copy(w, answer.Body)
					return true
				}
				panic(http.ErrAbortHandler)
			}
			s := kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--repository-allow", h.Address())
			c := newChatClient(t, s.Kubeconfig)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "git"}, StringData: map[string]string{"token": gitToken}}
			if _, err := c.core.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			ref := &v1alpha1.WorkspaceCredentialReference{Name: "git"}
			task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "killed"}, Spec: v1alpha1.TaskSpec{
				Type: v1alpha1.TaskTypeContainer, Command: []string{"sh", "-c", "echo 2 > a; echo x > b"},
				Workspace: &v1alpha1.TaskWorkspace{
					GitRepo: h.Location("r"), Intent: v1alpha1.WorkspaceWrite, PushBranch: "work", ReadCredentialRef: ref, PublicationReadCredentialRef: ref, PublicationCredentialRef: ref,
				},
			}}
			if _, err := c.api.CoreV1alpha1().Tasks("default").Create(ctx, task, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-reached:
			case <-ctx.Done():
				t.Fatalf("the git server got %v", seen)
			}
			s.Kill()
			close(killed)
			s.Restart(t)
			ended, err := awaitEnd(ctx, newClient(t, s.Kubeconfig), "killed")
			if err != nil {
				t.Fatal(err)
			}
			d := ended.Status.Delivery
			if ended.Status.Phase != v1alpha1.TaskSucceeded || d.State != v1alpha1.DeliveryVerifiedExact || ended.Status.Attempts != 1 {
				t.Errorf("the task is %s after %d attempts: %s: %+v", ended.Status.Phase, ended.Status.Attempts, ended.Status.Message, d)
			}
			if got := h.Git(t, "r", "", "log", "--format=%H %P", "main..work"); got != d.VerifiedRemoteSHA+" "+start {
				t.Errorf("the branch has %q, want one commit %s", got, d.VerifiedRemoteSHA)
			}
			if log := h.Git(t, "r", "", "reflog", "work"); strings.Count(log, "\n") > 0 || log == "" {
				t.Errorf("the branch was moved more than once:\n%s", log)
			}
			if err := eachTerminalOnce(ctx, c, "killed"); err != nil {
				t.Error(err)
			}
		})
	}
}

// eachTerminalOnce reports an error unless the task has exactly one terminal event, and each state of its delivery at most once.
func eachTerminalOnce(ctx context.Context, c *chatClient, task string) error {
	list, err := c.api.CoreV1alpha1().ExecutionEvents("default").List(ctx, metav1.ListOptions{FieldSelector: "taskName=" + task})
	if err != nil {
		return err
	}
	terminal, states := 0, map[string]int{}
	for i := range list.Items {
		switch e := &list.Items[i]; e.Type {
		case v1alpha1.EventTaskSucceeded, v1alpha1.EventTaskFailed, v1alpha1.EventTaskCancelled:
			terminal++
		case v1alpha1.EventDeliveryStateChanged:
			if states[e.Summary]++; states[e.Summary] > 1 {
				return fmt.Errorf("%q is there %d times", e.Summary, states[e.Summary])
			}
		}
	}
	if terminal != 1 || len(states) != 6 {
		return fmt.Errorf("%d terminal events, states %v", terminal, states)
	}
	return nil
}
