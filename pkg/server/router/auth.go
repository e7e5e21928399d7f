// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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
	// knownFor is how long an accepted token is cached.
	knownFor = 60 * time.Second
	// refusedFor is how long a refused token is cached: long enough to absorb the load of a client that keeps
	// retrying.
	refusedFor = 5 * time.Second
	// maxKnown bounds the number of cached tokens. An entry takes about 300 bytes, so this many take 3 MB.
	maxKnown = 10_000
	// reviewTimeout bounds one token review.
	reviewTimeout = 10 * time.Second
)

const (
	userPrefix     = "system:serviceaccount:"
	groupAll       = "system:serviceaccounts"
	groupNamespace = "system:serviceaccounts:"
)

// credential returns the one credential of a request. If there is an Authorization header, only that counts.
// x-api-key is accepted only for the messages style.
func credential(h http.Header, s style) (string, error) {
	if _, has := h[headerTxnToken]; has {
		return "", noTransactions()
	}
	if all, has := h[headerAuthorization]; has {
		scheme, token, _ := strings.Cut(strings.TrimSpace(all[0]), " ")
		token = strings.TrimSpace(token)
		if len(all) > 1 || !strings.EqualFold(scheme, "Bearer") || !isJWT(token) {
			return "", unauthorized("Authorization must be Bearer and a ServiceAccount token")
		}
		return checked(token)
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
	return checked(token)
}

// checked refuses a transaction token, whose issuer the API server may know.
func checked(token string) (string, error) {
	head, _, _ := strings.Cut(token, ".")
	var header struct {
		Typ string `json:"typ"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err == nil && json.Unmarshal(raw, &header) == nil && strings.TrimPrefix(strings.ToLower(header.Typ), "application/") == "txntoken+jwt" {
		return "", noTransactions()
	}
	return token, nil
}

func noTransactions() error {
	return unauthorized("transaction tokens are not accepted here: use the address of the installation")
}

// isJWT reports whether a text has the form of a signed token, as every ServiceAccount token has. No other text is
// sent to the API server, because it may be the key of another service.
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

// reviewer finds out whose token it is. It caches results by the hash of the token.
type reviewer struct {
	reviews authenticationv1.TokenReviewInterface
	known   *cache.LRUExpireCache // [sha256.Size]byte to verdict
	flight  singleflight.Group    // at most one review per token at a time
	metrics *metrics
}

// verdict is the result of a review: a caller, or the error for whoever presents the token.
type verdict struct {
	caller caller
	err    error
}

func newReviewer(reviews authenticationv1.TokenReviewInterface, c clock.PassiveClock, m *metrics) *reviewer {
	return &reviewer{reviews: reviews, known: cache.NewLRUExpireCacheWithClock(maxKnown, c), metrics: m}
}

// review returns the ServiceAccount of a token.
func (r *reviewer) review(ctx context.Context, token string) (caller, error) {
	key := sha256.Sum256([]byte(token))
	if v, ok := r.known.Get(key); ok {
		return v.(verdict).caller, v.(verdict).err
	}
	// The review continues if its first caller disconnects, because others may be waiting for the result.
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

// ask asks the API server and caches the result. An error that says nothing about the token is not cached.
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

// serviceAccount returns the ServiceAccount of a user. It also checks the groups, because another authenticator could
// issue such a name.
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
