// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is a worker's way to the API server: one credential, one rule
// for a server that is away, restarting or overloaded, and no proxy.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/version"
)

// Config says where the API server is and how to authenticate.
type Config struct {
	// ServerURL is the server's address. CAFile has the certificates that its own is
	// checked against.
	ServerURL, CAFile string
	// TokenPath is a file with a token, which is read again as it changes. It wins over Token.
	TokenPath, Token string
}

// API reads and writes the objects of the API server. Reads are repeated until
// the server answers; see Temporary for the errors of writes.
type API struct {
	versioned.Interface
}

// New returns the client. It sends nothing yet.
func New(c Config, clk clock.Clock) (*API, error) {
	config := &rest.Config{
		Host:            c.ServerURL,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile},
		UserAgent:       "platform-worker/" + version.Version(),
		// One worker cannot overload a server; waiting in the client would delay events.
		QPS: -1,
	}
	var until time.Time
	if c.TokenPath != "" {
		// Re-read by client-go as the token rotates.
		config.BearerTokenFile = c.TokenPath
	} else {
		config.BearerToken = c.Token
		until = expiry(c.Token)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &patience{next: next, clock: clk, until: until} })
	// A proxy from the environment has no business between worker and server.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.ServerURL, err)
	}
	return &API{Interface: clientset}, nil
}

// Temporary reports whether an error of the API may go away by itself: the
// server is restarting, overloaded or does not know the worker yet.
func Temporary(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, ErrToken) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// No answer from the server at all, unless it is our own context.
		return !errors.Is(err, context.Canceled)
	}
	return passing(int(status.Status().Code))
}

// Sleep waits, and reports false if ctx ended first.
func Sleep(ctx context.Context, c clock.Clock, d time.Duration) bool {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}
