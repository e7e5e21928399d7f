// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var (
	_ authorizer.Authorizer   = (*View)(nil)
	_ authorizer.RuleResolver = (*View)(nil)
)

// Authorize allows what a rule allows and has no opinion on everything else.
// The reasons are worded as in Kubernetes.
func (v *View) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var errs []error
	reason, allowed := "", false
	v.visit(a.GetUser(), a.GetNamespace(), func(s source, rule *rbacv1.PolicyRule, err error) bool {
		if err != nil {
			errs = append(errs, err)
			return true
		}
		if allows(rule, a) {
			reason, allowed = "RBAC: allowed by "+s.String(), true
		}
		return !allowed
	})
	switch {
	case allowed:
		return authorizer.DecisionAllow, reason, nil
	case len(errs) > 0:
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", utilerrors.NewAggregate(errs)), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize returns the decision of Authorize, because RBAC
// rules have no conditions.
func (v *View) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(v.Authorize(ctx, a))
}

// EvaluateConditions always refuses, because RBAC rules have no conditions.
func (*View) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor returns the rules of a user in a namespace. The error describes
// bindings whose role does not exist; the rules are complete nevertheless.
func (v *View) RulesFor(_ context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var errs []error
	var resources []authorizer.ResourceRuleInfo
	var urls []authorizer.NonResourceRuleInfo
	v.visit(u, namespace, func(_ source, r *rbacv1.PolicyRule, err error) bool {
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(r.Resources) > 0:
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		case len(r.NonResourceURLs) > 0:
			urls = append(urls, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
		return true
	})
	return resources, urls, false, utilerrors.NewAggregate(errs)
}

// source describes where a rule comes from.
type source struct {
	b *binding
	p principal
}

// visit calls f with every rule of the user's ClusterRoleBindings and, in a
// namespace, RoleBindings, until f returns false. Each binding is visited once,
// even if it names the user in several ways. The caller holds mu.
func (v *View) visit(u user.Info, namespace string, f func(source, *rbacv1.PolicyRule, error) bool) {
	if u == nil {
		return
	}
	principals := make([]principal, 0, 1+len(u.GetGroups()))
	principals = append(principals, principal{rbacv1.UserKind, u.GetName()})
	for _, g := range u.GetGroups() {
		principals = append(principals, principal{rbacv1.GroupKind, g})
	}
	visited := map[*binding]bool{} // of those that can be found in several ways
	again := repeats(u.GetGroups())
	scopes := [...]string{"", namespace}
	for _, scope := range scopes[:min(1+len(namespace), 2)] {
		for _, p := range principals {
			for _, b := range v.bindings[scope][p] {
				if again || len(b.subjects) > 1 {
					if visited[b] {
						continue
					}
					visited[b] = true
				}
				if !v.visitBinding(source{b, p}, f) {
					return
				}
			}
		}
	}
}

// repeats reports whether a group may occur twice. Few are compared with each other.
func repeats(groups []string) bool {
	if len(groups) > 16 {
		return true
	}
	for i, g := range groups {
		if slices.Contains(groups[:i], g) {
			return true
		}
	}
	return false
}

func (v *View) visitBinding(s source, f func(source, *rbacv1.PolicyRule, error) bool) bool {
	rules, err := v.resolve(s.b)
	if err != nil {
		return f(s, nil, err)
	}
	for i := range rules {
		if !f(s, &rules[i], nil) {
			return false
		}
	}
	return true
}

// resolve returns the rules that a binding refers to.
func (v *View) resolve(b *binding) ([]rbacv1.PolicyRule, error) {
	key := types.NamespacedName{Name: b.role.Name}
	switch b.role.Kind {
	case "Role":
		if key.Namespace = b.namespace; key.Namespace == "" {
			return nil, fmt.Errorf("ClusterRoleBinding %q refers to a Role, which it cannot", b.name)
		}
	case "ClusterRole":
	default:
		return nil, fmt.Errorf("unsupported role reference kind: %q", b.role.Kind)
	}
	rules, ok := v.rules[key]
	if !ok {
		return nil, fmt.Errorf("%s.rbac.authorization.k8s.io %q not found", strings.ToLower(b.role.Kind), b.role.Name)
	}
	return rules, nil
}

// String uses Kubernetes' wording, which people search for. Each request that is allowed needs it, so it is made once.
func (s source) String() string {
	if text, ok := s.b.reasons.Load(s.p); ok {
		return text.(string) //nolint:forcetypeassert // only strings are stored
	}
	text := s.text()
	s.b.reasons.Store(s.p, text)
	return text
}

func (s source) text() string {
	subject := fmt.Sprintf("%s %q", s.p.kind, s.p.name)
	for _, sub := range s.b.subjects {
		if p, ok := subjectPrincipal(sub, s.b.namespace); ok && p == s.p && sub.Kind == rbacv1.ServiceAccountKind {
			ns := sub.Namespace
			if ns == "" {
				ns = s.b.namespace
			}
			subject = fmt.Sprintf("%s %q", sub.Kind, sub.Name+"/"+ns)
		}
	}
	if s.b.namespace == "" {
		return fmt.Sprintf("ClusterRoleBinding %q of %s %q to %s", s.b.name, s.b.role.Kind, s.b.role.Name, subject)
	}
	return fmt.Sprintf("RoleBinding %q of %s %q to %s", s.b.name+"/"+s.b.namespace, s.b.role.Kind, s.b.role.Name, subject)
}
