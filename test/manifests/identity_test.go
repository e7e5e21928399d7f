// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/test/kit/cluster"
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
	c.Kubectl(t, "--namespace", "identity", "wait", "--for=create", "--timeout=5m", "pod", "--selector=job-name=run")
}

// TestSecretsOfTheServer: the server's account creates Secrets with transaction tokens of tasks and no others, above all
// none that is given a token of a ServiceAccount.
func TestSecretsOfTheServer(t *testing.T) {
	c := cluster.Control(t)
	c.MustShell(t, `kubectl create namespace server-secrets
		kubectl create clusterrole server-secrets --verb=create --resource=secrets
		kubectl create clusterrolebinding server-secrets --clusterrole=server-secrets --serviceaccount=platform-system:platform-apiserver`)
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "clusterrole,clusterrolebinding", "server-secrets")
		c.Kubectl(t, "delete", "namespace", "server-secrets", "--wait=false")
	})
	file := write(t, slices.DeleteFunc(decode(t, must(os.ReadFile(folder+"/base/apiserver-rbac.yaml"))(t)), func(o unstructured.Unstructured) bool {
		return !strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy")
	}))
	c.Kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { c.Kubectl(t, "delete", "-f", file) })
	c.MustShell(t, `server="--as system:serviceaccount:platform-system:platform-apiserver"
		refused='creates the Secrets with the transaction tokens of tasks only'
		until kubectl -n server-secrets create secret generic other --dry-run=server $server 2>&1 | grep "$refused"; do :; done
		secret() { # TYPE OWNERS
			echo '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "server-secrets",
				"annotations": {"kubernetes.io/service-account.name": "default"}, "ownerReferences": ['"$2"']}, "type": "'"$1"'"}'
		}
		task='{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "name": "t", "uid": "u"}'
		secret platform.ai/transaction-token "" | kubectl create --dry-run=server $server -f - 2>&1 | grep "$refused"
		secret kubernetes.io/service-account-token "$task" | kubectl create --dry-run=server $server -f - 2>&1 | grep "$refused"
		secret platform.ai/transaction-token "$task" | kubectl create --dry-run=server $server -f -
		kubectl -n server-secrets create secret generic other`)
}
