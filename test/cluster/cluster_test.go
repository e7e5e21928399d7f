// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster has the programs and scripts of a real Kubernetes; its tests use them as other tests do, by kit/cluster.
package cluster

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/host"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// A ServiceAccount may do what RBAC allows, and nothing else.
func TestRBAC(t *testing.T) {
	c := cluster.Control(t)
	ctx, ns := t.Context(), c.Namespace(t)
	token := c.Token(t, ns, "reader")
	reader := kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(c.With(token)))
	if _, err := reader.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list without a role: %v, want forbidden", err)
	}
	c.Role(t, ns+"-reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	c.Bind(t, ns, ns+"-reader", host.Account(ns, "reader"))
	// The authorizer learns of roles by a watch, so kubectl asks until it knows the new one.
	c.MustShell(t, "until kubectl auth can-i list configmaps -n "+ns+" --as system:serviceaccount:"+ns+":reader; do :; done")
	if _, err := reader.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("list with the role: %v", err)
	}
	if err := reader.CoreV1().ConfigMaps(ns).Delete(ctx, "kube-root-ca.crt", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: %v, want forbidden", err)
	}
	kubeconfig := host.Kubeconfig(t, c.With(token), ns)
	who := c.MustShell(t, "kubectl --kubeconfig "+kubeconfig+" auth whoami -o jsonpath={.status.userInfo.username}")
	if want := "system:serviceaccount:" + ns + ":reader"; who != want {
		t.Errorf("the kubeconfig is for %q, want %q", who, want)
	}
}

// The controllers run: a Job makes its Pod, and the Pod is deleted with the Job.
func TestJob(t *testing.T) {
	c := cluster.Control(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "-n", ns, "create", "job", "work", "--image=platform.ai/test-shell:dev")
	c.Kubectl(t, "-n", ns, "wait", "--for=create", "pod", "--selector=job-name=work", "--timeout=300s")
	pod := strings.Fields(c.Kubectl(t, "-n", ns, "get", "pods", "-o", `jsonpath={.items[0].metadata.name} {.items[0].metadata.ownerReferences[0].name}`))
	if len(pod) != 2 || pod[1] != "work" {
		t.Fatalf("pod and owner: %q", pod)
	}
	c.Kubectl(t, "-n", ns, "delete", "job", "work", "--cascade=background")
	c.Kubectl(t, "-n", ns, "wait", "--for=delete", "pod/"+pod[0], "--timeout=300s")
}
