// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Token is an access token of a person, for the provider that gave it. However it is printed or logged, the token itself is not, and it
// has no JSON.
type Token struct {
	// Access is the token.
	Access oauth.Secret
	// Type says how it is sent. It is Bearer (RFC 6750).
	Type string
	// Sequence is status.grantSequence of the connection.
	Sequence int64
	// Expires is when the token ends; zero if the provider does not say.
	Expires time.Time
}

// RefreshError says that an access token has ended and could not be refreshed for now. The tokens are kept. It is an API error with the
// code 503.
type RefreshError struct {
	// Class says why. It is not oauth.Revoked.
	Class oauth.Class
	// RetryAfter is how long nothing is sent to the provider, at least a second.
	RetryAfter time.Duration
	// Message says what failed. It has no secret, and no text of the provider.
	Message string
}

// Error returns the message.
func (e *RefreshError) Error() string { return e.Message }

// Status is what a client sees.
func (e *RefreshError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: e.Message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: int32(e.RetryAfter / time.Second)},
	}
}

// Use returns the access token of a connection. It lives for more than a minute, unless the provider gives shorter ones, or it cannot be
// refreshed now and has not ended yet. A token that ends within a minute is refreshed first. ctx ends only the waiting for that.
//
// A connection that is not Ready because a refresh failed is tried again, so a caller asks connector.UsableOnceRefreshed before, or
// nothing. The error is a *connector.UnusableError if the person has to do something, or the provider cannot be used; a *RefreshError if a
// later call may succeed; the error of ctx; or another API error.
func (h *Hub) Use(ctx context.Context, c *v1alpha1.Connection) (Token, error) {
	if h.o.Off {
		return Token{}, Disabled()
	}
	token, err := h.uses.use(ctx, place{c.Namespace, c.Name}, c.UID)
	_, unusable := errors.AsType[*connector.UnusableError](err)
	switch {
	case err == nil, unusable, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return token, err
	case errors.Is(err, errSuperseded):
		err = errBusy
	}
	return Token{}, resource.StatusError(v1alpha1.Resource("connections"), c.Name, h.failure(ctx, c, err))
}

// errSuperseded says that the connection has other tokens meanwhile.
var errSuperseded = errors.New("the connection was connected anew meanwhile")

// uses gives tokens out, and refreshes them.
type uses struct {
	h *Hub
	// flights are the refreshes that are going on: one at a time for a connection. Only one process has the store open, so a refresh token
	// that the provider replaces is not sent twice.
	flights singleflight.Group
	pauses  pauses

	mu sync.Mutex
	// unwritten are outcomes that could not be written, because the disk is full. Until they are, the refresh token that is stored may be
	// one that was replaced, and to send it would have the provider revoke the grant.
	unwritten map[types.UID]*outcome
}

func newUses(h *Hub) *uses {
	return &uses{h: h, pauses: pauses{of: map[types.UID]*pause{}}, unwritten: map[types.UID]*outcome{}}
}

// use returns a token.
func (u *uses) use(ctx context.Context, at place, uid types.UID) (Token, error) {
	var err error
	for range maxTries {
		var a *account
		if a, err = u.read(ctx, at, uid); err != nil {
			return Token{}, err
		}
		if a.grant.needs(u.h.o.Clock.Now()) == nothing {
			return a.token(), nil
		}
		// What came of a refresh must be written, so it goes on without the caller who began it.
		flight := u.flights.DoChan(string(uid), func() (any, error) { return u.renew(context.WithoutCancel(ctx), at, uid) })
		select {
		case <-ctx.Done():
			return Token{}, ctx.Err()
		case landed := <-flight:
			token, _ := landed.Val.(Token)
			if err = landed.Err; !errors.Is(err, errSuperseded) {
				return token, err
			}
		}
	}
	return Token{}, err
}

// account is a connection that can be used, or refreshed, with its provider and its grant.
type account struct {
	c     *v1alpha1.Connection
	p     *v1alpha1.ConnectorProvider
	grant *grant
}

func (a *account) token() Token {
	return Token{Access: oauth.SecretOf(a.grant.Access), Type: a.grant.Type, Sequence: a.grant.Sequence, Expires: a.grant.Expires}
}

// read reads a connection. The error is a *connector.UnusableError unless it, its provider and its grant belong together.
func (u *uses) read(ctx context.Context, at place, uid types.UID) (*account, error) {
	version := ""
	for {
		c, err := u.h.o.Connections.Get(resource.AsServer(ctx, at.namespace), at.name)
		if apierrors.IsNotFound(err) || err == nil && c.UID != uid {
			return nil, &connector.UnusableError{Message: errGone.Error()}
		}
		if err != nil {
			return nil, err
		}
		p, err := u.provider(ctx, c)
		if err != nil {
			return nil, err
		}
		// As it is said, and as it follows from the provider as it is now.
		settled := c.DeepCopy()
		connector.Settle(settled, p, u.h.o.Clock.Now())
		for _, of := range []*v1alpha1.Connection{c, settled} {
			if err := connector.UsableOnceRefreshed(of); err != nil {
				return nil, err
			}
		}
		d, _, err := u.h.vault.load(uid)
		switch {
		case errors.Is(err, errGone), err == nil && d.Closing:
			return nil, &connector.UnusableError{Message: errGone.Error()}
		case err != nil:
			return nil, err
		}
		if g := d.Grant; g != nil && g.Sequence == c.Status.GrantSequence && g.ProviderUID == p.UID && g.Authority == connector.AuthorityDigest(p) {
			return &account{c, p, g}, nil
		}
		if c.ResourceVersion == version { // otherwise one of the two may have changed after the other was read
			return nil, &connector.UnusableError{Reason: v1alpha1.ReasonConsentRequired, Message: "the tokens that are kept are not those of the consent that the connection names; connect again"}
		}
		version = c.ResourceVersion
	}
}

// provider returns the provider of a connection; nil if it does not exist.
func (u *uses) provider(ctx context.Context, c *v1alpha1.Connection) (*v1alpha1.ConnectorProvider, error) {
	p, err := u.h.o.Providers.Get(resource.AsServer(ctx, c.Namespace), c.Spec.ProviderRef.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as connector.Settle has it
	}
	return p, err
}
