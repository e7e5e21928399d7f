// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// at returns metadata with a place and a revision.
func at(namespace, name string, rev int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), ResourceVersion: strconv.Itoa(rev)}
}

func ref(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func sub(kind, name, namespace string) rbacv1.Subject {
	return rbacv1.Subject{Kind: kind, Name: name, Namespace: namespace}
}

func viewOf(t *testing.T, objects ...object) *View {
	t.Helper()
	v := NewView()
	for _, o := range objects {
		if err := v.set(o); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func decide(t *testing.T, v *View, u user.Info, namespace, request string) (bool, string) {
	t.Helper()
	a := resourceRequest(request)
	a.User, a.Namespace = u, namespace
	d, reason, err := v.Authorize(t.Context(), a)
	if err != nil || d == authorizer.DecisionDeny {
		t.Fatalf("decision %v, err %v: RBAC allows or has no opinion", d, err)
	}
	return d == authorizer.DecisionAllow, reason
}

func TestSubjectsAndScopes(t *testing.T) {
	podReader := []rbacv1.PolicyRule{rule([]string{"get"}, "", "pods")}
	v := viewOf(
		t,
		&rbacv1.ClusterRole{ObjectMeta: at("", "reader", 1), Rules: podReader},
		&rbacv1.Role{ObjectMeta: at("team", "reader", 2), Rules: podReader},
		&rbacv1.ClusterRoleBinding{ObjectMeta: at("", "cluster", 3), RoleRef: ref("ClusterRole", "reader"), Subjects: []rbacv1.Subject{
			sub("User", "ann", ""), sub("Group", "ops", ""), sub("ServiceAccount", "bot", "kube-system"), sub("ServiceAccount", "lost", ""),
		}},
		&rbacv1.RoleBinding{ObjectMeta: at("team", "local", 4), RoleRef: ref("Role", "reader"), Subjects: []rbacv1.Subject{
			sub("User", "bob", ""), sub("ServiceAccount", "bot", ""), sub("ServiceAccount", "bot", "other"),
		}},
		&rbacv1.RoleBinding{ObjectMeta: at("team", "shared", 5), RoleRef: ref("ClusterRole", "reader"), Subjects: []rbacv1.Subject{sub("Group", "devs", "")}},
		&rbacv1.RoleBinding{ObjectMeta: at("team", "dangling", 6), RoleRef: ref("Role", "nowhere"), Subjects: []rbacv1.Subject{sub("User", "dan", "")}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: at("", "wrong", 7), RoleRef: ref("Role", "reader"), Subjects: []rbacv1.Subject{sub("User", "eve", "")}},
	)
	name := func(n string, groups ...string) user.Info { return &user.DefaultInfo{Name: n, Groups: groups} }
	tests := []struct {
		user      user.Info
		namespace string
		want      bool
		reason    string
	}{
		{name("ann"), "", true, `RBAC: allowed by ClusterRoleBinding "cluster" of ClusterRole "reader" to User "ann"`},
		{name("ann"), "team", true, `RBAC: allowed by ClusterRoleBinding "cluster" of ClusterRole "reader" to User "ann"`},
		{name("x", "ops"), "any", true, `RBAC: allowed by ClusterRoleBinding "cluster" of ClusterRole "reader" to Group "ops"`},
		{name("ops"), "team", false, ""},
		{name("x", "ann"), "team", false, ""},
		{name("system:serviceaccount:kube-system:bot"), "", true, `RBAC: allowed by ClusterRoleBinding "cluster" of ClusterRole "reader" to ServiceAccount "bot/kube-system"`},
		{name("system:serviceaccount::lost"), "", false, ""},
		{name("bob"), "team", true, `RBAC: allowed by RoleBinding "local/team" of Role "reader" to User "bob"`},
		{name("bob"), "other", false, ""},
		{name("bob"), "", false, ""},
		{name("system:serviceaccount:team:bot"), "team", true, `RBAC: allowed by RoleBinding "local/team" of Role "reader" to ServiceAccount "bot/team"`},
		{name("system:serviceaccount:other:bot"), "team", true, `RBAC: allowed by RoleBinding "local/team" of Role "reader" to ServiceAccount "bot/other"`},
		{name("system:serviceaccount:third:bot"), "team", false, ""},
		{name("x", "devs"), "team", true, `RBAC: allowed by RoleBinding "shared/team" of ClusterRole "reader" to Group "devs"`},
		{name("x", "devs"), "", false, ""},
		{name("dan"), "team", false, `RBAC: role.rbac.authorization.k8s.io "nowhere" not found`},
		{name("eve"), "team", false, `RBAC: ClusterRoleBinding "wrong" refers to a Role, which it cannot`},
		{nil, "team", false, ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.user, tt.namespace), func(t *testing.T) {
			got, reason := decide(t, v, tt.user, tt.namespace, `get "" pods x`)
			if got != tt.want || reason != tt.reason {
				t.Errorf("allowed %v, reason %q; want %v, %q", got, reason, tt.want, tt.reason)
			}
			if other, _ := decide(t, v, tt.user, tt.namespace, `get "" secrets x`); other {
				t.Error("allowed another resource")
			}
		})
	}
}

func TestAggregation(t *testing.T) {
	ann := &user.DefaultInfo{Name: "ann"}
	part := func(name, label string, rev int, resource string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}, ResourceVersion: strconv.Itoa(rev)},
			Rules:      []rbacv1.PolicyRule{rule([]string{"get"}, "", resource)},
		}
	}
	sum := func(name, selects string, labels ...string) *rbacv1.ClusterRole {
		r := &rbacv1.ClusterRole{ObjectMeta: at("", name, 1), AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{selects: "true"}}},
		}, Rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "stale")}}
		r.Labels = map[string]string{}
		for _, l := range labels {
			r.Labels[l] = "true"
		}
		return r
	}
	// big selects small and small selects big: a cycle at which the aggregation
	// must stop.
	v := viewOf(
		t, sum("big", "to-big", "to-small"), sum("small", "to-small", "to-big"), part("a", "to-small", 1, "pods"),
		&rbacv1.ClusterRoleBinding{ObjectMeta: at("", "b", 1), RoleRef: ref("ClusterRole", "big"), Subjects: []rbacv1.Subject{sub("User", "ann", "")}},
	)
	check := func(want map[string]bool) {
		t.Helper()
		got := map[string]bool{}
		for resource := range want {
			got[resource], _ = decide(t, v, ann, "", `get "" `+resource+` -`)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(map[string]bool{"pods": true, "nodes": false, "stale": false})
	if err := v.set(part("b", "to-big", 2, "nodes")); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"pods": true, "nodes": true, "stale": false})
	if err := v.set(part("a", "unrelated", 3, "pods")); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"pods": false, "nodes": true, "stale": false})
	if err := v.remove(part("b", "to-big", 4, "nodes")); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"pods": false, "nodes": false, "stale": false})

	stale, _ := v.stale()
	if len(stale) != 2 || stale[0].Name != "big" || len(stale[0].Rules) != 0 {
		t.Errorf("stale = %v", stale)
	}
}

func TestRulesFor(t *testing.T) {
	v := viewOf(
		t,
		&rbacv1.ClusterRole{ObjectMeta: at("", "r", 1), Rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "pods"), urls("get", "/x")}},
		// The user is named twice; its rules are still listed once.
		&rbacv1.ClusterRoleBinding{ObjectMeta: at("", "b", 1), RoleRef: ref("ClusterRole", "r"), Subjects: []rbacv1.Subject{sub("User", "ann", ""), sub("Group", "g", "")}},
		&rbacv1.RoleBinding{ObjectMeta: at("team", "gone", 1), RoleRef: ref("Role", "gone"), Subjects: []rbacv1.Subject{sub("User", "ann", "")}},
	)
	resources, urls, incomplete, err := v.RulesFor(t.Context(), &user.DefaultInfo{Name: "ann", Groups: []string{"g"}}, "team")
	if err == nil || !strings.Contains(err.Error(), `"gone" not found`) || incomplete {
		t.Errorf("incomplete %v, err %v", incomplete, err)
	}
	if diff := cmp.Diff([]authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
	}}, resources); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{
		Verbs: []string{"get"}, NonResourceURLs: []string{"/x"},
	}}, urls); diff != "" {
		t.Error(diff)
	}
}

// A write is known when its revision has been seen, even if the object has been
// deleted meanwhile.
func TestWaiting(t *testing.T) {
	v := NewView()
	b := &rbacv1.RoleBinding{ObjectMeta: at("team", "b", 7)}
	waited := make(chan error, 1)
	go func() { waited <- v.waitFor(t.Context(), b) }()
	synced := make(chan error, 1)
	go func() { synced <- v.WaitForSync(t.Context()) }()

	for i, kind := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
		select {
		case err := <-synced:
			t.Fatalf("synced after %d kinds: %v", i, err)
		default:
		}
		if err := v.replace(kind, nil, 6); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-synced; err != nil {
		t.Fatal(err)
	}
	gone := *b
	gone.ResourceVersion = "8"
	if err := v.remove(&gone); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	key, err := keyOf(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.set(b); err != nil {
		t.Fatal(err)
	}
	if err := v.waitGone(t.Context(), key, "another UID"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.waitGone(ctx, key, b.UID); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

// After any sequence of changes, the View gives the same answers as a new one
// with the final objects.
func TestIncrementalEqualsFresh(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			pick := func(s ...string) string { return s[r.IntN(len(s))] }
			v, live := NewView(), map[objectKey]object{}
			for rev := range 300 {
				o := randomObject(pick, r.IntN(4), rev+1)
				key, err := keyOf(o)
				if err != nil {
					t.Fatal(err)
				}
				switch r.IntN(10) {
				case 0, 1, 2:
					if live[key] != nil {
						delete(live, key)
						if err := v.remove(o); err != nil {
							t.Fatal(err)
						}
					}
				case 3: // as after a broken watch
					delete(live, key)
					var same []object
					for k, o := range live {
						if k.kind == key.kind {
							same = append(same, o)
						}
					}
					if err := v.replace(key.kind, same, uint64(rev+1)); err != nil {
						t.Fatal(err)
					}
				default:
					live[key] = o
					if err := v.set(o); err != nil {
						t.Fatal(err)
					}
				}
			}
			fresh := NewView()
			for _, o := range live {
				if err := fresh.set(o); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(fresh.bindings, v.bindings, cmp.AllowUnexported(binding{}, principal{}), cmpopts.IgnoreFields(binding{}, "reasons")); diff != "" {
				t.Errorf("bindings (-fresh +incremental):\n%s", diff)
			}
			if diff := cmp.Diff(fresh.rules, v.rules); diff != "" {
				t.Errorf("rules (-fresh +incremental):\n%s", diff)
			}
		})
	}
}

func randomObject(pick func(...string) string, kind, rev int) object {
	name := pick("a", "b", "c")
	rules := []rbacv1.PolicyRule{rule([]string{"get"}, "", pick("pods", "nodes"))}
	subjects := []rbacv1.Subject{
		sub(pick("User", "Group", "ServiceAccount"), pick("x", "y"), pick("", "n1")),
		sub(pick("User", "Group", "ServiceAccount"), pick("x", "y"), pick("", "n1")),
	}
	switch kind {
	case 0:
		return &rbacv1.Role{ObjectMeta: at(pick("n1", "n2"), name, rev), Rules: rules}
	case 1:
		r := &rbacv1.ClusterRole{ObjectMeta: at("", name, rev), Rules: rules}
		r.Labels = map[string]string{"l": pick("1", "2")}
		if pick("y", "n") == "y" {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"l": pick("1", "2")}}}}
		}
		return r
	case 2:
		return &rbacv1.RoleBinding{ObjectMeta: at(pick("n1", "n2"), name, rev), RoleRef: ref("Role", pick("a", "b")), Subjects: subjects}
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: at("", name, rev), RoleRef: ref("ClusterRole", pick("a", "b")), Subjects: subjects}
}

// This measures a request of a ServiceAccount in a host with a thousand objects
// of each kind.
func BenchmarkAuthorize(b *testing.B) {
	v := NewView()
	put := func(o object) {
		if err := v.set(o); err != nil {
			b.Fatal(err)
		}
	}
	put(&rbacv1.ClusterRole{ObjectMeta: at("", "edit", 1), Rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "pods"), rule([]string{"list"}, "core.platform.ai", "tasks")}})
	for i := range 1000 {
		name := strconv.Itoa(i)
		put(&rbacv1.RoleBinding{ObjectMeta: at("team", name, 1), RoleRef: ref("ClusterRole", "edit"), Subjects: []rbacv1.Subject{sub("ServiceAccount", name, "")}})
		put(&rbacv1.ClusterRoleBinding{ObjectMeta: at("", name, 1), RoleRef: ref("ClusterRole", "edit"), Subjects: []rbacv1.Subject{sub("User", name, "")}})
	}
	a := resourceRequest("list core.platform.ai tasks -")
	a.Namespace = "team"
	a.User = &user.DefaultInfo{Name: "system:serviceaccount:team:500", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"}}
	b.ReportAllocs()
	for b.Loop() {
		if d, _, _ := v.Authorize(b.Context(), a); d != authorizer.DecisionAllow {
			b.Fatal(d)
		}
	}
}
