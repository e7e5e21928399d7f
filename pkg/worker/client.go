// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/version"
)

// api is the worker's way to the API server.
type api struct {
	versioned.Interface
	// core serves ConfigMaps; a whole Kubernetes clientset would be a hundred kinds too much.
	core  rest.Interface
	clock clock.Clock
}

func newAPI(c *Config, clk clock.Clock) (*api, error) {
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
		config.BearerToken = c.Credentials.Token
		until = expiry(c.Credentials.Token)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &patience{next: next, clock: clk, until: until} })
	// A proxy from the environment has no business between worker and server.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	core, err := coreClient(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return &api{Interface: clientset, core: core, clock: clk}, nil
}

func coreClient(base *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config := rest.CopyConfig(base)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// configMap reads one ConfigMap.
func (a *api) configMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{}
	return m, a.core.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(m)
}

// temporary reports whether an error of the API may go away by itself: the
// server is restarting, overloaded or does not know us yet.
func temporary(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, errToken) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// No answer from the server at all, unless it is our own context.
		return !errors.Is(err, context.Canceled)
	}
	return passing(int(status.Status().Code))
}

// sleep waits, and reports false when ctx ended first.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) bool {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}
