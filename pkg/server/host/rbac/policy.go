// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/webhook"
	"github.com/platform-ai/platform/pkg/storage/archive"
)

// group is the platform's API group.
const group = "core.platform.ai"

func readVerbs() []string { return []string{"get", "list", "watch"} }

// readViews permits reading what the server computes and nobody can watch: the catalogue of tools, and records of usage.
func readViews(r rights) rbacv1.PolicyRule { return rule([]string{"get", "list"}, group, r.views...) }

// create permits creating objects, some of which may be deleted, asking questions, of which nothing is stored, and subresources.
func create(r rights) rbacv1.PolicyRule { return rule([]string{"create"}, group, r.creates...) }

func writeVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

func allVerbs() []string { return append(readVerbs(), writeVerbs()...) }

func rule(verbs []string, apiGroup string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{apiGroup}, Resources: resources}
}

func urls(verb string, nonResourceURLs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: nonResourceURLs}
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		},
		Rules: rules,
	}
}

// into labels a role so that the named role includes it.
func into(name string, r *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	r.Labels["rbac.authorization.k8s.io/aggregate-to-"+name] = "true"
	return r
}

// collecting returns a role that aggregates all roles labelled for it.
func collecting(name string) *rbacv1.ClusterRole {
	r := role(name)
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + name: "true"}},
	}}
	return r
}

func bind(role string, groups ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:        role,
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, g := range groups {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g})
	}
	return b
}

// defaultClusterRoles returns the roles that exist from the start. They are the Kubernetes roles that make sense
// here, with Kubernetes' rules for the resources that this server has, and the roles of the platform, which view,
// edit and admin include. The rules of the latter about subresources come from the definitions of the resources.
func defaultClusterRoles(resources []resource.Resource) []*rbacv1.ClusterRole {
	return slices.Concat(systemRoles(), userRoles(), grantsOf(resources).platformRoles())
}

func systemRoles() []*rbacv1.ClusterRole {
	health := []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
	return []*rbacv1.ClusterRole{
		role("cluster-admin", rule([]string{"*"}, "*", "*"), urls("*", "*")),
		role("system:discovery", urls("get", append(slices.Clone(health), "/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")...)),
		role("system:public-info-viewer", urls("get", health...)),
		role("system:monitoring", urls("get", "/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*")),
		role("system:basic-user",
			rule([]string{"create"}, "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule([]string{"create"}, "authentication.k8s.io", "selfsubjectreviews")),
		// Not a role of Kubernetes: kubectl asks whether a kind that cannot be patched is a custom resource.
		role("system:kubectl", rule([]string{"list"}, "apiextensions.k8s.io", "customresourcedefinitions")),
		role("system:auth-delegator",
			rule([]string{"create"}, "authentication.k8s.io", "tokenreviews"),
			rule([]string{"create"}, "authorization.k8s.io", "subjectaccessreviews")),
	}
}

func userRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		collecting("admin"),
		into("admin", collecting("edit")),
		into("edit", collecting("view")),
		into("view", role("system:aggregate-to-view",
			rule(readVerbs(), "", "configmaps", "serviceaccounts", "events", "namespaces", "namespaces/status"))),
		into("edit", role("system:aggregate-to-edit",
			rule(readVerbs(), "", "secrets"),
			rule([]string{"impersonate"}, "", "serviceaccounts"),
			rule(writeVerbs(), "", "configmaps", "events", "secrets", "serviceaccounts"),
			rule([]string{"create"}, "", "serviceaccounts/token"),
			rule(allVerbs(), "coordination.k8s.io", "leases"))),
		// A role cannot permit writing roles on this server, so admin may only read them.
		into("admin", role("system:aggregate-to-admin",
			rule([]string{"create"}, "authorization.k8s.io", "localsubjectaccessreviews"),
			rule(readVerbs(), "rbac.authorization.k8s.io", "roles", "rolebindings"))),
	}
}

func (g grants) platformRoles() []*rbacv1.ClusterRole {
	own := func(name resource.Role, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		// A server without the platform's resources grants none of them, and a rule without resources would be
		// invalid.
		return role(string(name), slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })...)
	}
	viewer, editor, approver, operator, person, worker := g.of(resource.Viewer), g.of(resource.Editor), g.of(resource.Approver), g.of(resource.Operator), g.of(resource.Person), g.of(resource.Worker)
	return []*rbacv1.ClusterRole{
		into("view", own(resource.Viewer,
			rule(readVerbs(), group, slices.Concat(editor.writes, viewer.others)...),
			readViews(viewer), create(viewer))),
		into("edit", own(resource.Editor,
			rule(allVerbs(), group, editor.writes...),
			rule(readVerbs(), group, editor.others...),
			readViews(editor), create(editor))),
		into("admin", own(resource.Approver,
			rule(readVerbs(), group, slices.Concat(approver.reads, approver.gets)...),
			readViews(approver), create(approver))),
		into("admin", own(resource.Operator,
			rule(allVerbs(), group, operator.writes...),
			rule(readVerbs(), group, operator.others...),
			readViews(operator), create(operator),
			rule([]string{"update", "patch"}, group, operator.status...))),
		// Whose a connection is, the guard of the resource decides.
		own(resource.Person,
			rule(allVerbs(), group, person.writes...),
			rule(readVerbs(), group, person.others...),
			create(person)),
		// These are the permissions of a worker process. The guards of the resources restrict it to its own task.
		own(resource.Worker,
			rule(readVerbs(), group, worker.reads...), readViews(worker), create(worker),
			rule([]string{"delete"}, group, worker.makes...),
			rule([]string{"get"}, group, worker.gets...)),
		// The webhook for code hosts makes tasks of the Agents that the operator names.
		own("platform-code-host", rule([]string{"get", "create"}, group, "tasks"), rule([]string{"get"}, group, "agents")),
		// This role may read everything that is stored, including prompts and results. No other role may.
		role("platform-backup", urls("get", archive.Path)),
	}
}

// defaultClusterRoleBindings let all users use discovery and ask about their own identity and permissions, and let
// administrators do everything.
func defaultClusterRoleBindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		bind("cluster-admin", user.SystemPrivilegedGroup),
		bind("system:monitoring", user.MonitoringGroup),
		bind("system:discovery", user.AllAuthenticated),
		bind("system:basic-user", user.AllAuthenticated),
		bind("system:kubectl", user.AllAuthenticated),
		bind("platform-code-host", webhook.Group),
		bind(string(resource.Person), external.GroupContextToken, external.GroupOIDC),
		bind("system:public-info-viewer", user.AllAuthenticated, user.AllUnauthenticated),
	}
}
