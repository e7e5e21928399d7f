// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/sparse"
)

const impersonateExtra = "Impersonate-Extra-"

// Service authenticates external callers and decides what they may ask for.
type Service struct {
	oidc      *issuer // nil: no OpenID provider
	allowed   []*regexp.Regexp
	namespace string

	context *issuer  // nil: no transaction tokens
	headers []string // canonical names
	bearer  bool     // transaction tokens are accepted as Bearer tokens
	mode    string
	scopes  map[string][]string // accepted scopes by family
	kinds   Kinds
	metrics *metrics
	sparse  *sparse.Log
	tasks   *TaskTokens // nil: tasks get no token
	// others has the digests of Bearer tokens that are of another kind or issuer, whatever the time is.
	others *lru.Cache
}

// rememberedOthers is the number of tokens of others that need not be read again.
const rememberedOthers = 4096

// New makes the service of checked options, for the kinds of a server.
func New(o Options, kinds Kinds, c clock.PassiveClock, registry prometheus.Registerer) (*Service, error) {
	if err := errors.Join(o.Check(), kinds.check()); err != nil {
		return nil, err
	}
	s := &Service{namespace: o.OIDC.Namespace, mode: o.ContextToken.Mode, kinds: kinds, scopes: map[string][]string{}, sparse: sparse.New(c), others: lru.New(rememberedOthers)}
	if p := o.OIDC; p.Issuer != "" {
		keys, err := newKeySet(p.Issuer, p.JWKSURL, p.CAFile, c)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		s.oidc = &issuer{name: p.Issuer, audience: p.Audience, keys: keys, clock: c}
		for _, pattern := range p.AllowedSubjects {
			s.allowed = append(s.allowed, wildcard(pattern))
		}
	}
	if p := o.ContextToken; p.Profile != "" {
		if p.JWKSURL == "" {
			p.JWKSURL = strings.TrimSuffix(p.Issuer, "/") + "/.well-known/jwks.json"
		}
		keys, err := newKeySet(p.Issuer, p.JWKSURL, p.CAFile, c)
		if err != nil {
			return nil, fmt.Errorf("--context-token-ca-file: %w", err)
		}
		s.context = &issuer{name: p.Issuer, audience: p.Audience, transaction: true, keys: keys, clock: c}
		for _, h := range p.Headers {
			if h == bearerHeader {
				s.bearer = true
			} else {
				s.headers = append(s.headers, http.CanonicalHeaderKey(h))
			}
		}
	}
	for _, f := range families() {
		s.scopes[f] = []string{scopePrefix + f}
		if own := o.ContextToken.Scopes[f]; own != nil {
			s.scopes[f] = *own
		}
	}
	var err error
	if s.tasks, err = newTaskTokens(o.ContextToken, s.context, c, registry); err != nil {
		return nil, err
	}
	s.metrics, err = metric.Register(registry, newMetrics())
	return s, err
}

// TaskTokens returns what gives tasks transaction tokens; nil if they get none.
func (s *Service) TaskTokens() *TaskTokens { return s.tasks }

// wildcard returns a pattern with * and ? as a regular expression of whole texts.
func wildcard(pattern string) *regexp.Regexp {
	quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s)\A` + quoted + `\z`)
}

// Authenticator puts external callers before those whom next finds. A request has one identity:
//
//   - A transaction token in its own header comes first, because it is what limits the request: it never falls back to
//     another credential of the same request, which may have more rights.
//   - A Bearer token is checked here if it is a transaction token, or if its issuer is the OpenID provider, and then by
//     nobody else.
//   - Everything else is up to next.
func (s *Service) Authenticator(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if len(r.Header["Authorization"]) > 1 {
			return nil, false, errors.New("the request has several Authorization headers")
		}
		if name := forged(r.Header); name != "" {
			return nil, false, fmt.Errorf("%s: is set by the server only", name)
		}
		id, err := s.identify(r)
		if err != nil {
			return nil, false, err
		}
		if id != nil {
			if impersonates(r.Header) {
				return nil, false, errors.New("callers with a token of an OpenID provider or a transaction token may not impersonate")
			}
			for _, h := range s.headers {
				r.Header.Del(h)
			}
			return &authenticator.Response{User: id.user()}, true, nil
		}
		resp, ok, err := next.AuthenticateRequest(r)
		if ok && resp != nil && resp.User != nil {
			resp.User = without(resp.User)
		}
		return resp, ok, err
	})
}

// forged returns the name of a header that would give an impersonated user the identity of an external caller. The
// server's own requests, which have such headers, are authenticated elsewhere.
func forged(h http.Header) string {
	for name := range h {
		key, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), impersonateExtra)
		if !ok {
			continue
		}
		if decoded, err := url.PathUnescape(key); err != nil || OfIdentity(decoded) || OfIdentity(key) {
			return name
		}
	}
	return ""
}

func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Impersonate-") {
			return true
		}
	}
	return false
}

// identify returns the verified identity of an external caller; nil if the request has no credential of one.
func (s *Service) identify(r *http.Request) (*Identity, error) {
	token, found, err := s.transactionHeader(r.Header)
	switch {
	case err != nil:
		return nil, err
	case found:
		return s.transaction(r, token)
	}
	token = bearerOf(r.Header)
	if len(token) > maxToken {
		return nil, fmt.Errorf("the token is longer than %d bytes", maxToken)
	}
	digest := sha256.Sum256([]byte(token))
	if _, other := s.others.Get(digest); other || token == "" {
		return nil, nil //nolint:nilnil // of another kind or issuer
	}
	p, ok := peek(token)
	switch {
	case !ok: // a token of another kind
	case p.typ == typeTransaction && !s.bearer:
		return nil, errors.New("transaction tokens are not accepted in Authorization here")
	case p.typ == typeTransaction:
		return s.transaction(r, token)
	case s.oidc != nil && p.issuer == s.oidc.name:
		return s.person(r.Context(), token)
	}
	s.others.Add(digest, nil)
	return nil, nil //nolint:nilnil // another issuer's
}

// transactionHeader returns the token in the headers for transaction tokens. Where none are accepted, the usual header
// is refused, because its sender relies on the limits of the token.
func (s *Service) transactionHeader(h http.Header) (token string, found bool, err error) {
	if s.context == nil {
		if _, has := h[defaultHeader]; has {
			return "", false, errors.New("transaction tokens are not accepted here")
		}
		return "", false, nil
	}
	names := s.headers
	if !slices.Contains(names, defaultHeader) {
		names = append(slices.Clone(names), defaultHeader)
	}
	for _, name := range names {
		values, has := h[name]
		switch {
		case !has:
		case !slices.Contains(s.headers, name):
			return "", false, fmt.Errorf("transaction tokens are not accepted in %s here", name)
		case found || len(values) != 1:
			return "", false, errors.New("the request has several transaction tokens")
		default:
			token, found = values[0], true
		}
	}
	return token, found, nil
}

// bearerOf returns the Bearer token of a request, or "".
func bearerOf(h http.Header) string {
	parts := strings.SplitN(strings.TrimSpace(h.Get("Authorization")), " ", 3)
	if len(parts) < 2 || !strings.EqualFold(parts[0], "bearer") {
		return ""
	}
	return parts[1]
}

// person checks a token of the OpenID provider.
func (s *Service) person(ctx context.Context, token string) (*Identity, error) {
	c, err := s.oidc.check(ctx, token)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.allowed, func(p *regexp.Regexp) bool { return p.MatchString(c.Subject) }) {
		return nil, fmt.Errorf("subject %q is not in --oidc-allowed-subjects", c.Subject)
	}
	return &Identity{Type: TypeOIDC, Namespace: s.namespace, Requester: c.requester()}, nil
}

// transaction checks a transaction token of a request.
func (s *Service) transaction(r *http.Request, token string) (*Identity, error) {
	if s.context == nil {
		return nil, errors.New("transaction tokens are not accepted here")
	}
	i, err := s.verified(r, token)
	result := resultSuccess
	if err != nil {
		result = resultFailure
	}
	s.metrics.authenticated.WithLabelValues(ProfileTransactionToken, result).Inc()
	return i, err
}

func (s *Service) verified(r *http.Request, token string) (*Identity, error) {
	c, err := s.context.check(r.Context(), token)
	if err != nil {
		return nil, err
	}
	t, err := c.transaction()
	if err != nil {
		return nil, err
	}
	limits, err := constraintsOf(t)
	if err != nil {
		return nil, err
	}
	i := &Identity{Type: TypeContextToken, Namespace: s.namespace, Requester: c.requester(), Transaction: t}
	if limits.Namespace != "" {
		i.Namespace = limits.Namespace
	}
	if s.tasks != nil {
		keepToken(r, token)
	}
	return i, nil
}

// Peek returns which external credential a request has, as the type of its authentication, and the namespace that the
// credential names. Nothing is checked, so the result may only choose defaults. The type is empty if next of
// Authenticator is responsible.
func (s *Service) Peek(r *http.Request) (authType, namespace string) {
	token, found, err := s.transactionHeader(r.Header)
	switch {
	case err != nil:
		return TypeContextToken, ""
	case !found && r.Header["Authorization"] == nil:
		token = r.Header.Get("X-Api-Key") // which REST clients may use instead
	case !found:
		token = bearerOf(r.Header)
	}
	if _, other := s.others.Get(sha256.Sum256([]byte(token))); other && !found {
		return "", ""
	}
	p, ok := peek(token)
	switch {
	case found, ok && p.typ == typeTransaction:
		return TypeContextToken, cmp.Or(p.namespace(), s.namespace)
	case ok && s.oidc != nil && p.issuer == s.oidc.name:
		return TypeOIDC, s.namespace
	}
	return "", ""
}
