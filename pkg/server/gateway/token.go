// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/door"
)

// token is a value of a gateway's inbound Secret.
type token struct {
	ref     v1alpha1.KeyReference
	version string
	value   []byte
}

// tokens remember the inbound tokens of gateways, in memory.
type tokens struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	of    map[types.UID]*held
}

// held is what is remembered of one gateway.
type held struct {
	now, before *token // may be nil
	// reads limits how often a wrong token has the Secret read again.
	reads *rate.Limiter
}

// readsPerSecond is how often the Secret of one gateway is read because of wrong tokens.
const readsPerSecond = 2

func newTokens(c clock.PassiveClock) *tokens { return &tokens{clock: c, of: map[types.UID]*held{}} }

func (t *tokens) get(g *v1alpha1.Gateway) held {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.of[g.UID]
	if h == nil {
		h = &held{reads: rate.NewLimiter(readsPerSecond, readsPerSecond)}
		t.of[g.UID] = h
	}
	return *h
}

// set stores the value that a Secret has now. The one before stays, for as long as the gateway's status names it.
func (t *tokens) set(g *v1alpha1.Gateway, now *token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.of[g.UID]
	if h == nil || h.now != nil && h.now.version == now.version && h.now.ref == now.ref {
		return
	}
	h.before, h.now = h.now, now
}

func (t *tokens) forget(gateway types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, gateway)
}

// mayRead reports whether a token that is not known may have the Secret read again.
func (h *held) mayRead(now time.Time) bool { return h.reads.AllowN(now, 1) }

// values returns the tokens that are known.
func (h *held) values() (all [][]byte) {
	for _, t := range []*token{h.now, h.before} {
		if t != nil {
			all = append(all, t.value)
		}
	}
	return all
}

// check returns nil if a request has the token of a gateway. An API error is answered; any other means a wrong token.
func (h *Hub) check(r *http.Request, g *v1alpha1.Gateway) error {
	known := h.tokens.get(g)
	observed := g.Status.ObservedInboundAuthSecretVersion
	current := known.now != nil && known.now.ref == g.Spec.InboundAuthRef && known.now.version == observed
	if current {
		known.before = nil
	}
	// Whoever has none of the tokens that are known has the Secret read now and then only.
	switch err := (door.Secret{}).Check(r, known.values()...); {
	case err == nil && current:
		return nil
	case err != nil && !known.mayRead(h.o.Clock.Now()):
		if len(known.values()) == 0 {
			return errUnchecked()
		}
		return err
	}
	// The Secret may have changed since.
	s, err := h.inbound(r.Context(), g)
	if err != nil {
		if current && apierrors.IsNotFound(err) {
			h.tokens.forget(g.UID)
		}
		return errUnchecked()
	}
	h.tokens.set(g, s)
	accepted := [][]byte{s.value}
	if known = h.tokens.get(g); known.before != nil && known.before.ref == s.ref && known.before.version == observed {
		accepted = append(accepted, known.before.value) // until the controller has seen the new one
	}
	return door.Secret{}.Check(r, accepted...)
}

func errUnchecked() error {
	return apierrors.NewServiceUnavailable("the token of the gateway cannot be checked now")
}

// inbound reads the token that the adapter of a gateway sends.
func (h *Hub) inbound(ctx context.Context, g *v1alpha1.Gateway) (*token, error) {
	s, value, err := h.secret(ctx, g, g.Spec.InboundAuthRef, v1alpha1.LabelGatewayInboundAuth)
	if err != nil {
		return nil, err
	}
	return &token{ref: g.Spec.InboundAuthRef, version: s.ResourceVersion, value: value}, nil
}

// secret reads a Secret of a gateway, which must say that the gateway may use it.
func (h *Hub) secret(ctx context.Context, g *v1alpha1.Gateway, ref v1alpha1.KeyReference, label string) (*corev1.Secret, []byte, error) {
	s, err := h.o.Host.CoreV1().Secrets(g.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("the Secret %q does not exist: %w", ref.Name, err)
	case err != nil:
		return nil, nil, fmt.Errorf("the Secret %q cannot be read: %w", ref.Name, err)
	case s.Labels[label] != "true":
		return nil, nil, fmt.Errorf("the Secret %q has no label %s=true", ref.Name, label)
	case s.Annotations[v1alpha1.AnnotationGatewayName] != g.Name:
		return nil, nil, fmt.Errorf("the annotation %s of the Secret %q does not name this gateway", v1alpha1.AnnotationGatewayName, ref.Name)
	}
	value := bytes.TrimSpace(s.Data[ref.Key])
	if len(value) == 0 {
		return nil, nil, fmt.Errorf("the Secret %q has no key %q, or nothing under it", ref.Name, ref.Key)
	}
	return s, value, nil
}
