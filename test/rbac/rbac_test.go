// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac asks a real kube-apiserver and the standalone host the same questions about the same roles and bindings.
package rbac

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const (
	seed              = 1
	worlds            = 50
	questionsAWorld   = 24
	defaultQuestions  = 2000
	explanationsAtAll = 3
)

func TestMain(m *testing.M) { cluster.Main(m) }

// TestSameAnswers compares the two hosts. The subtests share them.
func TestSameAnswers(t *testing.T) {
	hosts := both(t)
	t.Run("generated", func(t *testing.T) { testGenerated(t, hosts) })
	t.Run("default roles", func(t *testing.T) { testDefaultRoles(t, hosts) })
	t.Run("self-check", func(t *testing.T) { testAlteredRole(t, hosts) })
}

// both returns a real control plane, with the platform's roles, and the standalone host.
func both(t *testing.T) [2]*server {
	t.Helper()
	c := cluster.Control(t)
	c.Kubectl(t, "apply", "-f", "../../manifests/base/clusterroles.yaml")
	ours := standalone.Start(t)
	return [2]*server{
		{name: "kube-apiserver", Host: c.Host, client: c.Kubernetes(t)},
		{name: "standalone", Host: ours.Host, client: ours.Kubernetes(t)},
	}
}

func testGenerated(t *testing.T, hosts [2]*server) {
	ctx := t.Context()
	all := make([]world, worlds)
	var namespaces []string
	var objects []object
	for i := range all {
		all[i] = generate(seed, uint64(i), questionsAWorld)
		namespaces = append(namespaces, all[i].namespaces...)
		objects = append(objects, all[i].objects...)
	}
	write(ctx, t, hosts, namespaces, objects)
	differences, count, err := compare(ctx, hosts, all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		for _, a := range all[i].askers {
			compareRules(ctx, t, hosts, a)
		}
	}
	t.Logf("%d objects, %d questions; kube-apiserver's answers: %v", len(objects), worlds*questionsAWorld, count)
	if n := worlds * questionsAWorld / 4; count[answer{Allowed: true}] < n || count[answer{}] < n {
		t.Errorf("the questions are one-sided: %v", count)
	}
	report(ctx, t, hosts, differences)
}

// write writes the same objects to both hosts and deletes them at the end of the test.
func write(ctx context.Context, t *testing.T, hosts [2]*server, namespaces []string, objects []object) {
	t.Helper()
	t.Cleanup(func() {
		for _, h := range hosts {
			if err := h.remove(context.WithoutCancel(ctx), objects); err != nil {
				t.Error(err)
			}
		}
	})
	err := each(ctx, hosts[:], func(ctx context.Context, _ int, h *server) error {
		if err := h.namespaces(ctx, namespaces); err != nil {
			return err
		}
		return h.create(ctx, objects)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kubectlRule is the rule of the role system:kubectl.
const kubectlRule = `["list"] ["apiextensions.k8s.io"] ["customresourcedefinitions"] []`

func compareRules(ctx context.Context, t *testing.T, hosts [2]*server, a asker) {
	t.Helper()
	var rules [2][]string
	for i, h := range hosts {
		var err error
		if rules[i], err = h.rules(ctx, a); err != nil {
			t.Fatal(err)
		}
		// The standalone host alone lets everybody list custom resource definitions, of which it has none.
		rules[i] = slices.DeleteFunc(rules[i], func(r string) bool { return strings.HasPrefix(r, kubectlRule) })
	}
	if diff := cmp.Diff(rules[0], rules[1]); diff != "" {
		t.Errorf("rules of %+v (-%s +%s):\n%s", a, hosts[0].name, hosts[1].name, diff)
	}
}

func report(ctx context.Context, t *testing.T, hosts [2]*server, differences []difference) {
	t.Helper()
	for i, d := range differences {
		if i == explanationsAtAll {
			t.Errorf("%d more answers differ", len(differences)-i)
			break
		}
		text, _, err := explain(ctx, hosts, d)
		if err != nil {
			t.Error(err)
		}
		t.Errorf("the answers differ: %s", text)
	}
}

// testAlteredRole: a role that differs between the hosts is found, and nothing else is reported.
func testAlteredRole(t *testing.T, hosts [2]*server) {
	ctx := t.Context()
	w := generate(seed, worlds, 0)
	w.objects = w.objects[:2]
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "altered", Namespace: w.namespaces[0]},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"list"}, APIGroups: []string{"core.platform.ai"}, Resources: []string{"tasks"}},
			{Verbs: []string{"get"}, APIGroups: []string{"core.platform.ai"}, Resources: []string{"tasks"}, ResourceNames: []string{"one"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "altered", Namespace: w.namespaces[0]},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "altered"},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve"}, {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "devs"},
		},
	}
	w.objects = append(w.objects, role, binding)
	for _, name := range []string{"one", "two"} {
		w.questions = append(w.questions, question{spec: authorizationv1.SubjectAccessReviewSpec{
			User: "someone", Groups: []string{"devs"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.namespaces[0], Verb: "get", Group: "core.platform.ai", Resource: "tasks", Name: name,
			},
		}})
	}
	hosts[1].alter = func(o object) object {
		r, ok := o.(*rbacv1.Role)
		if !ok || r.Name != "altered" {
			return o
		}
		r = r.DeepCopy()
		for i := range r.Rules {
			r.Rules[i].ResourceNames = nil
		}
		return r
	}
	defer func() { hosts[1].alter = nil }()
	write(ctx, t, hosts, w.namespaces, w.objects)
	differences, _, err := compare(ctx, hosts, []world{w})
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) != 1 || differences[0].question.spec.ResourceAttributes.Name != "two" {
		t.Fatalf("got %+v, want a difference on the name that the role of one host does not have", differences)
	}
	text, left, err := explain(ctx, hosts, differences[0])
	if err != nil {
		t.Fatal(err)
	}
	role.Rules, binding.Subjects = role.Rules[1:], binding.Subjects[1:]
	if diff := cmp.Diff([]object{role, binding}, left); diff != "" {
		t.Errorf("blamed (-want +got):\n%s\n%s", diff, text)
	}
}
