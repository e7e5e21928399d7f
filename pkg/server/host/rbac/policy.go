// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/archive"
)

// The platform's API group and its resources, grouped by how people use them.
const group = "core.platform.ai"

// ownKinds returns the kinds that users write.
func ownKinds() []string {
	return []string{"tasks", "sessions", "agents", "providers", "tools", "skills", "memories", "memoryproposals"}
}

// ownRules returns the kinds that administrators of a namespace write, because they limit everybody else or send a Secret's
// value elsewhere. Everybody who uses them reads them.
func ownRules() []string { return []string{"budgets", "agentruntimes"} }

// ownPools returns the kinds that controllers own. People read them.
func ownPools() []string { return []string{"runtimepools"} }

// ownQuestions returns the kinds that are created to ask something: to find objects of other kinds, or for the verdict of
// policies. Nothing of them is stored.
func ownQuestions() []string {
	return []string{"memorysearches", "memoryproposalsearches", "transcriptsearches", "toolcalls"}
}

// grants are the subresources, from the definitions of the resources, with the roles that may get or create them.
type grants []resource.Grant

// grantsOf returns the subresources ordered by their parent kind, in the order of ownKinds.
func grantsOf(resources []resource.Resource) grants {
	var all grants
	for _, r := range resources {
		if r.GroupVersionResource().Group == group {
			all = append(all, r.Grants()...)
		}
	}
	place := func(g resource.Grant) int {
		kind, _, _ := strings.Cut(g.Resource, "/")
		return slices.Index(ownKinds(), kind)
	}
	slices.SortStableFunc(all, func(a, b resource.Grant) int { return place(a) - place(b) })
	return all
}

func (g grants) read(r resource.Role) (paths []string) {
	for _, one := range g {
		if slices.Contains(one.Readers, r) {
			paths = append(paths, one.Resource)
		}
	}
	return paths
}

func (g grants) create(r resource.Role) (paths []string) {
	for _, one := range g {
		if slices.Contains(one.Creators, r) {
			paths = append(paths, one.Resource)
		}
	}
	return paths
}

// ownReads returns what else people with a role may read: the objects that the server and the workers write.
func (g grants) ownReads(r resource.Role) []string {
	return slices.Concat(ownStatus(), []string{"executionevents", "approvals"}, ownRules(), ownPools(), g.read(r))
}

func ownStatus() []string {
	status := slices.Concat(ownKinds(), ownRules(), ownPools())
	for i := range status {
		status[i] += "/status"
	}
	return status
}

func readVerbs() []string { return []string{"get", "list", "watch"} }

// readViews permits reading what the server computes and nobody can watch: the catalogue of tools, and records of usage.
func readViews() rbacv1.PolicyRule {
	return rule([]string{"get", "list"}, group, "catalogtools", "usagemeasurements")
}

// Kinds that are created to ask for something that no worker asks for: a report, and tasks in some order.
const (
	usageReports = "usagereports"
	taskQueries  = "taskqueries"
)

// readMonitors permits what usage needs beside tasks and sessions.
func readMonitors() rbacv1.PolicyRule {
	return rule([]string{"list"}, group, "repositorymonitors")
}

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
	return []*rbacv1.ClusterRole{
		into("view", own(resource.Viewer,
			rule(readVerbs(), group, append(ownKinds(), g.ownReads(resource.Viewer)...)...),
			readViews(),
			readMonitors(),
			rule([]string{"create"}, group, append(ownQuestions(), usageReports, taskQueries)...))),
		into("edit", own(resource.Editor,
			rule(allVerbs(), group, ownKinds()...),
			rule(readVerbs(), group, g.ownReads(resource.Editor)...),
			readViews(),
			readMonitors(),
			rule([]string{"create"}, group, slices.Concat(ownQuestions(), []string{usageReports, taskQueries, "chats"}, g.create(resource.Editor))...))),
		into("admin", own(resource.Approver,
			rule(readVerbs(), group, append([]string{"tasks", "sessions", "executionevents", "approvals", "memories", "memoryproposals"}, g.read(resource.Approver)...)...),
			rule([]string{"create"}, group, append([]string{"memorysearches", "memoryproposalsearches", taskQueries}, g.create(resource.Approver)...)...))),
		into("admin", own(resource.Operator,
			rule(allVerbs(), group, append(ownKinds(), ownRules()...)...),
			rule(readVerbs(), group, g.ownReads(resource.Operator)...),
			readViews(),
			readMonitors(),
			rule([]string{"create"}, group, slices.Concat(ownQuestions(), []string{usageReports, taskQueries, "chats"}, g.create(resource.Operator))...),
			rule([]string{"update", "patch"}, group, ownStatus()...))),
		// These are the permissions of a worker process. The guards of the resources restrict it to its own task.
		own(resource.Worker,
			rule(readVerbs(), group, "tasks", "sessions", "agents", "providers", "tools", "skills", "executionevents", "approvals", "memories", "memoryproposals"),
			rule([]string{"create"}, group, slices.Concat([]string{"tasks", "memoryproposals", "agents"}, ownQuestions(), g.create(resource.Worker))...),
			rule([]string{"delete"}, group, "agents"),
			rule([]string{"get"}, group, g.read(resource.Worker)...)),
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
		bind("system:public-info-viewer", user.AllAuthenticated, user.AllUnauthenticated),
	}
}
