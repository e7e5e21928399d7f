// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstall installs the platform on a real node, gives it a second replica, and uninstalls it, with Kustomize and
// with Helm.
package uninstall

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/cluster"
)

// longTask runs until it is stopped.
const longTask = `
apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata: {name: long}
spec:
  type: container
  image: platform.ai/test-model:dev
  command: [/scriptedmodel]
  args: [--listen, "0.0.0.0:8080", --script, /scripts/demo.yaml]
`

const system = "platform-system"

// TestUninstall uninstalls the platform while a task runs, and looks for leftovers and for namespaces that cannot be
// deleted: once with everything alive, once with a server that is gone. In the empty cluster it does the same with Helm.
func TestUninstall(t *testing.T) {
	c := cluster.Node(t)
	t.Run("with-server", func(t *testing.T) {
		uninstall(t, c, installation{overlay: "multi-namespace", namespace: "team-of-uninstall", server: true})
	})
	t.Run("without-server", func(t *testing.T) {
		uninstall(t, c, installation{overlay: "single-namespace", namespace: "platform-tasks"})
	})
	t.Run("with-helm", func(t *testing.T) { withHelm(t, c) })
}

// installation is an installation to remove.
type installation struct {
	overlay, namespace string
	server             bool // runs when the platform is uninstalled
}

func uninstall(t *testing.T, c *cluster.Cluster, i installation) {
	const folder = "../../../manifests"
	dir, namespace := folder+"/overlays/"+i.overlay, i.namespace
	c.Kubectl(t, "apply", "-k", dir)
	c.MustShell(t, "kubectl get namespace "+namespace+" || kubectl create namespace "+namespace)
	c.Kubectl(t, "wait", "--for=condition=Available", "--timeout=5m", "apiservice/v1alpha1.core.platform.ai")
	for _, workload := range []string{"statefulset/platform-apiserver", "deployment/platform-controller", "deployment/platform-router"} {
		c.Kubectl(t, "--namespace", system, "rollout", "status", "--timeout=5m", workload)
	}
	c.MustShell(t, "until kubectl get tasks --all-namespaces; do :; done") // discovery lags behind
	c.MustShell(t, "kubectl --namespace "+namespace+" apply -f - <<'END'"+longTask+"END")
	c.Kubectl(t, "--namespace", namespace, "wait", "--for=jsonpath={.status.phase}=Running", "--timeout=5m", "task/long")
	if i.server {
		secondReplica(t, c, namespace)
	} else {
		noErrors(t, c)
		c.Kubectl(t, "--namespace", system, "scale", "statefulset/platform-apiserver", "--replicas=0")
		c.Kubectl(t, "--namespace", system, "wait", "--for=delete", "--timeout=5m", "pod/platform-apiserver-0")
	}

	t.Log(c.MustShell(t, folder+"/uninstall.sh "+dir))

	left := c.MustShell(t, "kubectl get all,namespaces,roles,rolebindings,clusterroles,clusterrolebindings,apiservices,priorityclasses"+
		" --all-namespaces --selector app.kubernetes.io/part-of=platform --output name; kubectl get jobs,pods --all-namespaces --selector platform.ai/task --output name;"+
		" kubectl get serviceaccounts,rolebindings --all-namespaces --output name | grep -e '-worker$' || true")
	left = strings.ReplaceAll(left, "No resources found\n", "")
	if left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	c.Kubectl(t, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=5m")
	c.Kubectl(t, "create", "namespace", "after-uninstall")
	c.Kubectl(t, "delete", "namespace", "after-uninstall", "--timeout=5m")
}

// noErrors looks for errors in the logs of Pods that were started for the first time, in which nothing went wrong. client-go calls it an
// error that one of two controllers, which start at the same time, is the second to create their Lease.
func noErrors(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	of := "kubectl --namespace " + system + " "
	if said := c.MustShell(t, "for pod in $("+of+"get pods --output name); do "+of+"logs --prefix $pod; done | grep -E '\\] [EF][0-9]{4} ' | grep -v 'creating lease lock.*already exists' || true"); said != "" {
		t.Errorf("errors in the logs of a first start:\n%s", said)
	}
}

// secondReplica scales the API server to two, as an operator might who expects more availability. The second Pod has the
// same store, so it waits, and the Service does not lead to it. It takes over when the first Pod is gone, with every object.
func secondReplica(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	kubectl := "kubectl --namespace " + system + " "
	const first, second = "platform-apiserver-0", "platform-apiserver-1"
	tasks := "kubectl --namespace " + namespace + " get tasks --output jsonpath={.items[*].metadata.uid}"
	before := c.MustShell(t, tasks)

	c.MustShell(t, kubectl+"scale statefulset/platform-apiserver --replicas=2")
	c.MustShell(t, kubectl+"wait --for=jsonpath={.status.phase}=Running --timeout=5m pod/"+second)
	c.MustShell(t, "until "+kubectl+"logs "+second+" | grep --quiet 'Another server has the store open'; do :; done")
	serving := kubectl + "get pods --selector app.kubernetes.io/name=platform-apiserver,platform.ai/serving=true --output 'jsonpath={.items[*].metadata.name}'"
	if serves := c.MustShell(t, serving); serves != first {
		t.Errorf("beside the first Pod the Service leads to %q", serves)
	}
	if after := c.MustShell(t, tasks); after != before {
		t.Errorf("with two Pods there are tasks %q, before %q", after, before)
	}

	c.MustShell(t, kubectl+"delete pod "+first+" --wait=false")
	c.MustShell(t, `until [ "$(`+serving+`)" = `+second+" ]; do :; done")
	c.Kubectl(t, "wait", "--for=condition=Available", "--timeout=5m", "apiservice/v1alpha1.core.platform.ai")
	c.MustShell(t, "until "+tasks+"; do :; done")
	if after := c.MustShell(t, tasks); after != before {
		t.Errorf("the second Pod serves tasks %q, the first one served %q", after, before)
	}

	c.MustShell(t, kubectl+"scale statefulset/platform-apiserver --replicas=1")
	c.MustShell(t, kubectl+"wait --for=delete --timeout=5m pod/"+second)
	c.MustShell(t, kubectl+"wait --for=condition=Ready --timeout=5m pod/"+first)
	c.Kubectl(t, "wait", "--for=condition=Available", "--timeout=5m", "apiservice/v1alpha1.core.platform.ai")
	c.MustShell(t, "until "+tasks+"; do :; done")
}
