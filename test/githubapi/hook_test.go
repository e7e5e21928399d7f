// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// TestHook: each event is sent once, as GitHub sends it, and may be lost or sent again.
func TestHook(t *testing.T) {
	h, ctx := githubapi.New(t), t.Context()
	const secret = "a secret of the hook"
	var got []*http.Request
	var bodies [][]byte
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := kit.Must[[]byte](t)(io.ReadAll(r.Body))
		got, bodies = append(got, r), append(bodies, body)
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write(body)
		if r.Header.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(sum.Sum(nil)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.Pulls() // a receiver may ask the host
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("seen"))
	}))
	defer receiver.Close()
	h.Change(func(s *githubapi.State) {
		s.Hook = githubapi.Hook{ID: 77, URL: receiver.URL + "/hook", Secret: secret}
	})
	h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches["work"] = githubapi.Commit("work") })

	sent := kit.Must[githubapi.Delivery](t)
	deliveries := []githubapi.Delivery{
		sent(h.Ping(ctx, "ada")),
		sent(h.OpenIssue(ctx, "broken", "what is wrong", "rita")),
		sent(h.Label(ctx, 1, "bug", "ada")),
		sent(h.Unlabel(ctx, 1, "BUG", "ada")),
		sent(h.OpenPull(ctx, githubapi.Pull{Title: "Mend", Head: githubapi.End{Ref: "work"}}, "rita")),
		sent(h.Label(ctx, 2, "review", "ada")),
		sent(h.Push(ctx, 2, githubapi.Commit("more"), "rita")),
		sent(h.ClosePull(ctx, 2, "ada")),
		sent(h.ReopenPull(ctx, 2, "ada")),
		sent(h.OpenPull(ctx, githubapi.Pull{Title: "Theirs", Head: githubapi.End{Ref: "main", SHA: githubapi.Commit("theirs"), Repo: h.Fork("mallory")}}, "mallory")),
	}
	var events []string
	for i, d := range deliveries {
		var payload struct {
			Action string
			Label  *githubapi.Label
			Issue  *githubapi.Issue
			Pull   *githubapi.Pull `json:"pull_request"`
			Repo   githubapi.Repo  `json:"repository"`
			Sender githubapi.User
		}
		if err := json.Unmarshal(d.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		what := d.Event + " " + payload.Action
		if payload.Label != nil {
			what += " " + payload.Label.Name
		}
		if payload.Pull != nil {
			what += fmt.Sprint(" ", payload.Pull.Number, " ", payload.Pull.Head.Repo.FullName, " ", payload.Pull.Head.SHA[:8])
		}
		events = append(events, what)
		if d.Status != http.StatusAccepted || string(d.Answer) != "seen" || !bytes.Equal(d.Payload, bodies[i]) || payload.Repo.FullName != "ada/shop" || payload.Repo.HTMLURL != h.Location() ||
			payload.Sender.Login == "" || got[i].Header.Get("X-GitHub-Delivery") != d.GUID || got[i].Header.Get("X-GitHub-Event") != d.Event || got[i].Header.Get("X-GitHub-Hook-ID") != "77" {
			t.Errorf("%+v %s", d, d.Payload)
		}
	}
	work, more, theirs := githubapi.Commit("work")[:8], githubapi.Commit("more")[:8], githubapi.Commit("theirs")[:8]
	if want := []string{
		"ping ", "issues opened", "issues labeled bug", "issues unlabeled BUG", "pull_request opened 2 ada/shop " + work, "pull_request labeled review 2 ada/shop " + work,
		"pull_request synchronize 2 ada/shop " + more, "pull_request closed 2 ada/shop " + more, "pull_request reopened 2 ada/shop " + more, "pull_request opened 3 mallory/shop " + theirs,
	}; !slices.Equal(events, want) {
		t.Errorf("%q\nwant\n%q", events, want)
	}

	h.Change(func(s *githubapi.State) { s.Lost = 1 })
	lost := sent(h.Label(ctx, 1, "bug", "ada"))
	if len(got) != len(deliveries) || lost.Status != 0 {
		t.Errorf("%d deliveries: %+v", len(got), lost)
	}
	for range 2 {
		again := sent(h.Redeliver(ctx, lost))
		if n := len(got) - 1; again.Status != http.StatusAccepted || got[n].Header.Get("X-GitHub-Delivery") != lost.GUID || !bytes.Equal(bodies[n], lost.Payload) {
			t.Errorf("%+v", again)
		}
	}
	h.Change(func(s *githubapi.State) { s.Hook.Secret = "another" })
	if d := sent(h.Unlabel(ctx, 1, "bug", "ada")); d.Status != http.StatusUnauthorized || d.GUID == lost.GUID {
		t.Errorf("%+v", d)
	}
}
