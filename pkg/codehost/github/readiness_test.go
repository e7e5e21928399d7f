// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// TestMergeStates: what each word of GitHub means.
func TestMergeStates(t *testing.T) {
	const words = "words of the host"
	h := githubapi.New(t)
	n := pull(t, h, "work").Number
	for _, c := range []struct {
		state     string
		mergeable *bool
		ready     bool
	}{
		{"clean", new(true), true},
		{"has_hooks", new(true), true},
		{"clean", nil, false},
		{"clean", new(false), false},
		{"has_hooks", nil, false},
		{"behind", new(true), false},
		{"blocked", new(true), false},
		{"dirty", new(true), false},
		{"draft", new(true), false},
		{"unstable", new(true), false},
		{"unknown", new(true), false},
		{"Clean", new(true), false},
		{words, new(true), false},
	} {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) {
			(*all)[0].MergeState, (*all)[0].Mergeable = c.state, c.mergeable
		})
		got := kit.Must[codehost.Readiness](t)(open(t, h, h.ReadOnly, 0).Readiness(t.Context(), n))
		if got.Ready != c.ready || (got.Reason == "") != c.ready || strings.Contains(got.Reason, words) || got.PullRequest.Number != n {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	// An old server says nothing of the state.
	h.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		fmt.Fprintf(w, `{"number":1,"state":"open","mergeable":true,"head":{"ref":"work","sha":%q},"base":{"ref":"main"}}`, githubapi.Commit("work"))
		return true
	}
	if got := kit.Must[codehost.Readiness](t)(open(t, h, h.ReadOnly, 0).Readiness(t.Context(), 1)); got.Ready || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}

// TestHeadRepository: the name of a fork is left out if it cannot be one, and does not hide others.
func TestHeadRepository(t *testing.T) {
	for name, want := range map[string]string{
		"mallory/shop": "mallory/shop", "mallory/.github": "mallory/.github", "mallory/..x": "mallory/..x", "": "", "mallory": "", "mallory/..": "", "mallory/.": "", "../shop": "",
		"a/b/c": "", "a/b c": "", "a/b\n": "", "a/%2e": "", "/shop": "", "a/" + strings.Repeat("b", 200): "",
	} {
		h := githubapi.New(t)
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) {
			head := githubapi.End{Ref: "work", SHA: githubapi.Commit("work"), Repo: githubapi.Repo{ID: 4712, FullName: name, Fork: true}}
			*all = append(*all, &githubapi.Pull{ID: 1, Number: 1, State: "open", Head: head, Base: githubapi.End{Ref: "main"}})
		})
		some := kit.Must[codehost.Listed[codehost.PullRequest]](t)(open(t, h, h.ReadOnly, 0).OpenPullRequests(t.Context(), codehost.Page{Number: 1, Size: 5}))
		if len(some.Items) != 1 || some.Items[0].HeadRepository != want {
			t.Errorf("%q: %+v, want %q", name, some.Items, want)
		}
	}
}

// TestNotUpdated: one status has several reasons, which are looked for.
func TestNotUpdated(t *testing.T) {
	head := githubapi.Commit("work")
	pull := `{"number":1,"state":%q,"mergeable":%t,"head":{"ref":"work","sha":%q},"base":{"ref":"release/1?"}}`
	const compare = "/repos/ada/shop/compare/"
	for name, c := range map[string]struct {
		pull, compare string
		want          error
	}{
		"moved":        {fmt.Sprintf(pull, "open", true, githubapi.Commit("more")), `{"ahead_by":1}`, codehost.ErrMoved},
		"closed":       {fmt.Sprintf(pull, "closed", true, head), `{"ahead_by":1}`, codehost.ErrNotMergeable},
		"up to date":   {fmt.Sprintf(pull, "open", true, head), `{"ahead_by":0}`, nil},
		"a conflict":   {fmt.Sprintf(pull, "open", false, head), `{"ahead_by":3}`, codehost.ErrNotMergeable},
		"another":      {fmt.Sprintf(pull, "open", true, head), `{"ahead_by":3}`, codehost.ErrRefused},
		"not compared": {fmt.Sprintf(pull, "open", true, head), `{}`, codehost.ErrUnavailable},
		"null":         {fmt.Sprintf(pull, "open", true, head), `null`, codehost.ErrUnavailable},
		"words":        {fmt.Sprintf(pull, "open", true, head), `words of the host`, codehost.ErrUnavailable},
		"negative":     {fmt.Sprintf(pull, "open", true, head), `{"ahead_by":-1}`, codehost.ErrUnavailable},
		"nothing":      {`{}`, `{"ahead_by":0}`, codehost.ErrUnavailable},
	} {
		h := githubapi.New(t)
		h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.Method == http.MethodPut:
				var body map[string]any
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body) != 1 || body["expected_head_sha"] != head {
					t.Errorf("%v %v", body, err)
				}
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = w.Write([]byte(`{"message":"words of the host","errors":[{"message":"words of the host"}]}`))
			case strings.HasPrefix(r.URL.Path, "/api/v3"+compare):
				if want := "/api/v3" + compare + head + "...release%2F1%3F"; r.URL.EscapedPath() != want {
					t.Errorf("%s, want %s", r.URL.EscapedPath(), want)
				}
				_, _ = w.Write([]byte(c.compare))
			default:
				_, _ = w.Write([]byte(c.pull))
			}
			return true
		}
		if err := open(t, h, h.Token, 0).UpdateBranch(t.Context(), 1, head); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "words") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	h := githubapi.New(t)
	if err := open(t, h, h.Token, 0).UpdateBranch(t.Context(), 1, "main"); !errors.Is(err, codehost.ErrMoved) || len(h.Requests()) != 0 {
		t.Errorf("%v after %q", err, h.Requests())
	}
}

// TestToken: what the end of a file adds to a token is not sent, and a token that cannot be sent is a wrong one.
func TestToken(t *testing.T) {
	h := githubapi.New(t)
	if got := kit.Must[string](t)(open(t, h, h.Token+"\r\n", 0).Viewer(t.Context())); got != "platform" {
		t.Error(got)
	}
}
