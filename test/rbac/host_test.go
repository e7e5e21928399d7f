// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// writers is the number of concurrent requests to a host.
const writers = 16

// server is one of the two that are compared.
type server struct {
	host.Host
	name   string
	client kubernetes.Interface
	// barriers counts, for names that were not used before.
	barriers atomic.Int64
	// alter, where set, changes an object before it is written: the self-check's deliberate difference.
	alter func(object) object
}

// each calls f for every item, several at a time.
func each[T any](ctx context.Context, items []T, f func(context.Context, int, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i, item := range items {
		g.Go(func() error { return f(ctx, i, item) })
	}
	return g.Wait()
}

func (h *server) namespaces(ctx context.Context, names []string) error {
	return each(ctx, names, func(ctx context.Context, _ int, name string) error {
		_, err := h.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // left by an earlier run
			return nil
		}
		return err
	})
}

// create writes the objects and waits until they affect the host's answers.
func (h *server) create(ctx context.Context, objects []object) error {
	err := each(ctx, objects, func(ctx context.Context, _ int, o object) error {
		if h.alter != nil {
			o = h.alter(o)
		}
		return h.createOne(ctx, o)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return h.settle(ctx)
}

func (h *server) createOne(ctx context.Context, o object) error {
	r, opts := h.client.RbacV1(), metav1.CreateOptions{}
	var err error
	switch o := o.(type) {
	case *rbacv1.Role:
		_, err = r.Roles(o.Namespace).Create(ctx, o, opts)
	case *rbacv1.ClusterRole:
		_, err = r.ClusterRoles().Create(ctx, o, opts)
	case *rbacv1.RoleBinding:
		_, err = r.RoleBindings(o.Namespace).Create(ctx, o, opts)
	case *rbacv1.ClusterRoleBinding:
		_, err = r.ClusterRoleBindings().Create(ctx, o, opts)
	}
	if err != nil {
		return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// remove deletes the objects.
func (h *server) remove(ctx context.Context, objects []object) error {
	return each(ctx, objects, func(ctx context.Context, _ int, o object) error {
		r, opts := h.client.RbacV1(), metav1.DeleteOptions{}
		var err error
		switch o := o.(type) {
		case *rbacv1.Role:
			err = r.Roles(o.Namespace).Delete(ctx, o.Name, opts)
		case *rbacv1.ClusterRole:
			err = r.ClusterRoles().Delete(ctx, o.Name, opts)
		case *rbacv1.RoleBinding:
			err = r.RoleBindings(o.Namespace).Delete(ctx, o.Name, opts)
		case *rbacv1.ClusterRoleBinding:
			err = r.ClusterRoleBindings().Delete(ctx, o.Name, opts)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: delete %T %s: %w", h.name, o, o.GetName(), err)
		}
		return nil
	})
}

// settle waits until everything that was written affects the host's answers: first until aggregated roles have their
// rules, and then until one more object of each kind, which every watch delivers after them, has its effect.
func (h *server) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kit.Patience)
	defer cancel()
	lw := cache.NewListWatchFromClient(h.client.RbacV1().RESTClient(), "clusterroles", "", fields.Everything())
	var store cache.Store
	_, err := watchtools.UntilWithSync(ctx, lw, &rbacv1.ClusterRole{}, func(s cache.Store) (bool, error) {
		store = s
		return aggregated(s)
	}, func(watch.Event) (bool, error) { return aggregated(store) })
	if err != nil {
		return fmt.Errorf("%s: aggregated roles: %w", h.name, err)
	}
	return h.barrier(ctx)
}

// aggregated reports whether every aggregated ClusterRole has exactly the rules of those that it selects.
func aggregated(s cache.Store) (bool, error) {
	for _, obj := range s.List() {
		r := obj.(*rbacv1.ClusterRole)
		if r.AggregationRule == nil {
			continue
		}
		want, err := selected(s, r)
		if err != nil {
			return false, err
		}
		if !includes(r.Rules, want) || !includes(want, r.Rules) {
			return false, nil
		}
	}
	return true, nil
}

func selected(s cache.Store, r *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, obj := range s.List() {
			if other := obj.(*rbacv1.ClusterRole); other.Name != r.Name && selector.Matches(labels.Set(other.Labels)) {
				rules = append(rules, other.Rules...)
			}
		}
	}
	return rules, nil
}

// includes reports whether each of the rules want is among have.
func includes(have, want []rbacv1.PolicyRule) bool {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, w) }) {
			return false
		}
	}
	return true
}

// barrier writes one object of each kind, waits for their effect and removes them.
func (h *server) barrier(ctx context.Context) error {
	name := fmt.Sprintf("barrier-%d", h.barriers.Add(1))
	meta := metav1.ObjectMeta{Name: name}
	local := metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"barriers"}}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	locals := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name + "-local"}}
	objects := []object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.Role{ObjectMeta: local, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.RoleBinding{ObjectMeta: local, Subjects: locals, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	}
	for _, o := range objects {
		if err := h.createOne(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	for _, user := range []string{name, name + "-local"} {
		q := question{spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: metav1.NamespaceDefault, Verb: "get", Group: "example.com", Resource: "barriers",
		}}}
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) { // no event reports it
			a, err := h.ask(ctx, q)
			return a.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("%s: barrier: %w", h.name, err)
		}
	}
	return h.remove(ctx, objects)
}

// answer is a host's answer to a question.
type answer struct {
	Allowed, Denied bool
	// Refused is the status code where the question itself was refused.
	Refused int32
}

// ask asks one question.
func (h *server) ask(ctx context.Context, q question) (answer, error) {
	a, _, err := h.reasons(ctx, q)
	return a, err
}

// reasons is like ask, and also returns the reasons that the host gives.
func (h *server) reasons(ctx context.Context, q question) (answer, string, error) {
	c := h.client.AuthorizationV1()
	var status authorizationv1.SubjectAccessReviewStatus
	var err error
	if q.local {
		namespace := q.spec.ResourceAttributes.Namespace
		r := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: q.spec}
		if r, err = c.LocalSubjectAccessReviews(namespace).Create(ctx, r, metav1.CreateOptions{}); err == nil {
			status = r.Status
		}
	} else {
		r := &authorizationv1.SubjectAccessReview{Spec: q.spec}
		if r, err = c.SubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{}); err == nil {
			status = r.Status
		}
	}
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok && refused.ErrStatus.Code < 500 {
		return answer{Refused: refused.ErrStatus.Code}, refused.ErrStatus.Message, nil
	}
	if err != nil {
		return answer{}, "", fmt.Errorf("%s: %w", h.name, err)
	}
	return answer{Allowed: status.Allowed, Denied: status.Denied}, strings.TrimSpace(status.Reason + " " + status.EvaluationError), nil
}

// rules returns what somebody may do in a namespace, one text per rule, sorted.
func (h *server) rules(ctx context.Context, a asker) ([]string, error) {
	config := h.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user, Groups: a.groups}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: a.namespace}}
	r, err = client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, r, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: rules of %q: %w", h.name, a.user, err)
	}
	out := []string{fmt.Sprintf("incomplete=%t", r.Status.Incomplete)}
	for _, rule := range r.Status.ResourceRules {
		out = append(out, text(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames))
	}
	for _, rule := range r.Status.NonResourceRules {
		if slices.Contains(rule.NonResourceURLs, "/openid/v1/jwks") {
			continue // Kubernetes publishes its issuer's keys to ServiceAccounts; the standalone host does not
		}
		out = append(out, text(rule.Verbs, rule.NonResourceURLs))
	}
	slices.Sort(out)
	return out, nil
}

// text is a rule of these sets.
func text(sets ...[]string) string {
	var b strings.Builder
	for _, set := range sets {
		fmt.Fprintf(&b, "%q ", slices.Sorted(slices.Values(set)))
	}
	return b.String()
}
