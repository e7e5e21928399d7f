// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// rememberedTokens bounds the cache of checked signatures, in entries of
	// about 1 KiB each.
	rememberedTokens = 4096
	// skew is how far in the future nbf and iat may be, because the clock may
	// have been set back slightly since the token was issued. exp has no such
	// tolerance.
	skew = time.Minute
)

// These are the reasons for refusing a token that this host has signed.
var (
	ErrExpired  = errors.New("the token has expired")
	ErrNotYet   = errors.New("the token is not valid yet")
	ErrAudience = errors.New("the token is for another audience")
	ErrRevoked  = errors.New("the object that the token is bound to no longer exists")
)

// UIDFunc looks up an object in the store, not in a cache, and returns its UID.
// It returns "" for an object that does not exist or whose deletion timestamp
// has passed.
type UIDFunc func(ctx context.Context, namespace, name string) (types.UID, error)

// AuthenticatorOptions configure an Authenticator.
type AuthenticatorOptions struct {
	// Keys verify signatures. With several keys, tokens signed with an earlier
	// one stay valid.
	Keys []*ecdsa.PublicKey
	// Issuer is the required iss claim. Default: DefaultIssuer.
	Issuer string
	// Audiences are the audiences of this server. Default: the issuer.
	Audiences []string
	// Clock decides what has expired. Default: the real clock.
	Clock clock.PassiveClock
	// ServiceAccount, Secret and Task look up the objects that a token names.
	// If a func is nil, tokens bound to such an object are refused.
	ServiceAccount, Secret, Task UIDFunc
}

// Authenticator checks tokens. It ignores tokens of other issuers, so that
// another authenticator can check them.
type Authenticator struct {
	o    AuthenticatorOptions
	keys map[string]*ecdsa.PublicKey
	// checked holds the claims of tokens whose signature was valid, by the hash
	// of the token, so that memory never holds the token itself.
	checked *lru.Cache
}

var _ authenticator.Token = (*Authenticator)(nil)

// NewAuthenticator makes an Authenticator. It fails on a key that cannot be
// encoded.
func NewAuthenticator(o AuthenticatorOptions) (*Authenticator, error) {
	if o.Issuer == "" {
		o.Issuer = DefaultIssuer
	}
	if len(o.Audiences) == 0 {
		o.Audiences = []string{o.Issuer}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	a := &Authenticator{o: o, keys: map[string]*ecdsa.PublicKey{}, checked: lru.New(rememberedTokens)}
	for _, k := range o.Keys {
		id, err := keyID(k)
		if err != nil {
			return nil, err
		}
		a.keys[id] = k
	}
	return a, nil
}

// claims are the claims of a token.
type claims struct {
	jwt.Claims
	privateClaims
}

// AuthenticateToken returns the ServiceAccount as a user, and which of the
// requested audiences (default: this server) the token is valid for. The error
// says why a token of this issuer is refused.
func (a *Authenticator) AuthenticateToken(ctx context.Context, text string) (*authenticator.Response, bool, error) {
	c, err := a.verify(text)
	if c == nil {
		return nil, false, err
	}
	requested, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		requested = a.o.Audiences
	}
	audiences := authenticator.Audiences(c.Audience).Intersect(requested)
	if len(audiences) == 0 {
		return nil, false, fmt.Errorf("%w: %q, not %q", ErrAudience, c.Audience, requested)
	}
	if err := a.current(ctx, c); err != nil {
		return nil, false, err
	}
	return &authenticator.Response{Audiences: audiences, User: c.user()}, true, nil
}

// verify returns the claims of a token that is signed by one of the Keys, and
// nil for a token that this host did not make.
func (a *Authenticator) verify(text string) (*claims, error) {
	sum := sha256.Sum256([]byte(text))
	if c, ok := a.checked.Get(sum); ok {
		return c.(*claims), nil
	}
	if !a.ours(text) {
		return nil, nil
	}
	t, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, nil //nolint:nilerr // not a JWT made by this server
	}
	key := a.keys[t.Headers[0].KeyID]
	if key == nil {
		return nil, errors.New("the token is signed with an unknown key")
	}
	c := &claims{}
	if err := t.Claims(key, &c.Claims, &c.privateClaims); err != nil {
		return nil, fmt.Errorf("verify the token: %w", err)
	}
	a.checked.Add(sum, c)
	return c, nil
}

// ours reads the issuer without checking the signature, so that a token for
// another authenticator is passed on instead of being refused.
func (a *Authenticator) ours(text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	return json.Unmarshal(payload, &c) == nil && c.Issuer == a.o.Issuer
}

// current checks whether the token is valid now.
func (a *Authenticator) current(ctx context.Context, c *claims) error {
	now := a.o.Clock.Now()
	switch {
	case c.Expiry == nil || !now.Before(c.Expiry.Time()):
		return ErrExpired
	case c.NotBefore.Time().After(now.Add(skew)) || c.IssuedAt.Time().After(now.Add(skew)):
		return ErrNotYet
	}
	k := c.Kubernetes
	if c.Subject != serviceaccount.MakeUsername(k.Namespace, k.ServiceAccount.Name) {
		return errors.New("the token's subject differs from its ServiceAccount")
	}
	if err := bound(ctx, "serviceaccount", a.o.ServiceAccount, k.Namespace, &k.ServiceAccount); err != nil {
		return err
	}
	if err := bound(ctx, "secret", a.o.Secret, k.Namespace, k.Secret); err != nil {
		return err
	}
	if k.Task == nil {
		return nil
	}
	return bound(ctx, "task", a.o.Task, k.Namespace, &k.Task.Ref)
}

// bound checks that an object that a token is bound to is still the same one.
func bound(ctx context.Context, kind string, lookup UIDFunc, namespace string, ref *Ref) error {
	switch {
	case ref == nil:
		return nil
	case lookup == nil:
		return fmt.Errorf("%w: a %s cannot be looked up here", ErrRevoked, kind)
	}
	uid, err := lookup(ctx, namespace, ref.Name)
	switch {
	case err != nil:
		return fmt.Errorf("look up the token's %s %s/%s: %w", kind, namespace, ref.Name, err)
	case uid == "":
		return fmt.Errorf("%w: %s %s/%s", ErrRevoked, kind, namespace, ref.Name)
	case uid != ref.UID:
		return fmt.Errorf("%w: %s %s/%s is a new one of the same name", ErrRevoked, kind, namespace, ref.Name)
	}
	return nil
}

// user returns the user that the token authenticates.
func (c *claims) user() user.Info {
	k := c.Kubernetes
	info := &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(k.Namespace, k.ServiceAccount.Name),
		UID:    string(k.ServiceAccount.UID),
		Groups: append(serviceaccount.MakeGroupNames(k.Namespace), user.AllAuthenticated),
		Extra:  map[string][]string{user.CredentialIDKey: {credentialIDPrefix + c.ID}},
	}
	if t := k.Task; t != nil {
		info.Extra[v1alpha1.ExtraTaskName] = []string{t.Name}
		info.Extra[v1alpha1.ExtraTaskUID] = []string{string(t.UID)}
		info.Extra[v1alpha1.ExtraTaskNamespace] = []string{k.Namespace}
		if t.Run != nil {
			info.Extra[v1alpha1.ExtraTaskRun] = []string{*t.Run}
		}
	}
	return info
}
