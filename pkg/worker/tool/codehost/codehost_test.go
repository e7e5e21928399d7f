// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
	"github.com/platform-ai/platform/test/quickclock"
)

// server stands for the API server: it gives one answer after the other, and repeats the last one.
type server struct {
	mu      sync.Mutex
	answers []any
	asked   []v1alpha1.TaskCodeHostCall
	// before is called before each answer.
	before func()
}

// lost is an answer that does not arrive.
type lost struct{}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c v1alpha1.TaskCodeHostCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.URL.Path != "/apis/core.platform.ai/v1alpha1/namespaces/n/tasks/t/codehost" {
		panic(r.URL.Path)
	}
	s.asked = append(s.asked, c)
	if s.before != nil {
		s.before()
	}
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	code := http.StatusCreated
	switch a := answer.(type) {
	case lost:
		panic(http.ErrAbortHandler)
	case string:
		c.Result = &apiextensionsv1.JSON{Raw: []byte(a)}
	case v1alpha1.TaskCodeHostFailure:
		c.Failure = &a
	case *apierrors.StatusError:
		code = int(a.ErrStatus.Code)
		a.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	var body any = c
	if refused, ok := answer.(*apierrors.StatusError); ok {
		body = refused.ErrStatus
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// run is a run with all tools of this package.
type run struct {
	*server
	tools *tool.Catalogue
	clock *quickclock.Clock
}

func start(t *testing.T, answers ...any) *run {
	t.Helper()
	r := &run{server: &server{answers: answers}, clock: quickclock.New()}
	s := httptest.NewServer(r.server)
	t.Cleanup(s.Close)
	api, err := client.New(client.Config{ServerURL: s.URL, Token: "token"}, r.clock)
	if err != nil {
		t.Fatal(err)
	}
	given := toolkit.Given{API: api, Task: &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t"}}, Clock: r.clock, Heads: &toolkit.Heads{}}
	if r.tools, err = tool.NewCatalogue(); err != nil {
		t.Fatal(err)
	}
	for _, b := range []toolkit.Tool{
		CreateBuiltin, ListBuiltin, MarkerBuiltin, ReviewBuiltin, CheckBuiltin, PostBuiltin, MergeBuiltin, AutoMergeBuiltin, IssuesBuiltin, IssueBuiltin, CommentBuiltin,
	} {
		made, err := b.New(given)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.tools.Add(made); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// call makes a call whose id is "c", and returns what the model reads.
func (r *run) call(ctx context.Context, of *builtin.Tool, arguments string) string {
	return r.tools.Call(tool.WithCallID(ctx, "c"), of.Name, arguments).Text
}

func failure(reason v1alpha1.TaskCodeHostFailureReason, retryAfter int64) v1alpha1.TaskCodeHostFailure {
	return v1alpha1.TaskCodeHostFailure{Reason: reason, Message: "why", RetryAfterSeconds: retryAfter}
}

func refused(err *apierrors.StatusError) any { return err }

// TestPlain: the server gets the call as the model made it, and the model reads the server's result as it is.
func TestPlain(t *testing.T) {
	const arguments = `{"task_name":"a","head_branch":"h","base_branch":"main","title":"T"}`
	r := start(t, `{"pr_url":"https://host/1","pr_number":1}`)
	if got := r.call(t.Context(), builtin.CreatePullRequest, arguments); got != `{"success":true,"data":{"pr_url":"https://host/1","pr_number":1}}` {
		t.Error(got)
	}
	want := v1alpha1.TaskCodeHostCall{ToolName: "create_pull_request", CallID: "c", Arguments: apiextensionsv1.JSON{Raw: []byte(arguments)}}
	want.TypeMeta = r.asked[0].TypeMeta
	if d := cmp.Diff([]v1alpha1.TaskCodeHostCall{want}, r.asked); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := r.call(t.Context(), builtin.CommentOnIssue, `{"issue_number":0,"body":"x"}`); !strings.Contains(got, "invalid_arguments") || len(r.asked) != 1 {
		t.Error(got)
	}
}

// TestCallID: every call has an id that the server takes, and a long id stays the same.
func TestCallID(t *testing.T) {
	id := func(given string) string {
		return request(tool.WithCallID(t.Context(), given), builtin.GetIssue, nil).CallID
	}
	first, second := id(""), id("")
	if id("c") != "c" || first == "" || first == second {
		t.Errorf("%q, %q, %q", id("c"), first, second)
	}
	long := strings.Repeat("x", maxCallID+1)
	first, second = id(long), id(long)
	if len(first) != 64 || first != second {
		t.Errorf("of a long id: %q, %q", first, second)
	}
}

// TestRetry: a request whose answer is lost is repeated as it was. If no answer comes, a call that writes may have been carried out.
func TestRetry(t *testing.T) {
	r := start(t, lost{}, refused(apierrors.NewServiceUnavailable("starting")), refused(apierrors.NewTooManyRequestsError("wait")), `{}`)
	if got := r.call(t.Context(), builtin.CommentOnIssue, `{"issue_number":1,"body":"x"}`); got != `{"success":true,"data":{}}` || len(r.asked) != 4 {
		t.Errorf("%s after %d requests", got, len(r.asked))
	}
	for _, c := range r.asked {
		if d := cmp.Diff(r.asked[0], c); d != "" {
			t.Errorf("another request (-first +later):\n%s", d)
		}
	}
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t", errors.New("the task has ended"))
	for name, c := range map[string]struct {
		of      *builtin.Tool
		answers []any
		want    tool.ErrorType
	}{
		"refused":                       {builtin.CommentOnIssue, []any{forbidden}, tool.TypePermissionDenied},
		"refused after a lost answer":   {builtin.CommentOnIssue, []any{lost{}, forbidden}, tool.TypeOutcomeUnknown},
		"a read after a lost answer":    {builtin.GetIssue, []any{lost{}, forbidden}, tool.TypePermissionDenied},
		"an API without the resource":   {builtin.GetIssue, []any{apierrors.NewNotFound(v1alpha1.Resource("tasks"), "t")}, tool.TypeNotFound},
		"a conflict":                    {builtin.CommentOnIssue, []any{apierrors.NewConflict(v1alpha1.Resource("tasks"), "t", errors.New("x"))}, tool.TypeUnavailable},
		"a server that always fails":    {builtin.CommentOnIssue, []any{apierrors.NewInternalError(errors.New("x"))}, tool.TypeOutcomeUnknown},
		"no result":                     {builtin.GetIssue, []any{nil}, tool.TypeUnavailable},
		"no result of what was written": {builtin.CommentOnIssue, []any{nil}, tool.TypeOutcomeUnknown},
	} {
		r := start(t, c.answers...)
		arguments := `{"issue_number":1,"body":"x"}`
		if c.of == builtin.GetIssue {
			arguments = `{"issue_number":1}`
		}
		if got := r.tools.Call(t.Context(), c.of.Name, arguments); got.ErrorType != c.want {
			t.Errorf("%s: %s", name, got.Text)
		}
	}
}

// TestFailures: each kind of failure is an error of the type that the model knows.
func TestFailures(t *testing.T) {
	for reason, want := range map[v1alpha1.TaskCodeHostFailureReason]tool.ErrorType{
		v1alpha1.CodeHostInvalidArguments: tool.TypeInvalidArguments,
		v1alpha1.CodeHostDenied:           tool.TypePermissionDenied,
		v1alpha1.CodeHostNotFound:         tool.TypeNotFound,
		v1alpha1.CodeHostRefused:          tool.TypePermissionDenied,
		v1alpha1.CodeHostRateLimited:      tool.TypeUnavailable,
		v1alpha1.CodeHostUnavailable:      tool.TypeUnavailable,
		v1alpha1.CodeHostOutcomeUnknown:   tool.TypeOutcomeUnknown,
		"Later":                           tool.TypeInternal,
	} {
		r := start(t, failure(reason, 7))
		got := r.tools.Call(t.Context(), builtin.ListIssues.Name, `{}`)
		if got.ErrorType != want || !strings.Contains(got.Text, `"error":"why"`) || strings.Contains(got.Text, "after 7 seconds") != (want == tool.TypeUnavailable) || len(r.asked) != 1 {
			t.Errorf("%s: %s", reason, got.Text)
		}
	}
}

// TestHeads: reviews and merges are for the head that the model has seen, and other calls name none.
func TestHeads(t *testing.T) {
	r := start(t, `{"head_sha":"a"}`, `{}`, `{"head_sha":"b","status":"passed"}`, `{}`, `{"outcome":"merged","head_sha":"c"}`, `{}`)
	var sent []string
	for _, c := range []struct {
		of        *builtin.Tool
		arguments string
	}{
		{builtin.ReviewPullRequest, `{"pr_number":1}`},
		{builtin.PostReviewComment, `{"pr_number":1,"body":"x","event":"COMMENT"}`},
		{builtin.CheckPullRequestCI, `{"pr_number":1,"repo_url":"https://host/o/r"}`},
		{builtin.MergePullRequest, `{"pr_number":1,"task_name":"t"}`},
		{builtin.AutoMergePullRequest, `{"pr_number":1,"task_name":"t"}`},
		{builtin.MergePullRequest, `{"pr_number":2,"task_name":"t"}`},
	} {
		if got := r.tools.Call(t.Context(), c.of.Name, c.arguments); got.Failed() {
			t.Errorf("%s: %s", c.of.Name, got.Text)
		}
		sent = append(sent, r.asked[len(r.asked)-1].HeadSHA)
	}
	if d := cmp.Diff([]string{"", "a", "", "b", "b", ""}, sent); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCancelled: a run that is stopped does not wait any more.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := start(t, `{"status":"pending"}`)
	r.before = func() {
		if len(r.asked) == 3 {
			cancel()
		}
	}
	got := r.tools.Call(ctx, builtin.CheckPullRequestCI.Name, `{"pr_number":1,"wait_timeout":"24h"}`)
	if got.ErrorType != tool.TypeCancelled || len(r.asked) != 3 {
		t.Errorf("%s after %d requests", got.Text, len(r.asked))
	}
	if got := r.tools.Call(ctx, builtin.CommentOnIssue.Name, `{"issue_number":1,"body":"x"}`); got.ErrorType != tool.TypeCancelled || len(r.asked) != 3 {
		t.Errorf("%s after %d requests: nothing was sent", got.Text, len(r.asked))
	}
}

// TestDurations: which times the model may choose.
func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{"": time.Hour, "1s": time.Second, "20m": 20 * time.Minute, "24h": maxWait, "24h1s": -1, "0s": -1, "-5m": -1, "30": -1, "soon": -1} {
		got, err := duration("timeout", s, time.Hour, time.Second, maxWait)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %s, %v", s, got, err)
		}
	}
	for of, list := range map[*builtin.Tool][]string{
		builtin.CheckPullRequestCI: {
			`{"pr_number":1,"wait_timeout":"x"}`, `{"pr_number":1,"wait_timeout":"25h"}`, `{"pr_number":1,"poll_interval":"4s"}`, `{"pr_number":1,"poll_interval":"11m"}`,
		},
		builtin.AutoMergePullRequest: {`{"pr_number":1,"task_name":"t","timeout":"0s"}`, `{"pr_number":1,"task_name":"t","timeout":"25h"}`},
	} {
		for _, arguments := range list {
			r := start(t, `{"status":"passed","outcome":"merged"}`)
			if got := r.tools.Call(t.Context(), of.Name, arguments); got.ErrorType != tool.TypeInvalidArguments || len(r.asked) > 0 {
				t.Errorf("%s: %s", arguments, got.Text)
			}
		}
	}
}
