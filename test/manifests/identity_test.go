// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"testing"

	"github.com/platform-ai/platform/test/cluster"
)

// TestWorkerIdentity: a namespace's editor can make neither tokens of the workers' accounts nor Pods with them; kubelets
// and the Job controller can.
func TestWorkerIdentity(t *testing.T) {
	c := cluster.Control(t)
	c.MustShell(t, `kubectl create namespace identity
		kubectl -n identity create serviceaccount platform-ai-worker
		kubectl -n identity create serviceaccount other
		kubectl -n identity create rolebinding editor --clusterrole=edit --user=editor
		until kubectl -n identity create token platform-ai-worker --as editor; do :; done`)
	t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", "identity", "--wait=false") })
	file := write(t, decode(t, must(os.ReadFile(folder+"/base/worker-identity.yaml"))(t)))
	c.Kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { c.Kubectl(t, "delete", "-f", file) })
	c.MustShell(t, `export overrides='{"spec": {"serviceAccountName": "platform-ai-worker"}}'
		until kubectl -n identity create token platform-ai-worker --as editor 2>&1 | grep 'are made by kubelets only'; do :; done
		until kubectl -n identity run forged --image=i --overrides="$overrides" --dry-run=server --as editor 2>&1 |
			grep 'are made by the Job controller only'; do :; done
		kubectl -n identity create token other --as editor
		kubectl -n identity create token platform-ai-worker --as system:node:n --as-group system:masters
		kubectl -n identity run plain --image=i --dry-run=server --as editor
		kubectl create job run --image=i --dry-run=client -o json |
			kubectl patch --local -f - --type=merge -p '{"spec": {"template": {"spec": {"serviceAccountName": "platform-ai-worker"}}}}' -o json |
			kubectl -n identity create -f - --as editor`)
	c.Kubectl(t, "--namespace", "identity", "wait", "--for=create", "--timeout=2m", "pod", "--selector=job-name=run")
}
