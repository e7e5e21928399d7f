// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// fails uses a connection whose token cannot be refreshed now, and returns the error, which is an API error.
func (w *world) fails(c *v1alpha1.Connection) *RefreshError {
	w.t.Helper()
	err := w.bad(c)
	failure, ok := errors.AsType[*RefreshError](err)
	if seconds, api := apierrors.SuggestsClientDelay(err); !ok || !apierrors.IsServiceUnavailable(err) || !api || seconds != int(failure.RetryAfter/time.Second) {
		w.t.Fatalf("use: %v", err)
	}
	return failure
}

// Failures keep the tokens, besides those that say that the grant is not honoured any longer. The token is used while it lives, calls fail
// after that, nothing is sent before the pause is over, and then the same refresh token is sent again and needs no consent.
func TestUseFailures(t *testing.T) {
	t.Parallel()
	const code = `{"error":%q,"error_description":"secret text"}`
	unreachable := errors.New("no route to host")
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		// network and host are errors of sending, and of the Secret.
		network, host error
		class         oauth.Class
		pause         time.Duration
	}{
		{"not reached", nil, unreachable, nil, oauth.Transient, firstPause},
		{"no Secret", nil, nil, apierrors.NewNotFound(corev1.Resource("secrets"), "provider-client"), oauth.Misconfigured, firstPause},
		{"Secret not read", nil, nil, apierrors.NewInternalError(errors.New("etcd")), oauth.Transient, firstPause},
		{"connection cut", cut, nil, nil, oauth.Unknown, firstPause},
		{"429", status(429, "", "Retry-After", "120"), nil, nil, oauth.Transient, 2 * time.Minute},
		{"429 for too long", status(429, "", "Retry-After", "86400"), nil, nil, oauth.Transient, longestAsked},
		{"429 for a moment", status(429, "", "Retry-After", "1"), nil, nil, oauth.Transient, firstPause},
		{"429 with invalid_grant", status(429, fmt.Sprintf(code, "invalid_grant")), nil, nil, oauth.Transient, firstPause},
		{"500", status(500, ""), nil, nil, oauth.Transient, firstPause},
		{"502 of a proxy", status(502, "<html>", "Content-Type", "text/html"), nil, nil, oauth.Transient, firstPause},
		{"503", status(503, "", "Retry-After", begin.Add(hour).Format(http.TimeFormat)), nil, nil, oauth.Transient, 30 * time.Second},
		{"500 with invalid_grant", status(500, fmt.Sprintf(code, "invalid_grant")), nil, nil, oauth.Transient, firstPause},
		{"403 of a firewall", status(403, "<html>", "Content-Type", "text/html"), nil, nil, oauth.Transient, firstPause},
		{"a page", status(200, "<html>", "Content-Type", "text/html"), nil, nil, oauth.Transient, firstPause},
		{"no tokens", status(200, "{}"), nil, nil, oauth.Transient, firstPause},
		{"temporarily_unavailable", status(400, fmt.Sprintf(code, "temporarily_unavailable")), nil, nil, oauth.Transient, firstPause},
		{"invalid_request", status(400, fmt.Sprintf(code, "invalid_request")), nil, nil, oauth.Rejected, firstPause},
		{"another code", status(400, fmt.Sprintf(code, "other")), nil, nil, oauth.Rejected, firstPause},
		{"invalid_client", status(401, fmt.Sprintf(code, "invalid_client")), nil, nil, oauth.Misconfigured, firstPause},
		{"unauthorized_client", status(400, fmt.Sprintf(code, "unauthorized_client")), nil, nil, oauth.Misconfigured, firstPause},
		{"invalid_scope", status(400, fmt.Sprintf(code, "invalid_scope")), nil, nil, oauth.Misconfigured, firstPause},
		{"401", status(401, ""), nil, nil, oauth.Misconfigured, firstPause},
		{"404", status(404, ""), nil, nil, oauth.Misconfigured, firstPause},
		{"redirect", status(307, "", "Location", "https://elsewhere.example"), nil, nil, oauth.Misconfigured, firstPause},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			first, before := w.good(c), w.kept(c)
			w.refreshes(tc.answer)
			w.network.fails(tc.network)
			w.host.fails(tc.host)
			at := hour - 30*time.Second
			w.after(at)
			if token := w.good(c); token != first {
				t.Error("the token that lives is not used")
			}
			w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionReady)
			sent := len(w.requests())
			w.after(at + tc.pause - time.Second)
			if tc.pause <= 30*time.Second {
				w.good(c)
			} else {
				if f := w.fails(c); f.Class != tc.class || f.RetryAfter != time.Second {
					t.Errorf("%+v", f)
				}
			}
			if n := len(w.requests()); n != sent {
				t.Error("a request was sent in the pause")
			}
			w.after(at + longestAsked)
			f := w.fails(c)
			if f.Class != tc.class || f.RetryAfter < firstPause || !strings.Contains(f.Message, "the access token has ended") || strings.Contains(f.Message, "secret text") {
				t.Errorf("%+v", f)
			}
			w.ready(c, metav1.ConditionFalse, v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionExpired)
			if again := w.fails(c); again.Class != f.Class || again.Message != f.Message {
				t.Errorf("%+v, and then %+v", f, again)
			}
			if d := cmp.Diff(before, w.kept(c), unexported); d != "" {
				t.Errorf("custody (-want +got):\n%s", d)
			}
			sent = len(w.requests())
			w.after(at + 3*longestAsked)
			w.refreshes(nil)
			w.network.fails(nil)
			w.host.fails(nil)
			if token := w.good(c); token.Access == first.Access {
				t.Error("it is the old token")
			}
			w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
			if requests := w.requests(); len(requests) != sent+1 || requests[sent] != before.Grant.Refresh {
				t.Errorf("sent %v", requests)
			}
			outcome := failed
			if tc.class == oauth.Unknown {
				outcome = unknown
			}
			if w.counted(outcome) != 2 || w.counted(refreshed) != 1 {
				t.Errorf("counted %d and %d", w.counted(outcome), w.counted(refreshed))
			}
		})
	}
}

// The pause doubles with each failure, up to five minutes, and a success ends it. Another consent is not held up.
func TestUsePauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.refreshes(status(503, ""))
	at := hour
	for i, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
		pause := time.Duration(seconds) * time.Second
		w.after(at)
		if f := w.fails(c); f.RetryAfter != pause || len(w.requests()) != i+1 {
			t.Errorf("%d: %s after %d requests", i, f.RetryAfter, len(w.requests()))
		}
		at += pause
		w.after(at - time.Millisecond)
		if f := w.fails(c); f.RetryAfter != time.Second || len(w.requests()) != i+1 {
			t.Errorf("%d: %s after %d requests", i, f.RetryAfter, len(w.requests()))
		}
	}
	w.provider.Expires(30)
	w.link()
	sent := len(w.requests())
	if w.good(c).Sequence != 2 || len(w.requests()) != sent+1 {
		t.Error("another consent is held up")
	}
	w.after(at + firstPause)
	w.good(c)
	if len(w.requests()) != sent+2 {
		t.Error("another consent is held up for longer")
	}
	w.provider.Expires(3600)
	w.refreshes(nil)
	w.after(at + 3*hour)
	w.good(c)
	w.refreshes(status(503, ""))
	w.after(at + 5*hour)
	if f := w.fails(c); f.RetryAfter != firstPause {
		t.Errorf("after a success it begins with %s", f.RetryAfter)
	}
}

// A grant that the provider does not honour is removed, and said so. Nothing is sent any more, and another consent makes it good.
func TestUseRevoked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
	}{
		{"invalid_grant", status(400, `{"error":"invalid_grant","error_description":"secret text"}`)},
		{"invalid_grant as 401", status(401, `{"error":"invalid_grant"}`)},
		{"GitHub", status(200, "error=bad_refresh_token", "Content-Type", "application/x-www-form-urlencoded")},
		{"Slack", status(200, `{"ok":false,"error":"invalid_refresh_token"}`)},
	} {
		for _, ended := range []time.Duration{hour - time.Second, hour} {
			t.Run(tc.name+" after "+ended.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.link()
				first := w.kept(w.link()).Superseded
				c := w.link()
				w.refreshes(tc.answer)
				w.after(ended)
				for range 3 {
					if reason := w.unusable(c); reason != v1alpha1.ReasonConnectionRevoked {
						t.Errorf("reason %s", reason)
					}
					w.after(2 * hour)
					w.restart()
				}
				w.ready(c, metav1.ConditionFalse, v1alpha1.ReasonConnectionRevoked, v1alpha1.ConnectionRevoked)
				if d := w.kept(c); d.Grant != nil || len(d.Superseded) != len(first)+1 || d.Sequence != 3 {
					t.Errorf("custody: %+v", d)
				}
				if len(w.requests()) != 1 || w.counted(revoked) != 1 {
					t.Errorf("%d requests, counted %d", len(w.requests()), w.counted(revoked))
				}
				w.refreshes(nil)
				w.link()
				if token := w.good(c); token.Sequence != 4 {
					t.Errorf("the grant has number %d", token.Sequence)
				}
				w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
			})
		}
	}
}

// A caller who does not wait does not end the refresh, nor what came of it.
func TestUseOutlastsItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.after(hour)
	entered, leave := w.held()
	ctx, cancel := context.WithCancel(w.ctx)
	left := w.begins(ctx, c)
	<-entered
	stays := w.begins(w.ctx, c)
	cancel()
	if u := <-left; !errors.Is(u.err, context.Canceled) {
		t.Errorf("use: %v", u.err)
	}
	leave()
	u := <-stays
	if u.err != nil || w.good(c) != u.token || len(w.requests()) != 1 {
		t.Errorf("use: %v after %d requests", u.err, len(w.requests()))
	}
}

// An answer that is lost keeps the tokens. If the provider had not replaced them, they go on; if it had, the connection is revoked, once,
// and nothing is sent any more. So it is when the server is killed before it has written the answer.
func TestUseAnswerLost(t *testing.T) {
	t.Parallel()
	t.Run("before the provider did anything", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.link()
		w.after(hour)
		w.refreshes(cut)
		if f := w.fails(c); f.Class != oauth.Unknown {
			t.Errorf("%+v", f)
		}
		w.refreshes(nil)
		w.after(hour + firstPause)
		w.good(c)
		if sent := w.requests(); len(sent) != 2 || sent[0] != sent[1] {
			t.Errorf("sent %v", sent)
		}
	})
	t.Run("afterwards", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.link()
		w.after(hour)
		w.refreshes(func(_ http.ResponseWriter, r *http.Request) bool {
			w.provider.Answer(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
		if f := w.fails(c); f.Class != oauth.Unknown {
			t.Errorf("%+v", f)
		}
		w.refreshes(nil)
		w.restart()
		for range 3 {
			if reason := w.unusable(c); reason != v1alpha1.ReasonConnectionRevoked {
				t.Errorf("reason %s", reason)
			}
			w.after(2 * hour)
			w.restart()
		}
		if n := len(w.requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// While the disk is full, the answer is kept in memory, and the refresh token that it has replaced is not sent again. With room it is
// written.
func TestUseFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	old := w.kept(c).Grant.Refresh
	w.after(hour)
	w.disk.full.Store(true)
	for range 3 {
		if err := w.bad(c); apierrors.ReasonForError(err) != "InsufficientStorage" || !strings.Contains(err.Error(), engine.ErrFull.Error()) {
			t.Errorf("use: %v", err)
		}
		if w.kept(c).Grant.Refresh != old {
			t.Error("it was written")
		}
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.disk.full.Store(false)
	token := w.good(c)
	if g := w.kept(c).Grant; g.Refresh == old || g.Access != token.Access.Reveal() || len(w.requests()) != 1 || w.counted(refreshed) != 1 {
		t.Errorf("%d requests", len(w.requests()))
	}
	// Nor is it lost when the person disconnects.
	w.after(2 * hour)
	w.disk.full.Store(true)
	if err := w.bad(c); apierrors.ReasonForError(err) != "InsufficientStorage" {
		t.Errorf("use: %v", err)
	}
	w.disk.full.Store(false)
	stored := w.kept(c).Grant.Refresh
	w.check(w.Release(w.ctx, w.leave(c)))
	if got := w.provider.Revoked(); len(got) != 1 || got[0] == stored || len(w.requests()) != 2 {
		t.Errorf("revoked %v", got)
	}
}
