// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider reports whether Providers can be used: whether the Secret with the API key exists and, for Providers with
// spec.probe, whether the vendor accepts it. It does not keep the key.
package provider

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/plan"
)

// Secrets are not watched: a watch would hold all of them in memory. A Provider is checked
// again after these times.
const (
	recheckReady    = 5 * time.Minute
	recheckNotReady = 10 * time.Second
)

// defaultKey is used if the server set no default.
const defaultKey = "api-key"

// Options configure the controller.
type Options struct {
	// Clock is required.
	Clock clock.PassiveClock
	// RequireSecretHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
}

// Add registers the controller. The manager's client must not cache Secrets.
func Add(mgr manager.Manager, o Options) error {
	v := validate{now: o.Clock.Now, requireHosts: o.RequireSecretHosts, secret: reader.Secrets(mgr.GetClient()), probe: newProbes(o.Clock.Now).ask}
	return builder.ControllerManagedBy(mgr).Named("provider").For(&v1alpha1.Provider{}).Complete(&step.Reconciler[*v1alpha1.Provider]{
		Client: mgr.GetClient(),
		New:    func() *v1alpha1.Provider { return &v1alpha1.Provider{} },
		Steps:  []step.Step[*v1alpha1.Provider]{{Name: "validate", Do: v.do}},
	})
}

// validate checks that the Secret has the key and, if the Provider says so, that its endpoint answers.
type validate struct {
	now    func() time.Time
	secret func(context.Context, types.NamespacedName) (*corev1.Secret, error)
	// requireHosts refuses Secrets without a rule about the hosts.
	requireHosts bool
	// probe asks the endpoint with a key that is in a Secret of that version.
	probe func(ctx context.Context, p *v1alpha1.Provider, key, secretVersion string) answer
}

func (s validate) do(ctx context.Context, p *v1alpha1.Provider) error {
	found, problem, err := s.check(ctx, p)
	if err != nil {
		return err
	}
	message, ready := problem.message, problem.message == ""
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValidationSucceeded,
		Message: found, ObservedGeneration: p.Generation,
	}
	wait := step.Wait{After: recheckReady, Reason: c.Message}
	if !ready {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, cmp.Or(problem.reason, v1alpha1.ReasonValidationFailed), message
		wait = step.Wait{After: recheckNotReady, Reason: message}
	}
	changed := meta.SetStatusCondition(&p.Status.Conditions, c)
	if changed || p.Status.Ready != ready || p.Status.ObservedGeneration != p.Generation || p.Status.LastValidated == nil {
		// Set only on a change: a time that changes with every check would cause a write with every check.
		p.Status.LastValidated = &metav1.Time{Time: s.now()}
	}
	p.Status.Ready, p.Status.Message, p.Status.ObservedGeneration = ready, message, p.Generation
	if left := coolDown(p, s.now()); left > 0 {
		wait.After = min(wait.After, left)
	}
	return wait
}

// coolDown ends the cool-down of a Provider when its time is over, and returns how much of it is left. The server begins
// it, from what runs report.
func coolDown(p *v1alpha1.Provider, now time.Time) time.Duration {
	until := p.Status.CoolDownUntil
	if until == nil {
		return 0
	}
	if left := until.Sub(now); left > 0 {
		return left
	}
	p.Status.CoolDownUntil = nil
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCoolDownOver,
		Message: "no request has failed for a while", ObservedGeneration: p.Generation,
	})
	return 0
}

// problem says why a Provider cannot be used; it has no message if there is none.
type problem struct {
	// reason is that of the condition; empty for ValidationFailed.
	reason, message string
}

func failed(format string, args ...any) problem {
	return problem{message: fmt.Sprintf(format, args...)}
}

// check returns what was found, or what is wrong.
func (s validate) check(ctx context.Context, p *v1alpha1.Provider) (found string, wrong problem, err error) {
	ref := p.Spec.SecretRef
	if ref.Key == "" {
		ref.Key = defaultKey
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}
	secret, err := s.secret(ctx, key)
	if apierrors.IsNotFound(err) {
		return "", failed("Secret %q does not exist", ref.Name), nil
	}
	if err != nil {
		return "", problem{}, fmt.Errorf("secret: %w", err)
	}
	if len(secret.Data[ref.Key]) == 0 {
		return "", failed("Secret %q has no key %q", ref.Name, ref.Key), nil
	}
	if problems := vendors.Check(&p.Spec, field.NewPath("spec")); len(problems) > 0 {
		return "", failed("%v", problems.ToAggregate()), nil
	}
	if wrong := s.host(p, key, secret); wrong.message != "" {
		return "", wrong, nil
	}
	if !p.Spec.Probe {
		return fmt.Sprintf("Secret %q has the key %q; whether the endpoint accepts it was not checked (spec.probe)", ref.Name, ref.Key), problem{}, nil
	}
	a := s.probe(ctx, p, string(secret.Data[ref.Key]), secret.ResourceVersion)
	return a.found, problem{message: a.problem}, nil
}

// host checks whether the Secret may be sent to the Provider's address.
func (s validate) host(p *v1alpha1.Provider, key types.NamespacedName, secret *corev1.Secret) problem {
	hosts := plan.HostsOf(secret.Annotations)
	if _, ok := vendors.Find(p.Spec.Type); !ok || !hosts.Set && !s.requireHosts {
		return problem{}
	}
	to, err := vendors.Address(&p.Spec)
	if err != nil {
		return failed("spec: %v", err)
	}
	if err := plan.MaySend(key, hosts, s.requireHosts, to); err != nil {
		return problem{v1alpha1.ReasonSecretHostNotAllowed, err.Error()}
	}
	return problem{}
}
