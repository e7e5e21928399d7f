// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// reader reads for one request, and collects the keys of its Providers.
type reader struct {
	models *Models
	keys   map[string]string // by the Provider's name
}

var _ plan.Reader = (*reader)(nil)

// errNotNeeded is returned for objects that decide nothing about models.
var errNotNeeded = errors.New("models: skills, tools and ConfigMaps are not read")

// Agent reads an Agent.
func (r *reader) Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error) {
	return r.models.objects.CoreV1alpha1().Agents(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// Provider reads a Provider.
func (r *reader) Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error) {
	return r.models.objects.CoreV1alpha1().Providers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// Providers lists the Providers of a namespace.
func (r *reader) Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error) {
	return r.models.Providers(ctx, namespace)
}

// Skill is not needed to find a model.
func (*reader) Skill(context.Context, types.NamespacedName) (*v1alpha1.Skill, error) {
	return nil, errNotNeeded
}

// Tool is not needed to find a model.
func (*reader) Tool(context.Context, types.NamespacedName) (*v1alpha1.Tool, error) {
	return nil, errNotNeeded
}

// ConfigMapKey is not needed to find a model.
func (*reader) ConfigMapKey(context.Context, types.NamespacedName, string) (string, bool, error) {
	return "", false, errNotNeeded
}

// HasSecret reads the key of a Provider and keeps its value.
func (r *reader) HasSecret(ctx context.Context, s plan.Secret) (bool, error) {
	if s.Use != plan.ForProvider {
		return false, errNotNeeded
	}
	if r.keys[s.For.Name] != "" {
		return true, nil
	}
	secret, err := r.models.secrets.CoreV1().Secrets(s.Namespace).Get(ctx, s.Ref.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	key := string(secret.Data[s.Ref.Key])
	r.keys[s.For.Name] = key
	return key != "", nil
}
