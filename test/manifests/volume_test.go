// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/test/kit/cluster"
)

// TestUpgradeKeepsTheVolume begins with the StatefulSet of earlier manifests, whose claim came from a template, and
// upgrades as README.md describes. The claim stays, and every replica uses it.
func TestUpgradeKeepsTheVolume(t *testing.T) {
	c := cluster.Control(t)
	const workload = "--namespace=" + system
	objects := ofKind(render(t, kustomization(t, "multi-namespace", nil, "")), "Namespace", "ServiceAccount", "PriorityClass", "PersistentVolumeClaim", "StatefulSet")
	earlier := ofKind(objects, "Namespace", "ServiceAccount", "PriorityClass", "StatefulSet")
	for i, o := range earlier {
		if o.GetKind() == "StatefulSet" {
			earlier[i] = withTemplate(t, o, ofKind(objects, "PersistentVolumeClaim")[0])
		}
	}
	c.Kubectl(t, "apply", "-f", write(t, earlier))
	current := write(t, objects)
	t.Cleanup(func() { c.Kubectl(t, "delete", "-f", current, "--ignore-not-found", "--timeout=5m") })
	c.Kubectl(t, workload, "wait", "--for=create", "--timeout=5m", "pod/platform-apiserver-0")
	claim := func() string {
		return c.Kubectl(t, workload, "get", "persistentvolumeclaims", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {end}")
	}
	before, pod := claim(), c.Kubectl(t, workload, "get", "pod", "platform-apiserver-0", "-o", "jsonpath={.metadata.uid}")
	if r := c.Shell(t, "kubectl apply -f "+current); r.Code == 0 {
		t.Error("the cluster changes claim templates now, and README.md says that it does not")
	}

	c.MustShell(t, documented(t, "--cascade=orphan"))
	if got := c.Kubectl(t, workload, "get", "pod", "platform-apiserver-0", "-o", "jsonpath={.metadata.uid}"); got != pod {
		t.Error("the Pod went with the StatefulSet")
	}
	c.Kubectl(t, "apply", "-f", current)
	c.MustShell(t, "until test \"$(kubectl "+workload+" get pod platform-apiserver-0 -o jsonpath={.metadata.uid})\" != "+pod+"; do :; done")
	c.Kubectl(t, workload, "scale", "statefulset/platform-apiserver", "--replicas=2")
	for _, name := range []string{"pod/platform-apiserver-0", "pod/platform-apiserver-1"} {
		c.Kubectl(t, workload, "wait", "--for=create", "--timeout=5m", name)
		if got := c.Kubectl(t, workload, "get", name, "-o", "jsonpath={.spec.volumes[*].persistentVolumeClaim.claimName}"); got != "data-platform-apiserver-0" {
			t.Errorf("%s has the claim %q", name, got)
		}
	}
	if after := claim(); after != before {
		t.Errorf("the claims were %s, and are %s", before, after)
	}
}

// documented returns the command of README.md that contains a text.
func documented(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile(folder + "/README.md"))(t))) {
		if strings.HasPrefix(line, "kubectl ") && strings.Contains(line, text) {
			return line
		}
	}
	t.Fatalf("README.md has no command with %s", text)
	return ""
}

// withTemplate returns the StatefulSet with a claim template in place of the claim.
func withTemplate(t *testing.T, set, claim unstructured.Unstructured) unstructured.Unstructured {
	t.Helper()
	old := *set.DeepCopy()
	unstructured.RemoveNestedField(old.Object, "spec", "template", "spec", "volumes")
	template := map[string]any{"metadata": map[string]any{"name": "data"}, "spec": claim.Object["spec"]}
	if err := unstructured.SetNestedSlice(old.Object, []any{template}, "spec", "volumeClaimTemplates"); err != nil {
		t.Fatal(err)
	}
	return old
}
