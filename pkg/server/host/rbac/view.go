// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac is the role-based access control of a standalone host: the
// rbac.authorization.k8s.io/v1 kinds, the authorizer that evaluates them with
// Kubernetes' semantics, and the roles that exist from the start.
//
// The authorizer answers from a View, an index in memory that watches of the
// four kinds keep current. A request costs a few map look-ups and never reads
// the store. A write to one of the kinds is answered only when the View has it,
// so a binding is effective for the very next request. The View resolves the
// rules of a ClusterRole with an aggregationRule immediately; Aggregator writes
// them into the object for people to read.
//
// Only system:masters may write these kinds. Nobody else can therefore give
// themselves more permissions, so the verbs bind and escalate are not needed.
package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// View is the current state of all roles and bindings. The zero value is not
// ready; use NewView. Objects passed to it must not be modified afterwards.
type View struct {
	mu sync.RWMutex // guards everything below
	// objects are all objects of the four kinds.
	objects map[objectKey]object
	// seen holds the highest revision seen of each kind whose first list has
	// arrived.
	seen map[string]uint64
	// rules holds what each role grants, with aggregation resolved. Roles are
	// keyed by namespace and name, ClusterRoles by "" and name.
	rules map[types.NamespacedName][]rbacv1.PolicyRule
	// bindings holds the bindings of each namespace ("" for
	// ClusterRoleBindings) by each principal they name, sorted by name.
	bindings map[string]map[principal][]*binding
	// changed is closed and replaced whenever something changes.
	changed chan struct{}
}

// kinds is the number of kinds.
const kinds = 4

type objectKey struct {
	kind string // "Role", "ClusterRole", "RoleBinding" or "ClusterRoleBinding"
	types.NamespacedName
}

type object interface {
	runtime.Object
	metav1.Object
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	namespace, name string
	role            rbacv1.RoleRef
	subjects        []rbacv1.Subject
	// reasons has what source.String returns, by principal.
	reasons sync.Map
}

// NewView makes an empty View.
func NewView() *View {
	return &View{
		objects:  map[objectKey]object{},
		seen:     map[string]uint64{},
		rules:    map[types.NamespacedName][]rbacv1.PolicyRule{},
		bindings: map[string]map[principal][]*binding{},
		changed:  make(chan struct{}),
	}
}

// wait returns nil when the condition holds, or the context's error. It
// evaluates the condition again after every change.
func (v *View) wait(ctx context.Context, condition func() bool) error {
	for {
		v.mu.RLock()
		ok, changed := condition(), v.changed
		v.mu.RUnlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WaitForSync returns when the first list of all four kinds has arrived.
func (v *View) WaitForSync(ctx context.Context) error {
	return v.wait(ctx, func() bool { return len(v.seen) == kinds })
}

// waitFor returns when the View has this state of an object or a later one,
// including its removal.
func (v *View) waitFor(ctx context.Context, obj object) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	want, err := parseRevision(obj.GetResourceVersion())
	if err != nil {
		return err
	}
	return v.wait(ctx, func() bool {
		seen, ok := v.seen[key.kind]
		return ok && seen >= want
	})
}

// waitGone returns when the View no longer has the object.
func (v *View) waitGone(ctx context.Context, key objectKey, uid types.UID) error {
	return v.wait(ctx, func() bool {
		cur, ok := v.objects[key]
		return !ok || cur.GetUID() != uid
	})
}

func keyOf(obj object) (objectKey, error) {
	key := objectKey{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	switch obj.(type) {
	case *rbacv1.Role:
		key.kind = "Role"
	case *rbacv1.ClusterRole:
		key.kind = "ClusterRole"
	case *rbacv1.RoleBinding:
		key.kind = "RoleBinding"
	case *rbacv1.ClusterRoleBinding:
		key.kind = "ClusterRoleBinding"
	default:
		return key, fmt.Errorf("%T is neither role nor binding", obj)
	}
	return key, nil
}

// set stores an object's latest state.
func (v *View) set(obj object) error { return v.change(obj, v.put) }

// remove removes an object, which carries the revision of its deletion.
func (v *View) remove(obj object) error {
	return v.change(obj, func(key objectKey, _ object) { v.drop(key) })
}

func (v *View) change(obj object, f func(objectKey, object)) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	rev, err := parseRevision(obj.GetResourceVersion())
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	f(key, obj)
	v.settle(key.kind, rev)
	return nil
}

// replace makes objects the only ones of a kind, as of a revision.
func (v *View) replace(kind string, objects []object, rev uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	gone := map[objectKey]bool{}
	for key := range v.objects {
		if key.kind == kind {
			gone[key] = true
		}
	}
	for _, obj := range objects {
		key, err := keyOf(obj)
		if err != nil {
			return err
		}
		delete(gone, key)
		v.put(key, obj)
	}
	for key := range gone {
		v.drop(key)
	}
	v.settle(kind, rev)
	return nil
}

// put and drop maintain the indexes. The caller holds mu and calls settle
// afterwards.
func (v *View) put(key objectKey, obj object) {
	v.drop(key)
	v.objects[key] = obj
	switch o := obj.(type) {
	case *rbacv1.Role:
		v.rules[key.NamespacedName] = o.Rules
	case *rbacv1.RoleBinding:
		v.bind(&binding{namespace: o.Namespace, name: o.Name, role: o.RoleRef, subjects: o.Subjects})
	case *rbacv1.ClusterRoleBinding:
		v.bind(&binding{name: o.Name, role: o.RoleRef, subjects: o.Subjects})
	}
}

func (v *View) drop(key objectKey) {
	switch o := v.objects[key].(type) {
	case nil:
		return
	case *rbacv1.Role:
		delete(v.rules, key.NamespacedName)
	case *rbacv1.RoleBinding:
		v.unbind(o.Namespace, o.Name, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		v.unbind("", o.Name, o.Subjects)
	}
	delete(v.objects, key)
}

// settle recomputes what depends on several objects and wakes the waiters.
func (v *View) settle(kind string, rev uint64) {
	v.seen[kind] = max(v.seen[kind], rev)
	if kind == "ClusterRole" {
		v.aggregate()
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

func byName(b *binding, name string) int { return strings.Compare(b.name, name) }

func (v *View) bind(b *binding) {
	index := v.bindings[b.namespace]
	if index == nil {
		index = map[principal][]*binding{}
		v.bindings[b.namespace] = index
	}
	for _, s := range b.subjects {
		p, ok := subjectPrincipal(s, b.namespace)
		if !ok {
			continue
		}
		if i, found := slices.BinarySearchFunc(index[p], b.name, byName); !found {
			index[p] = slices.Insert(index[p], i, b)
		}
	}
}

func (v *View) unbind(namespace, name string, subjects []rbacv1.Subject) {
	index := v.bindings[namespace]
	for _, s := range subjects {
		p, _ := subjectPrincipal(s, namespace)
		if i, found := slices.BinarySearchFunc(index[p], name, byName); found {
			index[p] = slices.Delete(index[p], i, i+1)
		}
		if len(index[p]) == 0 {
			delete(index, p)
		}
	}
	if len(index) == 0 {
		delete(v.bindings, namespace)
	}
}

// aggregate computes the rules of all ClusterRoles. The caller holds mu.
func (v *View) aggregate() {
	roles := map[string]*rbacv1.ClusterRole{}
	for key, obj := range v.objects {
		if r, ok := obj.(*rbacv1.ClusterRole); ok {
			roles[key.Name] = r
		}
	}
	for key := range v.rules {
		if key.Namespace == "" && roles[key.Name] == nil {
			delete(v.rules, key)
		}
	}
	for name, r := range roles {
		v.rules[types.NamespacedName{Name: name}] = aggregated(r, roles)
	}
}

// aggregated returns what a ClusterRole grants: its own rules or, with an
// aggregationRule, those of all roles it selects, in the order of their names
// and each rule once. Roles may select each other; each is visited once.
func aggregated(r *rbacv1.ClusterRole, all map[string]*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if r.AggregationRule == nil {
		return r.Rules
	}
	visited := map[string]bool{r.Name: true}
	var rules []rbacv1.PolicyRule
	queue := []*rbacv1.ClusterRole{r}
	for len(queue) > 0 {
		r, queue = queue[0], queue[1:]
		if r.AggregationRule == nil {
			for _, rule := range r.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equalRule(have, rule) }) {
					rules = append(rules, rule)
				}
			}
			continue
		}
		for _, name := range selected(r.AggregationRule, all) {
			if !visited[name] {
				visited[name] = true
				queue = append(queue, all[name])
			}
		}
	}
	return rules
}

func selected(a *rbacv1.AggregationRule, all map[string]*rbacv1.ClusterRole) []string {
	var names []string
	for i := range a.ClusterRoleSelectors {
		s, err := metav1.LabelSelectorAsSelector(&a.ClusterRoleSelectors[i])
		if err != nil {
			continue // validation does not accept such a selector
		}
		for name, r := range all {
			if s.Matches(labels.Set(r.Labels)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func equalRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}
