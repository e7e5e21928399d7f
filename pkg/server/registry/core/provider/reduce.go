// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// reduce hides from callers with a transaction token where a provider is, which Secret has its key, what it costs and how it
// fails. Annotations are hidden as well: kubectl apply keeps the whole spec in one of them.
func reduce(ctx context.Context) func(*v1alpha1.Provider) {
	caller, _ := request.UserFrom(ctx)
	if i := external.From(caller); i == nil || i.Type != external.TypeContextToken {
		return nil
	}
	return func(p *v1alpha1.Provider) {
		*p = v1alpha1.Provider{
			TypeMeta: p.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, CreationTimestamp: p.CreationTimestamp,
			},
			Spec:   v1alpha1.ProviderSpec{Type: p.Spec.Type, DefaultModel: p.Spec.DefaultModel},
			Status: v1alpha1.ProviderStatus{Ready: p.Status.Ready},
		}
	}
}
