// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// defaultProviderKey is the key in a Provider's Secret if the Provider names none.
const defaultProviderKey = "api-key"

// modelNames returns the possible names of the first model. The first one that is not empty is used.
func modelNames(t *v1alpha1.Task, a *v1alpha1.Agent) []string {
	var names []string
	if t.Spec.AI != nil {
		names = append(names, t.Spec.AI.Model)
	}
	if a != nil && a.Spec.Model != nil {
		names = append(names, a.Spec.Model.Name)
	}
	return names
}

// ModelName returns the name of the model that the task or its Agent names; empty if neither does.
func ModelName(t *v1alpha1.Task, a *v1alpha1.Agent) string { return cmp.Or(modelNames(t, a)...) }

// models finds the model and its fallbacks. Each must be usable: an unusable fallback would fail when it is needed
// most.
func (m *maker) models(ctx context.Context, uses *Uses, names []string) error {
	if uses.Provider == nil {
		return refusal.New(v1alpha1.ReasonNoProvider, "neither the task nor its agent names a provider")
	}
	first, err := m.chosen(ctx, *uses.Provider)
	if err != nil {
		return err
	}
	if err := m.candidate(ctx, first, names...); err != nil {
		return err
	}
	return m.fallbacks(ctx, first, uses.Fallbacks)
}

func (m *maker) fallbacks(ctx context.Context, first *v1alpha1.Provider, list []Fallback) error {
	for _, f := range list {
		p := first
		if f.Provider != nil {
			var err error
			if p, err = m.provider(ctx, *f.Provider); err != nil {
				return err
			}
		}
		if p == nil {
			continue
		}
		if err := m.candidate(ctx, p, f.Model); err != nil {
			return err
		}
	}
	return nil
}

// chosen returns the Provider that is named, or the only one of its type.
func (m *maker) chosen(ctx context.Context, c ProviderChoice) (*v1alpha1.Provider, error) {
	if c.Type == "" {
		return m.provider(ctx, c.Ref)
	}
	list, err := m.reader.Providers(ctx, c.Ref.Namespace)
	if err != nil {
		return nil, fmt.Errorf("providers of namespace %s: %w", c.Ref.Namespace, err)
	}
	var found *v1alpha1.Provider
	for i := range list {
		if list[i].Spec.Type != c.Type {
			continue
		}
		if found != nil {
			return nil, refusal.New(v1alpha1.ReasonAmbiguousProvider, "more than one Provider of namespace %q has type %q; name one with providerRef", c.Ref.Namespace, c.Type)
		}
		found = &list[i]
	}
	if found == nil {
		return nil, refusal.Missing(v1alpha1.ReasonProviderNotFound, "no Provider of type %q exists in namespace %q", c.Type, c.Ref.Namespace)
	}
	return found, nil
}

func (m *maker) provider(ctx context.Context, r Reference) (*v1alpha1.Provider, error) {
	if err := m.isolated(r, "Provider"); err != nil {
		return nil, err
	}
	p, err := m.reader.Provider(ctx, r.NamespacedName)
	return p, lookedFor(err, "Provider", r.NamespacedName)
}

// candidate adds a model of a Provider: the first of the names, or else the Provider's default.
func (m *maker) candidate(ctx context.Context, p *v1alpha1.Provider, names ...string) error {
	if err := CheckProvider(p); err != nil {
		return err
	}
	names = append(names, p.Spec.DefaultModel)
	if vendor, ok := vendors.Find(p.Spec.Type); ok && vendor.DefaultModel != nil {
		names = append(names, vendor.DefaultModel(&p.Spec))
	}
	c := Candidate{Provider: p, Model: cmp.Or(names...)}
	if c.Model == "" && !m.anyModel {
		return refusal.New(v1alpha1.ReasonNoModel, "no model is named: not by the task, its agent or provider %q", p.Name)
	}
	m.plan.Candidates = append(m.plan.Candidates, c)
	if m.withoutKeys {
		return nil
	}
	address, err := vendors.Address(&p.Spec)
	if err != nil {
		return refusal.New(v1alpha1.ReasonProviderInvalid, "provider %q: %v", p.Name, err)
	}
	return m.need(ctx, Secret{
		Use: ForProvider, For: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, Namespace: p.Namespace,
		Ref: v1alpha1.KeyReference{Name: p.Spec.SecretRef.Name, Key: cmp.Or(p.Spec.SecretRef.Key, defaultProviderKey)},
	}, address)
}

// CheckProvider returns a *refusal.Error for a Provider that no run can use as it is. It does not check whether the
// key exists.
func CheckProvider(p *v1alpha1.Provider) error {
	if _, ok := vendors.Find(p.Spec.Type); !ok {
		return refusal.New(v1alpha1.ReasonProviderUnsupported, "provider %q: spec.type: must be %s, not %s", p.Name, vendors.Types(), p.Spec.Type)
	}
	if err := vendors.Check(&p.Spec, field.NewPath("spec")).ToAggregate(); err != nil {
		return refusal.New(v1alpha1.ReasonProviderInvalid, "provider %q: %v", p.Name, err)
	}
	if err := checkBaseURL(p.Spec.BaseURL); err != nil {
		return refusal.New(v1alpha1.ReasonProviderInvalid, "provider %q: spec.baseURL: %v", p.Name, err)
	}
	return nil
}

// checkBaseURL checks a Provider's base URL. Its errors do not repeat the URL, which may hold credentials.
func checkBaseURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("must be an absolute http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must not hold credentials, a query or a fragment")
	}
	return nil
}
