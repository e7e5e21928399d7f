// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// A person connects an account, widens it, narrows it and disconnects. Nothing of a code, token or secret is in a file of the server.
func TestConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")

	catalogue := ann.Get("/api/v1/connectors").Want(t, http.StatusOK)
	want := `{"items":[{"name":"provider","namespace":"team","displayName":"provider","ready":true,"scopes":{"read":["read"],"write":["write"]},"tools":[{"name":"find","class":"read"},{"name":"note","class":"write"}]}]}`
	if d := cmp.Diff(want, strings.TrimSpace(catalogue.Body)); d != "" {
		t.Errorf("catalogue (-want +got):\n%s", d)
	}

	begun := w.connect(ann, "")
	if c := begun.Connection; c.Mode != "readOnly" || c.State != "Pending" || c.Ready || c.Message == "" {
		t.Errorf("a new connection: %+v", c)
	}
	q := kit.Must[*url.URL](t)(url.Parse(begun.AuthorizeURL)).Query()
	if q.Get("scope") != "read" || q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != base+"/api/v1/connections/callback" || len(q.Get("state")) > 256 {
		t.Errorf("authorize with %v", q)
	}
	completion := w.consent(begun.AuthorizeURL)
	if c := w.get(begun.Connection.Name); c.Status.State != v1alpha1.ConnectionPending || c.Status.GrantSequence != 0 {
		t.Errorf("tokens that nobody has claimed count: %+v", c.Status)
	}
	linked := host.Decode[row](t, w.complete(ann, begun.Connection.Name, completion).Want(t, http.StatusOK))
	if !linked.Ready || linked.State != "Ready" || linked.LinkedAt == nil || linked.ExpiresAt == nil || !cmp.Equal(linked.GrantedScopes, []string{"read"}) {
		t.Errorf("linked: %+v", linked)
	}
	w.complete(ann, linked.Name, completion).Problem(t, http.StatusConflict, "used")

	// Widening needs a consent, which is not given; narrowing takes effect at once.
	wider := host.Decode[answer](t, ann.Do(http.MethodPut, "/api/v1/connections/"+linked.Name, `{"mode":"readWrite"}`).Want(t, http.StatusOK))
	if wider.AuthorizeURL == "" || wider.Connection.State != "Pending" || wider.Connection.Ready {
		t.Errorf("widened: %+v", wider)
	}
	if c := w.get(linked.Name); c.Status.GrantSequence != 1 || c.Status.LinkedAt == nil {
		t.Errorf("widening erased the consent: %+v", c.Status)
	}
	w.awaitState(linked.Name, v1alpha1.ConnectionPending, v1alpha1.ReasonConsentRequired)
	narrower := host.Decode[answer](t, ann.Do(http.MethodPut, "/api/v1/connections/"+linked.Name, `{"mode":"readOnly"}`).Want(t, http.StatusOK))
	if narrower.AuthorizeURL != "" || narrower.Connection.State != "Ready" {
		t.Errorf("narrowed: %+v", narrower)
	}
	// The consent that was begun for the wider mode does not count any more.
	w.refused(w.provider.Consent(t, wider.AuthorizeURL), "mode_changed")

	// Wider again, and this time to the end.
	again := w.linked(ann, "readWrite")
	if again.Name != linked.Name || !cmp.Equal(again.GrantedScopes, []string{"read", "write"}) || w.get(again.Name).Status.GrantSequence != 2 {
		t.Errorf("linked again: %+v", again)
	}

	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	w.gone(ann, linked.Name)
	if got := w.provider.Revoked(); len(got) != 2 || !strings.HasPrefix(got[0], "refresh-") || got[0] == got[1] {
		t.Errorf("revoked: %v", got)
	}
	w.leaked(append(w.provider.Secrets(), completion, q.Get("state")))
}

// Every reason for which a callback leads to no tokens, and that the provider was not asked for them where it need not be.
func TestCallbackReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	fresh := func() string { return w.connect(ann, "readOnly").AuthorizeURL }
	set := func(name, value string) func(url.Values) { return func(q url.Values) { q.Set(name, value) } }
	without := func(names ...string) func(url.Values) {
		return func(q url.Values) {
			for _, n := range names {
				q.Del(n)
			}
		}
	}
	come := func(reason string, changes ...func(url.Values)) {
		t.Helper()
		before := w.provider.Requests("/token")
		address := w.provider.Consent(t, fresh(), changes...)
		w.refused(address, reason)
		w.refused(address, "invalid_state") // a state counts once, also for what failed
		if reason != "exchange_failed" && reason != "scopes_denied" && w.provider.Requests("/token") != before {
			t.Errorf("%s: the code was exchanged", reason)
		}
	}
	come("access_denied", without("code"), set("error", "access_denied"))
	come("provider_rejected", without("code"), set("error", "server_error"))
	come("missing_code", without("code"))
	come("provider_rejected", set("iss", "https://other.example")) // mix-up: the code is another server's
	come("exchange_failed", set("code", "wrong"))

	w.refused(base+"/api/v1/connections/callback", "invalid_state")
	w.refused(base+"/api/v1/connections/callback?state=a.b&code=c", "invalid_state")
	w.refused(w.provider.Consent(t, fresh())+"&state=twice", "invalid_state")
	forged := w.provider.Consent(t, fresh(), func(q url.Values) { q.Set("state", "A"+q.Get("state")[1:]) })
	w.refused(forged, "invalid_state")

	for _, scope := range []string{"", "other", "write"} {
		w.provider.Grants(&scope)
		come("scopes_denied")
	}
	comma := "write,read"
	w.provider.Grants(&comma)
	w.consent(fresh())
	w.provider.Grants(nil)

	late := fresh()
	w.clock.By.Add(int64(11 * time.Minute))
	w.refused(w.provider.Consent(t, late), "consent_expired")

	first := fresh()
	second := fresh()
	w.refused(w.provider.Consent(t, first), "invalid_state") // a consent that is begun replaces the one before

	w.apply("    issuer: https://accounts.provider.example", "    pkce: false")
	w.refused(w.provider.Consent(t, second), "provider_changed")
	if q := kit.Must[*url.URL](t)(url.Parse(fresh())).Query(); q.Has("code_challenge") {
		t.Errorf("a proof that is not wanted: %v", q)
	}
	come("provider_rejected", without("iss")) // whose issuer is known has to name it

	gone := fresh()
	if err := w.Kubernetes(t).CoreV1().Secrets("team").Delete(t.Context(), oauthprovider.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.refused(w.provider.Consent(t, gone), "provider_unavailable")
	w.secret()

	left := w.connect(ann, "")
	ann.Do(http.MethodDelete, "/api/v1/connections/"+left.Connection.Name, "").Want(t, http.StatusNoContent)
	w.gone(ann, left.Connection.Name)
	w.refused(w.provider.Consent(t, left.AuthorizeURL), "disconnected")
}

// Two consents that run at the same time: the newer one counts, whichever comes back first.
func TestSupersededConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	older := w.connect(ann, "")
	// The exchange of the older consent is answered while the newer one is begun and comes back.
	entered, leave := make(chan struct{}), make(chan struct{})
	w.provider.Answers("/token", func(http.ResponseWriter, *http.Request) bool {
		w.provider.Answers("/token", nil)
		close(entered)
		<-leave
		return false
	})
	done := make(chan *url.URL)
	address := w.provider.Consent(t, older.AuthorizeURL)
	go func() { done <- w.back(address) }()
	<-entered
	newer := w.connect(ann, "")
	completion := w.consent(newer.AuthorizeURL)
	close(leave)
	if to := <-done; to.Query().Get("reason") != "consent_superseded" {
		t.Errorf("the older consent leads to %s", to)
	}
	w.complete(ann, newer.Connection.Name, completion).Want(t, http.StatusOK)
}

// Nobody links, sees, completes or removes the account of another person, and who is no person links none.
func TestForeign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.person("user-ann"), w.person("user-bob")
	hers := w.connect(ann, "readWrite")
	completion := w.consent(hers.AuthorizeURL)
	path := "/api/v1/connections/" + hers.Connection.Name

	// Bob has the completion token of Ann's consent, for example because he made her browser come back with his own state.
	w.complete(bob, hers.Connection.Name, completion).Problem(t, http.StatusNotFound)
	his := w.connect(bob, "readOnly")
	w.complete(bob, his.Connection.Name, completion).Problem(t, http.StatusConflict, "another connection")
	if his.Connection.Name == hers.Connection.Name {
		t.Errorf("both have %s", his.Connection.Name)
	}
	for _, a := range []host.Answer{
		bob.Get(path), bob.Do(http.MethodPut, path, `{"mode":"readOnly"}`), bob.Do(http.MethodDelete, path, ""), bob.Post(path+"/authorize", ""),
	} {
		a.Problem(t, http.StatusNotFound)
	}
	if got := bob.Get("/api/v1/connections").Want(t, http.StatusOK).Body; strings.Contains(got, hers.Connection.Name) {
		t.Errorf("Bob sees %s", got)
	}

	// A ServiceAccount with every right is no person.
	account := w.REST(t, "team", "robot", "cluster-admin")
	for _, a := range []host.Answer{
		account.Get("/api/v1/connectors"), account.Get("/api/v1/connections"), account.Get(path), account.Post("/api/v1/connections", `{"provider":"provider"}`),
		account.Do(http.MethodDelete, path, ""), account.Post(path+"/authorize", ""), w.complete(account, hers.Connection.Name, completion),
	} {
		a.Problem(t, http.StatusForbidden)
	}
	// An administrator sees states, and consents for nobody.
	if w.get(hers.Connection.Name).Spec.Subject.Subject != "user-ann" {
		t.Error("the administrator does not see whose it is")
	}
	if err := w.patch(hers.Connection.Name, `{"spec":{"mode":"readOnly"}}`); !apierrors.IsInvalid(err) {
		t.Errorf("the administrator changes a mode: %v", err)
	}
	if err := w.patch(hers.Connection.Name, `{"metadata":{"finalizers":null,"labels":null}}`); err != nil {
		t.Fatal(err)
	}
	if c := w.get(hers.Connection.Name); len(c.Finalizers) != 1 || len(c.Labels) != 2 {
		t.Errorf("an update removed %v %v", c.Finalizers, c.Labels)
	}
	w.complete(ann, hers.Connection.Name, completion).Want(t, http.StatusOK)

	for body, want := range map[string]string{
		`{"provider":"provider","subject":"user-bob"}`: "subject", `{"provider":"provider","mode":"all"}`: "mode", `{}`: "provider",
		`{"provider":"provider","x":"` + strings.Repeat("x", 4<<10) + `"}`: "",
	} {
		a := ann.Post("/api/v1/connections", body)
		if a.Code < 400 || a.Code >= 500 || !strings.Contains(a.Body, want) {
			t.Errorf("POST %.60s: %d %s", body, a.Code, a.Body)
		}
	}
	ann.Post("/api/v1/connections", `{"provider":"missing"}`).Problem(t, http.StatusNotFound)
	ann.Post(path+"/complete", `{"completion":"nonsense"}`).Problem(t, http.StatusBadRequest)
}

// What a completion can be refused for.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	finish := func(begun answer, completion, want string) {
		t.Helper()
		before := w.get(begun.Connection.Name).Status.GrantSequence
		w.complete(ann, begun.Connection.Name, completion).Problem(t, http.StatusConflict, want)
		if now := w.get(begun.Connection.Name).Status.GrantSequence; now != before {
			t.Errorf("%s: sequence %d, was %d", want, now, before)
		}
	}
	// A token that is short, and nothing to refresh it with.
	w.provider.Answers("/token", func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(rw, `{"access_token":"short-canary","token_type":"bearer","expires_in":60}`)
		return true
	})
	begun := w.connect(ann, "")
	completion := w.consent(begun.AuthorizeURL)
	w.clock.By.Add(int64(2 * time.Minute))
	finish(begun, completion, "ended meanwhile")
	finish(begun, completion, "used") // it is not kept
	w.provider.Answers("/token", nil)

	begun = w.connect(ann, "")
	completion = w.consent(begun.AuthorizeURL)
	w.clock.By.Add(int64(11 * time.Minute))
	finish(begun, completion, "too late")

	begun = w.connect(ann, "")
	completion = w.consent(begun.AuthorizeURL)
	w.apply("    pkce: false")
	finish(begun, completion, "changed meanwhile")

	// Sixteen grants are kept beside the one that counts.
	for range 17 {
		w.linked(ann, "")
	}
	begun = w.connect(ann, "")
	finish(begun, w.consent(begun.AuthorizeURL), "16 earlier grants")
	ann.Do(http.MethodDelete, "/api/v1/connections/"+begun.Connection.Name, "").Want(t, http.StatusNoContent)
	w.gone(ann, begun.Connection.Name)
	if got := len(w.provider.Revoked()); got != 17 {
		t.Errorf("%d grants were revoked, want 17", got)
	}
	if c := w.linked(ann, ""); w.get(c.Name).Status.GrantSequence != 1 {
		t.Errorf("connected anew: %+v", c)
	}
}
