// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// TestRestartIsFoundAvailable: after an outage kube-apiserver, which by then looks only about every 30 s, finds the server
// at once: the times are printed.
func TestRestartIsFoundAvailable(t *testing.T) {
	s := Start(t)
	s.apply(at(registration, s.port)) // as if the manifests were applied again
	for _, end := range []string{"stopped", "killed"} {
		if end == "stopped" {
			if err := s.Stop(); err != nil {
				t.Fatalf("the server ended with: %v", err)
			}
		} else {
			s.Kill()
		}
		s.AwaitAvailable("False")
		// Each probe of a server that is down doubles the time until the next, from 5 ms to 30 s, so the outage lasts a minute.
		for i := range 14 {
			s.c.Kubectl(t, "annotate", "--overwrite", "apiservice", apiService, fmt.Sprint("test.platform.ai/probe=", i))
			s.AwaitAvailable("False")
		}
		times := []time.Time{time.Now()}
		for _, await := range []func(){s.Run, func() { s.AwaitAvailable("True") }, func() { s.AwaitDiscovered("Current") }} {
			await()
			times = append(times, time.Now())
		}
		t.Logf("%s: after the start ready %.2f s, found available %.2f s, in discovery %.2f s",
			end, times[1].Sub(times[0]).Seconds(), times[2].Sub(times[0]).Seconds(), times[3].Sub(times[0]).Seconds())
		s.c.Kubectl(t, "get", "tasks")
	}
}

// During an outage the cluster loses nothing but the group itself.
func TestOutage(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("outage-full")
	if _, err := s.Dynamic(t).Resource(tasks).Namespace("outage-full").Create(ctx, task("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.c.Kubectl(t, "create", "namespace", "outage-empty")
	s.c.Kubectl(t, "--namespace", "outage-empty", "create", "configmap", "x")
	s.Kill()
	s.AwaitAvailable("False")

	s.c.Kubectl(t, "get", "pods")
	if out := s.c.Shell(t, "kubectl get tasks"); out.Code == 0 {
		t.Errorf("tasks without their server:\n%s", out.Output)
	}
	if out := s.c.Shell(t, "kubectl api-resources"); !strings.Contains(out.Output, "deployments") {
		t.Errorf("discovery of others:\n%s", out.Output)
	}
	s.AwaitDiscovered("Stale")

	// The namespace controller deletes what it can and then reports what it could not read. So the namespace stays until
	// the server is back, and contains only what the controller cannot see.
	s.c.Kubectl(t, "delete", "namespace", "outage-empty", "--wait=false")
	s.await(namespaces, "", "outage-empty", func(u *unstructured.Unstructured) bool {
		return condition(u, "NamespaceDeletionDiscoveryFailure") == "True" && condition(u, "NamespaceDeletionContentFailure") == "False"
	})
	if out := s.c.Kubectl(t, "--namespace", "outage-empty", "get", "configmaps", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("left in the namespace: %s", out)
	}
	s.Run()
	s.AwaitAvailable("True")
	s.awaitGone(namespaces, "", "outage-empty")
	s.c.Kubectl(t, "delete", "namespace", "outage-full", "--timeout=2m")
}

// TestNothingIsLost kills the server while writers write. Everything that was acknowledged is there afterwards.
func TestNothingIsLost(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("kept")
	c := s.Dynamic(t).Resource(tasks).Namespace("kept")
	acknowledged := make(chan string, 1000)
	ended := make(chan struct{})
	for w := range 4 {
		go func() {
			defer func() { ended <- struct{}{} }()
			for i := 0; ; i++ {
				u, err := c.Create(ctx, task(fmt.Sprintf("w%d-%d", w, i)), metav1.CreateOptions{})
				if err != nil {
					return
				}
				acknowledged <- u.GetName() + "/" + string(u.GetUID())
			}
		}()
	}
	var names []string
	for len(names) < 40 {
		names = append(names, <-acknowledged)
	}
	s.Kill()
	for range 4 {
		<-ended
	}
	close(acknowledged)
	for n := range acknowledged {
		names = append(names, n)
	}
	s.Run()
	s.AwaitAvailable("True")
	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, u := range list.Items {
		there[u.GetName()+"/"+string(u.GetUID())] = true
	}
	for _, n := range names {
		if !there[n] {
			t.Errorf("%s was acknowledged and is gone", n)
		}
	}
	t.Logf("%d tasks acknowledged, %d stored", len(names), len(there))
}

// TestHandOver has two servers on one folder: the second waits and takes over when the first is stopped.
func TestHandOver(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	c := s.Dynamic(t).Resource(tasks).Namespace("default")
	if _, err := c.Create(ctx, task("handed"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watching, err := c.Watch(ctx, metav1.ListOptions{}) // an open watch does not delay the shutdown
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	second := kit.Start(t, nil, kit.Bin(t, "platform-apiserver"), s.args...)
	second.Await(t, "Another server has the store open")
	if err := s.Stop(); err != nil {
		t.Errorf("the first ended with: %v", err)
	}
	second.Await(t, "is ready after")
	s.AwaitAvailable("True")
	if err := c.Delete(ctx, "handed", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	third := kit.Start(t, nil, kit.Bin(t, "platform-apiserver"), append(s.args, "--lock-timeout=0s")...)
	if err := third.Wait(); err == nil || !strings.Contains(third.Output(), "another server is running on "+s.DataDir) {
		t.Errorf("a third that may not wait: %v\n%s", err, third.Output())
	}
}

// TestGracefulEnd stops the server under a stream and two watches: all end cleanly, kubectl's through kube-apiserver, too, and so does
// the process. A watch that begins where kubectl's stood misses nothing and repeats nothing.
func TestGracefulEnd(t *testing.T) {
	s := Start(t)
	c := s.Dynamic(t).Resource(tasks).Namespace("default")
	if _, err := c.Create(t.Context(), task("streamed"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	straight := s.direct(s.Config())
	resp := host.Open(t, kit.Must[*http.Client](t)(rest.HTTPClientFor(straight)), http.MethodGet, straight.Host+allTasks+"/streamed/stream", "")
	defer resp.Body.Close()
	w, err := s.dynamic(s.direct(s.Config())).Resource(tasks).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) *kit.Process {
		return kit.Start(t, s.c.Env(), kit.Bin(t, "kubectl"), append([]string{"--namespace", "default", "get"}, args...)...)
	}
	watch := kubectl("tasks", "--watch", "--output", `jsonpath={.metadata.name} at {.metadata.resourceVersion}{"\n"}`)
	watch.Await(t, "streamed at ") // of the list before the watch
	if _, err := c.Create(t.Context(), task("watched"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	at := strings.Fields(watch.Await(t, "watched at "))
	if err := s.Stop(); err != nil {
		t.Errorf("the server ended with: %v", err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("kubectl get --watch ended with %v: %s", err, watch.Output())
	}
	for range w.ResultChan() {
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
	}
	s.Run()
	s.AwaitAvailable("True")
	if _, err := c.Create(t.Context(), task("after"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resumed := kubectl("--raw", allTasks+"?watch=true&resourceVersion="+at[len(at)-1])
	resumed.Await(t, `"name":"after"`)
	if got := resumed.Output(); strings.Contains(got, `"name":"watched"`) || strings.Count(got, `"type":"ADDED"`) != 1 {
		t.Errorf("the resumed watch: %s", got)
	}
	for _, name := range []string{"streamed", "watched", "after"} {
		if err := c.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestGarbageCollector: the cluster's own collector follows references across the aggregated API.
func TestGarbageCollector(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("gc")
	c, host := s.Dynamic(t).Resource(tasks).Namespace("gc"), s.Kubernetes(t)
	owned := func(name string) string {
		t.Helper()
		owner, err := c.Create(ctx, task(name), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.apply(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: of-%s, namespace: gc, ownerReferences: [
			{apiVersion: core.platform.ai/v1alpha1, kind: Task, name: %s, uid: %s, blockOwnerDeletion: true}]}}`, name, name, owner.GetUID()))
		return "of-" + name
	}
	held := owned("foreground")
	s.c.Kubectl(t, "--namespace", "gc", "delete", "task", "foreground", "--cascade=foreground", "--timeout=2m")
	if _, err := host.CoreV1().ConfigMaps("gc").Get(ctx, held, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("foreground: the owner went before what it owns: %v", err)
	}
	left := owned("orphan")
	s.c.Kubectl(t, "--namespace", "gc", "delete", "task", "orphan", "--cascade=orphan", "--timeout=2m")
	if m, err := host.CoreV1().ConfigMaps("gc").Get(ctx, left, metav1.GetOptions{}); err != nil || len(m.OwnerReferences) != 0 {
		t.Errorf("orphan: %v %v", m, err)
	}
	owned("background")
	s.c.Kubectl(t, "--namespace", "gc", "delete", "task", "background")
	s.awaitGone(configMaps, "gc", "of-background")

	// And a Task that is owned by another Task, as a child is.
	parent, err := c.Create(ctx, task("parent"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := task("child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: "parent", UID: parent.GetUID()}})
	if _, err := c.Create(ctx, child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.c.Kubectl(t, "--namespace", "gc", "delete", "task", "parent")
	s.awaitGone(tasks, "gc", "child")
}

// The cluster's collectors watch only metadata.
func TestMetadataOfEveryKind(t *testing.T) {
	s := Start(t)
	client, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(tasks.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") || !strings.Contains(strings.Join(r.Verbs, " "), "watch") {
			continue
		}
		seen++
		c := client.Resource(tasks.GroupVersion().WithResource(r.Name))
		if _, err := c.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if _, err := c.Watch(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		stop()
	}
	if seen < 8 {
		t.Errorf("only %d kinds can be watched", seen)
	}
}

// TestCertificates changes the files of a certificate that the operator provides. The server reads them again, and neither
// makes nor publishes a certificate.
func TestCertificates(t *testing.T) {
	s := Start(t)
	ca, err := os.ReadFile(s.DataDir + "/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Kubernetes(t).CoreV1().ConfigMaps(system).Get(t.Context(), "platform-apiserver-ca", metav1.GetOptions{})
	if err != nil || m.Data["ca.crt"] != string(ca) {
		t.Errorf("the published CA: %v %v", m.Data, err)
	}
	// Somebody empties the bundle: the server writes it again.
	s.c.Kubectl(t, "patch", "apiservice", apiService, "--type=json", `--patch=[{"op": "remove", "path": "/spec/caBundle"}]`)
	s.await(apiServices, "", apiService, func(u *unstructured.Unstructured) bool {
		bundle, _, _ := unstructured.NestedString(u.Object, "spec", "caBundle")
		return bundle != "" && condition(u, "Available") == "True"
	})

	own := newServer(t, s.c, t.TempDir(), kit.FreePort(t))
	cert, key := own.DataDir+"/tls.crt", own.DataDir+"/tls.key"
	copyFile(t, s.DataDir+"/pki/serving.crt", cert)
	copyFile(t, s.DataDir+"/pki/serving.key", key)
	// Its store is not the registered one, so it leaves the APIService to another server.
	own.args = append(own.args, "--tls-cert-file", cert, "--tls-private-key-file", key, "--manage-apiservice=false")
	own.Run()
	own.AwaitAvailable("True") // the bundle is still that of s
	if _, err := os.Stat(own.DataDir + "/pki"); !os.IsNotExist(err) {
		t.Errorf("keys were made: %v", err)
	}
	before := own.servedSerial()
	if err := os.RemoveAll(s.DataDir + "/pki/serving.crt"); err != nil {
		t.Fatal(err)
	}
	_ = s.Stop()
	s.Run() // makes a new one under the same authority
	copyFile(t, s.DataDir+"/pki/serving.key", key)
	copyFile(t, s.DataDir+"/pki/serving.crt", cert)
	kit.Await(t, "the new certificate is read", func() bool { return own.servedSerial() != before })
	if code, _ := own.get(own.c.Config(), allTasks); code != http.StatusOK {
		t.Errorf("after the change: %d", code)
	}
}
