// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// auditKey is the prefix of audit annotations with the decisions of Authorize.
const auditKey = "models." + v1alpha1.GroupName + "/"

// Access is something that a caller must be permitted to do. The resource is one of group core.platform.ai.
type Access struct {
	Verb, Resource, Name string
}

// Chat returns what a caller needs to have a model answer: create on chats and list on providers. More is what the
// request needs besides, such as get on its Agent.
func Chat(more ...Access) []Access {
	return append([]Access{{Verb: "create", Resource: "chats"}, {Verb: "list", Resource: "providers"}}, more...)
}

// Discover returns what a caller needs to list models.
func Discover() []Access { return []Access{{Verb: "list", Resource: "providers"}} }

// Authorize returns an API error (403) unless the caller may do everything in the namespace. Each decision is recorded
// in the audit event of the request that ctx belongs to. Workers are refused whatever their roles are, because their
// requests are counted where their runs make them.
func (m *Models) Authorize(ctx context.Context, caller user.Info, namespace string, all ...Access) error {
	for _, a := range all {
		resource := v1alpha1.Resource(a.Resource)
		decision, reason, err := authorizer.DecisionDeny, "a worker may use models only within its run", error(nil)
		if !guard.IsWorker(caller) {
			decision, reason, err = m.o.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
				User: caller, Verb: a.Verb, Namespace: namespace, Name: a.Name, ResourceRequest: true,
				APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: a.Resource,
			})
		}
		allowed := decision == authorizer.DecisionAllow
		word := "forbid"
		if allowed {
			word = "allow"
		}
		audit.AddAuditAnnotation(ctx, auditKey+a.Verb+"-"+a.Resource, word)
		switch {
		case allowed:
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("%s on %s could not be authorized: %w", a.Verb, resource, err))
		default:
			if reason == "" {
				reason = fmt.Sprintf("you need %s on %s in namespace %q", a.Verb, resource, namespace)
			}
			return apierrors.NewForbidden(resource, a.Name, errors.New(reason))
		}
	}
	return nil
}

// Present returns an API error (403) if the caller is a ServiceAccount that was deleted since it was authenticated. Its
// tokens are void then, but its roles may remain. Work that goes on without its caller asks this, besides Authorize.
func (m *Models) Present(ctx context.Context, caller user.Info) error {
	namespace, name, err := serviceaccount.SplitUsername(caller.GetName())
	if err != nil {
		return nil //nolint:nilerr // not a ServiceAccount
	}
	account, err := m.secrets.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && caller.GetUID() != "" && string(account.UID) != caller.GetUID() {
		return apierrors.NewForbidden(corev1.Resource("serviceaccounts"), name, errors.New("the ServiceAccount of the caller was deleted"))
	}
	if apierrors.IsForbidden(err) { // installed with the roles of an older version
		return nil
	}
	return err
}
