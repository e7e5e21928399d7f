// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

const allTasks = "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"

func TestKubectl(t *testing.T) {
	s := Start(t)
	k := func(line string) string {
		t.Helper()
		return s.c.MustShell(t, line)
	}
	expect := func(line, want string) {
		t.Helper()
		if out := k(line); !strings.Contains(out, want) {
			t.Errorf("%s has no %q:\n%s", line, want, out)
		}
	}
	expect("kubectl api-resources --api-group=core.platform.ai", "tasks")
	// kube-apiserver reads schemas a second after a server is found available.
	expect("until kubectl explain task.spec.timeout 2>/dev/null; do :; done", "FIELD: timeout")
	s.apply(`{apiVersion: core.platform.ai/v1alpha1, kind: Task, metadata: {name: a}, spec: {type: container, command: ["true"]}}`)
	expect("kubectl get tasks", "Pending")
	expect(`kubectl apply --server-side --field-manager=x -f - <<<'{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": {"name": "b", "labels": {"x": "y"}}, "spec": {"type": "container", "command": ["true"]}}'`, "serverside-applied")
	expect("kubectl get task b --show-managed-fields -o yaml", "manager: x")
	expect(`kubectl create -f - <<<'{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": {"name": "c"}, "spec": {"type": "container", "command": ["true"]}}'`, "created")
	// A watch through kube-apiserver sees what happens after it began.
	expect(`kubectl get tasks a --watch-only -o name >"$HOME/watched" & pid=$!
		until kubectl annotate --overwrite task a at="$(date +%N)" >/dev/null && grep -q task.core.platform.ai/a "$HOME/watched"; do :; done
		kill $pid; cat "$HOME/watched"`, "task.core.platform.ai/a")
	expect("kubectl delete task a b c", `task.core.platform.ai "c" deleted`)
	if out := k("kubectl get tasks 2>&1"); !strings.Contains(out, "No resources found") {
		t.Errorf("after deletion: %s", out)
	}
	if code, body := s.get(s.Config(), "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/none"); code != http.StatusNotFound {
		t.Errorf("a task that is not there: %d %s", code, body)
	}
}

// The cluster's RBAC decides what a ServiceAccount may do, whichever path its requests take.
func TestPermissions(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("perm")
	reader, stranger := s.member("perm", "reader", "platform-viewer", "list"), s.account("perm", "stranger")
	for way, as := range map[string]func(*rest.Config) *rest.Config{
		"kube-apiserver": func(c *rest.Config) *rest.Config { return c },
		"direct":         s.direct,
	} {
		read := s.dynamic(as(reader)).Resource(tasks)
		if _, err := read.Namespace("perm").List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("%s: the reader lists: %v", way, err)
		}
		if _, err := read.Namespace("perm").Create(ctx, task("a"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: the reader creates: %v", way, err)
		}
		if _, err := read.Namespace("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: the reader lists elsewhere: %v", way, err)
		}
		if _, err := s.dynamic(as(stranger)).Resource(tasks).Namespace("perm").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: the stranger lists: %v", way, err)
		}
		anonymous := as(s.Anonymous())
		if code, body := s.get(anonymous, allTasks); code != http.StatusForbidden {
			t.Errorf("%s: anonymous: %d %s", way, code, body)
		}
		forged := rest.CopyConfig(anonymous)
		forged.BearerToken = "eyJhbGciOiJub25lIn0.e30."
		if code, body := s.get(forged, allTasks); code != http.StatusUnauthorized {
			t.Errorf("%s: a forged token: %d %s", way, code, body)
		}
	}
	if got := strings.TrimSpace(s.c.MustShell(t, "kubectl auth can-i create tasks --subresource=fork --as=system:serviceaccount:perm:reader -n perm || true")); got != "no" {
		t.Errorf("may the reader fork: %s", got)
	}
}

// Headers that name a caller count only with the certificate of kube-apiserver as a proxy.
func TestCallersCannotNameThemselves(t *testing.T) {
	s := Start(t)
	named := []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes.authentication.kubernetes.io", "x"}
	stranger := s.direct(s.account("default", "spoofer"))
	for who, c := range map[string]*rest.Config{
		"anonymous": s.direct(s.Anonymous()), "a ServiceAccount": stranger,
	} {
		if code, body := s.get(c, allTasks, named...); code != http.StatusForbidden || strings.Contains(body, `"admin"`) {
			t.Errorf("%s: %d %s", who, code, body)
		}
	}
	// A client certificate of a user of the cluster is not accepted as the proxy's.
	admin := s.direct(s.Config())
	if code, body := s.get(admin, allTasks, "X-Remote-User", "nobody", "X-Remote-Group", "nothing"); code != http.StatusOK {
		t.Errorf("the administrator's own certificate: %d %s", code, body)
	}
	proxy := rest.CopyConfig(admin)
	proxy.TLSClientConfig = rest.TLSClientConfig{
		CAFile: proxy.TLSClientConfig.CAFile, CertFile: s.c.Dir + "/pki/front-proxy-client.crt", KeyFile: s.c.Dir + "/pki/front-proxy-client.key",
	}
	if code, body := s.get(proxy, allTasks, named...); code != http.StatusOK {
		t.Errorf("the proxy names an administrator: %d %s", code, body)
	}
	if code, body := s.get(proxy, allTasks, "X-Remote-User", "nobody"); code != http.StatusForbidden {
		t.Errorf("the proxy names nobody: %d %s", code, body)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	s := Start(t)
	anonymous, admin := s.direct(s.Anonymous()), s.direct(s.Config())
	for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/readyz": 200, "/metrics": 403, "/debug/pprof/": 403} {
		if code, body := s.get(anonymous, path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := s.get(admin, "/readyz?verbose"); code != 200 || !strings.Contains(body, "[+]store ok") || !strings.Contains(body, "[+]informer-sync ok") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := s.get(admin, "/metrics"); code != 200 || !strings.Contains(body, "apiserver_flowcontrol_current_executing_requests") || !strings.Contains(body, "apiserver_request_total") {
		t.Errorf("/metrics: %d", code)
	}
	if code, _ := s.get(admin, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("/debug/pprof/ without --profiling: %d", code)
	}
	if code, body := s.get(admin, "/api/v1/tasks?namespace=default"); code != 200 || !strings.Contains(body, "items") {
		t.Errorf("the REST paths on the secure port: %d %s", code, body)
	}
	// Priority and fairness names the FlowSchema of each request, once it has read them from the cluster.
	kit.Await(t, "an answer names its FlowSchema", func() bool {
		return s.Ask(t, admin, http.MethodGet, allTasks, "").Header.Get("X-Kubernetes-Pf-Flowschema-Uid") != ""
	})
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	profiled := Start(t, "--profiling")
	if code, _ := profiled.get(profiled.direct(s.Config()), "/debug/pprof/"); code != 200 {
		t.Errorf("/debug/pprof/ with --profiling: %d", code)
	}
}
