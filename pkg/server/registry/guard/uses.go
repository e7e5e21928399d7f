// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

var (
	errSession = errors.New("the task of the caller's credential does not use this session")
	errUnused  = errors.New("the task of the caller's credential does not use it")
)

// converses reports whether the worker's task belongs to the session.
func (s *scope) converses(session string) bool {
	ref := s.task.Spec.SessionRef
	return ref != nil && ref.Name == session
}

// Sessions is the guard of sessions.
func (w *Workers) Sessions() resource.Guard[*v1alpha1.Session] {
	return &rule[*v1alpha1.Session]{
		w: w, resource: v1alpha1.Resource("sessions"),
		object: func(_ context.Context, s *scope, a resource.Access, o *v1alpha1.Session) error {
			switch {
			case o.Namespace != s.run.namespace || !s.converses(o.Name):
				return errSession
			case a == resource.Access{Verb: "create", Subresource: "transcript"}:
				return errors.New("a worker may not append: the controller adds its task's messages")
			}
			return readable(a, "status", "transcript", "events", "stream")
		},
		narrow: func(ctx context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.Session) bool, error) {
			name := oneOf(o, "metadata.name")
			switch {
			case name == "":
				return nil, unnarrowed("the field metadata.name")
			case request.NamespaceValue(ctx) != s.run.namespace || !s.converses(name):
				return nil, errSession
			}
			return func(o *v1alpha1.Session) bool { return o.Name == name }, nil
		},
	}
}

// readable refuses everything except a get of the object or of one of the subresources.
func readable(a resource.Access, subresources ...string) error {
	if a.Verb != "get" || a.Subresource != "" && !slices.Contains(subresources, a.Subresource) {
		return errNotAWorkers
	}
	return nil
}

// used lists the objects of other kinds that a run reads.
type used struct {
	agent, providers, tools, skills, connectors map[types.NamespacedName]bool
	// kinds holds, by namespace, the provider type for a run that uses the only provider of that type.
	kinds map[string]v1alpha1.ProviderType
}

// used derives the list from the stored task and agent, with the same rules as the plan of the run.
func (s *scope) used(ctx context.Context) (*used, error) {
	u := &used{
		agent: map[types.NamespacedName]bool{}, providers: map[types.NamespacedName]bool{}, tools: map[types.NamespacedName]bool{},
		skills: map[types.NamespacedName]bool{}, connectors: map[types.NamespacedName]bool{}, kinds: map[string]v1alpha1.ProviderType{},
	}
	t := s.task
	var agent *v1alpha1.Agent
	if ref := t.Spec.AgentRef; ref != nil {
		key := ref.In(t.Namespace)
		u.agent[key] = true
		a, err := s.w.Agent(request.WithNamespace(ctx, key.Namespace), key.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			agent = a
		}
	}
	uses := plan.UsesOf(t, agent)
	if p := uses.Provider; p != nil && p.Type != "" {
		u.kinds[p.Ref.Namespace] = p.Type
	} else if p != nil {
		u.providers[p.Ref.NamespacedName] = true
	}
	for _, f := range uses.Fallbacks {
		if f.Provider != nil {
			u.providers[f.Provider.NamespacedName] = true
		}
	}
	for _, key := range uses.Tools {
		u.tools[key] = true
	}
	for _, b := range t.Status.ConnectionBindings {
		u.connectors[types.NamespacedName{Namespace: t.Namespace, Name: b.ConnectorProvider}] = true
	}
	for _, skill := range uses.Skills {
		if !skill.ConfigMap {
			u.skills[skill.NamespacedName] = true
		}
	}
	return u, nil
}

// provider reports whether the run uses a provider, by name or by type.
func (u *used) provider(p *v1alpha1.Provider) bool {
	kind, ok := u.kinds[p.Namespace]
	return u.providers[nameOf(p)] || ok && p.Spec.Type == kind
}

func nameOf(o resource.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// uses is the guard of a kind that runs only read. all also allows lists that do not select a single name.
func uses[T resource.Object](w *Workers, r schema.GroupResource, all bool, subresources []string, is func(*used, T) bool) *rule[T] {
	return &rule[T]{
		w: w, resource: r,
		object: func(ctx context.Context, s *scope, a resource.Access, obj T) error {
			if err := readable(a, subresources...); err != nil {
				return err
			}
			u, err := s.used(ctx)
			if err == nil && !is(u, obj) {
				err = errUnused
			}
			return err
		},
		narrow: func(ctx context.Context, s *scope, a resource.Access, o *metainternalversion.ListOptions) (func(T) bool, error) {
			if oneOf(o, "metadata.name") == "" && (!all || a.Verb != "list") {
				return nil, unnarrowed("the field metadata.name")
			}
			u, err := s.used(ctx)
			return func(obj T) bool { return is(u, obj) }, err
		},
	}
}

// Agents is the guard of agents. A worker may create agents, within the rules of plan.CheckMade, and get and delete those
// that its own task created.
func (w *Workers) Agents() resource.Guard[*v1alpha1.Agent] {
	r := uses(w, v1alpha1.Resource("agents"), false, []string{"status"}, func(u *used, a *v1alpha1.Agent) bool { return u.agent[nameOf(a)] })
	reads := r.object
	r.object = func(ctx context.Context, s *scope, a resource.Access, obj *v1alpha1.Agent) error {
		switch {
		case a == resource.Access{Verb: "create"}:
			return mine(request.NamespaceValue(ctx) == s.run.namespace)
		case a == resource.Access{Verb: "delete"} && plan.MadeBy(obj, s.task), a == resource.Access{Verb: "get"} && plan.MadeBy(obj, s.task):
			return nil
		case a == resource.Access{Verb: "delete"}:
			return errors.New("a worker may delete only agents that its own task created")
		}
		return reads(ctx, s, a, obj)
	}
	return r
}

// Providers is the guard of providers. Workers list providers to find the only one of a type, so they see those of
// that type.
func (w *Workers) Providers() resource.Guard[*v1alpha1.Provider] {
	return uses(w, v1alpha1.Resource("providers"), true, []string{"status"}, (*used).provider)
}

// Tools is the guard of tools.
func (w *Workers) Tools() resource.Guard[*v1alpha1.Tool] {
	return uses(w, v1alpha1.Resource("tools"), false, []string{"status"}, func(u *used, t *v1alpha1.Tool) bool { return u.tools[nameOf(t)] })
}

// ConnectorProviders is the guard of connectorproviders, of which a run reads those that the controller has bound its tools to.
func (w *Workers) ConnectorProviders() resource.Guard[*v1alpha1.ConnectorProvider] {
	return uses(w, v1alpha1.Resource("connectorproviders"), false, nil, func(u *used, p *v1alpha1.ConnectorProvider) bool { return u.connectors[nameOf(p)] })
}

// CatalogTools is the guard of the catalogue of tools, which no run reads.
func (w *Workers) CatalogTools() resource.Guard[*v1alpha1.CatalogTool] {
	return uses(w, v1alpha1.Resource("catalogtools"), false, nil, func(*used, *v1alpha1.CatalogTool) bool { return false })
}

// Skills is the guard of skills.
func (w *Workers) Skills() resource.Guard[*v1alpha1.Skill] {
	return uses(w, v1alpha1.Resource("skills"), false, []string{"status", "content"}, func(u *used, k *v1alpha1.Skill) bool { return u.skills[nameOf(k)] })
}
