// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1api "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"
)

const (
	// knownFor is how long a good token is not asked about again.
	knownFor = 60 * time.Second
	// refusedFor is the same for a bad one: enough to take the load of a client that tries again and again.
	refusedFor = 5 * time.Second
	// maxKnown bounds the tokens that are remembered. An entry has about 300 bytes, so these are 3 MB.
	maxKnown = 10_000
	// reviewTimeout bounds one question.
	reviewTimeout = 10 * time.Second
)

const (
	userPrefix     = "system:serviceaccount:"
	groupAll       = "system:serviceaccounts"
	groupNamespace = "system:serviceaccounts:"
)

// credential selects the one credential of a request: Authorization is looked at first and, where it is
// there, alone; x-api-key counts for the messages style only.
func credential(h http.Header, s style) (string, error) {
	if _, has := h[headerTxnToken]; has {
		return "", unauthorized("transaction tokens are not accepted here: use the address of the installation")
	}
	if all, has := h[headerAuthorization]; has {
		scheme, token, _ := strings.Cut(strings.TrimSpace(all[0]), " ")
		token = strings.TrimSpace(token)
		if len(all) > 1 || !strings.EqualFold(scheme, "Bearer") || !isJWT(token) {
			return "", unauthorized("Authorization must be Bearer and a ServiceAccount token")
		}
		return token, nil
	}
	if s != messages {
		return "", unauthorized("a ServiceAccount token is needed in Authorization: Bearer")
	}
	all := h[headerAPIKey]
	if len(all) == 0 {
		return "", unauthorized("a ServiceAccount token is needed in x-api-key or Authorization: Bearer")
	}
	token := strings.TrimSpace(all[0])
	if len(all) > 1 || !isJWT(token) {
		return "", unauthorized("x-api-key must be a ServiceAccount token")
	}
	return token, nil
}

// isJWT tells whether a text has the form of a signed token, as every ServiceAccount token has. Nothing else is sent to
// the API server: it may be the key of somebody else's service.
func isJWT(token string) bool {
	if strings.Count(token, ".") != 2 {
		return false
	}
	for part := range strings.SplitSeq(token, ".") {
		if part == "" || strings.ContainsFunc(part, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) {
			return false
		}
	}
	return true
}

// caller is the ServiceAccount of a token.
type caller struct{ namespace, name string }

// reviewer knows whose a token is. Tokens are remembered by their hash.
type reviewer struct {
	reviews authenticationv1.TokenReviewInterface
	known   *cache.LRUExpireCache // [sha256.Size]byte to verdict
	flight  singleflight.Group    // one question at a time about one token
	metrics *metrics
}

// verdict is an answer about a token: a caller, or the error for whoever brings it.
type verdict struct {
	caller caller
	err    error
}

func newReviewer(reviews authenticationv1.TokenReviewInterface, c clock.PassiveClock, m *metrics) *reviewer {
	return &reviewer{reviews: reviews, known: cache.NewLRUExpireCacheWithClock(maxKnown, c), metrics: m}
}

// review gives the ServiceAccount of a token.
func (r *reviewer) review(ctx context.Context, token string) (caller, error) {
	key := sha256.Sum256([]byte(token))
	if v, ok := r.known.Get(key); ok {
		return v.(verdict).caller, v.(verdict).err
	}
	// The question goes on when its first caller leaves: others may wait for the answer, too.
	answers := r.flight.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return r.ask(ctx, key, token)
	})
	select {
	case <-ctx.Done():
		return caller{}, fmt.Errorf("%w: %w", errClient, ctx.Err())
	case a := <-answers:
		if a.Err != nil {
			return caller{}, problem{
				code: http.StatusServiceUnavailable, message: "the credential cannot be checked now", err: a.Err,
			}
		}
		v := a.Val.(verdict)
		return v.caller, v.err
	}
}

// ask asks the API server and remembers what it said. An error, which says nothing about the token, is not remembered.
func (r *reviewer) ask(ctx context.Context, key [sha256.Size]byte, token string) (verdict, error) {
	out, err := r.reviews.Create(ctx, &authenticationv1api.TokenReview{
		Spec: authenticationv1api.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviews.WithLabelValues("error").Inc()
		return verdict{}, err
	}
	if !out.Status.Authenticated {
		r.metrics.reviews.WithLabelValues("refused").Inc()
		v := verdict{err: unauthorized("the credential is not valid, or has expired")}
		r.known.Add(key, v, refusedFor)
		return v, nil
	}
	r.metrics.reviews.WithLabelValues("accepted").Inc()
	c, ok := serviceAccount(out.Status.User)
	v := verdict{caller: c}
	if !ok {
		v.err = problem{code: http.StatusForbidden, message: "the credential is not that of a ServiceAccount: only these belong to a namespace"}
	}
	r.known.Add(key, v, knownFor)
	return v, nil
}

// serviceAccount reads who a user is. The groups are asked, too: another authenticator could give out such a name.
func serviceAccount(u authenticationv1api.UserInfo) (caller, bool) {
	rest, ok := strings.CutPrefix(u.Username, userPrefix)
	namespace, name, two := strings.Cut(rest, ":")
	if !ok || !two || !isNamespace(namespace) || name == "" {
		return caller{}, false
	}
	all, own := false, false
	for _, g := range u.Groups {
		all = all || g == groupAll
		own = own || g == groupNamespace+namespace
	}
	return caller{namespace: namespace, name: name}, all && own
}

func unauthorized(message string) problem {
	return problem{code: http.StatusUnauthorized, message: message}
}
