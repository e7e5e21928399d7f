// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/github"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

func open(t *testing.T, h *githubapi.Host, token string, patience time.Duration) *github.Host {
	t.Helper()
	return kit.Must[*github.Host](t)(github.New(codehost.Remote{URL: h.Location(), Token: token, Transport: http.DefaultTransport, Patience: patience}))
}

// TestList: all pages are read, and a pull request from a fork with a branch of the same name is not among them.
func TestList(t *testing.T) {
	h := githubapi.New(t)
	const many = 123
	h.Do(func(branches map[string]string, pulls *[]*githubapi.Pull) {
		branches["work"] = githubapi.Commit("work")
		for n := range int64(many) {
			p := &githubapi.Pull{ID: n + 1, Number: n + 1, State: "closed", HTMLURL: "javascript:alert(1)", Head: githubapi.End{Ref: "work", SHA: githubapi.Commit("old"), Repo: githubapi.Repo{ID: 4711}}, Base: githubapi.End{Ref: "main"}}
			if n == 7 {
				p.Head.Repo.ID = 4712
			}
			if n == 9 {
				p.MergedAt = &time.Time{}
				*p.MergedAt = time.Unix(1767323045, 0)
			}
			*pulls = append(*pulls, p)
		}
	})
	all := kit.Must[[]codehost.PullRequest](t)(open(t, h, h.Token, 0).PullRequests(t.Context(), "work", time.Time{}))
	if len(all) != many-1 || all[0].Number != many || all[len(all)-1].Number != 1 {
		t.Fatalf("%d pull requests", len(all))
	}
	for _, p := range all {
		want := codehost.Closed
		if p.Number == 10 {
			want = codehost.Merged
		}
		if p.State != want || p.Number == 8 || p.URL != "" {
			t.Errorf("%+v", p)
		}
	}
}

// TestFailures: each failure of a host is an error of its own, whose text has neither the host's words nor the credential.
func TestFailures(t *testing.T) {
	const words = "words of the host"
	reset := time.Now().Add(time.Hour).Truncate(time.Second)
	status := func(code int, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"message":%q,"documentation_url":"https://docs.github.com/%s"}`, words, words)
		}
	}
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   error
		until  time.Time
	}{
		{"wrong token", status(401), codehost.ErrCredential, time.Time{}},
		{"may not", status(403), codehost.ErrCredential, time.Time{}},
		{"hidden", status(404), codehost.ErrNotFound, time.Time{}},
		{"rate limit", status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10)), codehost.ErrRateLimited, reset},
		{"rate limit for ever", status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "99999999999999"), codehost.ErrRateLimited, time.Time{}},
		{"second rate limit", status(403, "Retry-After", reset.UTC().Format(http.TimeFormat)), codehost.ErrRateLimited, reset},
		{"second rate limit without a header", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`)
		}, codehost.ErrRateLimited, time.Time{}},
		{"too many", status(429), codehost.ErrRateLimited, time.Time{}},
		{"moved", status(301, "Location", "/api/v3/meta"), codehost.ErrRedirect, time.Time{}},
		{"moved to another host", status(307, "Location", "http://127.0.0.1:1/"), codehost.ErrRedirect, time.Time{}},
		{"invalid", status(422), codehost.ErrRefused, time.Time{}},
		{"broken", status(502), codehost.ErrUnavailable, time.Time{}},
		{"another language", func(w http.ResponseWriter) { fmt.Fprintf(w, "<html>%s", words) }, codehost.ErrUnavailable, time.Time{}},
		{"another form", func(w http.ResponseWriter) { fmt.Fprintf(w, `{"id":%q}`, words) }, codehost.ErrUnavailable, time.Time{}},
		{"nothing", func(w http.ResponseWriter) { fmt.Fprintf(w, `{}`) }, codehost.ErrUnavailable, time.Time{}},
		{"cut off", func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"name":%q,`, words)
			panic(http.ErrAbortHandler)
		}, codehost.ErrUnavailable, time.Time{}},
		{"giant", func(w http.ResponseWriter) {
			for chunk := bytes.Repeat([]byte(" "), 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, codehost.ErrUnavailable, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := githubapi.New(t)
			h.Answer = func(w http.ResponseWriter, _ *http.Request) bool { c.answer(w); return true }
			_, err := open(t, h, h.Token, 0).Repository(t.Context())
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if strings.Contains(err.Error(), words) || strings.Contains(err.Error(), h.Token) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error says %q", err)
			}
			if e, ok := errors.AsType[*codehost.RateLimitError](err); ok && !e.Until.Equal(c.until) {
				t.Errorf("until %s, want %s", e.Until, c.until)
			}
			if n := len(h.Requests()); n != 1 {
				t.Errorf("%d requests: %q", n, h.Requests())
			}
		})
	}
}

// TestEndless: a host that neither ends its answer nor stops sending is given up, by the driver's patience and by its caller.
func TestEndless(t *testing.T) {
	h := githubapi.New(t)
	arrived := make(chan struct{}, 1)
	h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		fmt.Fprintf(w, `{"name":"`)
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		<-r.Context().Done()
		return true
	}
	_, err := open(t, h, h.Token, 100*time.Millisecond).Repository(t.Context())
	if !errors.Is(err, codehost.ErrUnavailable) || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("%v", err)
	}
	<-arrived
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() { <-arrived; cancel(enough) }()
	if _, err := open(t, h, h.Token, kit.Patience).Repository(ctx); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

// TestRefusals: what GitHub says with one status becomes different errors.
func TestRefusals(t *testing.T) {
	h := githubapi.New(t)
	h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches["work"] = githubapi.Commit("work") })
	g := open(t, h, h.Token, 0)
	n := codehost.NewPullRequest{Title: "work", Base: "main", Head: "work"}
	made := kit.Must[codehost.PullRequest](t)(g.CreatePullRequest(t.Context(), n))
	if made.State != codehost.Open || made.HeadSHA != githubapi.Commit("work") || made.URL != h.Location()+"/pull/1" || made.ID != "9001" {
		t.Errorf("%+v", made)
	}
	if _, err := g.CreatePullRequest(t.Context(), n); !errors.Is(err, codehost.ErrConflict) {
		t.Errorf("a second one: %v", err)
	}
	n.Base = "gone"
	if _, err := g.CreatePullRequest(t.Context(), n); !errors.Is(err, codehost.ErrRefused) {
		t.Errorf("without a base: %v", err)
	}
	if _, err := g.Head(t.Context(), "gone"); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("a branch that does not exist: %v", err)
	}
	if err := g.ClosePullRequest(t.Context(), made.Number); err != nil {
		t.Error(err)
	}
	if p, err := g.PullRequest(t.Context(), made.Number); err != nil || p.State != codehost.Closed {
		t.Errorf("%+v %v", p, err)
	}
}

// TestAPI: where the API of an installation is.
func TestAPI(t *testing.T) {
	for at, want := range map[string]string{
		"https://github.com": "https://api.github.com/", "https://shop.ghe.com": "https://api.shop.ghe.com/", "https://git.example.com:8443": "https://git.example.com:8443/api/v3/",
	} {
		if got := github.API(*kit.Must[*url.URL](t)(url.Parse(at))); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
