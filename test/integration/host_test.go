// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

var executionEvents = schema.GroupVersionResource{Group: "core.platform.ai", Version: "v1alpha1", Resource: "executionevents"}

func makeNamespace(t *testing.T, k kubernetes.Interface, name string) {
	t.Helper()
	must[*corev1.Namespace](t)(k.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
}

// postEvent appends an event to a task's stream.
func postEvent(ctx context.Context, c rest.Interface, ns, task, summary string) error {
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEvent","type":"ModelRequestStarted","summary":%q}`, summary)
	return c.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces", ns, "tasks", task, "events").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
}

// deleteNamespace deletes a namespace and waits until it is gone.
func deleteNamespace(t *testing.T, k kubernetes.Interface, name string) {
	t.Helper()
	w := must[watch.Interface](t)(k.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
	defer w.Stop()
	if err := k.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	t.Fatal("the watch ended")
}

// Deleting a namespace deletes everything in it, of every resource of the server, including events and results. A new
// namespace of the same name has none of it.
func TestNamespaceDeletionRemovesEverything(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	k := s.Kubernetes(t)
	c := k.Discovery().RESTClient()
	for range 2 {
		makeNamespace(t, k, "team")
		if left := everything(t, s, "team"); len(left) > 0 && !slices.Equal(left, []string{"serviceaccounts/default"}) {
			t.Errorf("a new namespace has %v", left)
		}
		for i := range 3 {
			name := fmt.Sprintf("t%d", i)
			must[any](t)(s.Dynamic(t).Resource(tasks).Namespace("team").Create(t.Context(), task(name), metav1.CreateOptions{}))
			if err := postEvent(t.Context(), c, "team", name, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		must[any](t)(s.Dynamic(t).Resource(agents).Namespace("team").Create(t.Context(), agent("a", "p"), metav1.CreateOptions{}))
		must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}))
		if left := everything(t, s, "team"); len(left) < 8 {
			t.Errorf("before: %v", left)
		}
		deleteNamespace(t, k, "team")
		if left := everything(t, s, "team"); len(left) > 0 {
			t.Errorf("after: %v", left)
		}
	}
}

// everything returns the objects of all listable resources of the server in a namespace.
func everything(t *testing.T, s *standalone.Server, ns string) []string {
	t.Helper()
	lists := must[[]*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerPreferredNamespacedResources())
	var out []string
	for _, l := range lists {
		gv := must[schema.GroupVersion](t)(schema.ParseGroupVersion(l.GroupVersion))
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "catalogtools" { // built-in tools are in all namespaces
				continue
			}
			items, err := s.Dynamic(t).Resource(gv.WithResource(r.Name)).Namespace(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(r.Name, err)
			}
			for _, i := range items.Items {
				out = append(out, r.Name+"/"+i.GetName())
			}
		}
	}
	return out
}

// workerClient is the client of a worker of one task, made as the controller makes it.
func workerClient(t *testing.T, s *standalone.Server, ns, task string, uid types.UID) kubernetes.Interface {
	t.Helper()
	k := s.Kubernetes(t)
	const account = "platform-ai-worker"
	if _, err := k.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err := k.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-worker"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: ns}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	publishRun(t, s, ns, task)
	req := must[*authenticationv1.TokenRequest](t)(k.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: task, UID: uid,
		}},
	}, metav1.CreateOptions{}))
	return must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(&rest.Config{
		Host: s.URL, BearerToken: req.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.Admin.CAData}, QPS: -1,
	}))
}

// publishRun gives a task a run, as the controller does before it makes the run's token. Its previous run is over then.
func publishRun(t *testing.T, s *standalone.Server, ns, task string) {
	t.Helper()
	api := clientOf(t, s).Tasks(ns)
	o := must[*v1alpha1.Task](t)(api.Get(t.Context(), task, metav1.GetOptions{}))
	o.Status.Phase, o.Status.JobUID = v1alpha1.TaskRunning, uuid.NewUUID()
	must[*v1alpha1.Task](t)(api.UpdateStatus(t.Context(), o, metav1.UpdateOptions{}))
}

// A worker's token ends with its run: when the next run starts, and when the task ends. A token of the account without a
// task permits nothing.
func TestWorkerTokenEndsWithItsRun(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	own := must[interface{ GetUID() types.UID }](t)(in(s, t, tasks).Create(t.Context(), task("own"), metav1.CreateOptions{}))
	c := workerClient(t, s, "default", "own", own.GetUID()).Discovery().RESTClient()
	const path = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/own"
	try := func(c rest.Interface) map[string]error {
		return map[string]error{
			"get":    c.Get().AbsPath(path).Do(t.Context()).Error(),
			"events": postEvent(t.Context(), c, "default", "own", "m"),
			"result": c.Post().AbsPath(path + "/result").Body([]byte("done")).Do(t.Context()).Error(),
		}
	}
	for what, err := range try(c) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	second := workerClient(t, s, "default", "own", own.GetUID()).Discovery().RESTClient()
	for what, err := range try(c) {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the run of the caller's credential is over") {
			t.Errorf("%s by the first run: %v", what, err)
		}
	}
	o := must[*v1alpha1.Task](t)(clientOf(t, s).Tasks("default").Get(t.Context(), "own", metav1.GetOptions{}))
	o.Status.Phase = v1alpha1.TaskSucceeded
	must[*v1alpha1.Task](t)(clientOf(t, s).Tasks("default").UpdateStatus(t.Context(), o, metav1.UpdateOptions{}))
	for what, err := range try(second) {
		if what == "events" && !apierrors.IsConflict(err) || what != "events" && !apierrors.IsForbidden(err) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
	unbound := must[*authenticationv1.TokenRequest](t)(s.Kubernetes(t).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "platform-ai-worker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	account := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(&rest.Config{
		Host: s.URL, BearerToken: unbound.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.Admin.CAData}, QPS: -1,
	})).Discovery().RESTClient()
	for what, err := range try(account) {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "names no task") {
			t.Errorf("%s by the account: %v", what, err)
		}
	}
}

// A worker writes to its own task, to no other, and not after the task has ended.
func TestWorkerTokenIsForItsTaskOnly(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	own := must[interface{ GetUID() types.UID }](t)(in(s, t, tasks).Create(t.Context(), task("own"), metav1.CreateOptions{}))
	must[any](t)(in(s, t, tasks).Create(t.Context(), task("other"), metav1.CreateOptions{}))
	w := workerClient(t, s, "default", "own", own.GetUID())
	c := w.Discovery().RESTClient()

	if err := postEvent(t.Context(), c, "default", "own", "mine"); err != nil {
		t.Errorf("its own task: %v", err)
	}
	if err := postEvent(t.Context(), c, "default", "other", "not mine"); !apierrors.IsForbidden(err) {
		t.Errorf("another task: %v", err)
	}
	if _, err := w.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v", err)
	}
	events := must[*unstructured.UnstructuredList](t)(in(s, t, executionEvents).List(t.Context(), metav1.ListOptions{}))
	if len(events.Items) != 1 || at(&events.Items[0], "taskName") != "own" {
		t.Errorf("events: %v", events.Items)
	}
	if err := in(s, t, tasks).Delete(t.Context(), "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must[any](t)(in(s, t, tasks).Create(t.Context(), task("own"), metav1.CreateOptions{}))
	if err := postEvent(t.Context(), c, "default", "own", "late"); !apierrors.IsUnauthorized(err) {
		t.Errorf("a new task of the same name: %v", err)
	}
}

// The value of a Secret is in no file of the data folder.
func TestSecretsAreEncryptedInTheDataFolder(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	secret, open := []byte("sk-plaintext-of-a-secret-0123456789"), []byte("plaintext-of-a-configmap-0123456789")
	k := s.Kubernetes(t)
	must[*corev1.Secret](t)(k.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"apiKey": secret},
	}, metav1.CreateOptions{}))
	must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": string(open)},
	}, metav1.CreateOptions{}))
	s.Stop(t)
	found := map[string]bool{}
	err := filepath.WalkDir(s.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, what := range [][]byte{secret, []byte(base64.StdEncoding.EncodeToString(secret)), open} {
			if bytes.Contains(b, what) {
				found[string(what)] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || !found[string(open)] {
		t.Errorf("found %v, want only the configmap, which shows that the search works", found)
	}
}
