// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/wellformed"
)

// reason says why a callback has no tokens. It is in the address that the browser is sent to.
type reason string

// Reasons of a callback. Each is an error, too.
const (
	errInvalidState     reason = "invalid_state"
	errConsentExpired   reason = "consent_expired"
	errStorageFailed    reason = "storage_failed"
	errAccessDenied     reason = "access_denied"
	errProviderRejected reason = "provider_rejected"
	errMissingCode      reason = "missing_code"
	// errConnectionMissing: the connection is gone. errConnectionUnprotected: it lacks the finalizer without which its tokens would be left behind.
	errConnectionMissing     reason = "connection_missing"
	errConnectionUnprotected reason = "connection_unprotected"
	errConnectionMismatch    reason = "connection_mismatch"
	errProviderUnavailable   reason = "provider_unavailable"
	errProviderChanged       reason = "provider_changed"
	errModeChanged           reason = "mode_changed"
	errExchangeFailed        reason = "exchange_failed"
	errScopesDenied          reason = "scopes_denied"
	errConsentSuperseded     reason = "consent_superseded"
	errDisconnected          reason = "disconnected"
)

// Error returns the reason itself.
func (r reason) Error() string { return string(r) }

// callback answers the browser of a person who comes back from a provider.
func (h *Hub) callback(w http.ResponseWriter, r *http.Request, _ []byte) {
	back := url.Values{}
	fragment := ""
	c, completion, err := h.comeBack(r.Context(), wellformed.Query(r))
	if err == nil {
		back.Set("status", "pending")
		back.Set("connection", c.Name)
		back.Set("namespace", c.Namespace)
		fragment = "#completion=" + completion
		h.counts.consents.WithLabelValues(parkedTokens).Inc()
	} else {
		why, ok := errors.AsType[reason](err)
		if !ok {
			why = errStorageFailed
			klog.FromContext(r.Context()).Error(err, "The callback of a consent failed")
		}
		back.Set("status", "error")
		back.Set("reason", string(why))
		h.counts.consents.WithLabelValues(string(why)).Inc()
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Location", h.base+settingsPath+"?"+back.Encode()+fragment)
	w.WriteHeader(http.StatusSeeOther)
}

// comeBack takes the consent away that the state names, exchanges the code and parks the tokens. Its error is a reason, or one of the store.
func (h *Hub) comeBack(ctx context.Context, q url.Values) (*v1alpha1.Connection, string, error) {
	for _, values := range q {
		if len(values) > 1 { // RFC 6749, section 3.1
			return nil, "", errInvalidState
		}
	}
	uid, nonce, err := h.readToken(forState, q.Get("state"))
	if err != nil {
		return nil, "", errInvalidState
	}
	asked, where, err := h.take(ctx, uid, nonce)
	if err != nil {
		return nil, "", err
	}
	if err := answered(q); err != nil {
		return nil, "", err
	}
	c, p, err := h.still(ctx, where, uid, &asked.ask)
	if err != nil {
		return nil, "", err
	}
	if !issuedBy(p, q.Get("iss")) {
		return nil, "", errProviderRejected
	}
	endpoint, err := h.endpoint(ctx, c.Namespace, &asked.Client)
	if err != nil {
		klog.FromContext(ctx).Error(err, "A consent cannot be used", "connection", klog.KObj(c))
		return nil, "", errProviderUnavailable
	}
	// Once: whatever comes of it, the code is spent. What the client leaves does not end it, or the tokens would be nobody's.
	ctx = context.WithoutCancel(ctx)
	got, err := h.client.Exchange(ctx, endpoint, q.Get("code"), h.RedirectURI(), asked.Verifier)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The code of a consent could not be exchanged", "connection", klog.KObj(c))
		return nil, "", errExchangeFailed
	}
	tokens, err := granted(asked, got)
	if err != nil {
		return nil, "", err
	}
	completion, err := h.park(ctx, uid, tokens)
	return c, completion, err
}

// place is where the connection of a document is.
type place struct{ namespace, name string }

// take takes the pending consent of a nonce away, so that it counts once.
func (h *Hub) take(ctx context.Context, uid types.UID, nonce []byte) (*pending, place, error) {
	var taken *pending
	var where place
	err := h.vault.change(ctx, uid, func(d *document) error {
		taken = d.Pending
		where = place{d.Namespace, d.Name}
		if taken == nil || !bytes.Equal(taken.Nonce, nonce) {
			return errInvalidState
		}
		d.Pending = nil
		return nil
	})
	switch {
	case errors.Is(err, errGone):
		return nil, place{}, errDisconnected
	case err != nil:
		return nil, place{}, err
	case !h.o.Clock.Now().Before(taken.Expires):
		return nil, place{}, errConsentExpired
	}
	return taken, where, nil
}

// answered returns the reason if the provider gave no code.
func answered(q url.Values) error {
	switch code := q.Get("error"); {
	case code == "access_denied":
		return errAccessDenied
	case code != "":
		return errProviderRejected
	case q.Get("code") == "":
		return errMissingCode
	}
	return nil
}

// still returns connection and provider if all that the person was asked for still holds.
func (h *Hub) still(ctx context.Context, where place, uid types.UID, a *ask) (*v1alpha1.Connection, *v1alpha1.ConnectorProvider, error) {
	c, err := h.o.Connections.Get(resource.AsServer(ctx, where.namespace), where.name)
	switch {
	case apierrors.IsNotFound(err), err == nil && stale(c, uid):
		return nil, nil, errConnectionMissing
	case err != nil:
		return nil, nil, err
	case !protected(c):
		return nil, nil, errConnectionUnprotected
	case connector.SubjectDigest(c.Spec.Subject.Issuer, c.Spec.Subject.Subject) != a.Owner || c.Spec.ProviderRef.Name != a.Provider:
		return nil, nil, errConnectionMismatch
	case c.Spec.Mode != a.Mode:
		return nil, nil, errModeChanged
	}
	p, err := h.provider(ctx, c.Namespace, a.Provider)
	if err != nil {
		return nil, nil, errProviderUnavailable
	}
	if p.UID != a.ProviderUID || connector.AuthorityDigest(p) != a.Authority {
		return nil, nil, errProviderChanged
	}
	return c, p, nil
}

// issuedBy reports whether an answer that names its issuer (RFC 9207) comes from the provider, so that the code of another server is not
// sent to this one. A provider whose issuer is known must name it. Of others, only the host is known.
func issuedBy(p *v1alpha1.ConnectorProvider, iss string) bool {
	o := &p.Spec.OAuth
	switch {
	case o.Issuer != "":
		return iss == o.Issuer
	case iss == "":
		return true
	}
	return connector.SameOrigin(iss, o.AuthorizeURL) || connector.SameOrigin(iss, o.TokenURL)
}

// granted returns the tokens of an answer, if it grants what was asked for. An answer without scopes grants what was asked for (RFC 6749,
// section 5.1).
func granted(asked *pending, got *oauth.Grant) (*grant, error) {
	scopes := asked.Scopes
	if got.ScopesStated {
		scopes = got.Scopes
	}
	if got.ScopesStated && len(scopes) == 0 || !connector.Covers(scopes, asked.Scopes) {
		return nil, errScopesDenied
	}
	return &grant{ask: asked.ask, Access: got.AccessToken.Reveal(), Refresh: got.RefreshToken.Reveal(), Type: got.TokenType, Granted: scopes, Expires: got.Expires}, nil
}

// park keeps tokens for the owner of the connection, unless a newer consent has some.
func (h *Hub) park(ctx context.Context, uid types.UID, g *grant) (completion string, err error) {
	completion, digest, err := h.newToken(forCompletion, uid)
	if err != nil {
		return "", err
	}
	err = h.vault.change(ctx, uid, func(d *document) error {
		if d.Parked != nil && d.Parked.Number > g.Number || d.Grant != nil && d.Grant.Number > g.Number {
			return errConsentSuperseded
		}
		d.Parked = &parked{grant: *g, Completion: digest, Until: h.o.Clock.Now().Add(consentLife).Truncate(time.Second)}
		return nil
	})
	if errors.Is(err, errGone) {
		err = errDisconnected
	}
	return completion, err
}
