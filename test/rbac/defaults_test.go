// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// defaultRoles are the roles that both hosts have from the start, and those of the platform.
func defaultRoles() []string {
	return []string{
		"view", "edit", "admin", "cluster-admin",
		"platform-viewer", "platform-editor", "platform-approver", "platform-operator", "platform-worker", "platform-backup",
		"system:discovery", "system:public-info-viewer", "system:basic-user", "system:monitoring", "system:auth-delegator",
	}
}

// testDefaultRoles asks what the default roles allow on the resources that the standalone host serves.
func testDefaultRoles(t *testing.T, hosts [2]*server) {
	ctx := t.Context()
	w := world{name: "default-roles", namespaces: []string{"default-roles"}}
	for _, name := range defaultRoles() {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		to := func(place string) []rbacv1.Subject {
			if name == v1alpha1.ClusterRoleWorker { // it may have no other subjects
				return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: place, Name: v1alpha1.ServiceAccountAIWorker}}
			}
			return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: place + ":" + name}}
		}
		w.objects = append(w.objects,
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "everywhere:" + name}, RoleRef: ref, Subjects: to("everywhere")},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "here:" + name, Namespace: "default-roles"}, RoleRef: ref, Subjects: to("here")})
	}
	_, served, err := hosts[1].client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	// Discovery answers in no fixed order, but the questions must be the same in every run.
	for _, list := range served {
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(served, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	g := &generator{Rand: rand.New(rand.NewPCG(seed, worlds+1))}
	for len(w.questions) < defaultQuestions {
		spec := authorizationv1.SubjectAccessReviewSpec{User: holder(pick(g, []string{"everywhere", "here"}), pick(g, defaultRoles()))}
		if g.often(10) {
			spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: pick(g, []string{"get", "post"}), Path: pick(g, paths())}
		} else {
			list := pick(g, served)
			for list.GroupVersion != v1alpha1.SchemeGroupVersion.String() && g.often(30) {
				list = pick(g, served)
			}
			spec.ResourceAttributes = servedAttributes(g, list)
		}
		if q := (question{spec: spec}); !byDesign(q) {
			w.questions = append(w.questions, q)
		}
	}
	write(ctx, t, hosts, w.namespaces, w.objects)
	differences, count, err := compare(ctx, hosts, []world{w})
	if err != nil {
		t.Fatal(err)
	}
	if count[answer{Allowed: true}] < defaultQuestions/10 {
		t.Errorf("the questions are one-sided: %v", count)
	}
	t.Logf("%d questions; kube-apiserver's answers: %v", len(w.questions), count)
	report(ctx, t, hosts, differences)
}

// holder is the subject that has the role, everywhere or in this namespace.
func holder(place, role string) string {
	if role == v1alpha1.ClusterRoleWorker {
		return serviceaccount.MakeUsername(place, v1alpha1.ServiceAccountAIWorker)
	}
	return place + ":" + role
}

func servedAttributes(g *generator, of *metav1.APIResourceList) *authorizationv1.ResourceAttributes {
	group, _, found := strings.Cut(of.GroupVersion, "/")
	if !found {
		group = ""
	}
	r := pick(g, of.APIResources)
	verbs := []string{"get", "list", "watch"}
	if g.often(35) { // few of these are allowed
		verbs = []string{"create", "update", "patch", "delete", "deletecollection", "impersonate"}
	}
	a := &authorizationv1.ResourceAttributes{
		Group: group, Namespace: pick(g, []string{"default-roles", "default-roles", "default-roles", "default", ""}), Name: pick(g, []string{"", "x"}),
		Verb: pick(g, verbs),
	}
	a.Resource, a.Subresource, _ = strings.Cut(r.Name, "/")
	return a
}

// byDesign reports whether the hosts differ on purpose: in the standalone host an administrator of a namespace may not
// write roles, because that requires the group system:masters.
func byDesign(q question) bool {
	a := q.spec.ResourceAttributes
	return a != nil && strings.HasSuffix(q.spec.User, ":admin") && a.Group == rbacv1.GroupName &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, a.Verb)
}
