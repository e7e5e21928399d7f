// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/test/kit/cluster"
)

// chart returns what the Helm chart installs with some values.
func chart(t *testing.T, values ...string) []unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", ".", "-render"}, values...)...)
	cmd.Dir, cmd.Env = "../../hack/chart", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("hack/chart: %v\n%s", err, &errs)
	}
	return decode(t, out.Bytes())
}

// patched are the kinds that kubectl apply patches, without a change, if a defaulted member stands in a selector, a list or a
// strategy that is replaced as a whole. Their generation shows whether anything changed.
var patched = []string{"deployment.apps/", "poddisruptionbudget.policy/", "validatingadmissionpolicy.admissionregistration.k8s.io/"}

// TestAppliedOnceIsEnough: after everything was applied, kubectl diff shows nothing and a second apply changes nothing, so
// that an installation can be kept in version control. This holds for Kustomize with every component and for the chart,
// which also changes nothing of what Kustomize installed. The APIService is left out, because a group that nobody serves
// would disturb other tests of this control plane.
func TestAppliedOnceIsEnough(t *testing.T) {
	c := cluster.Control(t)
	c.Kubectl(t, "apply", "--server-side", "-f", "testdata/crds.yaml")
	c.Kubectl(t, "wait", "--for=condition=Established", "-f", "testdata/crds.yaml")
	for _, crd := range decode(t, must(os.ReadFile("testdata/crds.yaml"))(t)) {
		c.MustShell(t, "until kubectl get --all-namespaces "+crd.GetName()+"; do :; done")
	}
	plain := func(objects []unstructured.Unstructured) string {
		return write(t, slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
			return o.GetKind() == "APIService" || o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), "platform-router")
		}))
	}
	all := plain(render(t, kustomization(t, "multi-namespace", everything(), "")))
	t.Cleanup(func() { c.Kubectl(t, "delete", "--timeout=5m", "-f", all) })
	unchanged := func(t *testing.T, file string) {
		t.Helper()
		c.Kubectl(t, "apply", "-f", file)
		if r := c.Shell(t, "kubectl diff -f "+file); r.Code != 0 {
			t.Errorf("kubectl diff after an apply: exit %d\n%s", r.Code, r.Output)
		}
		generations := func() string {
			return c.Kubectl(t, "get", "-f", file, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}`)
		}
		before := generations()
		for line := range strings.Lines(c.Kubectl(t, "apply", "-f", file)) {
			if !strings.HasSuffix(line, " unchanged\n") && !slices.ContainsFunc(patched, func(kind string) bool { return strings.HasPrefix(line, kind) }) {
				t.Errorf("a second apply: %s", line)
			}
		}
		if after := generations(); after != before {
			t.Errorf("a second apply changed specs: before\n%s\nafter\n%s", before, after)
		}
	}
	unchanged(t, all)
	t.Run("chart", func(t *testing.T) { unchanged(t, plain(chart(t, "namespaces.create=true"))) })
}

// TestChartAccepted puts the chart to the real kube-apiserver.
func TestChartAccepted(t *testing.T) {
	c := cluster.Control(t)
	for _, values := range [][]string{
		{"namespaces.create=true"},
		{"namespaces.create=true", "controller.watchNamespace=platform-tasks", "podAnnotations.note=x", "nodeSelector.disk=ssd"},
		{"namespaces.create=true", "store.persistence.enabled=false", "controller.gateway.allowEphemeralStore=true", "controller.gateway.batchSize=50", "controller.gateway.allow={chat.example.com:8443}"},
	} {
		objects := chart(t, values...)
		c.Kubectl(t, "apply", "-f", write(t, ofKind(objects, "Namespace")))
		out := c.Kubectl(t, "apply", "--dry-run=server", "-f", write(t, objects))
		if strings.Contains(out, "Warning") || strings.Count(out, "(server dry run)") != len(objects) {
			t.Errorf("of %d objects:\n%s", len(objects), out)
		}
	}
}
