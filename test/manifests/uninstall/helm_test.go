// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/test/kit/cluster"
)

const shortTask = `
apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata: {name: short}
spec:
  type: container
  image: platform.ai/test-model:dev
  command: [/scriptedmodel, --help]
`

// withHelm installs the chart with Helm itself, upgrades it, takes it out and installs it again: the volume stays, so
// everything that was stored is there again, and a cluster without the platform has no API that nobody serves.
func withHelm(t *testing.T, c *cluster.Cluster) {
	const namespace = "team-of-helm"
	helm := filepath.Join(os.Getenv("PLATFORM_BIN"), "helm") // a node's network has no module proxy to build it from
	release := helm + " --namespace " + system + " "
	t.Cleanup(func() {
		c.Shell(t, release+"uninstall platform --ignore-not-found --wait")
		c.Kubectl(t, "delete", "namespace", namespace, system, "--ignore-not-found", "--timeout=5m")
	})
	tasks := "kubectl --namespace " + namespace + " get tasks --output jsonpath={.items[*].metadata.uid}"
	install := func(t *testing.T) {
		t.Helper()
		c.MustShell(t, release+"install platform ../../../manifests/chart --create-namespace --wait --timeout=5m")
		c.Kubectl(t, "wait", "--for=condition=Available", "--timeout=5m", "apiservice/v1alpha1.core.platform.ai")
		c.MustShell(t, "until "+tasks+"; do :; done") // discovery lags behind
	}

	install(t)
	c.Kubectl(t, "create", "namespace", namespace)
	c.MustShell(t, "kubectl --namespace "+namespace+" apply -f - <<'END'"+shortTask+"END")
	c.Kubectl(t, "--namespace", namespace, "wait", "--for=condition=Succeeded", "--timeout=5m", "task/short")
	noErrors(t, c)
	before := c.MustShell(t, tasks)

	server := "kubectl --namespace " + system + " get pod platform-apiserver-0 --output jsonpath={.metadata.uid}"
	pod := c.MustShell(t, server)
	c.MustShell(t, release+"upgrade platform ../../../manifests/chart --set controller.extraArgs='{--max-running-tasks=9}' --wait --timeout=5m")
	if after := c.MustShell(t, server); after != pod {
		t.Error("an upgrade that changes only the controller restarted the server")
	}

	c.MustShell(t, release+"uninstall platform --wait --timeout=5m")
	if left := c.MustShell(t, "kubectl get apiservice v1alpha1.core.platform.ai --ignore-not-found --output name"); left != "" {
		t.Errorf("after helm uninstall there is %s", left)
	}
	c.Kubectl(t, "create", "namespace", "after-helm")
	c.Kubectl(t, "delete", "namespace", "after-helm", "--timeout=5m")

	install(t)
	if after := c.MustShell(t, tasks); after != before {
		t.Errorf("after another install there are tasks %q, before %q", after, before)
	}
}
