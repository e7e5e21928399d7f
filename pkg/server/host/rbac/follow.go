// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/cache"
)

// Sources list and watch the four kinds.
type Sources struct {
	Roles, ClusterRoles, RoleBindings, ClusterRoleBindings cache.ListerWatcher
}

// Follow keeps the View current until the context ends. A broken watch is
// resumed where it ended.
func (v *View) Follow(ctx context.Context, s Sources) {
	var wg sync.WaitGroup
	for _, f := range []struct {
		kind   string
		source cache.ListerWatcher
		object object
	}{
		{"Role", s.Roles, &rbacv1.Role{}},
		{"ClusterRole", s.ClusterRoles, &rbacv1.ClusterRole{}},
		{"RoleBinding", s.RoleBindings, &rbacv1.RoleBinding{}},
		{"ClusterRoleBinding", s.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{}},
	} {
		r := cache.NewReflectorWithOptions(f.source, f.object, sink{v, f.kind}, cache.ReflectorOptions{Name: "rbac/" + f.kind})
		wg.Go(func() { r.RunWithContext(ctx) }) // ends with ctx
	}
	wg.Wait()
}

// sink receives the objects of one kind from a reflector.
type sink struct {
	v    *View
	kind string
}

var _ cache.ReflectorStore = sink{}

func (s sink) Add(obj any) error { return with(obj, s.v.set) }

func (s sink) Update(obj any) error { return with(obj, s.v.set) }

func (s sink) Delete(obj any) error { return with(obj, s.v.remove) }

func (s sink) Replace(list []any, resourceVersion string) error {
	rev, err := parseRevision(resourceVersion)
	if err != nil {
		return err
	}
	objects := make([]object, 0, len(list))
	for _, item := range list {
		if err := with(item, func(o object) error { objects = append(objects, o); return nil }); err != nil {
			return err
		}
	}
	return s.v.replace(s.kind, objects, rev)
}

func (sink) Resync() error { return nil }

func with(obj any, f func(object) error) error {
	o, ok := obj.(object)
	if !ok {
		return fmt.Errorf("the watch of roles and bindings sent a %T", obj)
	}
	return f(o)
}

// parseRevision parses a resourceVersion, which in this store is a number that
// grows with every write.
func parseRevision(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resource version %q: %w", s, err)
	}
	return n, nil
}
