// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// object is a Role, ClusterRole, RoleBinding or ClusterRoleBinding.
type object = metav1.Object

// world is a set of objects and questions about them. The names of a world are unique to it, except for those that have a
// meaning in Kubernetes.
type world struct {
	name       string
	namespaces []string
	objects    []object
	questions  []question
	// askers are asked for their rules, by impersonation.
	askers []asker
}

// question is a SubjectAccessReview, or a LocalSubjectAccessReview of its namespace.
type question struct {
	spec  authorizationv1.SubjectAccessReviewSpec
	local bool
}

// asker is somebody in a namespace.
type asker struct {
	user      string
	groups    []string
	namespace string
}

// generator makes worlds. Its source makes every choice.
type generator struct {
	*rand.Rand
	w             world
	roles         []rbacv1.RoleRef
	bindings      []binding
	users, groups []string
}

// binding returns a binding: a role, its subjects and its namespace.
type binding struct {
	namespace string
	subjects  []rbacv1.Subject
	rules     []rbacv1.PolicyRule
}

// generate makes the n-th world of a seed, with that many questions.
func generate(seed, n uint64, questions int) world {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, n))}
	w := fmt.Sprintf("w%d", n)
	g.w = world{name: w, namespaces: []string{w + "-a", w + "-b"}}
	g.users = []string{w + "-ann", w + " Bob/ünï:*", w + "-ANN", "*", serviceaccount.MakeUsername(w+"-a", "builder")}
	g.groups = []string{
		w + "-devs", w + "-Devs", w + "-ann", w + ":ops/on call",
		serviceaccount.MakeNamespaceGroupName(w + "-a"), serviceaccount.AllServiceAccountsGroup,
	}
	for i := range 2 + g.IntN(3) {
		g.role(fmt.Sprintf("%s-role-%d", w, i))
	}
	for i := range 2 + g.IntN(3) {
		g.clusterRole(fmt.Sprintf("%s:cluster.Role-%d", w, i))
	}
	switch g.IntN(4) {
	case 0:
		g.aggregated(w+"-sum", true)
	case 1:
		g.aggregated(w+"-sum-0", false)
	case 2: // one may collect the other, and both each other
		g.aggregated(w+"-sum-0", false)
		g.aggregated(w+"-sum-1", false)
	}
	for i := range 3 + g.IntN(4) {
		g.roleBinding(fmt.Sprintf("%s-binding-%d", w, i))
	}
	for i := range 1 + g.IntN(2) {
		g.clusterRoleBinding(fmt.Sprintf("%s:Binding %d", w, i))
	}
	for range questions {
		g.w.questions = append(g.w.questions, g.question())
	}
	for range 2 {
		b := pick(g, g.bindings)
		user, groups := g.who(b.subjects, b.namespace)
		g.w.askers = append(g.w.askers, asker{user, groups, pick(g, g.w.namespaces)})
	}
	return g.w
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// some picks one to most of a set, repetitions included.
func some[T any](g *generator, most int, from []T) []T {
	out := make([]T, 0, most)
	for range 1 + g.IntN(most) {
		out = append(out, pick(g, from))
	}
	return out
}

// often is true in p of 100 cases.
func (g *generator) often(p int) bool { return g.IntN(100) < p }

func verbs() []string {
	return []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "impersonate", "*", "Get", "use-it", "",
	}
}

func apiGroups() []string {
	return []string{"", "core.platform.ai", "*", "apps", "rbac.authorization.k8s.io", "Core.Platform.AI", "platform.ai"}
}

func resources() []string {
	return []string{
		"tasks", "tasks", "tasks/events", "tasks/status", "*/status", "*/events", "*", "tasks/*", "*/*", "sessions", "secrets", "pods/log",
		"approvals/decision", "Tasks", "tasks/", "/status", "tasks/events/x", "executionevents", "executionevents/controlled",
	}
}

func resourceNames() []string { return []string{"one", "two", "*", "ONE", "o", "one/two", ""} }

func nonResourceURLs() []string {
	return []string{"/x*", "/x", "/x/*", "/x/y", "*", "/", "/*", "/x**", "x", "/x*y", "/X", "/backup", "", "/healthz*"}
}

func paths() []string {
	return []string{
		"/x", "/xy", "/x/", "/x/y", "/x/y/z", "/", "", "/X", "x", "/x*", "/x*y", "/x/*", "/xzy", "/backup", "/backup/", "*",
		"/healthz", "/healthz/ping", "/metrics", "/version", "/version/", "/apis", "/apis/core.platform.ai", "/openapi/v3", "/livez/etcd",
	}
}

// rule returns a rule that Kubernetes accepts, though it may be meaningless.
func (g *generator) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: some(g, 3, verbs()), APIGroups: some(g, 2, apiGroups()), Resources: some(g, 3, resources())}
	if g.often(35) {
		r.ResourceNames = some(g, 2, resourceNames())
	}
	return r
}

func (g *generator) urls() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: some(g, 2, verbs()), NonResourceURLs: some(g, 2, nonResourceURLs())}
}

func (g *generator) role(name string) {
	r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: pick(g, g.w.namespaces)}}
	for range g.IntN(4) {
		r.Rules = append(r.Rules, g.rule())
	}
	g.keep(r, "Role")
}

func (g *generator) clusterRole(name string) {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"world": g.w.name}}}
	for _, label := range []string{"red", "green"} {
		if g.often(50) {
			r.Labels[label] = pick(g, []string{"yes", "no", ""})
		}
	}
	for range g.IntN(4) {
		if g.often(40) {
			r.Rules = append(r.Rules, g.urls())
		} else {
			r.Rules = append(r.Rules, g.rule())
		}
	}
	g.keep(r, "ClusterRole")
}

// aggregated returns a ClusterRole with the rules of others of its world. It may match its own selector.
//
// Rules that it is written with are replaced, in Kubernetes only if there is something to replace them with; and of two
// such roles that collect each other each may get what the other was written with, or not. So such rules are written
// into a role that is the only one and collects at least one rule.
func (g *generator) aggregated(name string, written bool) {
	r := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: name, Labels: map[string]string{"world": g.w.name, "red": pick(g, []string{"yes", "no"})}},
		AggregationRule: &rbacv1.AggregationRule{},
	}
	if written {
		g.w.objects = append(g.w.objects, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-part", Labels: map[string]string{"world": g.w.name, "part": "yes"}},
			Rules:      []rbacv1.PolicyRule{g.rule()},
		})
		r.Rules = append(r.Rules, g.rule())
		r.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"world": g.w.name, "part": "yes"}}}
	}
	for range 1 + g.IntN(2) {
		s := metav1.LabelSelector{MatchLabels: map[string]string{"world": g.w.name}}
		switch g.IntN(4) {
		case 0:
			s.MatchLabels["red"] = pick(g, []string{"yes", "no", "never"})
		case 1:
			s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "green", Operator: metav1.LabelSelectorOpExists}}
		case 2:
			s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "red", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"no"}}}
		}
		r.AggregationRule.ClusterRoleSelectors = append(r.AggregationRule.ClusterRoleSelectors, s)
	}
	g.keep(r, "ClusterRole")
}

func (g *generator) keep(o object, kind string) {
	g.w.objects = append(g.w.objects, o)
	g.roles = append(g.roles, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: o.GetName()})
}

func (g *generator) roleBinding(name string) {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: pick(g, g.w.namespaces)}, RoleRef: g.roleRef("Role", "ClusterRole")}
	for range g.IntN(4) {
		b.Subjects = append(b.Subjects, g.subject(true))
	}
	g.w.objects = append(g.w.objects, b)
	g.bindings = append(g.bindings, binding{b.Namespace, b.Subjects, g.rulesOf(b.RoleRef, b.Namespace)})
}

func (g *generator) clusterRoleBinding(name string) {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: g.roleRef("ClusterRole")}
	for range g.IntN(3) {
		b.Subjects = append(b.Subjects, g.subject(false))
	}
	g.w.objects = append(g.w.objects, b)
	g.bindings = append(g.bindings, binding{"", b.Subjects, g.rulesOf(b.RoleRef, "")})
}

// rulesOf are the rules of a role; and of any ClusterRole, for one that collects others.
func (g *generator) rulesOf(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	var rules, all []rbacv1.PolicyRule
	for _, o := range g.w.objects {
		switch o := o.(type) {
		case *rbacv1.Role:
			if ref.Kind == "Role" && o.Name == ref.Name && o.Namespace == namespace {
				rules = o.Rules
			}
		case *rbacv1.ClusterRole:
			all = append(all, o.Rules...)
			if ref.Kind == "ClusterRole" && o.Name == ref.Name && o.AggregationRule == nil {
				rules = o.Rules
			}
		}
	}
	if rules == nil {
		return all
	}
	return rules
}

// roleRef returns mostly a role of this world, and sometimes a name that no role of the kind has.
func (g *generator) roleRef(kinds ...string) rbacv1.RoleRef {
	for g.often(85) {
		if ref := pick(g, g.roles); slices.Contains(kinds, ref.Kind) {
			return ref
		}
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: pick(g, kinds), Name: pick(g, []string{g.w.name + "-none", g.w.name + "-role-0", "view2"})}
}

func (g *generator) subject(namespaced bool) rbacv1.Subject {
	s := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: pick(g, g.users)}
	switch g.IntN(3) {
	case 0:
		s.Kind, s.Name = rbacv1.GroupKind, pick(g, g.groups)
	case 1:
		s = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: pick(g, []string{"builder", "deploy.er"}), Namespace: pick(g, append(g.w.namespaces, "nowhere"))}
		if namespaced && g.often(25) {
			s.Namespace = "" // the binding's namespace applies
		}
	}
	return s
}

// who returns a user, mostly one of the subjects of a binding in that namespace.
func (g *generator) who(subjects []rbacv1.Subject, namespace string) (name string, groups []string) {
	name = pick(g, g.users)
	if g.often(40) {
		groups = some(g, 3, g.groups)
	}
	if len(subjects) == 0 || g.often(10) {
		return name, groups
	}
	switch s := pick(g, subjects); s.Kind {
	case rbacv1.UserKind:
		name = s.Name
	case rbacv1.GroupKind:
		groups = append(groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		if namespace == "" || g.often(10) {
			namespace = pick(g, g.w.namespaces)
		}
		name = serviceaccount.MakeUsername(namespace, s.Name)
		groups = append(groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	return name, groups
}

func (g *generator) question() question {
	var q question
	b := pick(g, g.bindings)
	for (len(b.subjects) == 0 || len(b.rules) == 0) && g.often(80) {
		b = pick(g, g.bindings)
	}
	q.spec.User, q.spec.Groups = g.who(b.subjects, b.namespace)
	switch g.IntN(20) {
	case 0:
		q.spec.Groups = append(q.spec.Groups, "system:masters")
	case 1, 2:
		q.spec.Groups = append(q.spec.Groups, "system:authenticated")
	case 3:
		q.spec.User = ""
	}
	if g.often(15) {
		q.spec.UID = "uid"
		q.spec.Extra = map[string]authorizationv1.ExtraValue{"example.com/scope": {"a", "b"}, "authentication.kubernetes.io/pod-name": {"p"}}
	}
	r := rbacv1.PolicyRule{Verbs: verbs(), APIGroups: apiGroups(), Resources: resources()}
	if len(b.rules) > 0 && g.often(95) {
		r = pick(g, b.rules)
	}
	if len(r.NonResourceURLs) > 0 {
		q.spec.NonResourceAttributes = g.path(r)
		return q
	}
	q.spec.ResourceAttributes = g.attributes(r, b.namespace)
	q.local = slices.Contains(g.w.namespaces, q.spec.ResourceAttributes.Namespace) && g.often(15)
	return q
}

// near returns mostly a value that a rule names, unless that is a star.
func (g *generator) near(of, all []string) string {
	if s := pick(g, of); s != "*" && g.often(92) {
		return s
	}
	return pick(g, all)
}

func (g *generator) attributes(r rbacv1.PolicyRule, namespace string) *authorizationv1.ResourceAttributes {
	if namespace == "" || g.often(20) {
		namespace = pick(g, append(slices.Clone(g.w.namespaces), "", "nowhere"))
	}
	a := &authorizationv1.ResourceAttributes{
		Namespace: namespace,
		Verb:      g.near(r.Verbs, verbs()),
		Group:     g.near(r.APIGroups, apiGroups()),
		Version:   pick(g, []string{"", "v1alpha1", "v1", "*"}),
	}
	a.Resource, a.Subresource, _ = strings.Cut(g.near(r.Resources, resources()), "/")
	if a.Resource == "*" && g.often(80) {
		a.Resource = pick(g, []string{"tasks", "sessions", "pods"})
	}
	if g.often(10) {
		a.Subresource = pick(g, []string{"", "status", "events", "*"})
	}
	switch {
	case len(r.ResourceNames) > 0 && g.often(80):
		a.Name = pick(g, r.ResourceNames)
	case g.often(60):
		a.Name = pick(g, resourceNames())
	}
	if g.often(5) {
		a.FieldSelector = &authorizationv1.FieldSelectorAttributes{
			Requirements: []metav1.FieldSelectorRequirement{{Key: "metadata.name", Operator: metav1.FieldSelectorOpIn, Values: []string{"one"}}},
		}
	}
	return a
}

func (g *generator) path(r rbacv1.PolicyRule) *authorizationv1.NonResourceAttributes {
	n := &authorizationv1.NonResourceAttributes{Verb: g.near(r.Verbs, verbs()), Path: pick(g, paths())}
	if url := pick(g, r.NonResourceURLs); g.often(60) {
		n.Path = strings.TrimSuffix(url, "*")
		if strings.HasSuffix(url, "*") && g.often(60) {
			n.Path += pick(g, []string{"y", "/y", "*"})
		}
	}
	return n
}
