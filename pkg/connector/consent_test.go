// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestNames(t *testing.T) {
	sum := sha256.Sum256([]byte("https://issuer.example.com\x00ann"))
	want := hex.EncodeToString(sum[:])
	if got := SubjectDigest(" https://issuer.example.com\n", "\tann "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if SubjectDigest("a", "b c") == SubjectDigest("a b", "c") || SubjectDigest("a", "") == SubjectDigest("", "a") {
		t.Error("two persons have one digest")
	}
	if got := Name("github", "https://issuer.example.com", "ann"); got != "github-"+want[:12] {
		t.Error(got)
	}
	seen := map[string]string{}
	for _, provider := range []string{
		"a", "a.b-c", strings.Repeat("a", 50), strings.Repeat("a", 51), strings.Repeat("a", 63), strings.Repeat("a", 62) + "b",
		strings.Repeat("a", 36) + "." + strings.Repeat("b", 26), strings.Repeat("a", 36) + "-" + strings.Repeat("b", 26), strings.Repeat("a", 35) + "--" + strings.Repeat("b", 26),
		strings.Repeat("a-", 31) + "a",
	} {
		name := Name(provider, "i", "s")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > 63 || !strings.HasSuffix(name, "-"+SubjectDigest("i", "s")[:12]) {
			t.Errorf("%s: %s: %v", provider, name, problems)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s share the name %s", provider, other, name)
		}
		seen[name] = provider
	}
}

func TestAuthorityDigest(t *testing.T) {
	want := AuthorityDigest(provider())
	if len(want) != 64 {
		t.Error(want)
	}
	type oauth = v1alpha1.ConnectorOAuth
	for name, change := range map[string]func(*v1alpha1.ConnectorProvider){
		"tools":        func(p *v1alpha1.ConnectorProvider) { p.Spec.Tools = nil },
		"display name": func(p *v1alpha1.ConnectorProvider) { p.Spec.DisplayName = "a" },
		"scopes":       func(p *v1alpha1.ConnectorProvider) { p.Spec.OAuth.Scopes.Read = nil },
		"secret":       func(p *v1alpha1.ConnectorProvider) { p.Spec.OAuth.ClientSecretRef.Key = "a" },
		"name":         func(p *v1alpha1.ConnectorProvider) { p.Name = "a" },
		"defaults": func(p *v1alpha1.ConnectorProvider) {
			p.Spec.OAuth.PKCE, p.Spec.OAuth.ClientAuthentication = new(true), v1alpha1.ClientSecretBasic
		},
	} {
		p := provider()
		change(p)
		if AuthorityDigest(p) != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	seen := map[string]string{want: "nothing"}
	for name, change := range map[string]func(*oauth){
		"issuer":         func(o *oauth) { o.Issuer = "" },
		"authorizeURL":   func(o *oauth) { o.AuthorizeURL += "a" },
		"tokenURL":       func(o *oauth) { o.TokenURL += "a" },
		"revocationURL":  func(o *oauth) { o.RevocationURL += "a" },
		"clientID":       func(o *oauth) { o.ClientID += "a" },
		"authentication": func(o *oauth) { o.ClientAuthentication = v1alpha1.ClientSecretPost },
		"pkce":           func(o *oauth) { o.PKCE = new(false) },
		"parameter":      func(o *oauth) { o.AdditionalAuthorizeParameters["prompt"] = "a" },
		"parameter's name": func(o *oauth) {
			o.AdditionalAuthorizeParameters = map[string]string{"prompts": "select_account", "access_type": "offline"}
		},
		"no parameters": func(o *oauth) { o.AdditionalAuthorizeParameters = nil },
		"part of two":   func(o *oauth) { o.AuthorizeURL, o.TokenURL = o.AuthorizeURL+o.TokenURL, "" },
	} {
		p := provider()
		change(&p.Spec.OAuth)
		d := AuthorityDigest(p)
		if other, ok := seen[d]; ok {
			t.Errorf("%s changes as little as %s", name, other)
		}
		seen[d] = name
	}
}

func TestScopes(t *testing.T) {
	p := provider()
	p.Spec.OAuth.Scopes = v1alpha1.ConnectorScopes{Read: []string{"b", "a"}, Write: []string{"c", "a"}}
	for mode, want := range map[v1alpha1.ConnectionMode][]string{"": {"a", "b"}, v1alpha1.ConnectionReadOnly: {"a", "b"}, v1alpha1.ConnectionReadWrite: {"a", "b", "c"}} {
		if got := Required(p, mode); !slices.Equal(got, want) {
			t.Errorf("%s: %q", mode, got)
		}
	}
	if !slices.Equal(p.Spec.OAuth.Scopes.Read, []string{"b", "a"}) {
		t.Error("the provider was changed")
	}
	for _, c := range []struct {
		granted, required []string
		want              bool
	}{
		{nil, nil, true},
		{[]string{"a"}, nil, true},
		{[]string{"a", "b"}, []string{"b"}, true},
		{nil, []string{"a"}, false},
		{[]string{"a"}, []string{"a", "b"}, false},
		{[]string{"repo"}, []string{"repo:status"}, false},
		{[]string{"A"}, []string{"a"}, false},
	} {
		if got := Covers(c.granted, c.required); got != c.want {
			t.Errorf("%q covers %q: %t", c.granted, c.required, got)
		}
	}
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// accepted returns a provider that can be used.
func accepted() *v1alpha1.ConnectorProvider {
	p := provider()
	for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Good", LastTransitionTime: metav1.NewTime(now)})
	}
	return p
}

// linkedTo returns a connection of mode readOnly with a committed consent, as its owner leaves it.
func linkedTo(p *v1alpha1.ConnectorProvider) *v1alpha1.Connection {
	c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "github-1", Generation: 3}, Spec: v1alpha1.ConnectionSpec{Mode: v1alpha1.ConnectionReadOnly}}
	c.Status.GrantSequence, c.Status.GrantedScopes = 1, []string{"read:user", "repo:status"}
	c.Status.Consent = &v1alpha1.ConnectionConsent{ProviderUID: p.UID, AuthorityDigest: AuthorityDigest(p)}
	ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted)
	return c
}

func ready(c *v1alpha1.Connection, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "as it is", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	})
}

func TestSettle(t *testing.T) {
	type change = func(*v1alpha1.Connection, *v1alpha1.ConnectorProvider)
	notReady := func(reason string) change {
		return func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) { ready(c, metav1.ConditionFalse, reason) }
	}
	const (
		resolved = "True " + v1alpha1.ReasonProviderResolved
		invalid  = "False " + v1alpha1.ReasonProviderInvalid
		covered  = "True " + v1alpha1.ReasonScopesCovered
		required = "False " + v1alpha1.ReasonConsentRequired
		pending  = "False " + v1alpha1.ReasonPendingConsent
		good     = "True " + v1alpha1.ReasonConsentCommitted
	)
	for _, r := range []struct {
		name   string
		change change
		// provider, scopes and ready are the conditions afterwards.
		provider, scopes, ready string
		state                   v1alpha1.ConnectionState
		// unusable is the reason of Usable, "-" for none.
		unusable string
	}{
		{"linked", func(*v1alpha1.Connection, *v1alpha1.ConnectorProvider) {}, resolved, covered, good, v1alpha1.ConnectionReady, "-"},
		{"new", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) { c.Status = v1alpha1.ConnectionStatus{} }, resolved, pending, pending, v1alpha1.ConnectionPending, v1alpha1.ReasonPendingConsent},
		{"consent without a number", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) { c.Status.GrantSequence = 0 }, resolved, pending, good, v1alpha1.ConnectionPending, v1alpha1.ReasonPendingConsent},
		{"number without a consent", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) { c.Status.Consent = nil }, resolved, pending, good, v1alpha1.ConnectionPending, v1alpha1.ReasonPendingConsent},
		{"mode widened", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			c.Spec.Mode = v1alpha1.ConnectionReadWrite
		}, resolved, required, good, v1alpha1.ConnectionPending, v1alpha1.ReasonConsentRequired},
		{"wider mode covered", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			c.Spec.Mode, c.Status.GrantedScopes = v1alpha1.ConnectionReadWrite, []string{"repo", "repo:status", "read:user"}
		}, resolved, covered, good, v1alpha1.ConnectionReady, "-"},
		{"mode narrowed again", func(c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			c.Spec.Mode = v1alpha1.ConnectionReadWrite
			Settle(c, p, now)
			c.Spec.Mode = v1alpha1.ConnectionReadOnly
		}, resolved, covered, good, v1alpha1.ConnectionReady, "-"},
		{"provider asks for more", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			p.Spec.OAuth.Scopes.Read = append(p.Spec.OAuth.Scopes.Read, "more")
		}, resolved, required, good, v1alpha1.ConnectionPending, v1alpha1.ReasonConsentRequired},
		{"another provider of the name", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) { p.UID = "uid-2" }, resolved, required, good, v1alpha1.ConnectionPending, v1alpha1.ReasonConsentRequired},
		{"another client", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) { p.Spec.OAuth.ClientID = "other" }, resolved, required, good, v1alpha1.ConnectionPending, v1alpha1.ReasonConsentRequired},
		{"other tools", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) { p.Spec.Tools = nil }, resolved, covered, good, v1alpha1.ConnectionReady, "-"},
		{"provider is being deleted", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			p.DeletionTimestamp = new(metav1.NewTime(now))
		}, invalid, covered, good, v1alpha1.ConnectionError, v1alpha1.ReasonProviderInvalid},
		{"provider is new", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) { p.Status.Conditions = nil }, invalid, covered, good, v1alpha1.ConnectionError, v1alpha1.ReasonProviderInvalid},
		{"provider is not accepted", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			p.Status.Conditions[0].Status = metav1.ConditionFalse
		}, invalid, covered, good, v1alpha1.ConnectionError, v1alpha1.ReasonProviderInvalid},
		{"provider lacks its Secret", func(_ *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			p.Status.Conditions[1].Status = metav1.ConditionUnknown
		}, invalid, covered, good, v1alpha1.ConnectionError, v1alpha1.ReasonProviderInvalid},
		{"revoked", notReady(v1alpha1.ReasonConnectionRevoked), resolved, covered, "False " + v1alpha1.ReasonConnectionRevoked, v1alpha1.ConnectionRevoked, v1alpha1.ReasonConnectionRevoked},
		{"expired", notReady(v1alpha1.ReasonConnectionExpired), resolved, covered, "False " + v1alpha1.ReasonConnectionExpired, v1alpha1.ConnectionExpired, v1alpha1.ReasonConnectionExpired},
		{"revoked at a provider that is not accepted", func(c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionFalse, v1alpha1.ReasonConnectionRevoked)
			p.Status.Conditions = nil
		}, invalid, covered, "False " + v1alpha1.ReasonConnectionRevoked, v1alpha1.ConnectionError, v1alpha1.ReasonProviderInvalid},
		{"revoked and widened", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionFalse, v1alpha1.ReasonConnectionRevoked)
			c.Spec.Mode = v1alpha1.ConnectionReadWrite
		}, resolved, required, "False " + v1alpha1.ReasonConnectionRevoked, v1alpha1.ConnectionRevoked, v1alpha1.ReasonConsentRequired},
		{"refresh failed, token lives", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionFalse, v1alpha1.ReasonRefreshFailed)
			c.Status.ExpiresAt = new(metav1.NewTime(now.Add(time.Second)))
		}, resolved, covered, "False " + v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionReady, v1alpha1.ReasonRefreshFailed},
		{"refresh failed, token without an end", notReady(v1alpha1.ReasonRefreshFailed), resolved, covered, "False " + v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionReady, v1alpha1.ReasonRefreshFailed},
		{"refresh failed, token ended", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionFalse, v1alpha1.ReasonRefreshFailed)
			c.Status.ExpiresAt = new(metav1.NewTime(now))
		}, resolved, covered, "False " + v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionExpired, v1alpha1.ReasonRefreshFailed},
		{"refresh failed, still ready", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionTrue, v1alpha1.ReasonRefreshFailed)
		}, resolved, covered, "True " + v1alpha1.ReasonRefreshFailed, v1alpha1.ConnectionReady, "-"},
		{"not known whether ready", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			ready(c, metav1.ConditionUnknown, v1alpha1.ReasonConnectorsDisabled)
		}, resolved, covered, "Unknown " + v1alpha1.ReasonConnectorsDisabled, v1alpha1.ConnectionPending, v1alpha1.ReasonConnectorsDisabled},
		{"being deleted", func(c *v1alpha1.Connection, _ *v1alpha1.ConnectorProvider) {
			c.DeletionTimestamp = new(metav1.NewTime(now))
		}, resolved, covered, good, v1alpha1.ConnectionReady, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := accepted()
			c := linkedTo(p)
			r.change(c, p)
			Settle(c, p, now)
			check(t, c, r.provider, r.scopes, r.ready, r.state, r.unusable)
			again := c.DeepCopy()
			Settle(again, p, now.Add(time.Minute))
			if c.Status.ExpiresAt == nil && !equality.Semantic.DeepEqual(c, again) {
				t.Errorf("it is not settled: %+v, %+v", c.Status, again.Status)
			}
		})
	}
	c := linkedTo(provider())
	Settle(c, nil, now)
	check(t, c, "False "+v1alpha1.ReasonProviderMissing, "Unknown "+v1alpha1.ReasonProviderMissing, good, v1alpha1.ConnectionError, v1alpha1.ReasonProviderMissing)
}

func check(t *testing.T, c *v1alpha1.Connection, provider, scopes, ready string, state v1alpha1.ConnectionState, unusable string) {
	t.Helper()
	for name, want := range map[string]string{v1alpha1.ConditionProviderResolved: provider, v1alpha1.ConditionScopesGranted: scopes, v1alpha1.ConditionReady: ready} {
		found := meta.FindStatusCondition(c.Status.Conditions, name)
		if found == nil || string(found.Status)+" "+found.Reason != want {
			t.Errorf("%s: %+v, want %s", name, found, want)
			continue
		}
		if name != v1alpha1.ConditionReady && (found.ObservedGeneration != c.Generation || !found.LastTransitionTime.Time.Equal(now)) {
			t.Errorf("%s is of generation %d and of %s", name, found.ObservedGeneration, found.LastTransitionTime)
		}
	}
	if c.Status.State != state || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("state %s of generation %d, want %s", c.Status.State, c.Status.ObservedGeneration, state)
	}
	err := Usable(c)
	if e, ok := errors.AsType[*UnusableError](err); ok != (unusable != "-") || ok && (e.Reason != unusable || e.Message == "") {
		t.Errorf("it is unusable by %v, want %q", err, unusable)
	}
	if once := UsableOnceRefreshed(c); unusable == v1alpha1.ReasonRefreshFailed && once != nil || unusable != v1alpha1.ReasonRefreshFailed && fmt.Sprint(once) != fmt.Sprint(err) {
		t.Errorf("once it was refreshed, it is unusable by %v, and now by %v", once, err)
	}
}

// TestLeave: a connection that is being deleted is Pending, whatever it was, says why, and keeps what was granted.
func TestLeave(t *testing.T) {
	p := accepted()
	ready := linkedTo(p)
	Settle(ready, p, now)
	alone := linkedTo(p)
	Settle(alone, nil, now)
	for _, c := range []*v1alpha1.Connection{ready, alone, {}} {
		c.Generation++
		before := c.DeepCopy().Status
		Leave(c, "the Secret is missing", now)
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != v1alpha1.ReasonDisconnecting || condition.Message != "the Secret is missing" {
			t.Errorf("from %s: %+v", before.State, condition)
		}
		if c.Status.State != v1alpha1.ConnectionPending || c.Status.ObservedGeneration != c.Generation || c.Status.GrantSequence != before.GrantSequence {
			t.Errorf("from %s: %+v", before.State, c.Status)
		}
	}
}

// TestUsableOfGeneration: conditions that are missing, or about an earlier generation, do not count.
func TestUsableOfGeneration(t *testing.T) {
	p := accepted()
	settled := linkedTo(p)
	Settle(settled, p, now)
	if err := Usable(settled); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{v1alpha1.ConditionProviderResolved, v1alpha1.ConditionScopesGranted, v1alpha1.ConditionReady} {
		c := settled.DeepCopy()
		meta.RemoveStatusCondition(&c.Status.Conditions, name)
		if e, ok := errors.AsType[*UnusableError](Usable(c)); !ok || e.Reason != "" || !strings.Contains(e.Message, name) {
			t.Errorf("without %s: %v", name, e)
		}
		c = settled.DeepCopy()
		meta.FindStatusCondition(c.Status.Conditions, name).ObservedGeneration--
		if err := Usable(c); (err == nil) != (name == v1alpha1.ConditionReady) {
			t.Errorf("%s of an earlier generation: %v", name, err)
		}
	}
	settled.Generation++
	if e, ok := errors.AsType[*UnusableError](Usable(settled)); !ok || e.Reason != "" {
		t.Error(e)
	}
}
