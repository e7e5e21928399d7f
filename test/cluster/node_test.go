// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/cluster"
)

// Pods run hardened, find each other through a Service, and keep data in a
// volume; a node that dies is noticed, and comes back.
func TestNode(t *testing.T) {
	c := cluster.Node(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "-n", ns, "apply", "-f", "testdata/node.yaml")
	c.Kubectl(t, "-n", ns, "wait", "--for=condition=Ready", "pod/web", "--timeout=300s")
	c.Kubectl(t, "-n", ns, "wait", "--for=condition=Complete", "job/client", "--timeout=300s")
	if got := c.Kubectl(t, "-n", ns, "logs", "job/client"); !strings.HasSuffix(got, "hello\n") {
		t.Errorf("the client got %q through the Service", got)
	}
	address := c.Kubectl(t, "-n", ns, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	if got := c.MustShell(t, "curl -sS --max-time 60 --retry 20 --retry-connrefused http://"+address+"/index.html"); got != "hello\n" {
		t.Errorf("the test got %q through the Service", got)
	}
	c.StopNode(t)
	c.Kubectl(t, "wait", "--for=condition=Ready=Unknown", "node/node-1", "--timeout=300s")
	c.StartNode(t)
	c.Kubectl(t, "-n", ns, "wait", "--for=condition=Ready", "pod/web", "--timeout=300s")
	if got := c.Kubectl(t, "-n", ns, "exec", "web", "--", "cat", "/data/index.html"); got != "hello\n" {
		t.Errorf("the volume holds %q after the node's end", got)
	}
}
