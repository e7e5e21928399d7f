// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentruntime reports whether registered runtimes can be used: it asks each one how it is and what it can do, by the protocol
// platform.harness.v2, and compares that with what the AgentRuntime declares. It changes nothing in a runtime, so it does not find out
// whether the runtime knows the operation key.
//
// What was observed belongs to one generation of the spec. When the endpoint or anything else of it changes, nothing of the former
// runtime stays in the status, even if the new one cannot be reached. Secrets are read for each probe and not kept, and no message has
// a part of them, even if a runtime repeats one.
package agentruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/visible"
)

const (
	// Runtimes are asked again after these times.
	recheckReady    = time.Minute
	recheckNotReady = 15 * time.Second
	// maxMessage is how long status.message may be, in bytes.
	maxMessage = 1024
)

// Options configure the controller.
type Options struct {
	// Clock is required.
	Clock clock.PassiveClock
	// Guard says which addresses may be asked.
	Guard egress.Guard
	// RequireSecretHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
}

// Add registers the controller. The manager's client must not cache Secrets.
func Add(mgr manager.Manager, o Options) error {
	p := probe{now: o.Clock.Now, transport: o.Guard.Transport(), requireHosts: o.RequireSecretHosts, secret: reader.Secrets(mgr.GetClient())}
	return builder.ControllerManagedBy(mgr).Named("agentruntime").
		// One slow runtime must not delay the probes of others.
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		// Ignore changes of the status: the probe writes it, and would trigger itself at once.
		For(&v1alpha1.AgentRuntime{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&step.Reconciler[*v1alpha1.AgentRuntime]{
			Client: mgr.GetClient(),
			New:    func() *v1alpha1.AgentRuntime { return &v1alpha1.AgentRuntime{} },
			Steps:  []step.Step[*v1alpha1.AgentRuntime]{{Name: "probe", Do: p.do}},
		})
}

// probe asks runtimes.
type probe struct {
	now       func() time.Time
	transport http.RoundTripper
	secret    func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	// requireHosts refuses Secrets without a rule about the hosts.
	requireHosts bool
}

// problem is why a runtime cannot be used.
type problem struct {
	// reason is that of the condition.
	reason, message string
}

func (p *problem) Error() string { return p.message }

func wrong(reason, format string, args ...any) error {
	return &problem{reason, fmt.Sprintf(format, args...)}
}

func (p probe) do(ctx context.Context, r *v1alpha1.AgentRuntime) error {
	st := &r.Status
	if st.ObservedGeneration != r.Generation {
		st.ObservedCapabilities, st.ObservedSecretVersions = nil, nil
	}
	message, err := p.ask(ctx, r)
	found, known := errors.AsType[*problem](err)
	if err != nil && !known {
		return err
	}
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValidationSucceeded, Message: message, ObservedGeneration: r.Generation}
	wait := step.Wait{After: recheckReady, Reason: message}
	if found != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, found.reason, clip.Marked(visible.Line(found.message), maxMessage)
		wait = step.Wait{After: recheckNotReady, Reason: c.Message}
	}
	meta.SetStatusCondition(&st.Conditions, c)
	st.Ready, st.Message, st.ObservedGeneration = found == nil, c.Message, r.Generation
	st.LastValidated = &metav1.Time{Time: p.now()}
	return wait
}

// ask returns what is good about a runtime, or a *problem.
func (p probe) ask(ctx context.Context, r *v1alpha1.AgentRuntime) (string, error) {
	if r.Spec.ContractVersion != v1alpha1.HarnessV2 {
		return "", wrong(v1alpha1.ReasonNotSupported, "spec.contractVersion: runtimes of %s are not asked; register one of %s", r.Spec.ContractVersion, v1alpha1.HarnessV2)
	}
	at, err := url.Parse(r.Spec.Deployment.Endpoint)
	if err != nil {
		return "", wrong(v1alpha1.ReasonValidationFailed, "spec.deployment.endpoint is not a URL")
	}
	client, err := p.client(ctx, r, at)
	if err != nil {
		return "", err
	}
	h, err := client.Health(ctx)
	if err != nil {
		return "", refusal(err)
	}
	a, err := client.Capabilities(ctx)
	if err != nil {
		return "", refusal(err)
	}
	r.Status.ObservedCapabilities = &a.Capabilities
	switch {
	case h.Instance != a.Capabilities.RuntimeInstanceID:
		return "", wrong(v1alpha1.ReasonProtocolViolated, "the health says that the instance is %s, and the capabilities say %s: an endpoint must lead to one process", h.Instance, a.Capabilities.RuntimeInstanceID)
	case h.Status == harness.HealthUnhealthy:
		return "", wrong(v1alpha1.ReasonRuntimeUnhealthy, "the runtime says that it is unhealthy")
	}
	if text := differs(r.Spec.Capabilities, &a.Capabilities); text != "" {
		return "", wrong(v1alpha1.ReasonCapabilitiesDiffer, "%s", text)
	}
	return fmt.Sprintf("the runtime %s answers as instance %s and can do what spec.capabilities declares; whether it knows the operation key was not tried", visible.Line(a.Runtime.Name), h.Instance), nil
}

// client returns a client with the Secrets of a runtime, and notes their versions.
func (p probe) client(ctx context.Context, r *v1alpha1.AgentRuntime, at *url.URL) (*harness.Client, error) {
	versions := map[string]string{}
	values := map[string][]byte{}
	for _, s := range []struct {
		field string
		ref   *v1alpha1.KeyReference
		sent  bool
	}{
		{"controllerBearerTokenSecretRef", r.Spec.ClientAuth.ControllerBearerTokenSecretRef, true},
		{"operationCapabilitySecretRef", r.Spec.ClientAuth.OperationCapabilitySecretRef, false},
	} {
		if s.ref == nil {
			return nil, wrong(v1alpha1.ReasonValidationFailed, "spec.clientAuth.%s is required", s.field)
		}
		key := types.NamespacedName{Namespace: r.Namespace, Name: s.ref.Name}
		secret, err := p.secret(ctx, key)
		switch {
		case apierrors.IsNotFound(err):
			return nil, wrong(v1alpha1.ReasonValidationFailed, "spec.clientAuth.%s: Secret %q does not exist", s.field, s.ref.Name)
		case err != nil:
			return nil, fmt.Errorf("secret: %w", err)
		}
		value := bytes.TrimSpace(secret.Data[s.ref.Key])
		if len(value) < harness.MinSecret {
			return nil, wrong(v1alpha1.ReasonValidationFailed, "spec.clientAuth.%s: the key %q of Secret %q is missing, or has fewer than %d bytes", s.field, s.ref.Key, s.ref.Name, harness.MinSecret)
		}
		if s.sent { // the other one never leaves the platform
			if err := plan.MaySend(key, plan.HostsOf(secret.Annotations), p.requireHosts, at); err != nil {
				return nil, wrong(v1alpha1.ReasonSecretHostNotAllowed, "spec.clientAuth.%s: %v", s.field, err)
			}
		}
		versions[s.ref.Name], values[s.field] = secret.ResourceVersion, value
	}
	r.Status.ObservedSecretVersions = versions
	return harness.New(harness.Options{
		Endpoint: at, Transport: p.transport, Clock: clock.RealClock{},
		Token: string(values["controllerBearerTokenSecretRef"]), Key: values["operationCapabilitySecretRef"],
	}), nil
}

// refusal returns the problem for an answer that a runtime did not give.
func refusal(err error) error {
	refused, ok := errors.AsType[*harness.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case ok && refused.Reason == harness.Unauthenticated:
		return wrong(v1alpha1.ReasonValidationFailed, "spec.clientAuth.controllerBearerTokenSecretRef: the runtime refuses the token")
	case ok && refused.Reason == harness.Unavailable:
		return wrong(v1alpha1.ReasonRuntimeUnhealthy, "the runtime cannot work now, or has no credentials yet: %v", err)
	case errors.Is(err, harness.ErrUnreachable):
		return wrong(v1alpha1.ReasonEndpointUnreachable, "spec.deployment.endpoint: %v", err)
	}
	return wrong(v1alpha1.ReasonProtocolViolated, "%v; platform runtime conformance says what else is wrong", err)
}
