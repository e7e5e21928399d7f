// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// Lifetime of a worker's token. The token is bound to the task and becomes invalid when the
// task is deleted, so it may last longer than a slow end of the run.
const (
	tokenSlack = 15 * time.Minute
	// unlimitedTokenLife is for tasks without a timeout.
	unlimitedTokenLife = 7 * 24 * time.Hour
)

// identity provides workers with a ServiceAccount in their task's namespace, and with a token
// that is bound to their task.
type identity struct {
	client client.Client
	now    func() time.Time
	// known holds, by account, when it was last seen with its role.
	known *lru.Cache
}

const (
	// accountKnown is how long an account and its role, once seen, are not looked at again. An account that is deleted
	// meanwhile is noticed at once, because it has no tokens.
	accountKnown = 10 * time.Second
	maxKnown     = 4096
)

func newIdentity(c client.Client, now func() time.Time) *identity {
	return &identity{client: c, now: now, known: lru.New(maxKnown)}
}

func accountOf(t *v1alpha1.Task) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: executor.ServiceAccount(t.Spec.Type)}}
}

// account makes sure that the account exists and is bound to the worker's role.
func (i *identity) account(ctx context.Context, t *v1alpha1.Task) error {
	account := accountOf(t)
	key := client.ObjectKeyFromObject(account)
	if seen, ok := i.known.Get(key); ok {
		if at, ok := seen.(time.Time); ok && i.now().Sub(at) < accountKnown {
			return nil
		}
	}
	at := i.now()
	if err := i.ensure(ctx, account); err != nil {
		return fmt.Errorf("worker's account: %w", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: v1alpha1.ClusterRoleWorker},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: t.Namespace, Name: account.Name}},
	}
	if err := i.ensure(ctx, binding); err != nil {
		return fmt.Errorf("worker's role: %w", err)
	}
	i.known.Add(key, at)
	return nil
}

// token asks for a token of the account, for a run that takes at most the timeout; 0 means no limit.
func (i *identity) token(ctx context.Context, t *v1alpha1.Task, timeout time.Duration) (string, error) {
	life := unlimitedTokenLife
	if timeout > 0 {
		life = timeout + tokenSlack
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(life / time.Second)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: t.Name, UID: t.UID,
		},
	}}
	if err := i.client.SubResource("token").Create(ctx, accountOf(t), request); err != nil {
		i.known.Remove(client.ObjectKeyFromObject(accountOf(t)))
		return "", fmt.Errorf("worker's token: %w", err)
	}
	return request.Status.Token, nil
}

// ensure creates the object unless one of its name exists.
func (i *identity) ensure(ctx context.Context, o client.Object) error {
	err := i.client.Get(ctx, client.ObjectKeyFromObject(o), o)
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = i.client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
