// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review answers questions about a caller's identity and permissions:
// TokenReview and SelfSubjectReview, the SubjectAccessReview family and
// SelfSubjectRulesReview. Nothing is stored.
package review

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Access serves the questions about permissions.
func Access(a authorizer.UnconditionalAuthorizer, r authorizer.RuleResolver) []resource.Resource {
	gv := authorizationv1.SchemeGroupVersion
	return []resource.Resource{
		&resource.Definition[*authorizationv1.SubjectAccessReview]{
			Unguarded: true,
			Resource:  gv.WithResource("subjectaccessreviews"),
			Kind:      "SubjectAccessReview", Singular: "subjectaccessreview", ClusterScoped: true,
			Shape: resource.Action[*authorizationv1.SubjectAccessReview]{Create: access{a}.subject},
		},
		&resource.Definition[*authorizationv1.LocalSubjectAccessReview]{
			Unguarded: true,
			Resource:  gv.WithResource("localsubjectaccessreviews"),
			Kind:      "LocalSubjectAccessReview", Singular: "localsubjectaccessreview",
			Shape: resource.Action[*authorizationv1.LocalSubjectAccessReview]{Create: access{a}.local},
		},
		&resource.Definition[*authorizationv1.SelfSubjectAccessReview]{
			Unguarded: true,
			Resource:  gv.WithResource("selfsubjectaccessreviews"),
			Kind:      "SelfSubjectAccessReview", Singular: "selfsubjectaccessreview", ClusterScoped: true,
			Shape: resource.Action[*authorizationv1.SelfSubjectAccessReview]{Create: access{a}.self},
		},
		Rules(r),
	}
}

// Rules serves SelfSubjectRulesReview, with which callers ask what they may do.
func Rules(r authorizer.RuleResolver) resource.Resource {
	return &resource.Definition[*authorizationv1.SelfSubjectRulesReview]{
		Unguarded: true,
		Resource:  authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews"),
		Kind:      "SelfSubjectRulesReview", Singular: "selfsubjectrulesreview", ClusterScoped: true,
		Shape: resource.Action[*authorizationv1.SelfSubjectRulesReview]{Create: rules{r}.create},
	}
}

type access struct {
	authorizer.UnconditionalAuthorizer
}

func (a access) subject(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	errs := validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	if err := invalid("SubjectAccessReview", append(errs, validateSubject(r.Spec)...)); err != nil {
		return nil, err
	}
	r.Status = a.decide(ctx, subjectOf(r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return r, nil
}

func (a access) local(ctx context.Context, r *authorizationv1.LocalSubjectAccessReview) (*authorizationv1.LocalSubjectAccessReview, error) {
	errs := append(validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateSubject(r.Spec)...)
	spec, namespace := field.NewPath("spec"), request.NamespaceValue(ctx)
	if r.Spec.NonResourceAttributes != nil {
		errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), r.Spec.NonResourceAttributes, "disallowed on this kind of request"))
	}
	if r.Spec.ResourceAttributes != nil && r.Spec.ResourceAttributes.Namespace != namespace {
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes", "namespace"), r.Spec.ResourceAttributes.Namespace, "must match metadata.namespace"))
	}
	if err := invalid("LocalSubjectAccessReview", errs); err != nil {
		return nil, err
	}
	r.Status = a.decide(ctx, subjectOf(r.Spec), r.Spec.ResourceAttributes, nil)
	return r, nil
}

func (a access) self(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	if err := invalid("SelfSubjectAccessReview", validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)); err != nil {
		return nil, err
	}
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	r.Status = a.decide(ctx, u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return r, nil
}

func (a access) decide(ctx context.Context, u user.Info, res *authorizationv1.ResourceAttributes, non *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := a.Authorize(ctx, attributes(u, res, non))
	s := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow,
		Denied:  decision == authorizer.DecisionDeny,
		Reason:  reason,
	}
	if err != nil {
		s.EvaluationError = err.Error()
	}
	return s
}

// attributes returns the request that the question is about. Field and label
// selectors are left out, because RBAC ignores them.
func attributes(u user.Info, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) authorizer.AttributesRecord {
	if n != nil {
		return authorizer.AttributesRecord{User: u, Verb: n.Verb, Path: n.Path}
	}
	version := r.Version
	if version == "" {
		version = "*"
	}
	return authorizer.AttributesRecord{
		User: u, ResourceRequest: true,
		Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group, APIVersion: version,
		Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
	}
}

func subjectOf(s authorizationv1.SubjectAccessReviewSpec) user.Info {
	extra := make(map[string][]string, len(s.Extra))
	for k, v := range s.Extra {
		extra[k] = v
	}
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: extra}
}

func validateAttributes(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) field.ErrorList {
	spec := field.NewPath("spec")
	switch {
	case r != nil && n != nil:
		return field.ErrorList{field.Invalid(spec.Child("nonResourceAttributes"), n, "cannot be specified in combination with resourceAttributes")}
	case r == nil && n == nil:
		return field.ErrorList{field.Invalid(spec.Child("resourceAttributes"), r, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

func validateSubject(s authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	if s.User == "" && len(s.Groups) == 0 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "user"), s.User, "at least one of user or group must be specified")}
	}
	return nil
}

func invalid(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName, Kind: kind}, "", errs)
}

type rules struct{ authorizer.RuleResolver }

func (r rules) create(ctx context.Context, o *authorizationv1.SelfSubjectRulesReview) (*authorizationv1.SelfSubjectRulesReview, error) {
	u, ok := request.UserFrom(ctx)
	switch {
	case !ok:
		return nil, apierrors.NewBadRequest("no user present on request")
	case o.Spec.Namespace == "":
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	resources, urls, incomplete, err := r.RulesFor(ctx, u, o.Spec.Namespace)
	o.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    make([]authorizationv1.ResourceRule, 0, len(resources)),
		NonResourceRules: make([]authorizationv1.NonResourceRule, 0, len(urls)),
		Incomplete:       incomplete,
	}
	for _, r := range resources {
		o.Status.ResourceRules = append(o.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.GetVerbs(), APIGroups: r.GetAPIGroups(), Resources: r.GetResources(), ResourceNames: r.GetResourceNames(),
		})
	}
	for _, r := range urls {
		o.Status.NonResourceRules = append(o.Status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: r.GetVerbs(), NonResourceURLs: r.GetNonResourceURLs(),
		})
	}
	if err != nil {
		o.Status.EvaluationError = err.Error()
	}
	return o, nil
}
