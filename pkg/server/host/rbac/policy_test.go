// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// These are the permissions that each default role gives a user of one
// namespace.
func TestDefaultRoles(t *testing.T) {
	roles := []string{"view", "edit", "admin", "platform-viewer", "platform-editor", "platform-approver", "platform-operator", "platform-worker"}
	v := NewView()
	for i, r := range defaultClusterRoles(served()) {
		r.ResourceVersion = strconv.Itoa(i + 1)
		if errs := validateClusterRole(t.Context(), r); len(errs) > 0 {
			t.Errorf("ClusterRole %s: %v", r.Name, errs)
		}
		if err := v.set(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range roles {
		err := v.set(&rbacv1.RoleBinding{ObjectMeta: at("team", name, 1), RoleRef: ref("ClusterRole", name), Subjects: []rbacv1.Subject{sub("User", name, "")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	own := "core.platform.ai"
	tests := []struct {
		request string
		allowed []string
	}{
		{"list " + own + " tasks -", roles},
		{"watch " + own + " executionevents -", roles},
		{"get " + own + " tasks/log x", []string{"view", "edit", "admin", "platform-viewer", "platform-editor", "platform-operator", "platform-worker"}},
		{"create " + own + " tasks -", []string{"edit", "admin", "platform-editor", "platform-operator", "platform-worker"}},
		{"delete " + own + " providers x", []string{"edit", "admin", "platform-editor", "platform-operator"}},
		{"create " + own + " tasks/cancel x", []string{"edit", "admin", "platform-editor", "platform-operator", "platform-worker"}},
		{"update " + own + " tasks/status x", []string{"admin", "platform-operator"}},
		{"create " + own + " tasks/events x", []string{"platform-worker"}},
		{"create " + own + " tasks/result x", []string{"platform-worker"}},
		{"create " + own + " executionevents -", nil},
		{"create " + own + " executionevents/controlled -", nil},
		{"create " + own + " approvals/decision x", []string{"admin", "platform-approver"}},
		{`get "" secrets x`, []string{"edit", "admin"}},
		{`get "" configmaps x`, []string{"view", "edit", "admin"}},
		{`list "" configmaps -`, []string{"view", "edit", "admin"}},
		{`create "" serviceaccounts/token x`, []string{"edit", "admin"}},
		{`impersonate "" serviceaccounts x`, []string{"edit", "admin"}},
		{"list rbac.authorization.k8s.io roles -", []string{"admin"}},
		{"create rbac.authorization.k8s.io rolebindings -", nil},
		{`delete "" namespaces team`, nil},
		{`update "" namespaces/finalize team`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.request, func(t *testing.T) {
			var got []string
			for _, name := range roles {
				if ok, _ := decide(t, v, &user.DefaultInfo{Name: name}, "team", tt.request); ok {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(tt.allowed, got); diff != "" {
				t.Errorf("allowed to (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultBindings(t *testing.T) {
	v := NewView()
	for i, r := range defaultClusterRoles(served()) {
		r.ResourceVersion = strconv.Itoa(i + 1)
		if err := v.set(r); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range defaultClusterRoleBindings() {
		b.ResourceVersion = strconv.Itoa(i + 1)
		if errs := validateClusterRoleBinding(t.Context(), b); len(errs) > 0 {
			t.Errorf("ClusterRoleBinding %s: %v", b.Name, errs)
		}
		if err := v.set(b); err != nil {
			t.Fatal(err)
		}
	}
	url := func(verb, path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: verb, Path: path}
	}
	review := func(group, resource string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: "create", APIGroup: group, Resource: resource, ResourceRequest: true}
	}
	type groups struct{ anonymous, authenticated, monitoring, masters bool }
	tests := []struct {
		a    authorizer.AttributesRecord
		want groups
	}{
		{url("get", "/readyz"), groups{true, true, true, true}},
		{url("get", "/version"), groups{true, true, false, true}},
		{url("get", "/openapi/v3"), groups{false, true, false, true}},
		{url("get", "/apis/core.platform.ai/v1alpha1"), groups{false, true, false, true}},
		{url("get", "/metrics"), groups{false, false, true, true}},
		{url("post", "/readyz"), groups{false, false, false, true}},
		{url("get", "/debug/pprof"), groups{false, false, false, true}},
		{review("authorization.k8s.io", "selfsubjectaccessreviews"), groups{false, true, false, true}},
		{review("authorization.k8s.io", "subjectaccessreviews"), groups{false, false, false, true}},
		{review("authentication.k8s.io", "tokenreviews"), groups{false, false, false, true}},
	}
	for _, tt := range tests {
		ask := func(group string) bool {
			tt.a.User = &user.DefaultInfo{Name: "x", Groups: []string{group}}
			d, _, _ := v.Authorize(t.Context(), tt.a)
			return d == authorizer.DecisionAllow
		}
		got := groups{ask(user.AllUnauthenticated), ask(user.AllAuthenticated), ask(user.MonitoringGroup), ask(user.SystemPrivilegedGroup)}
		if got != tt.want {
			t.Errorf("%s %s%s: got %+v, want %+v", tt.a.Verb, tt.a.Path, tt.a.Resource, got, tt.want)
		}
	}
}

// shelf stores objects of one kind by name.
type shelf[T object] struct {
	objects map[string]T
	writes  int
}

func (s *shelf[T]) client() Client[T] {
	return Client[T]{
		Get: func(_ context.Context, name string) (T, error) {
			if o, ok := s.objects[name]; ok {
				return o, nil
			}
			var none T
			return none, apierrors.NewNotFound(rbacv1.Resource("objects"), name)
		},
		Create: func(_ context.Context, o T) (T, error) {
			s.writes++
			s.objects[o.GetName()] = o
			return o, nil
		},
		Update: func(_ context.Context, o T) (T, error) {
			s.writes++
			s.objects[o.GetName()] = o
			return o, nil
		},
		Delete: func(_ context.Context, name string) error {
			s.writes++
			delete(s.objects, name)
			return nil
		},
	}
}

func TestReconcileKeepsWhatUsersAdded(t *testing.T) {
	roles := &shelf[*rbacv1.ClusterRole]{objects: map[string]*rbacv1.ClusterRole{}}
	bindings := &shelf[*rbacv1.ClusterRoleBinding]{objects: map[string]*rbacv1.ClusterRoleBinding{}}
	run := func() {
		t.Helper()
		if err := reconcileOne(t, roles, bindings); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if want := len(defaultClusterRoles(served())); roles.writes != want {
		t.Errorf("%d roles written, want %d", roles.writes, want)
	}
	roles.writes, bindings.writes = 0, 0
	run()
	if roles.writes != 0 || bindings.writes != 0 {
		t.Errorf("the second run wrote %d roles and %d bindings", roles.writes, bindings.writes)
	}

	extra := rule([]string{"get"}, "example.com", "things")
	viewer := roles.objects["platform-viewer"]
	viewer.Rules = []rbacv1.PolicyRule{extra} // added one, lost the others
	viewer.Labels["mine"] = "yes"
	guest := sub("User", "guest", "")
	bindings.objects["system:discovery"].Subjects = []rbacv1.Subject{guest}
	frozen := roles.objects["platform-editor"]
	frozen.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
	frozen.Rules = nil
	run()

	a := resourceRequest("list core.platform.ai tasks -")
	b := resourceRequest("get example.com things x")
	allowed := func(a authorizer.Attributes) bool {
		for i := range roles.objects["platform-viewer"].Rules {
			if allows(&roles.objects["platform-viewer"].Rules[i], a) {
				return true
			}
		}
		return false
	}
	if !allowed(a) || !allowed(b) || roles.objects["platform-viewer"].Labels["mine"] != "yes" {
		t.Errorf("platform-viewer = %v", roles.objects["platform-viewer"])
	}
	if got := bindings.objects["system:discovery"].Subjects; len(got) != 2 {
		t.Errorf("subjects of system:discovery = %v", got)
	}
	if got := roles.objects["platform-editor"].Rules; len(got) != 0 {
		t.Errorf("a role with autoupdate=false was changed: %v", got)
	}
}

// reconcileOne runs Reconcile on shelves that are not safe for concurrent use.
func reconcileOne(t *testing.T, roles *shelf[*rbacv1.ClusterRole], bindings *shelf[*rbacv1.ClusterRoleBinding]) error {
	t.Helper()
	lock := make(chan struct{}, 1)
	return Reconcile(t.Context(), served(), locked(lock, roles.client()), locked(lock, bindings.client()))
}

func locked[T metav1.Object](lock chan struct{}, c Client[T]) Client[T] {
	do := func(f func() (T, error)) (T, error) {
		lock <- struct{}{}
		defer func() { <-lock }()
		return f()
	}
	return Client[T]{
		Get: func(ctx context.Context, name string) (T, error) {
			return do(func() (T, error) { return c.Get(ctx, name) })
		},
		Create: func(ctx context.Context, o T) (T, error) {
			return do(func() (T, error) { return c.Create(ctx, o) })
		},
		Update: func(ctx context.Context, o T) (T, error) {
			return do(func() (T, error) { return c.Update(ctx, o) })
		},
		Delete: c.Delete,
	}
}
