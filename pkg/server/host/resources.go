// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/server/host/core"
	"github.com/platform-ai/platform/pkg/server/host/lease"
	"github.com/platform-ai/platform/pkg/server/host/namespace"
	"github.com/platform-ai/platform/pkg/server/host/policy"
	"github.com/platform-ai/platform/pkg/server/host/rbac"
	"github.com/platform-ai/platform/pkg/server/host/review"
	"github.com/platform-ai/platform/pkg/server/host/token"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Resources returns all resources of the server: the host's and the given ones.
// The host must know all of them to empty a namespace, and must know tasks to
// check the tokens that are bound to them.
func (h *Host) Resources(ours ...resource.Resource) []resource.Resource {
	h.ours = ours
	own := slices.Concat(
		[]resource.Resource{
			core.Namespaces(), core.Secrets, core.ConfigMaps, core.ServiceAccounts(h.tokenRequests()), core.Events,
			lease.Leases,
		},
		rbac.Resources(h.view),
		policy.Resources(),
		review.Identity(h.tokens, []string{token.DefaultIssuer}),
		review.Access(h.authz, h.view),
	)
	all := make([]resource.Resource, 0, len(own)+len(ours))
	for _, r := range append(own, ours...) {
		all = append(all, seen{r, h.storage})
	}
	return all
}

// tokenRequests connects the token subresource to the signer. Tokens can be
// bound to Secrets and to Tasks.
func (h *Host) tokenRequests() core.Tokens {
	secret := core.BoundKind{APIVersion: "v1", Kind: "Secret"}
	task := core.BoundKind{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task"}
	return core.Tokens{
		Audiences: []string{token.DefaultIssuer},
		Bound: map[core.BoundKind]func(context.Context, string, string) (types.UID, error){
			secret: h.storage.uid(secretsResource, nil),
			task:   h.storage.taskOfRun(h.authz),
		},
		Issue: func(ctx context.Context, t core.Token) (core.IssuedToken, error) {
			c := token.Claims{
				Namespace:      t.ServiceAccount.Namespace,
				ServiceAccount: token.Ref{Name: t.ServiceAccount.Name, UID: t.ServiceAccount.UID},
				Audiences:      t.Audiences,
				Life:           t.Life,
			}
			switch {
			case t.Bound == nil:
			case t.Bound.Kind == secret.Kind:
				c.Secret = bound(t.Bound)
			case t.Bound.Kind == task.Kind:
				run, err := h.storage.run(ctx, c.Namespace, t.Bound)
				if err != nil {
					return core.IssuedToken{}, err
				}
				c.Task, c.Run = bound(t.Bound), run
			default:
				return core.IssuedToken{}, fmt.Errorf("token bound to a %s", t.Bound.Kind)
			}
			issued, err := h.signer.Sign(c)
			return core.IssuedToken(issued), err
		},
	}
}

func bound(ref *authenticationv1.BoundObjectReference) *token.Ref {
	return &token.Ref{Name: ref.Name, UID: ref.UID}
}

func (h *Host) ensureServiceAccount(ctx context.Context, ns string) error {
	return h.storage.ensure(request.WithNamespace(asAdmin(ctx), ns), serviceAccountsResource,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: namespace.DefaultServiceAccount, Namespace: ns}})
}
