// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// FieldSender is the field by which the identity of a sender is found; see Stored.IdentityOf.
const FieldSender = "sender"

// identities returns the resource gatewayidentities.
func (o *Options) identities() resource.Resource {
	return &resource.Definition[*v1alpha1.GatewayIdentity]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("gatewayidentities"),
		Kind:       "GatewayIdentity",
		Singular:   "gatewayidentity",
		ShortNames: []string{"gwi"},
		Categories: []string{category},
		Roles:      writers(),
		Scopes:     &external.Scopes{Read: scopeRead},
		Stored:     o.Stored.Identities,
		Fields: []resource.Field[*v1alpha1.GatewayIdentity]{
			{Path: FieldGatewayRef, Indexed: true, Value: func(i *v1alpha1.GatewayIdentity) string { return i.Spec.GatewayRef.Name }},
			{Path: FieldSender, Indexed: true, Value: func(i *v1alpha1.GatewayIdentity) string { return senderKey(&i.Spec) }},
			{Path: "spec.username", Value: func(i *v1alpha1.GatewayIdentity) string { return i.Spec.Username }},
		},
		Columns: []resource.Column[*v1alpha1.GatewayIdentity]{
			{Name: "Gateway", Description: "The gateway.", Value: func(i *v1alpha1.GatewayIdentity) any { return i.Spec.GatewayRef.Name }},
			{Name: "Sender", Description: "The sender.", Value: func(i *v1alpha1.GatewayIdentity) any { return i.Spec.SenderID }},
			{Name: "User", Description: "Who the sender is.", Value: func(i *v1alpha1.GatewayIdentity) any { return i.Spec.Username }},
			{Name: "Account", Wide: true, Description: "The account of the chat system.", Value: func(i *v1alpha1.GatewayIdentity) any { return i.Spec.AccountID }},
			{Name: "Groups", Wide: true, Description: "The groups of the user.", Value: func(i *v1alpha1.GatewayIdentity) any { return strings.Join(i.Spec.Groups, ",") }},
		},
		Shape: resource.Kept[*v1alpha1.GatewayIdentity]{
			// The spec is frozen, so that this is called for new objects only, and also for one that server-side apply creates.
			Validate: func(ctx context.Context, i *v1alpha1.GatewayIdentity) field.ErrorList {
				errs := validateIdentity(i)
				if len(errs) == 0 {
					errs = o.impersonates(ctx, i)
				}
				if len(errs) == 0 {
					errs = o.another(ctx, i)
				}
				return errs
			},
			Frozen: []resource.Frozen[*v1alpha1.GatewayIdentity]{{Path: specPath, Value: func(i *v1alpha1.GatewayIdentity) any { return i.Spec }}},
		},
	}
}

// senderKey returns the value of FieldSender. Ids have no control characters, so it is one sender's.
func senderKey(s *v1alpha1.GatewayIdentitySpec) string {
	return strings.Join([]string{s.GatewayRef.Name, s.AccountID, s.SenderID}, "\n")
}

// identities returns the identities of the sender that a spec names.
func (s Stored) identities(ctx context.Context, namespace string, of *v1alpha1.GatewayIdentitySpec) (found []*v1alpha1.GatewayIdentity, err error) {
	err = s.Identities.Select(ctx, namespace, fields.OneTermEqualSelector(FieldSender, senderKey(of)), func(i *v1alpha1.GatewayIdentity) error {
		found = append(found, i)
		return nil
	})
	return found, err
}

// another refuses an identity beside which there is one of the same sender.
func (o *Options) another(ctx context.Context, i *v1alpha1.GatewayIdentity) field.ErrorList {
	all, err := o.Stored.identities(ctx, i.Namespace, &i.Spec)
	if err != nil {
		return field.ErrorList{field.InternalError(specPath.Child("senderId"), err)}
	}
	for _, other := range all {
		if other.Name != i.Name {
			return field.ErrorList{field.Forbidden(specPath.Child("senderId"), fmt.Sprintf("the GatewayIdentity %s says who this sender is: delete it first", other.Name))}
		}
	}
	return nil
}

// impersonates requires that the writer may be the user, and a member of each group, of an identity: otherwise whoever writes identities would
// decide in everybody's name from a chat. The server itself may.
func (o *Options) impersonates(ctx context.Context, i *v1alpha1.GatewayIdentity) field.ErrorList {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	at := specPath.Child("username")
	errs := o.mayBe(ctx, caller, &authorizer.AttributesRecord{Resource: "users", Name: i.Spec.Username}, at)
	if namespace, name, err := serviceaccount.SplitUsername(i.Spec.Username); err == nil { // as for the headers of impersonation
		errs = o.mayBe(ctx, caller, &authorizer.AttributesRecord{Resource: "serviceaccounts", Namespace: namespace, Name: name}, at)
	}
	for n, group := range i.Spec.Groups {
		errs = append(errs, o.mayBe(ctx, caller, &authorizer.AttributesRecord{Resource: "groups", Name: group}, specPath.Child("groups").Index(n))...)
	}
	return errs
}

// mayBe asks whether a caller may impersonate somebody.
func (o *Options) mayBe(ctx context.Context, caller user.Info, who *authorizer.AttributesRecord, at *field.Path) field.ErrorList {
	if o.Authorizer == nil {
		return field.ErrorList{field.InternalError(at, errors.New("nobody decides who may be impersonated"))}
	}
	who.User, who.Verb, who.APIVersion, who.ResourceRequest = caller, "impersonate", "v1", true
	decision, _, err := o.Authorizer.Authorize(ctx, who)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return field.ErrorList{field.InternalError(at, fmt.Errorf("authorize impersonate: %w", err))}
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf("this needs the right to impersonate the %s %q", strings.TrimSuffix(who.Resource, "s"), who.Name))}
}
