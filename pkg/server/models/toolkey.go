// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
)

// Tools returns the Tools of a namespace, in the order of their names. They are shared and must not be changed. Its caller must
// have authorized the request.
func (m *Models) Tools(ctx context.Context, namespace string) ([]v1alpha1.Tool, error) {
	return m.kept.tools.Get(ctx, namespace, func(ctx context.Context) ([]v1alpha1.Tool, error) {
		list, err := m.objects.CoreV1alpha1().Tools(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("tools of namespace %s: %w", namespace, err)
		}
		return list.Items, nil
	})
}

// ToolKey returns the credential of a Tool that tool.CheckSpec accepts, and where it may be sent; empty if the Tool has none.
// It reads the Secret with the server's own identity, so its caller must have authorized the call of the tool. The error says
// why the Tool cannot be used, without the value.
func (m *Models) ToolKey(ctx context.Context, t *v1alpha1.Tool) (string, egress.Hosts, error) {
	h := t.Spec.HTTP
	if h == nil || h.AuthSecretRef == nil {
		return "", egress.Hosts{}, nil
	}
	to, err := tool.Address(&t.Spec)
	if err != nil {
		return "", egress.Hosts{}, fmt.Errorf("tool %s: its address cannot be used", t.Name) // the parser's error repeats it
	}
	k := key{secret: types.NamespacedName{Namespace: t.Namespace, Name: h.AuthSecretRef.Name}, field: h.AuthSecretRef.Key}
	if err := k.read(ctx, m); err != nil {
		return "", egress.Hosts{}, fmt.Errorf("the Secret %q of tool %s cannot be read", k.secret.Name, t.Name)
	}
	if k.value == "" {
		return "", egress.Hosts{}, fmt.Errorf("the Secret %q of tool %s has no key %q, or nothing under it", k.secret.Name, t.Name, k.field)
	}
	if err := plan.MaySend(k.secret, k.hosts, m.o.RequireSecretHosts, to); err != nil {
		return "", egress.Hosts{}, err
	}
	return k.value, k.hosts, nil
}
