// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorizer limits what next decides about external callers: they have the rights that roles give them, in their own
// namespace, and as far as the scopes of a transaction token go. It grants nothing.
func (s *Service) Authorizer(next authorizer.Authorizer) authorizer.Authorizer {
	return limited{next, s}
}

type limited struct {
	authorizer.Authorizer
	s *Service
}

// Authorize refuses, or asks the next authorizer.
func (l limited) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if reason := l.s.refusal(ctx, a); reason != "" {
		return authorizer.DecisionDeny, reason, nil
	}
	return l.Authorizer.Authorize(ctx, a)
}

// ConditionsAwareAuthorize refuses, or asks the next authorizer.
func (l limited) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if reason := l.s.refusal(ctx, a); reason != "" {
		return authorizer.ConditionsAwareDecisionFromParts(authorizer.DecisionDeny, reason, nil)
	}
	return l.Authorizer.ConditionsAwareAuthorize(ctx, a)
}

// refusal returns why an external caller may not make the request, whatever its roles are; empty for all other callers.
func (s *Service) refusal(ctx context.Context, a authorizer.Attributes) string {
	i := From(a.GetUser())
	if i == nil {
		return ""
	}
	own, reason := confined(i, a)
	if i.Transaction == nil || own {
		return reason
	}
	return s.decide(ctx, s.actionOf(a), s.lacking(i, a, reason))
}

// lacking returns what a transaction lacks for a request outside its namespace for the given reason, or inside it.
func (s *Service) lacking(i *Identity, a authorizer.Attributes, outside string) lack {
	switch {
	case outside != "":
		return lack{lacksNamespace, outside}
	case s.kinds.never(a):
		return lack{lacksNever, fmt.Sprintf("%s cannot be changed with a transaction token", a.GetResource())}
	case s.mode == ModeOff || s.mode == "":
		return lack{}
	}
	if words := s.unscoped(i, a); words != "" {
		return lack{lacksScope, words}
	}
	return lack{lacksConstraint, constrained(i, a)}
}

// confined checks the namespace of a request. own is true for what every caller may ask, such as who it is.
func confined(i *Identity, a authorizer.Attributes) (own bool, reason string) {
	if !a.IsResourceRequest() {
		path := strings.Trim(a.GetPath(), "/")
		first, _, _ := strings.Cut(path, "/")
		if a.GetVerb() == "get" && slices.Contains([]string{"api", "apis", "openapi", "version", "healthz", "livez", "readyz"}, first) {
			return true, ""
		}
		return false, "callers with an external identity may only use resources of namespace " + i.Namespace
	}
	switch {
	case strings.HasPrefix(a.GetResource(), "selfsubject") && (a.GetAPIGroup() == "authentication.k8s.io" || a.GetAPIGroup() == "authorization.k8s.io"):
		return true, ""
	case a.GetNamespace() != i.Namespace:
		return false, fmt.Sprintf("callers with an external identity may only use namespace %s", i.Namespace)
	}
	return false, ""
}

// unscoped returns which scope the token lacks for the request; empty if it lacks none.
func (s *Service) unscoped(i *Identity, a authorizer.Attributes) string {
	list, ok := s.kinds.Needed(a)
	if !ok {
		return fmt.Sprintf("no scope of a transaction token covers %s %s", a.GetVerb(), a.GetResource())
	}
	for _, family := range list {
		accepted := s.scopes[family]
		if !slices.ContainsFunc(i.Transaction.Scopes, func(has string) bool { return slices.Contains(accepted, has) }) {
			return fmt.Sprintf("the transaction token lacks the scope %s", strings.Join(accepted, " or "))
		}
	}
	return ""
}

// constrained returns which constraint of the transaction the request breaks; empty if it breaks none.
func constrained(i *Identity, a authorizer.Attributes) string {
	c, err := constraintsOf(i.Transaction)
	switch {
	case err != nil:
		return err.Error()
	case c.AllowedTools != nil && a.GetResource() == "tasks" && a.GetSubresource() == "" && slices.Contains([]string{"update", "patch"}, a.GetVerb()):
		return "a transaction that is limited to certain tools cannot change tasks; it can create, cancel and delete them"
	case !c.objects():
	case a.GetResource() != "tasks":
		if !Reads(a.GetVerb()) || len(c.Task) > 0 {
			return fmt.Sprintf("the transaction is limited to certain objects, which %s %s is not", a.GetVerb(), a.GetResource())
		}
	case a.GetSubresource() == "" && slices.Contains([]string{"update", "patch", "deletecollection"}, a.GetVerb()):
		return "a transaction that is limited to certain objects cannot change tasks; it can create, cancel and delete them"
	case len(c.Task) > 0 && a.GetVerb() != "create" && !slices.Contains(c.Task, a.GetName()):
		return "the transaction allows only task " + strings.Join(c.Task, ", ")
	case len(c.Task) > 0 && a.GetSubresource() != "" && !slices.Contains(c.Task, a.GetName()):
		return "the transaction allows only task " + strings.Join(c.Task, ", ")
	}
	return ""
}
