// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/support"
)

// references looks for all that the Agent refers to.
type references struct {
	get func(ctx context.Context, namespace, name string, o client.Object) error
}

func (s references) do(ctx context.Context, a *v1alpha1.Agent) error {
	problem, err := s.problem(ctx, a)
	if err != nil {
		return err
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "all that the agent refers to was found", ObservedGeneration: a.Generation,
	}
	if problem != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonValidationFailed, problem
	}
	if gaps := support.Refused(support.Agent(&a.Spec)); problem == "" && len(gaps) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotSupported, gaps[0].String()
	}
	a.Status.Ready = c.Status == metav1.ConditionTrue
	a.Status.ObservedGeneration = a.Generation
	meta.SetStatusCondition(&a.Status.Conditions, c)
	return nil
}

// problem is the first thing that is wrong, or nothing.
func (s references) problem(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	for _, check := range []func(context.Context, *v1alpha1.Agent) (string, error){
		s.provider, s.secret, s.prompt, s.skills, s.coordination,
	} {
		if p, err := check(ctx, a); p != "" || err != nil {
			return p, err
		}
	}
	return "", nil
}

func (s references) provider(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	refs := []*v1alpha1.NamespacedReference{}
	switch {
	case a.Spec.Runtime != nil && a.Spec.ProviderRef != nil:
		return "providerRef and runtime are both set", nil
	case a.Spec.ProviderRef != nil:
		refs = append(refs, a.Spec.ProviderRef)
	case a.Spec.Runtime == nil && (a.Spec.Model == nil || a.Spec.Model.Provider == ""):
		return "neither providerRef, model.provider nor runtime is set", nil
	}
	if a.Spec.Model != nil {
		for _, f := range a.Spec.Model.Fallbacks {
			if f.ProviderRef != nil {
				refs = append(refs, f.ProviderRef)
			}
		}
	}
	for _, r := range refs {
		p := &v1alpha1.Provider{}
		k := key(a.Namespace, r)
		if problem, err := s.find(ctx, k.Namespace, k.Name, p, "Provider"); problem != "" || err != nil {
			return problem, err
		}
		if !p.Status.Ready {
			return fmt.Sprintf("Provider %q is not ready", p.Name), nil
		}
	}
	return "", nil
}

func (s references) secret(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	if a.Spec.SecretRef == nil {
		return "", nil
	}
	return s.find(ctx, a.Namespace, a.Spec.SecretRef.Name, &corev1.Secret{}, "Secret")
}

func (s references) prompt(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	if p := a.Spec.SystemPrompt; p != nil && p.ConfigMapRef != nil {
		return s.configMap(ctx, a.Namespace, p.ConfigMapRef)
	}
	return "", nil
}

func (s references) skills(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	for _, ref := range a.Spec.Skills {
		if ref.ConfigMapRef != nil {
			if p, err := s.configMap(ctx, a.Namespace, ref.ConfigMapRef); p != "" || err != nil {
				return p, err
			}
			continue
		}
		skill := &v1alpha1.Skill{}
		if p, err := s.find(ctx, a.Namespace, ref.Name, skill, "Skill"); p != "" || err != nil {
			return p, err
		}
		if skill.Status.Phase == v1alpha1.SkillError {
			return fmt.Sprintf("Skill %q has an error", ref.Name), nil
		}
	}
	return "", nil
}

func (s references) coordination(ctx context.Context, a *v1alpha1.Agent) (string, error) {
	if a.Spec.Coordination == nil || !a.Spec.Coordination.Enabled {
		return "", nil
	}
	for _, r := range a.Spec.Coordination.AllowedAgents {
		k := key(a.Namespace, &r)
		if p, err := s.find(ctx, k.Namespace, k.Name, &v1alpha1.Agent{}, "Agent"); p != "" || err != nil {
			return p, err
		}
	}
	return "", nil
}

func (s references) configMap(ctx context.Context, namespace string, ref *v1alpha1.KeyReference) (string, error) {
	m := &corev1.ConfigMap{}
	if p, err := s.find(ctx, namespace, ref.Name, m, "ConfigMap"); p != "" || err != nil {
		return p, err
	}
	if _, ok := m.Data[ref.Key]; !ok {
		return fmt.Sprintf("ConfigMap %q has no key %q", ref.Name, ref.Key), nil
	}
	return "", nil
}

func (s references) find(ctx context.Context, namespace, name string, o client.Object, kind string) (string, error) {
	err := s.get(ctx, namespace, name, o)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("%s %q does not exist", kind, name), nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", kind, err)
	}
	return "", nil
}
