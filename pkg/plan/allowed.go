// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// allowed are the agents that an agent may delegate to (spec.coordination.allowedAgents). An entry whose name is
// v1alpha1.AnyAgent stands for every agent of its namespace, or of all namespaces if it has none.
type allowed []types.NamespacedName

// allowedAgents returns the agents that an agent with coordination may delegate to. An empty list admits none.
func allowedAgents(a *v1alpha1.Agent) allowed {
	var list allowed
	for _, ref := range a.Spec.Coordination.AllowedAgents {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if namespace, name, ok := strings.Cut(key.Name, "/"); ok {
			key.Namespace, key.Name = namespace, name
		}
		if key.Namespace == "" && key.Name != v1alpha1.AnyAgent {
			key.Namespace = a.Namespace
		}
		list = append(list, key)
	}
	return list
}

// admit reports whether the list admits an agent, or all agents that an entry of another list stands for.
func (l allowed) admit(key types.NamespacedName) bool {
	return slices.ContainsFunc(l, func(e types.NamespacedName) bool {
		return e == key || e.Name == v1alpha1.AnyAgent && (e.Namespace == "" || e.Namespace == key.Namespace)
	})
}

// String lists the entries for people.
func (l allowed) String() string {
	var names []string
	for _, e := range l {
		if e.Namespace == "" {
			names = append(names, e.Name)
			continue
		}
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}
