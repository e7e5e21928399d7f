// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	rules "github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
)

// recheck is after how long a provider is looked at again: Secrets are not watched.
const recheck = time.Minute

func (w *world) addProviders(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("connectorprovider").For(&v1alpha1.ConnectorProvider{}).
		Complete(&step.Reconciler[*v1alpha1.ConnectorProvider]{
			Client: w.Client, New: func() *v1alpha1.ConnectorProvider { return &v1alpha1.ConnectorProvider{} },
			Steps: []step.Step[*v1alpha1.ConnectorProvider]{{Name: "judge", Do: w.judge}},
		})
}

// judge says whether a provider can be used.
func (w *world) judge(ctx context.Context, p *v1alpha1.ConnectorProvider) error {
	if p.DeletionTimestamp != nil {
		return step.ErrDone
	}
	accepted := ""
	if errs := rules.Validate(p); len(errs) > 0 { // it may have been stored under older rules
		accepted = errs[0].Error()
	}
	resolved, err := w.secret(ctx, p)
	if err != nil {
		return err
	}
	p.Status.ObservedGeneration = p.Generation
	set(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonValidationSucceeded, v1alpha1.ReasonValidationFailed, accepted)
	set(p, v1alpha1.ConditionResolvedRefs, v1alpha1.ReasonReferencesResolved, v1alpha1.ReasonReferencesNotResolved, resolved)
	return step.Wait{After: recheck, Reason: "the Secret may change"}
}

// set sets a condition. A problem makes it False.
func set(p *v1alpha1.ConnectorProvider, kind, yes, no, problem string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: yes, ObservedGeneration: p.Generation}
	if problem != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, no, problem
	}
	meta.SetStatusCondition(&p.Status.Conditions, c)
}

// secret returns what is wrong with the Secret of the client; empty if nothing is.
func (w *world) secret(ctx context.Context, p *v1alpha1.ConnectorProvider) (problem string, err error) {
	ref, s := p.Spec.OAuth.ClientSecretRef, &corev1.Secret{}
	err = w.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}, s)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("spec.oauth.clientSecretRef: Secret %q does not exist", ref.Name), nil
	case err != nil:
		return "", err
	case len(s.Data[ref.Key]) == 0:
		return fmt.Sprintf("spec.oauth.clientSecretRef: Secret %q has no key %q, or it is empty", ref.Name, ref.Key), nil
	}
	to, err := url.Parse(p.Spec.OAuth.TokenURL)
	if err != nil {
		return "spec.oauth.tokenURL: cannot be read", nil //nolint:nilerr // which is what is wrong
	}
	if err := plan.MaySend(client.ObjectKeyFromObject(s), plan.HostsOf(s.Annotations), w.o.RequireSecretHosts, to); err != nil {
		return fmt.Sprintf("spec.oauth.clientSecretRef: %v", err), nil
	}
	return "", nil
}
