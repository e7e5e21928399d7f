// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/host"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// mustT is must with the test given first.
func mustT[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestStartsWithNamespacesAndAccounts(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	for range 2 {
		k := s.client(s.admin())
		for _, ns := range host.Namespaces() {
			got, err := k.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Phase != corev1.NamespaceActive || got.Labels[corev1.LabelMetadataName] != ns {
				t.Errorf("namespace %s: phase %q, labels %v", ns, got.Status.Phase, got.Labels)
			}
			if _, err := k.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			if err := k.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("delete namespace %s: %v", ns, err)
			}
		}
		s.restart()
	}
}

func TestSecretsAndConfigMaps(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	secrets, maps := k.CoreV1().Secrets("default"), k.CoreV1().ConfigMaps("default")
	yes := true

	made, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: meta("a"), StringData: map[string]string{"user": "ann"}, Data: map[string][]byte{"user": []byte("x"), "pass": []byte("p")},
	}, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	if made.Type != corev1.SecretTypeOpaque || string(made.Data["user"]) != "ann" || string(made.Data["pass"]) != "p" || made.StringData != nil {
		t.Errorf("secret = %v", made)
	}
	made.Type = "other"
	if _, err := secrets.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("change of type: %v", err)
	}
	patched, err := secrets.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{"stringData":{"pass":"q"}}`), metav1.PatchOptions{})
	if err != nil || string(patched.Data["pass"]) != "q" || string(patched.Data["user"]) != "ann" {
		t.Errorf("patched = %v, err %v", patched, err)
	}
	applied, err := secrets.Apply(t.Context(), corev1apply.Secret("b", "default").WithStringData(map[string]string{"k": "v"}), metav1.ApplyOptions{FieldManager: "me"})
	if err != nil || string(applied.Data["k"]) != "v" {
		t.Errorf("applied = %v, err %v", applied, err)
	}

	sealed := &corev1.Secret{ObjectMeta: meta("sealed"), Immutable: &yes, Data: map[string][]byte{"k": []byte("v")}}
	if sealed, err = secrets.Create(t.Context(), sealed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sealed.Data["k"] = []byte("hidden-value")
	_, err = secrets.Update(t.Context(), sealed, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "hidden-value") {
		t.Errorf("change of an immutable secret: %v", err)
	}
	sealed.Data["k"] = []byte("v")
	sealed.Labels = map[string]string{"l": "1"}
	if _, err = secrets.Update(t.Context(), sealed, metav1.UpdateOptions{}); err != nil {
		t.Errorf("label of an immutable secret: %v", err)
	}

	for name, bad := range map[string]*corev1.Secret{
		"bad-key": {Data: map[string][]byte{"a/b": nil}},
		"tls":     {Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": nil}},
		"docker":  {Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{hidden-value")}},
		"sa":      {Type: corev1.SecretTypeServiceAccountToken},
		"big":     {Data: map[string][]byte{"k": make([]byte, corev1.MaxSecretSize+1)}},
	} {
		bad.ObjectMeta = meta(name)
		_, err := secrets.Create(t.Context(), bad, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "hidden-value") {
			t.Errorf("secret %s: %v", name, err)
		}
	}
	list, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "type=Opaque"})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%d opaque secrets, err %v", len(list.Items), err)
	}

	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("c"), Data: map[string]string{"k": "v"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("d"), Data: map[string]string{"k": ""}, BinaryData: map[string][]byte{"k": nil}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("the same key twice: %v", err)
	}
}

// The content of a Secret is nowhere on the disk in plain text, before and
// after a restart that rewrites the store's files.
func TestSecretsAreEncryptedOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, clock.RealClock{})
	secret, control := []byte("plaintext-of-a-secret-0123456789"), "plaintext-of-a-configmap-0123456789"
	k := s.client(s.admin())
	for _, ns := range []string{"default", "platform-system"} {
		if _, err := k.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: meta("a"), Data: map[string][]byte{"k": secret}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("a"), Data: map[string]string{"k": control}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	// The write-ahead log is not compressed, so the search would find plain
	// text.
	if !onDisk(t, dir, []byte(control)) {
		t.Error("the configmap should be there in the clear")
	}
	for range 2 { // the second time after the log was written to tables
		if onDisk(t, dir, secret) || onDisk(t, dir, []byte(base64.StdEncoding.EncodeToString(secret))) {
			t.Error("the secret is on the disk")
		}
		s.start()
		got, err := s.client(s.admin()).CoreV1().Secrets("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || !bytes.Equal(got.Data["k"], secret) {
			t.Errorf("after a restart: %v, err %v", got.Data, err)
		}
		s.stop()
	}
}

// onDisk reports whether some file below dir contains the bytes.
func onDisk(t *testing.T, dir string, what []byte) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Contains(b, what)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLostKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := host.New(host.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "secrets.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := host.New(host.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "secrets.key") {
		t.Errorf("err = %v", err)
	}
}

func TestEventsAndLeases(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	event := func(ns, about string) *corev1.Event {
		return &corev1.Event{ObjectMeta: meta("e-" + about), Type: "Normal", Reason: "Tested", Message: "m", InvolvedObject: corev1.ObjectReference{Kind: "Task", Namespace: ns, Name: about}}
	}
	for _, about := range []string{"a", "b"} {
		if _, err := k.CoreV1().Events("default").Create(t.Context(), event("default", about), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.CoreV1().Events("default").Create(t.Context(), event("kube-system", "x"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an event about another namespace: %v", err)
	}
	if code, body := s.get("/api/v1/namespaces/default/events", "application/json;as=Table;g=meta.k8s.io;v=v1"); code != 200 ||
		!strings.Contains(body, `"name":"Last Seen"`) || !strings.Contains(body, `"task/a"`) || strings.Contains(body, `"name":"Age"`) {
		t.Errorf("table: %d %s", code, body)
	}
	list, err := k.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=a,reason=Tested"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d events, err %v", len(list.Items), err)
	}
}

// waitGone waits for the DELETED event of a namespace.
func waitGone(t *testing.T, k kubernetes.Interface, name string, act func()) {
	t.Helper()
	w, err := k.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	act()
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	t.Fatalf("the watch of namespace %s ended", name)
}

func TestNamespaceDeletionRemovesEverything(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	fill := func() {
		t.Helper()
		mustT[*corev1.Namespace](t)(k.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta("team")}, metav1.CreateOptions{}))
		mustT[*corev1.Secret](t)(k.CoreV1().Secrets("team").Create(t.Context(), &corev1.Secret{ObjectMeta: meta("s")}, metav1.CreateOptions{}))
		mustT[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("c")}, metav1.CreateOptions{}))
		mustT[*rbacv1.Role](t)(k.RbacV1().Roles("team").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta("r")}, metav1.CreateOptions{}))
		s.createTask("team", "t", "example.com/hold")
	}
	fill()
	if err := k.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The task's finalizer keeps the task and thereby the namespace.
	s.awaitNamespace(k, "team", func(n *corev1.Namespace) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue {
				return n.Status.Phase == corev1.NamespaceTerminating && strings.Contains(c.Message, "tasks.core.platform.ai has 1 resource")
			}
		}
		return false
	})
	_, err := k.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("late")}, metav1.CreateOptions{})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating namespace: %v", err)
	}
	// The deletion continues after a restart.
	s.restart()
	k = s.client(s.admin())
	waitGone(t, k, "team", func() { s.releaseTask("team", "t") })
	for _, left := range s.left("team") {
		t.Errorf("still there: %s", left)
	}

	// A new namespace of the same name is empty at first and is deleted as
	// well.
	fill()
	s.releaseTask("team", "t")
	s.awaitDefaultAccount(k, "team") // the server creates it by itself
	if left := s.left("team"); len(left) < 5 {
		t.Errorf("in the new namespace: %v", left)
	}
	waitGone(t, k, "team", func() {
		if err := k.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if left := s.left("team"); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestNamespaceFinalize(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	ns := mustT[*corev1.Namespace](t)(k.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta("team")}, metav1.CreateOptions{}))
	ns.Spec.Finalizers, ns.Finalizers = nil, nil
	updated := mustT[*corev1.Namespace](t)(k.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{}))
	if len(updated.Spec.Finalizers) != 1 || len(updated.Finalizers) != 1 {
		t.Errorf("an ordinary update took the finalizers: %v, %v", updated.Spec.Finalizers, updated.Finalizers)
	}
	updated.Spec.Finalizers = append(updated.Spec.Finalizers, "example.com/more")
	if _, err := k.CoreV1().Namespaces().Finalize(t.Context(), updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("finalize added a finalizer: %v", err)
	}
	s.createTask("team", "t", "example.com/hold")
	waitGone(t, k, "team", func() {
		if err := k.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		held := mustT[*corev1.Namespace](t)(k.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{}))
		held.Spec.Finalizers, held.ResourceVersion = nil, ""
		if _, err := k.CoreV1().Namespaces().Finalize(t.Context(), held, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDefaultServiceAccountComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), clock.RealClock{})
	k := s.client(s.admin())
	accounts := k.CoreV1().ServiceAccounts("default")
	first := mustT[*corev1.ServiceAccount](t)(accounts.Get(t.Context(), "default", metav1.GetOptions{}))
	w := mustT[watch.Interface](t)(accounts.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion}))
	defer w.Stop()
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		if a, ok := e.Object.(*corev1.ServiceAccount); ok && e.Type == watch.Added && a.Name == "default" {
			if a.UID == first.UID {
				t.Error("the new account has the old UID")
			}
			return
		}
	}
	t.Error("the watch ended")
}
