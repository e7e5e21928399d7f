// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// TestChecks: the statuses of commits, and which of them branches require.
func TestChecks(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){"statuses": statuses, "required": required})
}

func statuses(t *testing.T, p place) {
	sha := p.push(t, "work")
	h, ctx := p.open(t, p.readOnly), t.Context()
	if none, err := h.CommitChecks(ctx, sha); err != nil || len(none) != 0 {
		t.Errorf("%+v %v", none, err)
	}
	// All within a second or two, so that only their numbers say which is the newest.
	states := map[string]codehost.CheckState{
		"pending": codehost.CheckPending, "success": codehost.CheckPassed, "failure": codehost.CheckFailed, "error": codehost.CheckFailed,
	}
	words := []string{"pending", "success", "failure", "error"}
	var want []codehost.Check
	for round := range 3 {
		want = nil
		for i := range 11 {
			word := words[(round+i)%len(words)]
			c := codehost.Check{Name: fmt.Sprintf("ci/%02d", i), State: states[word], Said: word, URL: "https://ci.example.com/" + word}
			p.status(t, sha, c.Name, word)
			want = append(want, c)
		}
	}
	got := kit.Must[[]codehost.Check](t)(h.CommitChecks(ctx, sha))
	slices.SortFunc(got, func(a, b codehost.Check) int { return cmp.Compare(a.Name, b.Name) })
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	_, unknown := h.CommitChecks(ctx, strings.Repeat("1", 40))
	_, other := h.CommitChecks(ctx, "main")
	_, above := h.CommitChecks(ctx, "../../../user")
	refused(t, codehost.ErrNotFound, map[string]error{"a commit that does not exist": unknown, "a branch": other, "another path": above})
}

func required(t *testing.T, p place) {
	const branch = "release/1.0#1"
	p.push(t, branch)
	h, ctx := p.open(t, p.readOnly), t.Context()
	for _, b := range []string{"main", branch} {
		if none, err := h.RequiredChecks(ctx, b); err != nil || none.Unknown || none.Any || len(none.Names) != 0 {
			t.Errorf("%+v %v", none, err)
		}
	}
	p.require(t, branch, "ci/test", "lint \u2713")
	got := kit.Must[codehost.Required](t)(h.RequiredChecks(ctx, branch))
	if got.Unknown || got.Any || !slices.Equal(got.Names, []string{"ci/test", "lint \u2713"}) {
		t.Errorf("%+v", got)
	}
	p.require(t, "main")
	if got := kit.Must[codehost.Required](t)(h.RequiredChecks(ctx, "main")); got.Unknown || len(got.Names) != 0 || got.Any != (p.provider == codehost.Gitea) {
		t.Errorf("%+v", got)
	}
	_, gone := h.RequiredChecks(ctx, "gone")
	refused(t, codehost.ErrNotFound, map[string]error{"a branch that does not exist": gone})
}
