// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

const storeID, storeService = "platform.ai/store-id", "platform.ai/store-service"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// beside returns a server with a folder and a port of its own that is not registered.
func (s *Server) beside(dir string, args ...string) *Server {
	s.t.Helper()
	b := &Server{Host: s.Host, t: s.t, c: s.c, DataDir: dir, port: kit.FreePort(s.t)}
	b.args = append([]string{
		"--data-dir", dir, "--bind-address", "127.0.0.1", "--secure-port", b.port, "--namespace", system,
		"--kubeconfig", host.Kubeconfig(s.t, b.account(system, service), ""),
	}, args...)
	return b
}

// refused starts a server that does not become ready, and returns the reason that it gives.
func (s *Server) refused(more ...string) string {
	s.t.Helper()
	s.Process = kit.Start(s.t, nil, kit.Bin(s.t, "platform-apiserver"), append(s.args, more...)...)
	s.Await(s.t, "This server is not ready")
	return s.unready()
}

// unready returns what /readyz/registration reports for a server that is not ready.
func (s *Server) unready() string {
	s.t.Helper()
	anyCA := s.direct(s.Config())
	anyCA.TLSClientConfig.CAFile, anyCA.Insecure = "", true
	if code, body := s.get(anyCA, "/readyz"); code == http.StatusOK {
		s.t.Errorf("it is ready: %s", body)
	}
	code, body := s.get(anyCA, "/readyz/registration")
	if code == http.StatusOK {
		s.t.Errorf("the check says %s", body)
	}
	return body
}

// registered returns the current APIService.
func (s *Server) registered() *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.Dynamic(s.t).Resource(apiServices).Get(s.t.Context(), apiService, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func nested(u *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(u.Object, fields...)
	return text
}

// awaitRepaired waits until the APIService points to s again.
func (s *Server) awaitRepaired(store string) {
	s.t.Helper()
	ca, err := os.ReadFile(s.DataDir + "/pki/ca.crt")
	if err != nil {
		s.t.Fatal(err)
	}
	s.await(apiServices, "", apiService, func(u *unstructured.Unstructured) bool {
		return u.GetAnnotations()[storeID] == store && u.GetAnnotations()[storeService] == system+"/"+service &&
			nested(u, "spec", "caBundle") == base64.StdEncoding.EncodeToString(ca) &&
			nested(u, "spec", "service", "namespace") == system && condition(u, "Available") == "True" && s.verified(u)
	})
}

// verified reports whether an APIService leads to the port of s and has its certificate verified.
func (s *Server) verified(u *unstructured.Unstructured) bool {
	insecure, _, _ := unstructured.NestedBool(u.Object, "spec", "insecureSkipTLSVerify")
	port, _, _ := unstructured.NestedInt64(u.Object, "spec", "service", "port")
	return !insecure && strconv.FormatInt(port, 10) == s.port
}

// A second server with a store of its own, such as a second replica with its own volume, does not become ready, reports
// why, and writes nothing, whether or not the first one is alive, until an operator declares the first store gone.
func TestOtherStoreIsNotServed(t *testing.T) {
	s := Start(t)
	before := s.registered()
	id := before.GetAnnotations()[storeID]
	if got := s.Ask(t, s.Config(), http.MethodGet, "/apis/core.platform.ai/v1alpha1", "").Header.Get("Platform-Store-Id"); got != id || len(id) != 36 {
		t.Fatalf("the store says it is %q, and %q is registered", got, id)
	}
	other := s.beside(t.TempDir())
	for _, alive := range []bool{true, false} {
		if !alive {
			s.Kill()
		}
		why := other.refused()
		if !strings.Contains(why, "store "+id+" registered, of the Service platform-system/platform-apiserver") || !strings.Contains(why, "--take-over="+id) {
			t.Errorf("the reason: %s", why)
		}
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
		if after := s.registered(); nested(after, "spec", "caBundle") != nested(before, "spec", "caBundle") || after.GetAnnotations()[storeID] != id {
			t.Errorf("it changed the APIService: %v", after)
		}
	}
	s.Run()
	published, err := s.Kubernetes(t).CoreV1().ConfigMaps(system).Get(t.Context(), service+"-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ca, err := os.ReadFile(s.DataDir + "/pki/ca.crt"); err != nil || published.Data["ca.crt"] != string(ca) {
		t.Errorf("it changed the published CA: %v", err)
	}

	if why := other.refused("--take-over=unknown"); !strings.Contains(why, id) {
		t.Errorf("the name of another store: %s", why)
	}
	_ = other.Stop()
	taking := *other
	taking.args = append(taking.args, "--take-over="+id)
	taking.Run()
	s.await(apiServices, "", apiService, func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[storeID] != id })
	s.Await(t, "This server is not ready")
	taken := s.registered().GetAnnotations()[storeID]
	if why := s.unready(); !strings.Contains(why, "--take-over="+taken) {
		t.Errorf("the first one: %s", why)
	}
	_ = taking.Stop()
	_ = s.Stop()
	back := *s
	back.args = append(back.args, "--take-over="+taken)
	back.Run()
	back.awaitRepaired(id)
}

// A second installation, in a namespace of its own, applies its APIService over that of the first.
func TestSecondInstallationIsNotServed(t *testing.T) {
	s := Start(t)
	id := s.registered().GetAnnotations()[storeID]
	s.c.Kubectl(t, "create", "namespace", "elsewhere")
	t.Cleanup(func() { s.c.Kubectl(t, "delete", "namespace", "elsewhere", "--wait=false") })
	elsewhere := strings.ReplaceAll(at(registration[strings.LastIndex(registration, "---"):], s.port), "namespace: platform-system", "namespace: elsewhere")
	s.apply(elsewhere)
	s.awaitRepaired(id)

	s.Kill()
	s.apply(elsewhere)
	second := s.beside(t.TempDir(), "--namespace", "elsewhere")
	if why := second.refused(); !strings.Contains(why, id) || !strings.Contains(why, "a cluster has one installation") {
		t.Errorf("the reason: %s", why)
	}
	s.Run()
	s.awaitRepaired(id)
	_ = second.Stop()

	// The same store in two places, as when a backup is restored beside the original.
	_ = s.Stop()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(s.DataDir)); err != nil {
		t.Fatal(err)
	}
	s.Run()
	beside := s.beside(copied, "--namespace", "elsewhere")
	if why := beside.refused(); !strings.Contains(why, "has a copy of it") {
		t.Errorf("the reason: %s", why)
	}
}

// The server restores the objects that lead clients to it while it runs, with the rights that the manifests grant.
func TestRegistrationIsRepaired(t *testing.T) {
	s := Start(t)
	id := s.registered().GetAnnotations()[storeID]
	ca, err := os.ReadFile(s.DataDir + "/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := os.ReadFile(s.c.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	s.c.Kubectl(t, "annotate", "apiservice", apiService, "example.test/of-the-installer=yes")
	for _, damage := range []string{
		`patch apiservice v1alpha1.core.platform.ai --type=json --patch='[{"op": "remove", "path": "/spec/caBundle"}]'`,
		`patch apiservice v1alpha1.core.platform.ai --type=merge --patch='{"spec": {"caBundle": "` + base64.StdEncoding.EncodeToString(wrong) + `"}}'`,
		`annotate apiservice v1alpha1.core.platform.ai platform.ai/store-id- platform.ai/store-service-`,
		`patch apiservice v1alpha1.core.platform.ai --type=merge --patch='{"spec": {"service": {"namespace": "default", "name": "kubernetes"}}}'`,
		`patch apiservice v1alpha1.core.platform.ai --type=merge --patch='{"spec": {"caBundle": null, "insecureSkipTLSVerify": true}}'`,
		`patch apiservice v1alpha1.core.platform.ai --type=merge --patch='{"spec": {"service": {"port": 1}}}'`,
		`delete apiservice v1alpha1.core.platform.ai`,
	} {
		s.c.MustShell(t, "kubectl "+damage)
		s.awaitRepaired(id)
	}
	kit.Await(t, "an Event for each part that was changed", func() bool {
		said := s.c.MustShell(t, "kubectl --namespace "+system+" get events --field-selector reason=APIServiceRepaired -o jsonpath='{.items[*].message}'")
		return !slices.ContainsFunc([]string{"caBundle", "store", "service", "port", "insecureSkipTLSVerify", "object"}, func(field string) bool {
			return !strings.Contains(said, field)
		})
	})
	_, metrics := s.get(s.direct(s.Config()), "/metrics")
	if !strings.Contains(metrics, `platform_apiservice_repairs_total{field="insecureSkipTLSVerify"} 1`) {
		t.Error("the repairs are not counted")
	}
	if a := s.registered().GetAnnotations(); a["example.test/of-the-installer"] != "yes" {
		t.Errorf("the repaired APIService lacks an annotation of whoever installed it: %v", a)
	}
	s.AwaitDiscovered("Current")
	for _, damage := range []string{
		`delete configmap platform-apiserver-ca`,
		`patch configmap platform-apiserver-ca --type=json --patch='[{"op": "remove", "path": "/data"}]'`,
		`patch configmap platform-apiserver-ca --patch='{"data": {"ca.crt": "wrong"}}'`,
	} {
		s.c.MustShell(t, "kubectl --namespace "+system+" "+damage)
		s.await(configMaps, system, service+"-ca", func(u *unstructured.Unstructured) bool { return nested(u, "data", "ca.crt") == string(ca) })
	}
}

// A server that waits for another server's store is alive but not ready, and serves when the other one has stopped. With a Pod that is to
// be ready meanwhile, it is, and moves the label by which the Service finds the one that serves.
func TestStandby(t *testing.T) {
	s := Start(t)
	const label = "platform.ai/serving"
	for _, pod := range []string{"0", "1"} {
		s.c.Kubectl(t, "--namespace="+system, "run", service+"-"+pod, "--image=test.example/none", "--labels=standby=test")
	}
	t.Cleanup(func() { s.c.Kubectl(t, "--namespace="+system, "delete", "pods", "--selector=standby=test", "--now") })
	s.c.Kubectl(t, "--namespace="+system, "label", "pod", service+"-0", label+"=true")
	for _, second := range []struct {
		s     *Server
		ready int
	}{
		{s.beside(s.DataDir, "--lock-timeout=1h"), http.StatusServiceUnavailable},
		{s.beside(s.DataDir, "--lock-timeout=1h", "--pod-name="+service+"-1"), http.StatusOK},
	} {
		second.s.Process = kit.Start(t, nil, kit.Bin(t, "platform-apiserver"), second.s.args...)
		await := func(path string, code int) {
			t.Helper()
			s.c.MustShell(t, fmt.Sprintf(`until test "$(curl -ks -o /dev/null -w '%%{http_code}' https://127.0.0.1:%s%s)" = %d; do :; done`, second.s.port, path, code))
		}
		await("/livez", http.StatusOK)
		await("/readyz", second.ready)
		await("/apis", http.StatusServiceUnavailable)
		if serve := s.c.Kubectl(t, "--namespace="+system, "get", "pods", "--selector="+label, "-o", "name"); serve != "pod/"+service+"-0\n" {
			t.Errorf("a server that waits moved the label: %s", serve)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		second.s.Await(t, "is ready after")
		if code, body := s.get(second.s.direct(s.Config()), "/readyz"); code != http.StatusOK {
			t.Errorf("it serves, and is not ready: %s", body)
		}
		s = second.s
	}
	kit.Await(t, "the label is on the Pod of the server that serves, and on no other", func() bool {
		return s.c.Kubectl(t, "--namespace="+system, "get", "pods", "--selector="+label, "-o", "name") == "pod/"+service+"-1\n"
	})
}

// A controller cleans up Jobs of the store that is served. It does not touch Jobs of another store or Jobs that name no
// store.
func TestOrphansOfOtherStoresStay(t *testing.T) {
	s := Start(t)
	s.namespace("orphans")
	ctx, jobs := t.Context(), s.Kubernetes(t).BatchV1().Jobs("orphans")
	id := s.registered().GetAnnotations()[storeID]
	for name, store := range map[string]string{"a-unmarked": "", "b-of-another": "0d6c5b0e-0000-4000-8000-000000000000", "c-own": id} {
		job := orphan(name)
		if store != "" {
			job.Labels[storeID] = store
		}
		if _, err := jobs.Create(ctx, job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	controller := kit.Start(t, nil, kit.Bin(t, "platform-controller"), "--kubeconfig", s.c.Kubeconfig, "--leader-elect=false",
		"--health-probe-bind-address=", "--worker-image=test.example/worker:1", "--watch-namespace=orphans")
	// The controller checks the Jobs in the order of their names.
	s.awaitGone(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "orphans", "c-own-1")
	for _, name := range []string{"a-unmarked-1", "b-of-another-1"} {
		if job, err := jobs.Get(ctx, name, metav1.GetOptions{}); err != nil || job.DeletionTimestamp != nil {
			t.Errorf("%s: %v %v", name, job, err)
		}
	}
	if _, err := s.Dynamic(t).Resource(tasks).Namespace("orphans").Create(ctx, task("marked"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.c.Kubectl(t, "--namespace", "orphans", "wait", "--for=create", "--timeout=2m", "job/marked-1")
	if job, err := jobs.Get(ctx, "marked-1", metav1.GetOptions{}); err != nil || job.Labels[storeID] != id {
		t.Errorf("the Job of a task is marked %v, want %s: %v", job.Labels, id, err)
	}
	s.c.Kubectl(t, "--namespace", "orphans", "delete", "task", "marked", "--timeout=2m")
	if err := controller.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := jobs.Get(ctx, "a-unmarked-1", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("the Job of nobody is gone")
	}
}

// orphan returns a Job as an executor makes it, of a task that no store has.
func orphan(name string) *batchv1.Job {
	labels := map[string]string{"platform.ai/task-uid": "11111111-1111-4111-8111-" + fmt.Sprintf("%012x", name[0]), "platform.ai/task": name}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1", Labels: labels,
			Annotations: map[string]string{"platform.ai/task-name": name, "platform.ai/attempt": "1", "platform.ai/run-id": "x"},
		},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "worker", Image: "test.example/worker:1"}}},
		}},
	}
}
