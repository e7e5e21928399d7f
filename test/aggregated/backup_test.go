// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A backup is requested from the platform's own Service, as the command's help says, with a token of the cluster and under
// the cluster's RBAC; kube-apiserver does not forward the path. What is restored is served to the cluster again.
func TestBackup(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("backed")
	c := s.Dynamic(t).Resource(tasks).Namespace("backed")
	before, err := c.Create(ctx, task("before"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar")
	for flags, want := range map[string]string{
		"":            "is it a kube-apiserver, which does not forward this path?",
		"--as nobody": "A kube-apiserver does not forward this path, whatever the role",
	} {
		if r := s.c.Shell(t, "platform backup "+flags+" "+file); r.Code != 1 || !strings.Contains(r.Output, want) {
			t.Errorf("of kube-apiserver %s: %d %s", flags, r.Code, r.Output)
		}
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(s.account("backed", "keeper").BearerToken), 0o600); err != nil {
		t.Fatal(err)
	}
	s.c.MustShell(t, fmt.Sprintf(`kubectl get apiservice v1alpha1.core.platform.ai -o jsonpath='{.spec.caBundle}' | base64 -d > %s/ca.crt`, dir))
	direct := fmt.Sprintf("KUBECONFIG=%[1]s/none platform backup --server https://127.0.0.1:%[2]s --tls-server-name platform-apiserver.platform-system.svc --certificate-authority %[1]s/ca.crt --token-file %[1]s/token %[1]s/x.tar",
		dir, s.port)
	if r := s.c.Shell(t, direct); r.Code != 1 || !strings.Contains(r.Output, `User "system:serviceaccount:backed:keeper" cannot get path "/backup"`) {
		t.Errorf("without the role: %d %s", r.Code, r.Output)
	}
	s.c.Kubectl(t, "create", "clusterrolebinding", "keeper", "--clusterrole=platform-backup", "--serviceaccount=backed:keeper")
	t.Cleanup(func() { s.c.Kubectl(t, "delete", "clusterrolebinding", "keeper") })
	for r := s.c.Shell(t, direct); r.Code != 0; r = s.c.Shell(t, direct) { // answers are cached for seconds
		if !strings.Contains(r.Output, "cannot get path") {
			t.Fatal(r.Output)
		}
	}
	if _, err := c.Create(ctx, task("after"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if r := s.c.Shell(t, fmt.Sprintf("platform restore %s --data-dir %s", file, s.DataDir)); r.Code != 1 || !strings.Contains(r.Output, "there is a store already") {
		t.Errorf("over a store: %d %s", r.Code, r.Output)
	}
	s.c.MustShell(t, fmt.Sprintf("mv %s/store %s/ && platform restore %s --data-dir %[1]s", s.DataDir, dir, file))
	s.Run()
	s.AwaitAvailable("True")
	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].GetUID() != before.GetUID() {
		t.Errorf("restored: %v", list.Items)
	}
}
