// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool reports whether the endpoints of Tools can be reached. It opens a connection to an HTTP endpoint but
// sends no request, because any request may make the tool act. It asks a remote MCP server for its tools, with the
// credential of the Tool, and checks that the server still offers what was reviewed.
package tool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/tool/mcp"
)

const (
	// DefaultInterval is the time between two probes of a tool.
	DefaultInterval = time.Minute
	probeTimeout    = 10 * time.Second
	// maxError is how much of an MCP server's error is shown, in bytes.
	maxError = 512
)

// Options configure the controller.
type Options struct {
	// Interval is the time between two probes. Default 1 min.
	Interval time.Duration
	// Guard says which addresses of HTTP tools may be probed, and Remote which addresses of MCP servers.
	Guard, Remote egress.Guard
	// RequireSecretHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// Add registers the controller.
func Add(mgr manager.Manager, o Options) error {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	p := probe{now: o.Clock.Now, interval: o.Interval, dial: dialer(o.Guard), remote: o.Remote, requireHosts: o.RequireSecretHosts, secret: reader.Secrets(mgr.GetClient())}
	return builder.ControllerManagedBy(mgr).Named("tool").
		// One slow server must not delay the probes of others.
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		// Ignore changes of the status: the probe writes it, and would trigger itself at once.
		For(&v1alpha1.Tool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&step.Reconciler[*v1alpha1.Tool]{
			Client: mgr.GetClient(),
			New:    func() *v1alpha1.Tool { return &v1alpha1.Tool{} },
			Steps:  []step.Step[*v1alpha1.Tool]{{Name: "probe", Do: p.do}},
		})
}

// probe tries to connect.
type probe struct {
	now      func() time.Time
	interval time.Duration
	dial     func(ctx context.Context, u *url.URL) error
	// remote limits the addresses of MCP servers; secret reads their credentials.
	remote egress.Guard
	// requireHosts refuses Secrets without a rule about the hosts.
	requireHosts bool
	secret       func(context.Context, types.NamespacedName) (*corev1.Secret, error)
}

func (p probe) do(ctx context.Context, t *v1alpha1.Tool) error {
	st := &t.Status
	st.ObservedGeneration = t.Generation
	u, err := endpoint(t)
	st.Endpoint = ""
	if err == nil {
		st.Endpoint = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
		if t.Spec.MCP != nil {
			err = p.list(ctx, t, u)
		} else {
			err = p.dial(ctx, u)
		}
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEndpointReachable,
		Message: message(t), ObservedGeneration: t.Generation,
	}
	st.Available, st.Error = err == nil, ""
	if err != nil {
		st.Error = err.Error()
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonEndpointUnreachable, st.Error
		if _, ok := errors.AsType[*hostError](err); ok {
			c.Reason = v1alpha1.ReasonSecretHostNotAllowed
		}
	}
	meta.SetStatusCondition(&st.Conditions, c)
	st.LastCheck = &metav1.Time{Time: p.now()}
	return step.Wait{After: p.interval, Reason: "the next probe is not due yet"}
}

func message(t *v1alpha1.Tool) string {
	if t.Spec.MCP != nil {
		return "the MCP server offers the tool"
	}
	return "the endpoint takes connections"
}

// hostError says that the Tool's credential may not be sent to its endpoint.
type hostError struct{ error }

// list asks a remote MCP server for its tools and checks the one that is meant.
func (p probe) list(ctx context.Context, t *v1alpha1.Tool, u *url.URL) error {
	o := mcp.Options{Guard: p.remote, Timeout: probeTimeout}
	if h := t.Spec.HTTP; h != nil && h.AuthSecretRef != nil {
		key := types.NamespacedName{Namespace: t.Namespace, Name: h.AuthSecretRef.Name}
		s, err := p.secret(ctx, key)
		if err != nil {
			return fmt.Errorf("spec.http.authSecretRef: %w", err)
		}
		o.Hosts = plan.HostsOf(s.Annotations)
		if err := plan.MaySend(key, o.Hosts, p.requireHosts, u); err != nil {
			return &hostError{err}
		}
		o.Credential = string(s.Data[h.AuthSecretRef.Key])
	}
	_, err := mcp.Open(ctx, t.Name, &t.Spec, o)
	if err == nil {
		return nil
	}
	return errors.New(printable(err.Error()))
}

// printable bounds a text that may come from a server, and removes what a terminal could take for a command.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}

// endpoint returns the URL that a call would use.
func endpoint(t *v1alpha1.Tool) (*url.URL, error) {
	var raw string
	switch {
	case t.Spec.HTTP != nil && t.Spec.HTTP.URL != "":
		raw = t.Spec.HTTP.URL
	case t.Spec.MCP != nil && t.Spec.MCP.Remote != nil:
		raw = t.Spec.MCP.Remote.URL
	case t.Spec.MCP != nil:
		return nil, errors.New("this server does not run MCP servers")
	default:
		return nil, errors.New("the tool has no endpoint")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the endpoint is not an http or https URL")
	}
	return u, nil
}

// dialer returns a function that connects, performs the TLS handshake for https, and closes the connection.
func dialer(g egress.Guard) func(context.Context, *url.URL) error {
	dial := g.Transport().DialContext
	return func(ctx context.Context, u *url.URL) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		if err != nil {
			return fmt.Errorf("cannot connect: %w", err)
		}
		defer func() { _ = conn.Close() }()
		if u.Scheme == "https" {
			c := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
			if err := c.HandshakeContext(ctx); err != nil {
				return fmt.Errorf("cannot connect by TLS: %w", err)
			}
		}
		return nil
	}
}
