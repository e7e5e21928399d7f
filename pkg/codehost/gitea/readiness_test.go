// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// theirs is another commit than sha, and tip the commit of the base branch.
var theirs, tip = strings.Repeat("b", 40), strings.Repeat("c", 40)

// mergeable answers with a pull request that does not conflict.
func mergeable(head string) http.HandlerFunc {
	return says(`{"number":1,"state":"open","mergeable":true,"head":{"ref":"work","sha":"` + head + `","repo":{"full_name":"ada/shop"}},"base":{"ref":"main"}}`)
}

// reviews answers with reviews, by their state, user and more.
func reviews(all ...[3]string) http.HandlerFunc {
	var list []string
	for i, r := range all {
		list = append(list, fmt.Sprintf(`{"id":%d,"state":%q,"user":{"login":%q},"official":true,"commit_id":%q%s}`, i+1, r[0], r[1], sha, r[2]))
	}
	return says("[" + strings.Join(list, ",") + "]")
}

// TestUnready: what the rules of a base branch require, whatever Gitea says of the rest.
func TestUnready(t *testing.T) {
	const words = "words of the host"
	// A pull request that is ready by all rules.
	rule := `{"rule_name":"ma*","required_approvals":2,"block_on_rejected_reviews":true,"block_on_official_review_requests":true,"block_on_outdated_branch":true%s}`
	branch := `{"name":"main","commit":{"id":"` + tip + `"},"protected":true,"effective_branch_protection_name":"ma*","enable_status_check":true,"status_check_contexts":["ci"]%s}`
	good := map[string]http.HandlerFunc{
		"/pulls/1": mergeable(sha), "/branches/main": says(fmt.Sprintf(branch, "")), "/branch_protections/ma*": says(fmt.Sprintf(rule, "")),
		"/pulls/1/reviews":              reviews([3]string{"APPROVED", "rita", ""}, [3]string{"APPROVED", "noor", ""}, [3]string{"COMMENT", "kim", ""}),
		"/commits/" + sha + "/statuses": says(`[{"id":1,"context":"ci","status":"success"}]`),
		"/commits":                      says(`[]`),
	}
	rita := [3]string{"APPROVED", "rita", ""}
	looks := 0
	for _, c := range []struct {
		name, path string
		answer     http.HandlerFunc
		reason     string
		err        error
	}{
		{name: "ready"},
		{"merged", "/pulls/1", says(`{"number":1,"state":"closed","merged":true,"head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"}}`), "merged", nil},
		{"not mergeable", "/pulls/1", says(`{"number":1,"state":"open","head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"}}`), "has not found out", nil},
		{"a draft", "/pulls/1", says(`{"number":1,"state":"open","draft":true,"mergeable":true,"head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"}}`), "draft", nil},
		{"moved meanwhile", "/pulls/1", func(w http.ResponseWriter, r *http.Request) {
			if looks++; looks > 1 {
				mergeable(theirs)(w, r)
				return
			}
			mergeable(sha)(w, r)
		}, "was changed", nil},

		{"no branch", "/branches/main", http.NotFound, "", codehost.ErrNotFound},
		{"another branch", "/branches/main", says(`{"name":"` + words + `"}`), "", codehost.ErrUnavailable},
		{"not protected", "/branches/main", says(`{"name":"main"}`), "", nil},
		{"rule not named", "/branches/main", says(`{"name":"main","protected":true,"required_approvals":0}`), "only to administrators", nil},
		{"check not run", "/branches/main", says(strings.Replace(fmt.Sprintf(branch, ""), `"ci"`, `"ci","other"`, 1)), "check", nil},

		{"rule hidden", "/branch_protections/ma*", http.NotFound, "only to administrators", nil},
		{"rule forbidden", "/branch_protections/ma*", status(403, words), "only to administrators", nil},
		{"rule broken", "/branch_protections/ma*", status(500, words), "", codehost.ErrUnavailable},
		{"rule moved", "/branch_protections/ma*", status(302, words), "", codehost.ErrRedirect},
		{"no rule", "/branch_protections/ma*", says(`null`), "", codehost.ErrUnavailable},
		{"empty rule", "/branch_protections/ma*", says(`{}`), "", codehost.ErrUnavailable},
		{"another rule", "/branch_protections/ma*", says(`{"rule_name":"main"}`), "", codehost.ErrUnavailable},
		{"words for a rule", "/branch_protections/ma*", says(words), "", codehost.ErrUnavailable},
		{"words for a number", "/branch_protections/ma*", says(`{"rule_name":"ma*","required_approvals":"` + words + `"}`), "", codehost.ErrUnavailable},
		{"negative", "/branch_protections/ma*", says(`{"rule_name":"ma*","required_approvals":-1}`), "", codehost.ErrUnavailable},
		{"files", "/branch_protections/ma*", says(fmt.Sprintf(rule, `,"protected_file_patterns":"*.go"`)), "protects files", nil},
		{"an old server", "/branch_protections/ma*", says(`{"branch_name":"ma*","required_approvals":2}`), "", nil},

		{"nobody", "/pulls/1/reviews", reviews(), "2 approvals of the head, and there are 0", nil},
		{"one", "/pulls/1/reviews", reviews(rita), "there are 1", nil},
		{"one twice", "/pulls/1/reviews", reviews(rita, rita), "there are 1", nil},
		{"no user", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "", ""}), "there are 1", nil},
		{"no say", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", `,"official":false`}), "there are 1", nil},
		{"stale", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", `,"stale":true`}), "there are 1", nil},
		{"another commit", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", `,"commit_id":"` + theirs + `"`}), "there are 1", nil},
		{"dismissed", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", `,"dismissed":true`}), "there are 1", nil},
		{"not submitted", "/pulls/1/reviews", reviews(rita, [3]string{"PENDING", "noor", ""}), "there are 1", nil},
		{"rejected", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", ""}, [3]string{"REQUEST_CHANGES", "kim", `,"stale":true`}), "requests changes", nil},
		{"rejected and taken back", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", ""}, [3]string{"REQUEST_CHANGES", "kim", `,"dismissed":true`}), "", nil},
		{"rejected without a say", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", ""}, [3]string{"REQUEST_CHANGES", "kim", `,"official":false`}), "", nil},
		{"asked for", "/pulls/1/reviews", reviews(rita, [3]string{"APPROVED", "noor", ""}, [3]string{"REQUEST_REVIEW", "kim", ""}), "was asked for", nil},
		{"null", "/pulls/1/reviews", says(`[null]`), "", codehost.ErrUnavailable},
		{"no reviews", "/pulls/1/reviews", http.NotFound, "", codehost.ErrNotFound},

		{"failed", "/commits/" + sha + "/statuses", says(`[{"id":1,"context":"ci","status":"success"},{"id":2,"context":"other","status":"failure"}]`), "check", nil},
		{"pending", "/commits/" + sha + "/statuses", says(`[{"id":1,"context":"ci","status":"pending"}]`), "check", nil},
		{"odd", "/commits/" + sha + "/statuses", says(`[{"id":1,"context":"ci","status":"` + words + `"}]`), "check", nil},
		{"not shown", "/commits/" + sha + "/statuses", status(403, words), "", codehost.ErrCredential},

		{"outdated", "/commits", says(`[{"sha":"` + tip + `"}]`), "commits that the pull request lacks", nil},
		{"no list", "/commits", says(`{"sha":"` + words + `"}`), "", codehost.ErrUnavailable},
		{"no base", "/branches/main", says(fmt.Sprintf(strings.Replace(branch, tip, words, 1), "")), "", codehost.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := maps.Clone(good)
			if c.path != "" {
				answers[c.path] = c.answer
			}
			h, _ := server(t, answers)
			got, err := h.Readiness(t.Context(), 1)
			if !errors.Is(err, c.err) || strings.Contains(fmt.Sprint(err, got.Reason), words) {
				t.Fatalf("%+v %v, want %v", got, err, c.err)
			}
			if ready := c.reason == "" && c.err == nil; got.Ready != ready || (got.Reason == "") != (c.reason == "") || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%+v, want %q", got, c.reason)
			}
			if err == nil && (got.PullRequest.HeadSHA != sha || got.PullRequest.Number != 1) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestUpdateBranch: the head is compared first, and nothing is sent if there is nothing to do.
func TestUpdateBranch(t *testing.T) {
	const post = "POST /pulls/1/update"
	for _, c := range []struct {
		name       string
		pull       http.HandlerFunc
		behind     string
		updated    int
		want       error
		sent       bool
		headToFind string
	}{
		{"done", mergeable(sha), `[{"sha":"` + tip + `"}]`, 200, nil, true, sha},
		{"nothing to do", mergeable(sha), `[]`, 200, nil, false, sha},
		{"moved", mergeable(theirs), `[{}]`, 200, codehost.ErrMoved, false, sha},
		{"no commit", mergeable(sha), `[{}]`, 200, codehost.ErrMoved, false, "work"},
		{"closed", says(`{"number":1,"state":"closed","head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"}}`), `[{}]`, 200, codehost.ErrNotMergeable, false, sha},
		{"no fork any more", says(`{"number":1,"state":"open","head":{"ref":"refs/pull/1/head","sha":"` + sha + `","repo":null},"base":{"ref":"main"}}`), `[{}]`, 200, codehost.ErrRefused, false, sha},
		{"a conflict", mergeable(sha), `[{}]`, 409, codehost.ErrNotMergeable, true, sha},
		{"may not", mergeable(sha), `[{}]`, 403, codehost.ErrCredential, true, sha},
		{"merged meanwhile", mergeable(sha), `[{}]`, 422, codehost.ErrRefused, true, sha},
		{"broken", mergeable(sha), `[{}]`, 500, codehost.ErrUnavailable, true, sha},
		{"gone", http.NotFound, `[{}]`, 200, codehost.ErrNotFound, false, sha},
		{"words", mergeable(sha), `words of the host`, 200, codehost.ErrUnavailable, false, sha},
	} {
		t.Run(c.name, func(t *testing.T) {
			var query string
			h, requests := server(t, map[string]http.HandlerFunc{
				"/pulls/1": c.pull, "/pulls/1/update": status(c.updated, `{"message":"words of the host"}`), "/branches/main": says(`{"name":"main","commit":{"id":"` + tip + `"}}`),
				"/commits": func(w http.ResponseWriter, r *http.Request) {
					query = r.URL.RawQuery
					says(c.behind)(w, r)
				},
			})
			if err := h.UpdateBranch(t.Context(), 1, c.headToFind); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "words") {
				t.Errorf("%v, want %v", err, c.want)
			}
			if slices.Contains(*requests, post) != c.sent {
				t.Errorf("%q", *requests)
			}
			if query != "" && (!strings.Contains(query, "sha="+tip) || !strings.Contains(query, "not="+sha) || !strings.Contains(query, "limit=1")) {
				t.Error(query)
			}
		})
	}
}

// TestPermission: a repository that is not shown is no user without a permission, and no other path is asked for.
func TestPermission(t *testing.T) {
	for word, want := range map[string]codehost.Permission{"none": codehost.None, "read": codehost.Read, "write": codehost.Write, "admin": codehost.Admin, "owner": codehost.Admin} {
		h, _ := server(t, map[string]http.HandlerFunc{"/collaborators/Rita/permission": says(`{"permission":"` + word + `","role_name":"admin","user":{"login":"rita"}}`)})
		if got := kit.Must[codehost.Permission](t)(h.Permission(t.Context(), "Rita")); got != want {
			t.Errorf("%s: %s", word, got)
		}
	}
	h, _ := server(t, map[string]http.HandlerFunc{"": says(`{"id":1}`)})
	if got, err := h.Permission(t.Context(), "rita"); err != nil || got != codehost.None {
		t.Errorf("%s %v", got, err)
	}
	h, requests := server(t, nil)
	for _, login := range []string{"", ".", "..", "a/b", "rita?", "ri ta", "%72ita"} {
		if got, err := h.Permission(t.Context(), login); err != nil || got != codehost.None || len(*requests) != 0 {
			t.Errorf("%q: %s %v after %q", login, got, err, *requests)
		}
	}
	if _, err := h.Permission(t.Context(), "rita"); !errors.Is(err, codehost.ErrNotFound) {
		t.Error(err)
	}
}
