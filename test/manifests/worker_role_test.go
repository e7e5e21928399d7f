// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestWorkerRole binds the role of workers: to the accounts of workers, which both hosts accept, and to everybody else,
// which both refuse, even from administrators.
func TestWorkerRole(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		c := cluster.Control(t)
		c.Kubectl(t, "apply", "-f", folder+"/base/worker-role.yaml")
		t.Cleanup(func() { c.Kubectl(t, "delete", "-f", folder+"/base/worker-role.yaml") })
		c.MustShell(t, "until kubectl create rolebinding probe --clusterrole=platform-worker --user=jane --dry-run=server 2>&1 | grep 'bind another role'; do :; done")
		workerRole(t, c.Config())
	})
	t.Run("standalone", func(t *testing.T) { workerRole(t, standalone.Start(t).Admin) })
}

func workerRole(t *testing.T, admin *rest.Config) {
	k := must(kubernetes.NewForConfig(admin))(t).RbacV1()
	bindings, everywhere := k.RoleBindings("default"), k.ClusterRoleBindings()
	worker := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-worker"}
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}
	}
	create := func(name string, ref rbacv1.RoleRef, subjects ...rbacv1.Subject) error {
		m := metav1.ObjectMeta{Name: name}
		_, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		if err == nil {
			err = bindings.Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		_, all := everywhere.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		if all == nil {
			all = everywhere.Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		if (err == nil) != (all == nil) {
			t.Errorf("%s: a RoleBinding: %v; a ClusterRoleBinding: %v", name, err, all)
		}
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "platform-worker may be bound only to the ServiceAccounts platform-ai-worker, ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	workers := []rbacv1.Subject{account("platform-ai-worker"), account("platform-agent-worker"), account("platform-container-worker")}
	for name, subjects := range map[string][]rbacv1.Subject{"all-workers": workers, "one-worker": workers[1:2], "nobody": nil} {
		if err := create(name, worker, subjects...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]rbacv1.Subject{
		"another-account":   account("helper"),
		"default-account":   account("default"),
		"a-user":            {Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "platform-ai-worker"},
		"a-worker-as-user":  {Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccount:default:platform-ai-worker"},
		"all-accounts":      {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:default"},
		"one-of-the-others": account("platform-worker"),
	} {
		refused(name, create(name, worker, workers[0], s))
		if err := create(name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, s); err != nil {
			t.Errorf("another role for %s: %v", name, err)
		}
	}
	// A valid binding cannot be changed into an invalid one.
	if _, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "later"}, RoleRef: worker, Subjects: workers}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(0, bindings.Delete(context.WithoutCancel(t.Context()), "later", metav1.DeleteOptions{}))(t)
	})
	patch := func(body string) error {
		_, err := bindings.Patch(t.Context(), "later", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	refused("an update", patch(`{"subjects": [{"kind": "ServiceAccount", "name": "helper", "namespace": "default"}]}`))
	if err := patch(`{"metadata": {"labels": {"a": "b"}}}`); err != nil {
		t.Errorf("a label: %v", err)
	}
}
