// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// disk is an engine that can be full. A test may do something before a commit.
type disk struct {
	engine.Engine

	full   atomic.Bool
	before atomic.Pointer[func()]
}

// Commit refuses everything while the disk is full.
func (d *disk) Commit(t engine.Txn) error {
	if f := d.before.Load(); f != nil {
		(*f)()
	}
	if d.full.Load() {
		return engine.ErrFull
	}
	return d.Engine.Commit(t)
}

// host is the server that has the Secret.
type host struct {
	kubernetes.Interface

	mu     sync.Mutex
	secret *corev1.Secret
	err    error
}

// fails sets the error with which Secrets are refused; nil for none.
func (h *host) fails(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// CoreV1 has the Secrets.
func (h *host) CoreV1() typedcore.CoreV1Interface { return core{host: h} }

type core struct {
	typedcore.CoreV1Interface

	host *host
}

// Secrets has the one of the client in each namespace.
func (c core) Secrets(string) typedcore.SecretInterface { return secrets{host: c.host} }

type secrets struct {
	typedcore.SecretInterface

	host *host
}

// Get returns the Secret of the client.
func (s secrets) Get(context.Context, string, metav1.GetOptions) (*corev1.Secret, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return s.host.secret, s.host.err
}

// network reaches the provider, unless it fails.
type network struct {
	http.RoundTripper

	mu  sync.Mutex
	err error
}

// fails sets the error with which requests are not sent; nil for none.
func (n *network) fails(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

// RoundTrip sends a request.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	err := n.err
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return n.RoundTripper.RoundTrip(r)
}
