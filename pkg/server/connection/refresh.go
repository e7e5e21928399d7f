// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
)

// margin is how long an access token that can be refreshed must still live to be used as it is.
const margin = time.Minute

// need says what has to be done before the access token of a grant can be used.
type need int

const (
	nothing need = iota
	aRefresh
	aConsent
)

// needs returns what has to be done before the access token is used.
func (g *grant) needs(now time.Time) need {
	switch {
	case g.Expires.IsZero() || g.Expires.Sub(now) > margin:
		return nothing
	case g.Refresh != "":
		return aRefresh
	case g.lives(now):
		return nothing
	}
	return aConsent
}

// lives reports whether the access token has not ended.
func (g *grant) lives(now time.Time) bool { return g.Expires.IsZero() || now.Before(g.Expires) }

// outcome is the answer of a provider that decides about a grant: new tokens, or that the grant is not honoured any longer.
type outcome struct {
	sequence int64
	// sent is the refresh token that was sent, and client who sent it.
	sent   string
	client client
	// got has the new tokens; nil if the grant is not honoured.
	got *oauth.Grant
	// why says why it is not.
	why string
}

// settle writes an outcome into a document. It reports whether the grant is still there, and whether it is the one that the connection
// has; otherwise another consent has replaced it, and the document keeps it to revoke it later.
func (d *document) settle(o *outcome) (found, current bool) {
	is := func(g grant) bool { return g.Sequence == o.sequence && g.Refresh == o.sent }
	if d.Grant != nil && is(*d.Grant) {
		if o.got == nil {
			d.Grant = nil
		} else {
			d.Grant.renew(o)
		}
		return true, true
	}
	i := slices.IndexFunc(d.Superseded, is)
	if i < 0 {
		return false, false
	}
	if o.got == nil {
		d.Superseded = slices.Delete(d.Superseded, i, i+1)
	} else {
		d.Superseded[i].renew(o)
	}
	return true, false
}

// renew replaces the tokens. A refresh can narrow the scopes and not widen them (RFC 6749, section 6).
func (g *grant) renew(o *outcome) {
	g.Access, g.Type, g.Expires, g.Client = o.got.AccessToken.Reveal(), o.got.TokenType, o.got.Expires, o.client
	if !o.got.RefreshToken.Empty() {
		g.Refresh = o.got.RefreshToken.Reveal()
	}
	if o.got.ScopesStated {
		g.Granted = slices.DeleteFunc(slices.Clone(g.Granted), func(scope string) bool { return !slices.Contains(o.got.Scopes, scope) })
	}
}

// show writes an outcome into the status of its connection. g is the grant afterwards, and p is nil if the provider is gone.
func (o *outcome) show(c *v1alpha1.Connection, g *grant, p *v1alpha1.ConnectorProvider, now time.Time) {
	if o.got == nil {
		setReady(c, metav1.ConditionFalse, v1alpha1.ReasonConnectionRevoked, o.why+"; connect again", now)
	} else {
		c.Status.LastRefreshTime = new(metav1.NewTime(now))
		honour(c, g, now)
	}
	connector.Settle(c, p, now)
}

// honour writes into the status of a connection that it has the tokens of a grant.
func honour(c *v1alpha1.Connection, g *grant, now time.Time) {
	c.Status.GrantedScopes, c.Status.ExpiresAt = g.Granted, nil
	if !g.Expires.IsZero() {
		c.Status.ExpiresAt = new(metav1.NewTime(g.Expires))
	}
	setReady(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, "the account is connected", now)
}

// setReady sets the condition Ready of a connection.
func setReady(c *v1alpha1.Connection, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}
