// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/warning"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	// MinTokenLife is the shortest lifetime that may be requested for a token.
	MinTokenLife = 10 * time.Minute
	// MaxTokenLife is the longest lifetime of a token. A longer request is
	// shortened, with a warning.
	MaxTokenLife = 24 * time.Hour
	// maxTokenSeconds is the longest lifetime that may be requested, in
	// seconds, as in Kubernetes.
	maxTokenSeconds = 1 << 32
)

// BoundKind is a kind of object that a token can be bound to.
type BoundKind struct{ APIVersion, Kind string }

// Token describes the token that Tokens.Issue is to issue.
type Token struct {
	ServiceAccount *corev1.ServiceAccount
	Audiences      []string
	Life           time.Duration
	// Bound is the object that the token is bound to, with its UID. It may be
	// nil.
	Bound *authenticationv1.BoundObjectReference
}

// IssuedToken is the result of Tokens.Issue.
type IssuedToken struct {
	Token string
	// CredentialID identifies the token in the audit log.
	CredentialID string
	Expires      time.Time
}

// Tokens is what the token subresource needs.
type Tokens struct {
	// Issue signs a token.
	Issue func(context.Context, Token) (IssuedToken, error)
	// Audiences are the audiences of a token whose request names none.
	Audiences []string
	// Bound holds, for each kind that a token can be bound to, a func that
	// returns the UID of an object; "" means that the object does not exist.
	Bound map[BoundKind]func(ctx context.Context, namespace, name string) (types.UID, error)
}

// ServiceAccounts serves serviceaccounts and serviceaccounts/token.
func ServiceAccounts(t Tokens) resource.Resource {
	return &resource.Definition[*corev1.ServiceAccount]{
		Unguarded: true,
		Resource:  corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
		Kind:      "ServiceAccount", Singular: "serviceaccount", ShortNames: []string{"sa"},
		Columns: []resource.Column[*corev1.ServiceAccount]{
			{Name: "Secrets", Type: "integer", Description: "How many secrets the account lists.", Value: func(a *corev1.ServiceAccount) any { return int64(len(a.Secrets)) }},
		},
		Shape: resource.Kept[*corev1.ServiceAccount]{
			ValidateName:        validation.ValidateServiceAccountName,
			UnconditionalUpdate: true,
		},
		Subresources: []resource.Subresource[*corev1.ServiceAccount]{{
			Name:   "token",
			Kind:   authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
			New:    func() runtime.Object { return &authenticationv1.TokenRequest{} },
			Create: t.create,
		}},
	}
}

// create answers a TokenRequest.
func (t Tokens) create(ctx context.Context, p resource.Parent[*corev1.ServiceAccount], o runtime.Object) (runtime.Object, error) {
	req, ok := o.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest: %T", o))
	}
	account := p.Object
	if errs := validateTokenRequest(req); len(errs) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), account.Name, errs)
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = t.Audiences
	}
	if most := int64(MaxTokenLife / time.Second); *req.Spec.ExpirationSeconds > most {
		warning.AddWarning(ctx, "", fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *req.Spec.ExpirationSeconds, most))
		req.Spec.ExpirationSeconds = &most
	}
	if err := t.bind(ctx, account.Namespace, req.Spec.BoundObjectRef); err != nil {
		return nil, err
	}
	req.Name, req.Namespace, req.CreationTimestamp = account.Name, account.Namespace, metav1.Time{}
	if p.DryRun {
		return req, nil
	}
	issued, err := t.Issue(ctx, Token{
		ServiceAccount: account, Audiences: req.Spec.Audiences, Bound: req.Spec.BoundObjectRef,
		Life: time.Duration(*req.Spec.ExpirationSeconds) * time.Second,
	})
	if err != nil {
		return nil, err
	}
	audit.AddAuditAnnotation(ctx, serviceaccount.IssuedCredentialIDAuditAnnotationKey, issued.CredentialID)
	req.CreationTimestamp = metav1.NewTime(issued.Expires.Add(-time.Duration(*req.Spec.ExpirationSeconds) * time.Second))
	req.Status = authenticationv1.TokenRequestStatus{Token: issued.Token, ExpirationTimestamp: metav1.NewTime(issued.Expires)}
	return req, nil
}

func validateTokenRequest(req *authenticationv1.TokenRequest) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	seconds := req.Spec.ExpirationSeconds
	switch {
	case seconds == nil:
		return field.ErrorList{field.Required(path, "")}
	case *seconds < int64(MinTokenLife/time.Second):
		return field.ErrorList{field.Invalid(path, *seconds, "may not specify a duration less than 10 minutes")}
	case *seconds > maxTokenSeconds:
		return field.ErrorList{field.Invalid(path, *seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bind checks that the object to bind the token to exists, and fills in its
// UID. If the request gives a different UID, it is a conflict: the object that
// was meant is gone.
func (t Tokens) bind(ctx context.Context, namespace string, ref *authenticationv1.BoundObjectReference) error {
	if ref == nil {
		return nil
	}
	lookup := t.Bound[BoundKind{ref.APIVersion, ref.Kind}]
	if lookup == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to a %s of %s", ref.Kind, ref.APIVersion))
	}
	uid, err := lookup(ctx, namespace, ref.Name)
	if err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	kind := schema.GroupResource{Group: gv.Group, Resource: strings.ToLower(ref.Kind)}
	if uid == "" {
		return apierrors.NewNotFound(kind, ref.Name)
	}
	if ref.UID != "" && ref.UID != uid {
		return apierrors.NewConflict(kind, ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	ref.UID = uid
	return nil
}
