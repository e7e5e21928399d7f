// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// write writes objects into a file that kubectl reads.
func write(t *testing.T, objects []unstructured.Unstructured) string {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		text.WriteString("---\n")
		text.Write(must(yaml.Marshal(o.Object))(t))
	}
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ofKind are the objects of some kinds.
func ofKind(objects []unstructured.Unstructured, kinds ...string) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
}

// TestAccepted applies everything to the real kube-apiserver: the namespaces first, because a dry run makes none.
func TestAccepted(t *testing.T) {
	c := cluster.Control(t)
	c.Kubectl(t, "apply", "--server-side", "-f", "testdata/crds.yaml")
	c.Kubectl(t, "wait", "--for=condition=Established", "-f", "testdata/crds.yaml")
	// Discovery lags behind; kubectl queries it again for kinds that it does not know.
	for _, crd := range decode(t, must(os.ReadFile("testdata/crds.yaml"))(t)) {
		c.MustShell(t, "until kubectl get --all-namespaces "+crd.GetName()+"; do :; done")
	}
	for _, overlay := range overlays() {
		t.Run(overlay, func(t *testing.T) {
			dir := kustomization(t, overlay, everything(), "")
			objects := render(t, dir)
			c.Kubectl(t, "apply", "-f", write(t, ofKind(objects, "Namespace")))
			out := c.Kubectl(t, "apply", "--dry-run=server", "-k", dir)
			if strings.Contains(out, "Warning") || strings.Count(out, "(server dry run)") != len(objects) {
				t.Errorf("of %d objects:\n%s", len(objects), out)
			}
		})
	}
	c.Kubectl(t, "apply", "--dry-run=server", "-f", folder+"/restore.yaml")
	t.Run("example", func(t *testing.T) {
		const file = "../../artifacts/examples/cluster/team.yaml"
		objects := decode(t, must(os.ReadFile(file))(t))
		c.Kubectl(t, "apply", "-f", write(t, ofKind(objects, "Namespace")))
		c.Kubectl(t, "apply", "--dry-run=server", "-f", file)
	})
}

// TestPods lets the cluster make the Pods in the namespace as installed, where Pod Security restricted is enforced. It
// leaves out the APIService, because a group that nobody serves would disturb other tests of this control plane.
func TestPods(t *testing.T) {
	c := cluster.Control(t)
	objects := slices.DeleteFunc(render(t, kustomization(t, "multi-namespace", []string{"audit", "ingress", "metrics"}, "")),
		func(o unstructured.Unstructured) bool { return o.GetKind() == "APIService" })
	file := write(t, objects)
	c.Kubectl(t, "apply", "-f", file)
	enforced := c.Kubectl(t, "get", "namespace", system, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`)
	if enforced != "restricted" {
		t.Fatalf("Pod Security of %s is %q", system, enforced)
	}
	for _, name := range []string{"platform-apiserver", "platform-controller", "platform-router"} {
		c.Kubectl(t, "--namespace", system, "wait", "--for=create", "--timeout=5m", "pod", "--selector", "app.kubernetes.io/name="+name)
	}
	for _, budget := range []string{"platform-apiserver", "platform-controller", "platform-router"} {
		c.Kubectl(t, "--namespace", system, "wait", "--for=jsonpath={.status.expectedPods}", "--timeout=5m", "poddisruptionbudget", budget)
	}
	// Applied again, they change nothing, and whoever goes on with server-side apply has no conflict, which would fail. Of a
	// PodDisruptionBudget kubectl sends the selector each time, changed or not, and says so.
	for line := range strings.Lines(c.Kubectl(t, "apply", "-f", file)) {
		if strings.Contains(line, "configured") && !strings.HasPrefix(line, "poddisruptionbudget.policy/") {
			t.Errorf("the second time: %s", line)
		}
	}
	c.Kubectl(t, "apply", "--server-side", "-f", file)
	c.Kubectl(t, "delete", "-f", file, "--timeout=5m")
}

// TestOneInstallation applies a second installation, of another version and in a namespace of its own. It gets neither the APIService nor
// the rights of the first one, and changes none of its roles. A server may still take over its own APIService.
func TestOneInstallation(t *testing.T) {
	c := cluster.Control(t)
	shared := []string{"Namespace", "PriorityClass", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "APIService"}
	dir := kustomization(t, "multi-namespace", nil, "namespace: elsewhere\npatches:\n- target: {kind: ClusterRole}\n  patch: '[{\"op\": \"replace\", \"path\": \"/rules\", \"value\": []}]'\n"+
		"- target: {kind: PriorityClass}\n  patch: '[{\"op\": \"replace\", \"path\": \"/description\", \"value\": \"another\"}]'\n")
	first := write(t, ofKind(render(t, filepath.Join(dir, "..", "overlays", "multi-namespace")), shared...))
	c.Kubectl(t, "apply", "-f", first)
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "--wait=false", "-f", first)
		c.Kubectl(t, "delete", "--wait=false", "namespace", "elsewhere")
	})
	second := write(t, ofKind(render(t, dir), "ClusterRoleBinding", "APIService"))
	const refusal = "the platform is installed in namespace platform-system, and a cluster has one installation"
	c.MustShell(t, "until kubectl apply --dry-run=server -f "+second+" 2>&1 | grep '"+refusal+"'; do :; done") // until the policy is in force
	const roles = "kubectl get priorityclasses,clusterroles --selector app.kubernetes.io/part-of=platform -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}'"
	before := c.MustShell(t, roles)
	out := c.Shell(t, "kubectl apply -k "+dir)
	if refused := 8 + 1 + strings.Count(before, "\n"); out.Code == 0 || strings.Count(out.Output, refusal) != refused {
		t.Errorf("%d refusals are wanted, of 8 bindings, the APIService, the class of priority and the roles:\n%s", refused, out.Output)
	}
	if after := c.MustShell(t, roles); after != before {
		t.Errorf("the second installation changed\n%s\nto\n%s", before, after)
	}
	left := c.MustShell(t, "kubectl get clusterrolebindings --selector app.kubernetes.io/part-of=platform -o jsonpath='{.items[*].subjects[*].namespace} ';"+
		" kubectl get apiservice v1alpha1.core.platform.ai -o jsonpath={.spec.service.namespace}")
	if got := strings.Fields(left); len(got) != 8 || slices.ContainsFunc(got, func(n string) bool { return n != system }) {
		t.Errorf("they belong to %v", got)
	}
	c.Kubectl(t, "apply", "-f", first)
	c.Kubectl(t, "patch", "apiservice", "v1alpha1.core.platform.ai", "--type=merge", `--patch={"spec":{"service":{"namespace":"elsewhere"}}}`,
		"--as=system:serviceaccount:elsewhere:platform-apiserver", "--as-group=system:masters")
}

// TestRoles checks every rule: no wildcards, only resources that are served, and only verbs that they support.
func TestRoles(t *testing.T) {
	c := cluster.Control(t)
	known := served(t, must(discovery.NewDiscoveryClientForConfig(c.Config()))(t))
	for resource, verbs := range served(t, must(discovery.NewDiscoveryClientForConfig(standalone.Start(t).Admin))(t)) {
		if strings.HasPrefix(resource, "core.platform.ai/") {
			known[resource] = verbs
		}
	}
	// Names that RBAC decides on but that are no resources that can be called.
	known["core.platform.ai/executionevents/controlled"] = sets.New("create")
	known["rbac.authorization.k8s.io/clusterroles"].Insert("bind")
	urls := []string{"/backup", "/metrics"}

	for _, r := range ofKind(render(t, kustomization(t, "multi-namespace", everything(), "")), "Role", "ClusterRole") {
		rules, _, err := unstructured.NestedSlice(r.Object, "rules")
		if err != nil || len(rules) == 0 {
			t.Errorf("%s %s has no rules: %v", r.GetKind(), r.GetName(), err)
		}
		for _, rule := range rules {
			for _, problem := range unknown(rule.(map[string]any), known, urls) {
				t.Errorf("%s %s: %s", r.GetKind(), r.GetName(), problem)
			}
		}
	}
}

// unknown returns what a rule names but nothing serves.
func unknown(rule map[string]any, known map[string]sets.Set[string], urls []string) []string {
	var wrong []string
	texts := func(field string) []string {
		list, _, err := unstructured.NestedStringSlice(rule, field)
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		return list
	}
	for _, url := range texts("nonResourceURLs") {
		if !slices.Contains(urls, url) {
			wrong = append(wrong, "path "+url)
		}
	}
	for _, group := range texts("apiGroups") {
		for _, resource := range texts("resources") {
			verbs, ok := known[group+"/"+resource]
			if !ok {
				wrong = append(wrong, "resource "+group+"/"+resource+" is not served")
				continue
			}
			for _, verb := range texts("verbs") {
				// Roles of users have the three reading verbs of subresources in one rule, as Kubernetes' own role view does.
				reading := strings.Contains(resource, "/") && verbs.Has("get") && (verb == "list" || verb == "watch")
				if !verbs.Has(verb) && !reading {
					wrong = append(wrong, "resource "+group+"/"+resource+" has no verb "+verb)
				}
			}
		}
	}
	return wrong
}

// served are the resources of a server, as GROUP/RESOURCE, with their verbs.
func served(t *testing.T, d discovery.DiscoveryInterface) map[string]sets.Set[string] {
	t.Helper()
	all := map[string]sets.Set[string]{}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		group, _, found := strings.Cut(l.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, r := range l.APIResources {
			all[group+"/"+r.Name] = sets.New(r.Verbs...)
		}
	}
	return all
}
