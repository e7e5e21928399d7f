// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is a worker's client for the API server. It uses one credential and no proxy,
// and handles a server that is unavailable, restarting or overloaded in the same way for all
// requests. It has only what workers ask for, because initializing the generated clients would lengthen the start of
// each worker.
//
// Refused connections, answers that break off, and the statuses 401, 408, 429 and 5xx are temporary: the
// request is sent again, with growing and jittered pauses. The transport (patience) repeats reads, so that no
// read can miss the rule. It does not repeat writes, because only the code that sends them knows what a
// repetition means: Repeat does so for a single call, and package worker for events, log, results and artifacts.
// Retry-After is honoured, except for results and artifacts, which have fixed pauses of 2 to 16 s.
//
// Waiting ends when the token has expired, or has been refused for 5 minutes (ErrToken); when the folder of the
// run is gone (ErrFolder); when the context ends; and when the server fails over one and the same request with
// 500 (Faults). It does not end because the server is away, however long that takes.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned/scheme"
	"github.com/platform-ai/platform/pkg/version"
)

// Config says where the API server is and how to authenticate.
type Config struct {
	// ServerURL is the server's address. CAFile is the path of the CA bundle that verifies its
	// certificate.
	ServerURL, CAFile string
	// TokenPath is a file with a token, which is read again as it changes. It overrides Token.
	TokenPath, Token string
	// Folder is the folder of the run. Once it is gone, requests fail with ErrFolder. Empty for none.
	Folder string
}

// API reads and writes the objects of the API server. Reads are repeated until the server
// answers. For the errors of writes see Temporary.
type API struct {
	group Group
	relay func() (relay, error)
}

// CoreV1alpha1 returns the resources of the platform.
func (a *API) CoreV1alpha1() Group { return a.group }

// New returns the client. It sends no request.
func New(c Config, clk clock.Clock) (*API, error) {
	config := &rest.Config{
		Host:            c.ServerURL,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile},
		UserAgent:       "platform-worker/" + version.Version(),
		// No client-side limit: one worker cannot overload a server, and waiting would delay events.
		QPS: -1,
	}
	// Ignore proxies from the environment.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	var until time.Time
	if c.TokenPath != "" {
		// Re-read by client-go as the token rotates.
		config.BearerTokenFile = c.TokenPath
	} else {
		config.BearerToken = c.Token
		until = expiry(c.Token)
	}
	patient := func(next http.RoundTripper) *patience {
		return &patience{next: next, clock: clk, until: until, folder: c.Folder}
	}
	plain := rest.CopyConfig(config)
	relay := sync.OnceValues(func() (relay, error) { return newRelay(plain, patient(nil)) }) // few workers need it
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient(next) })
	config.GroupVersion, config.APIPath = &v1alpha1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	group, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.ServerURL, err)
	}
	return &API{Group{group}, relay}, nil
}

// Temporary reports whether a retry may succeed after an error of the API: the server is
// restarting, is overloaded or does not know the worker yet.
func Temporary(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, ErrToken) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// There was no answer from the server, unless the caller's own context ended.
		return !errors.Is(err, context.Canceled)
	}
	return passing(int(status.Status().Code))
}

// RetryAfter returns the pause that the server asked for with an error; 0 for none.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
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
