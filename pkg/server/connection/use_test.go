// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/storage/custody"
)

// unusable returns the reason why a connection cannot be used.
func (w *world) unusable(c *v1alpha1.Connection) string {
	w.t.Helper()
	err := w.bad(c)
	why, ok := errors.AsType[*connector.UnusableError](err)
	if !ok || why.Message == "" {
		w.t.Fatalf("use: %v", err)
	}
	return why.Reason
}

// A token is used until its last minute, and then refreshed. The new one is used like that, too, after a restart as well.
func TestUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	first := w.good(c)
	if d := first.Expires.Sub(begin); d != hour {
		t.Errorf("it lives %s", d)
	}
	w.after(hour - time.Minute - time.Second)
	if again := w.good(c); again != first || len(w.requests()) > 0 {
		t.Errorf("%d requests", len(w.requests()))
	}
	w.after(hour - time.Minute)
	refresh := w.kept(c).Grant.Refresh
	second := w.good(c)
	if second.Access == first.Access || !second.Expires.Equal(begin.Add(2*hour-time.Minute)) || second.Sequence != first.Sequence {
		t.Errorf("refreshed: %+v", second)
	}
	w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
	now := w.get(c).Status
	if !now.ExpiresAt.Time.Equal(second.Expires) || !now.LastRefreshTime.Time.Equal(w.clock.Now()) || !now.LinkedAt.Time.Equal(begin) || now.GrantSequence != 1 {
		t.Errorf("status %+v", now)
	}
	w.restart()
	if again := w.good(c); again != second {
		t.Error("the new token is not kept")
	}
	if d := cmp.Diff([]string{refresh}, w.requests()); d != "" || w.kept(c).Grant.Refresh == refresh {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	w.after(3 * hour) // it has ended long ago
	w.good(c)
	if n := w.counted(refreshed); n != 2 {
		t.Errorf("counted %d", n)
	}
}

// However many use a token at its end, one request is sent, and all have the new token. A provider that replaces refresh tokens, and
// revokes the grant of one that is used twice, is content.
func TestUseAtOnce(t *testing.T) {
	t.Parallel()
	const callers, rounds = 64, 8
	w := newWorld(t)
	c := w.link()
	for round := range rounds {
		w.after(time.Duration(round+1) * hour)
		entered, leave := w.held()
		var all sync.WaitGroup
		var begun sync.WaitGroup
		got := make([]used, callers)
		for i := range callers {
			begun.Add(1)
			all.Go(func() {
				begun.Done()
				got[i].token, got[i].err = w.Use(w.ctx, c)
			})
		}
		begun.Wait()
		<-entered
		leave()
		all.Wait()
		for _, u := range got {
			if u.err != nil || u.token != got[0].token {
				t.Fatalf("use: %v", u.err)
			}
		}
		if n := len(w.requests()); n != round+1 {
			t.Fatalf("%d requests in %d rounds", n, round+1)
		}
	}
	if sent := w.requests(); len(slices.Compact(slices.Sorted(slices.Values(sent)))) != rounds {
		t.Errorf("a refresh token was sent twice: %v", sent)
	}
	w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
}

// What a provider leaves out of its answer, or says in its own way.
func TestUseAnswers(t *testing.T) {
	t.Parallel()
	const long = 3 * time.Hour
	for _, tc := range []struct {
		name, answer string
		// rotated says that there is a new refresh token, and lives how long the access token lives; 0 if that is not known.
		rotated bool
		lives   time.Duration
	}{
		{"everything", `{"access_token":"new","refresh_token":"next","token_type":"bearer","scope":"read","expires_in":10800}`, true, long},
		{"no refresh token", `{"access_token":"new","token_type":"Bearer","expires_in":10800}`, false, long},
		{"empty refresh token", `{"access_token":"new","refresh_token":"","token_type":"Bearer","expires_in":10800}`, false, long},
		{"more scopes", `{"access_token":"new","scope":"read write admin","expires_in":10800}`, false, long},
		{"no end", `{"access_token":"new","token_type":"Bearer"}`, false, 0},
		{"end as text", `{"access_token":"new","token_type":"Bearer","expires_in":"10800"}`, false, long},
		{"end now", `{"access_token":"new","token_type":"Bearer","expires_in":0}`, false, time.Nanosecond},
		{"end before", `{"access_token":"new","token_type":"Bearer","expires_in":-5}`, false, time.Nanosecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			before := w.kept(c).Grant
			w.refreshes(status(200, tc.answer))
			w.after(hour)
			token := w.good(c)
			want := *before
			want.Access, want.Expires = "new", time.Time{}
			if tc.rotated {
				want.Refresh = "next"
			}
			if tc.lives > 0 {
				want.Expires = begin.Add(hour + tc.lives.Truncate(time.Second))
			}
			if d := cmp.Diff(&want, w.kept(c).Grant, unexported); d != "" {
				t.Errorf("custody (-want +got):\n%s", d)
			}
			if token.Access.Reveal() != "new" || !token.Expires.Equal(want.Expires) {
				t.Errorf("it ends at %s", token.Expires)
			}
			s := w.get(c).Status
			if !slices.Equal(s.GrantedScopes, []string{"read"}) || (s.ExpiresAt == nil) != (tc.lives == 0) {
				t.Errorf("status %+v", s)
			}
			w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
			// One that ends at once is refreshed each time, and used all the same.
			w.good(c)
			if n := len(w.requests()); (n == 2) != (tc.lives == time.Nanosecond) {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A refresh that takes scopes away needs another consent, if they are needed. The tokens are kept.
func TestUseNarrower(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.refreshes(status(200, `{"access_token":"new","refresh_token":"next","scope":"other","expires_in":3600}`))
	w.after(hour)
	for range 2 {
		if reason := w.unusable(c); reason != v1alpha1.ReasonConsentRequired {
			t.Errorf("reason %s", reason)
		}
	}
	w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionPending)
	if g := w.kept(c).Grant; g.Access != "new" || g.Refresh != "next" || len(g.Granted) > 0 || len(w.get(c).Status.GrantedScopes) > 0 {
		t.Errorf("custody: %v, status %v", g.Granted, w.get(c).Status.GrantedScopes)
	}
	w.refreshes(nil)
	w.link()
	w.good(c)
}

// Without a refresh token the access token is used as long as it lives. Then the person has to connect again.
func TestUseWithoutRefreshToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.Answers("/token", status(200, `{"access_token":"only","token_type":"Bearer","expires_in":3600}`))
	c := w.link()
	w.after(hour - time.Nanosecond)
	if w.good(c).Access.Reveal() != "only" {
		t.Error("it is another token")
	}
	w.after(hour)
	for range 2 {
		if reason := w.unusable(c); reason != v1alpha1.ReasonConnectionExpired {
			t.Errorf("reason %s", reason)
		}
	}
	w.ready(c, metav1.ConditionFalse, v1alpha1.ReasonConnectionExpired, v1alpha1.ConnectionExpired)
	if w.counted(expired) != 1 || w.provider.Requests("/token") != 1 || w.kept(c).Grant.Access != "only" {
		t.Errorf("counted %d after %d requests", w.counted(expired), w.provider.Requests("/token"))
	}
	// One without an end does not end.
	w.provider.Answers("/token", status(200, `{"access_token":"forever","token_type":"Bearer"}`))
	w.link()
	w.after(10000 * hour)
	if w.good(c).Access.Reveal() != "forever" {
		t.Error("it is another token")
	}
}

// Another Secret of the client needs no other consent: it is used for a refresh, and to disconnect.
func TestUseWithAnotherSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	p, err := w.options.Providers.Get(w.in(), "provider")
	w.check(err)
	w.check(w.options.Providers.UpdateAsCaller(w.in(), p.Name, func(p *v1alpha1.ConnectorProvider) error {
		p.Spec.OAuth.ClientSecretRef.Key = "second"
		return nil
	}))
	w.host.secret = &corev1.Secret{Data: map[string][]byte{"second": []byte("client-secret-canary-5fd1\n")}}
	w.after(hour)
	w.good(c)
	w.check(w.Release(w.ctx, w.leave(c)))
	if n := len(w.provider.Revoked()); n != 1 {
		t.Errorf("revoked %d", n)
	}
}

// What is not the person's, or not there, gives no token, and nothing is sent.
func TestUseRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*world, *v1alpha1.Connection)
		reason string
	}{
		{"another connection of the name", func(_ *world, c *v1alpha1.Connection) { c.UID = "other" }, ""},
		{"no such connection", func(_ *world, c *v1alpha1.Connection) { c.Name = "other" }, ""},
		{"being deleted", func(w *world, c *v1alpha1.Connection) { w.leave(c) }, ""},
		{"closed", func(w *world, c *v1alpha1.Connection) {
			_, err := w.vault.close(w.ctx, c.UID)
			w.check(err)
		}, ""},
		{"buried", func(w *world, c *v1alpha1.Connection) { w.check(w.vault.Bury(w.ctx, c.UID)) }, ""},
		{"wider mode", func(w *world, c *v1alpha1.Connection) {
			_, err := w.setMode(w.in(), c, v1alpha1.ConnectionReadWrite, false)
			w.check(err)
		}, v1alpha1.ReasonConsentRequired},
		{"not settled yet", func(w *world, c *v1alpha1.Connection) {
			_, err := w.options.Connections.UpdateStored(w.in(), c.Name, func(c *v1alpha1.Connection) error {
				meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionScopesGranted).ObservedGeneration--
				return nil
			})
			w.check(err)
		}, ""},
		{"provider gone", func(w *world, _ *v1alpha1.Connection) {
			w.check(w.options.Providers.Remove(w.ctx, w.got(w.options.Providers.Get(w.in(), "provider"))))
		}, v1alpha1.ReasonProviderMissing},
		{"provider not accepted", func(w *world, _ *v1alpha1.Connection) {
			_, err := w.options.Providers.UpdateStored(w.in(), "provider", func(p *v1alpha1.ConnectorProvider) error {
				p.Status.Conditions[0].Status = metav1.ConditionFalse
				return nil
			})
			w.check(err)
		}, v1alpha1.ReasonProviderInvalid},
		{"another provider of the name", func(w *world, _ *v1alpha1.Connection) {
			w.check(w.options.Providers.Remove(w.ctx, w.got(w.options.Providers.Get(w.in(), "provider"))))
			w.apply()
		}, v1alpha1.ReasonConsentRequired},
		{"another client", func(w *world, _ *v1alpha1.Connection) {
			w.check(w.options.Providers.UpdateAsCaller(w.in(), "provider", func(p *v1alpha1.ConnectorProvider) error {
				p.Spec.OAuth.ClientID = "other"
				return nil
			}))
		}, v1alpha1.ReasonConsentRequired},
		{"another grant than the status names", func(w *world, c *v1alpha1.Connection) {
			_, err := w.options.Connections.UpdateStored(w.in(), c.Name, func(c *v1alpha1.Connection) error {
				c.Status.GrantSequence = 7
				return nil
			})
			w.check(err)
		}, v1alpha1.ReasonConsentRequired},
		{"no grant", func(w *world, c *v1alpha1.Connection) {
			w.check(w.vault.change(w.ctx, c.UID, func(d *document) error {
				d.Grant = nil
				return nil
			}))
		}, v1alpha1.ReasonConsentRequired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			w.after(hour)
			tc.change(w, c)
			if reason := w.unusable(c); reason != tc.reason || len(w.requests()) > 0 {
				t.Errorf("reason %q, want %q", reason, tc.reason)
			}
		})
	}
}

// got returns a provider that must be there.
func (w *world) got(p *v1alpha1.ConnectorProvider, err error) *v1alpha1.ConnectorProvider {
	w.t.Helper()
	w.check(err)
	return p
}

// Without connectors, or without the key, no token is given out, and the custody is kept.
func TestUseOffAndWithoutKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	with := w.options.Custody
	w.options.Custody = custody.New(w.disk.Engine, w.keys())
	w.restart()
	if err := w.bad(c); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "key of the connection is missing") {
		t.Errorf("use: %v", err)
	}
	w.options.Custody, w.options.Off = with, true
	w.restart()
	if err := w.bad(c); apierrors.ReasonForError(err) != v1alpha1.ReasonConnectorsDisabled {
		t.Errorf("use: %v", err)
	}
	w.options.Off = false
	w.restart()
	w.good(c)
}

// A token is not printed, and has no JSON.
func TestTokenIsNotPrinted(t *testing.T) {
	t.Parallel()
	token := Token{Access: oauth.SecretOf("canary"), Type: "Bearer", Sequence: 3}
	for _, of := range []any{token, &token, []Token{token}, struct{ T Token }{token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, of); strings.Contains(text, "canary") || strings.Contains(text, "63616e617279") || strings.Contains(text, "99 97 110") {
				t.Errorf("%s of %T prints %s", verb, of, text)
			}
		}
		if text, err := json.Marshal(of); err == nil {
			t.Errorf("%T has the JSON %s", of, text)
		}
	}
}
