// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// TestCheckStates: what each word of GitHub means.
func TestCheckStates(t *testing.T) {
	h := githubapi.New(t)
	main := githubapi.Commit("main")
	want := map[string]codehost.CheckState{}
	for word, state := range map[string]codehost.CheckState{
		"success": codehost.CheckPassed, "failure": codehost.CheckFailed, "error": codehost.CheckFailed, "pending": codehost.CheckPending, "odd": "",
	} {
		h.Statuses(main, githubapi.Status{Context: "status " + word, State: word})
		want["status "+word] = state
	}
	for word, state := range map[string]codehost.CheckState{
		"success": codehost.CheckPassed, "neutral": codehost.CheckSkipped, "skipped": codehost.CheckSkipped, "failure": codehost.CheckFailed,
		"timed_out": codehost.CheckFailed, "cancelled": codehost.CheckFailed, "action_required": codehost.CheckFailed,
		"startup_failure": codehost.CheckFailed, "stale": codehost.CheckFailed, "odd": "", "": "",
	} {
		run := githubapi.CheckRun{Name: "run " + word, Status: "completed", Conclusion: &word}
		if word == "" {
			run.Conclusion = nil
		}
		h.Runs(main, run)
		want["run "+word] = state
	}
	for _, word := range []string{"queued", "in_progress", "waiting", "requested", "pending", "odd"} {
		// The outcome of the time before is no outcome.
		h.Runs(main, githubapi.CheckRun{Name: "unfinished " + word, Status: word, Conclusion: new("success")})
		want["unfinished "+word] = codehost.CheckPending
	}
	all := kit.Must[[]codehost.Check](t)(open(t, h, h.ReadOnly, 0).CommitChecks(t.Context(), main))
	if len(all) != len(want) {
		t.Errorf("%d checks, want %d", len(all), len(want))
	}
	for _, c := range all {
		if state, ok := want[c.Name]; !ok || c.State != state || !strings.HasSuffix(c.Name, " "+c.Said) {
			t.Errorf("%+v, want %s", c, state)
		}
	}
}

// TestNewestRuns: of the runs of one suite and name the newest, of all suites and pages.
func TestNewestRuns(t *testing.T) {
	h := githubapi.New(t)
	main := githubapi.Commit("main")
	began := time.Unix(1767323045, 0).UTC()
	run := func(app, suite int64, name, conclusion string, start time.Duration) githubapi.CheckRun {
		r := githubapi.CheckRun{Name: name, Status: "completed", Conclusion: &conclusion, App: githubapi.ID{ID: app}, CheckSuite: githubapi.ID{ID: suite}, HTMLURL: "javascript:alert(1)"}
		if start >= 0 {
			r.StartedAt = new(began.Add(start))
		}
		return r
	}
	waiting := run(1, 8, "asked again", "", -1)
	waiting.Status, waiting.Conclusion = "queued", nil
	h.Runs(main,
		run(1, 1, "build", "failure", 0), run(1, 1, "build", "success", time.Second), // a suite that ran again
		run(1, 3, "deploy", "failure", 0), run(1, 10, "deploy", "success", time.Second), // two workflows
		run(1, 4, "lint", "success", 0), run(2, 5, "lint", "failure", 0), // two apps
		run(1, 6, "both", "success", 0), run(1, 6, "both", "failure", 0), // at once
		run(1, 8, "asked again", "success", 0), waiting,
		run(1, 9, "a status, too", "success", 0),
	)
	h.Statuses(main, githubapi.Status{Context: "a status, too", State: "failure"})
	all := kit.Must[[]codehost.Check](t)(open(t, h, h.ReadOnly, 0).CommitChecks(t.Context(), main))
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprint(c.Name, " ", c.Said))
		if c.URL != "" {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(got)
	want := []string{"a status, too failure", "a status, too success", "asked again queued", "both failure", "build success", "deploy failure", "deploy success", "lint failure", "lint success"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}

	const many = 250
	for i := range many {
		h.Runs(main, run(1, 1, fmt.Sprint("run ", i), "success", 0))
		h.Statuses(main, githubapi.Status{Context: fmt.Sprint("status ", i), State: "success"})
	}
	if all := kit.Must[[]codehost.Check](t)(open(t, h, h.ReadOnly, 0).CommitChecks(t.Context(), main)); len(all) != 2*many+len(want) {
		t.Errorf("%d checks", len(all))
	}
}

// TestRequired: a branch requires what its own rule and all sets of rules require, and the driver says so if it may not see them.
func TestRequired(t *testing.T) {
	h := githubapi.New(t)
	refuse := map[string]int{}
	h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		for path, status := range refuse {
			if strings.HasSuffix(r.URL.Path, path) {
				w.WriteHeader(status)
				return true
			}
		}
		return false
	}
	names := func() []string {
		t.Helper()
		got := kit.Must[codehost.Required](t)(open(t, h, h.ReadOnly, 0).RequiredChecks(t.Context(), "main"))
		if got.Unknown || got.Any {
			t.Errorf("%+v", got)
		}
		return got.Names
	}
	h.Change(func(s *githubapi.State) {
		s.Protections["main"] = githubapi.Protection{Contexts: []string{"a", "b"}, ByChecks: []string{"b", "c"}}
		for i := range 120 { // more than a page
			s.Rules["main"] = append(s.Rules["main"], githubapi.Rule{Type: "deletion"}, githubapi.RequireChecks("c", fmt.Sprint("rule ", i)))
		}
	})
	if got := names(); len(got) != 123 || !slices.Equal(got[:4], []string{"a", "b", "c", "rule 0"}) || got[122] != "rule 119" {
		t.Errorf("%q", got)
	}
	h.Change(func(s *githubapi.State) {
		s.Protections["main"] = githubapi.Protection{Off: true, Contexts: []string{"a"}}
		s.Rules["main"] = []githubapi.Rule{githubapi.RequireChecks("d")}
	})
	if got := names(); !slices.Equal(got, []string{"d"}) {
		t.Errorf("%q", got)
	}
	refuse["/rules/branches/main"] = http.StatusNotFound // as a server without sets of rules
	if got := names(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	for _, path := range []string{"/shop/branches/main", "/rules/branches/main"} {
		clear(refuse)
		refuse[path] = http.StatusForbidden
		if got, err := open(t, h, h.ReadOnly, 0).RequiredChecks(t.Context(), "main"); err != nil || !got.Unknown || len(got.Names) != 0 {
			t.Errorf("%s: %+v %v", path, got, err)
		}
		refuse[path] = http.StatusBadGateway
		if got, err := open(t, h, h.ReadOnly, 0).RequiredChecks(t.Context(), "main"); !errors.Is(err, codehost.ErrUnavailable) {
			t.Errorf("%s: %+v %v", path, got, err)
		}
	}
}
