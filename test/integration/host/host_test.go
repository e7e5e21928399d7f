// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// postEvent appends an event to a task's stream.
func postEvent(ctx context.Context, c rest.Interface, ns, task, summary string) error {
	body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEvent","type":"ModelRequestStarted","summary":%q}`, summary)
	return c.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces", ns, "tasks", task, "events").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
}

// deleteNamespace deletes a namespace and waits until it is gone.
func deleteNamespace(t *testing.T, k kubernetes.Interface, name string) {
	t.Helper()
	w := kit.Must[watch.Interface](t)(k.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
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
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	k := s.Kubernetes(t)
	c := k.Discovery().RESTClient()
	for range 2 {
		s.Namespaces(t, "team")
		if left := everything(t, s, "team"); len(left) > 0 && !slices.Equal(left, []string{"serviceaccounts/default"}) {
			t.Errorf("a new namespace has %v", left)
		}
		for i := range 3 {
			name := fmt.Sprintf("t%d", i)
			kit.Must[any](t)(s.Dynamic(t).Resource(standalone.Tasks).Namespace("team").Create(t.Context(), standalone.Task(name), metav1.CreateOptions{}))
			if err := postEvent(t.Context(), c, "team", name, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		kit.Must[any](t)(s.Dynamic(t).Resource(standalone.Agents).Namespace("team").Create(t.Context(), agent("a", "p"), metav1.CreateOptions{}))
		kit.Must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}))
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
	lists := kit.Must[[]*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerPreferredNamespacedResources())
	var out []string
	for _, l := range lists {
		gv := kit.Must[schema.GroupVersion](t)(schema.ParseGroupVersion(l.GroupVersion))
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

// A worker's token ends with its run: when the next run starts, and when the task ends. A token of the account without a
// task permits nothing.
func TestWorkerTokenEndsWithItsRun(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	own := kit.Must[interface{ GetUID() types.UID }](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("own"), metav1.CreateOptions{}))
	c := s.Worker(t, "default", "own", own.GetUID()).Discovery().RESTClient()
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
	second := s.Worker(t, "default", "own", own.GetUID()).Discovery().RESTClient()
	for what, err := range try(c) {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the run of the caller's credential is over") {
			t.Errorf("%s by the first run: %v", what, err)
		}
	}
	o := kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").Get(t.Context(), "own", metav1.GetOptions{}))
	o.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").UpdateStatus(t.Context(), o, metav1.UpdateOptions{}))
	for what, err := range try(second) {
		if what == "events" && !apierrors.IsConflict(err) || what != "events" && !apierrors.IsForbidden(err) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
	unbound := kit.Must[*authenticationv1.TokenRequest](t)(s.Kubernetes(t).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "platform-ai-worker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	account := kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(&rest.Config{
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
	own := kit.Must[interface{ GetUID() types.UID }](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("own"), metav1.CreateOptions{}))
	kit.Must[any](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("other"), metav1.CreateOptions{}))
	w := s.Worker(t, "default", "own", own.GetUID())
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
	events := kit.Must[*unstructured.UnstructuredList](t)(s.In(t, standalone.ExecutionEvents).List(t.Context(), metav1.ListOptions{}))
	if len(events.Items) != 1 || at(&events.Items[0], "taskName") != "own" {
		t.Errorf("events: %v", events.Items)
	}
	if err := s.In(t, standalone.Tasks).Delete(t.Context(), "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Must[any](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("own"), metav1.CreateOptions{}))
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
	kit.Must[*corev1.Secret](t)(k.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"apiKey": secret},
	}, metav1.CreateOptions{}))
	kit.Must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
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
