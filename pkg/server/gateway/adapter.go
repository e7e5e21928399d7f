// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// keyCA is the key of an outbound Secret that may have certificates of authorities.
const keyCA = "ca.crt"

// adapters are the connections to the adapters of gateways.
type adapters struct {
	allow []string
	mu    sync.Mutex
	of    map[types.UID]*adapter
}

func newAdapters(allow []string) *adapters {
	return &adapters{allow: allow, of: map[types.UID]*adapter{}}
}

// adapter is the adapter of a gateway, as its spec and its outbound Secret say.
type adapter struct {
	endpoint, version string
	generation        int64
	token             string
	client            *http.Client
	// down is until when it is left alone, in Unix nanoseconds, because it could not be reached.
	down atomic.Int64
}

func (a *adapters) forget(gateway types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.of[gateway]; old != nil {
		old.client.CloseIdleConnections()
	}
	delete(a.of, gateway)
}

// known returns what is kept of an adapter, if it is still as the new one says.
func (a *adapters) known(gateway types.UID, now *adapter) *adapter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.of[gateway]; old != nil && old.same(now) {
		return old
	}
	return nil
}

func (a *adapter) same(b *adapter) bool {
	return a.endpoint == b.endpoint && a.version == b.version && a.generation == b.generation
}

// keep returns what is kept of an adapter, if it is still as the new one says; otherwise the new one takes its place.
func (a *adapters) keep(gateway types.UID, now *adapter) *adapter {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.of[gateway]
	if old != nil && old.same(now) {
		return old
	}
	if old != nil {
		old.client.CloseIdleConnections()
	}
	a.of[gateway] = now
	return now
}

// adapter returns the adapter of a gateway. The error says what is missing; nothing was sent then.
func (h *Hub) adapter(ctx context.Context, g *v1alpha1.Gateway) (*adapter, error) {
	s, value, err := h.secret(ctx, g, g.Spec.OutboundAuthRef, v1alpha1.LabelGatewayOutboundAuth)
	if err != nil {
		return nil, err
	}
	endpoint, private, err := h.endpoint(ctx, g)
	if err != nil {
		return nil, err
	}
	if allowed := s.Annotations[v1alpha1.AnnotationGatewayEndpoint]; strings.TrimSuffix(allowed, "/") != endpoint {
		return nil, fmt.Errorf("the annotation %s of the Secret %q is not the address of the adapter, %s", v1alpha1.AnnotationGatewayEndpoint, s.Name, endpoint)
	}
	now := &adapter{endpoint: endpoint, version: s.ResourceVersion, generation: g.Generation, token: string(value)}
	if known := h.adapters.known(g.UID, now); known != nil {
		return known, nil
	}
	transport := egress.Guard{Private: private, Allow: h.adapters.allow}.Transport()
	transport.MaxIdleConnsPerHost, transport.ForceAttemptHTTP2 = maxIdle, false
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca := s.Data[keyCA]; len(ca) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("the Secret %q has no certificate under its key %s", s.Name, keyCA)
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	now.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return h.adapters.keep(g.UID, now), nil
}

// maxIdle is how many connections to an adapter are kept.
const maxIdle = 16

// endpoint returns the address of the adapter of a gateway, and whether it may be private.
func (h *Hub) endpoint(ctx context.Context, g *v1alpha1.Gateway) (endpoint string, private bool, err error) {
	ref := g.Spec.Adapter.ServiceRef
	if ref == nil {
		u, err := url.Parse(g.Spec.Adapter.Endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return "", false, errors.New("spec.adapter.endpoint is not an address of https")
		}
		return strings.TrimSuffix(u.String(), "/"), false, nil
	}
	if !h.o.Services {
		return "", false, errors.New("spec.adapter.serviceRef: this server is in no cluster; name the adapter's address in spec.adapter.endpoint")
	}
	s, err := h.o.Host.CoreV1().Services(g.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "", false, fmt.Errorf("the Service %q cannot be read: %w", ref.Name, err)
	}
	port, err := portOf(s, ref.Port)
	if err != nil {
		return "", false, err
	}
	return "https://" + net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(port))), true, nil
}

// portOf returns the port of a Service whose Pods are selected.
func portOf(s *corev1.Service, want int32) (int32, error) {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName, len(s.Spec.Selector) == 0:
		return 0, fmt.Errorf("the Service %q selects no Pods", s.Name)
	case len(s.Spec.Ports) == 0:
		return 0, fmt.Errorf("the Service %q has no port", s.Name)
	case want == 0:
		return s.Spec.Ports[0].Port, nil
	}
	for _, p := range s.Spec.Ports {
		if p.Port == want {
			return want, nil
		}
	}
	return 0, fmt.Errorf("the Service %q has no port %d", s.Name, want)
}

// exchange is a request to an adapter and what came of it.
type exchange struct {
	// sent is set if bytes may have left.
	sent bool
	// code is the status of the answer, and wait what Retry-After says; code is 0 if none came.
	code int
	wait time.Duration
}

// ask sends a request and reads the answer to one of 2xx into out. The error is for people, and has no token.
func (a *adapter) ask(ctx context.Context, method, path string, in, out any, now time.Time) (x exchange, err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return x, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, method, a.endpoint+path, body)
	if err != nil {
		return x, fmt.Errorf("the address of the adapter: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.client.Do(r)
	x.sent = sent.Load()
	if err != nil {
		return x, reason(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or is of no use
	x.code, x.wait = answer.StatusCode, waitOf(answer.Header.Get("Retry-After"), now)
	if x.code < http.StatusOK || x.code >= http.StatusMultipleChoices {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, protocol.MaxAnswer)) // so that the connection is used again
		return x, fmt.Errorf("the adapter answered %d %s", x.code, http.StatusText(x.code))
	}
	if err := protocol.Decode(answer.Body, protocol.MaxAnswer, out); err != nil {
		return x, fmt.Errorf("the answer of the adapter cannot be read: %w", err)
	}
	return x, nil
}

// reason returns why a request had no answer, without its address.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the adapter did not answer in time")
	}
	return err
}

// maxWait is the longest time that an adapter can ask for.
const maxWait = time.Hour

// waitOf reads Retry-After: seconds, or a date.
func waitOf(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	if date, err := http.ParseTime(value); err == nil && date.After(now) {
		return min(date.Sub(now), maxWait)
	}
	return 0
}
