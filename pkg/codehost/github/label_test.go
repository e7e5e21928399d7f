// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
)

// TestLabeling: the last event of a label decides.
func TestLabeling(t *testing.T) {
	at := time.Unix(1767323045, 0).UTC()
	event := func(word, label string, by *githubapi.User) githubapi.Event {
		return githubapi.Event{Event: word, Actor: by, Label: &githubapi.Label{Name: label}, CreatedAt: at}
	}
	ada, noor := githubapi.Account("ada"), githubapi.Account("noor")
	many := []githubapi.Event{event("labeled", "bug", ada), {Event: "subscribed", Actor: ada, CreatedAt: at}}
	for range 250 {
		many = append(many, event("unlabeled", "bug", ada), event("labeled", "bug", noor))
	}
	for _, c := range []struct {
		name   string
		events []githubapi.Event
		want   string
		err    error
	}{
		{"once", many[:2], "ada", nil},
		{"often", many, "noor", nil},
		{"removed", many[:3], "", codehost.ErrNotFound},
		{"another case", []githubapi.Event{event("labeled", "Bug", ada)}, "ada", nil},
		{"another label", []githubapi.Event{event("labeled", "bugs", ada), event("renamed", "bug", ada)}, "", codehost.ErrNotFound},
		{"a deleted user", []githubapi.Event{event("labeled", "bug", ada), event("labeled", "bug", nil)}, "", codehost.ErrNotFound},
		{"nothing", nil, "", codehost.ErrNotFound},
	} {
		h := githubapi.New(t)
		n := h.Report("rita", "broken", "")
		h.Change(func(s *githubapi.State) { s.Events[n] = c.events })
		by, err := open(t, h, h.ReadOnly, 0).Labeling(t.Context(), n, "bug")
		if !errors.Is(err, c.err) || by.Login != c.want || err == nil && !by.At.Equal(at) {
			t.Errorf("%s: %+v %v, want %s %v", c.name, by, err, c.want, c.err)
		}
	}
	h := githubapi.New(t)
	if _, err := open(t, h, h.Token, 0).Labeling(t.Context(), 0, "bug"); !errors.Is(err, codehost.ErrNotFound) || len(h.Requests()) != 0 {
		t.Errorf("%v after %q", err, h.Requests())
	}
}

// TestRemoveLabel: no label, no issue and no right to see it have one status.
func TestRemoveLabel(t *testing.T) {
	for name, c := range map[string]struct {
		issue  string
		status int
		want   error
	}{
		"not there":       {`{"number":1,"state":"open","labels":[{"name":"other"},null]}`, 200, nil},
		"a pull request":  {`{"number":1,"state":"open","pull_request":{}}`, 200, nil},
		"not shown":       {`{"number":1,"state":"open","labels":[{"name":"BUG"}]}`, 200, codehost.ErrNotFound},
		"another issue":   {`{"number":2,"state":"open"}`, 200, codehost.ErrUnavailable},
		"nothing":         {`{}`, 200, codehost.ErrUnavailable},
		"words":           {`words of the host`, 200, codehost.ErrUnavailable},
		"gone":            {`{}`, 410, codehost.ErrNotFound},
		"moved meanwhile": {`{}`, 301, codehost.ErrRedirect},
		"may not":         {`{}`, 403, codehost.ErrCredential},
	} {
		h := githubapi.New(t)
		h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNotFound)
				return true
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.issue))
			return true
		}
		if err := open(t, h, h.Token, 0).RemoveLabel(t.Context(), 1, "bug"); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "words") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if got := fmt.Sprint(h.Requests()); got != "[DELETE /api/v3/repos/ada/shop/issues/1/labels/bug GET /api/v3/repos/ada/shop/issues/1]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	h := githubapi.New(t)
	for _, label := range []string{"", " ", ".", "..", "a\nb"} {
		if err := open(t, h, h.Token, 0).RemoveLabel(t.Context(), 1, label); !errors.Is(err, codehost.ErrRefused) || len(h.Requests()) != 0 {
			t.Errorf("%q: %v after %q", label, err, h.Requests())
		}
	}
}
