// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit/host"
)

const (
	message = `{"type": "ModelMessage"}`
	runID   = "run-of-the-controller"
)

// workload is a namespace with tasks, and their Jobs and Pods, as the controller makes them. The Pods do not run; the
// test has their tokens.
type workload struct {
	*Server
	namespace string
	platform  versioned.Interface
	kube      kubernetes.Interface
}

// newWorkload makes two namespaces. RBAC grants the workers of the first their usual rights in both, so that whatever is
// refused is refused because of the worker's identity.
func newWorkload(t *testing.T, s *Server, namespace string) *workload {
	t.Helper()
	w := &workload{Server: s, namespace: namespace, kube: s.Kubernetes(t)}
	var err error
	if w.platform, err = versioned.NewForConfig(s.Config()); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{namespace, namespace + "-other"} {
		s.namespace(ns)
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "workers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: v1alpha1.ClusterRoleWorker},
		}
		for _, account := range []string{v1alpha1.ServiceAccountAIWorker, v1alpha1.ServiceAccountAgentWorker, v1alpha1.ServiceAccountContainerWorker} {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
			if ns == namespace {
				s.apply(fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: %s}}", account, ns))
			}
		}
		if _, err := w.kube.RbacV1().RoleBindings(ns).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitAllowed(ns, "system:serviceaccount:"+namespace+":"+v1alpha1.ServiceAccountContainerWorker, "create", "events")
	}
	return w
}

// task makes a task, in a session if one is given.
func (w *workload) task(t *testing.T, name, session string) *v1alpha1.Task {
	t.Helper()
	o := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	if session != "" {
		o.Spec.SessionRef = &v1alpha1.TaskSessionReference{Name: session}
	}
	o, err := w.platform.CoreV1alpha1().Tasks(w.namespace).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// publish writes a task's status, as the controller does, with the Pod that it accepted, if any.
func (w *workload) publish(t *testing.T, o *v1alpha1.Task, phase v1alpha1.TaskPhase, job string, uid types.UID, accepted ...*corev1.Pod) {
	t.Helper()
	tasks := w.platform.CoreV1alpha1().Tasks(w.namespace)
	o, err := tasks.Get(t.Context(), o.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Status.Phase, o.Status.JobName, o.Status.JobUID = phase, job, uid
	o.Status.PodName, o.Status.PodUID = "", ""
	for _, p := range accepted {
		o.Status.PodName, o.Status.PodUID = p.Name, p.UID
	}
	if _, err := tasks.UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// job makes a Job of a task, or one without an owner, and waits for its Pod.
func (w *workload) job(t *testing.T, name, label string, owner *v1alpha1.Task) (*batchv1.Job, *corev1.Pod) {
	t.Helper()
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationRunID: runID}},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelTask: label}},
			Spec: corev1.PodSpec{
				ServiceAccountName: v1alpha1.ServiceAccountAIWorker, RestartPolicy: corev1.RestartPolicyNever,
				AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
				Containers: []corev1.Container{{Name: "worker", Image: "none"}},
			},
		}},
	}
	if owner != nil {
		j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	}
	j, err := w.kube.BatchV1().Jobs(w.namespace).Create(t.Context(), j, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j, w.pod(t, name)
}

// pod waits for the Pod of a Job.
func (w *workload) pod(t *testing.T, job string) *corev1.Pod {
	t.Helper()
	lw := cache.NewFilteredListWatchFromClient(w.kube.CoreV1().RESTClient(), "pods", w.namespace, func(o *metav1.ListOptions) {
		o.LabelSelector = batchv1.JobNameLabel + "=" + job
	})
	e, err := watchtools.UntilWithSync(t.Context(), lw, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) { return e.Type == watch.Added, nil })
	if err != nil {
		t.Fatal(err)
	}
	return e.Object.(*corev1.Pod)
}

// end marks a Pod as failed, as the kubelet does.
func (w *workload) end(t *testing.T, p *corev1.Pod) {
	t.Helper()
	_, err := w.kube.CoreV1().Pods(w.namespace).Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"status": {"phase": "Failed"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// run makes a task with a published Job, and returns its worker's configuration.
func (w *workload) run(t *testing.T, name, session string) (*v1alpha1.Task, *rest.Config) {
	t.Helper()
	o := w.task(t, name, session)
	j, p := w.job(t, name+"-1", name, o)
	w.publish(t, o, v1alpha1.TaskRunning, j.Name, j.UID, p)
	return o, w.worker(t, p)
}

// worker returns the configuration of a worker in a Pod; without a Pod the token is bound only to the ServiceAccount.
func (w *workload) worker(t *testing.T, p *corev1.Pod) *rest.Config {
	t.Helper()
	spec, account := authenticationv1.TokenRequestSpec{}, v1alpha1.ServiceAccountAIWorker
	if p != nil {
		account = p.Spec.ServiceAccountName
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
	}
	return w.With(w.TokenOf(t, w.namespace, account, spec))
}

func (w *workload) events(task string) string { return w.path("tasks/" + task + "/events") }

func (w *workload) path(resource string) string {
	return "/apis/core.platform.ai/v1alpha1/namespaces/" + w.namespace + "/" + resource
}

// send makes one request, whose body is JSON; header has pairs of names and values.
func (s *Server) send(t *testing.T, c *rest.Config, method, path, body string, header ...string) host.Answer {
	t.Helper()
	if body != "" {
		header = append([]string{"Content-Type", "application/json"}, header...)
	}
	return s.Ask(t, c, method, path, body, header...)
}

// ways returns the two paths to the server: through kube-apiserver and directly.
func (s *Server) ways() map[string]func(*rest.Config) *rest.Config {
	return map[string]func(*rest.Config) *rest.Config{
		"kube-apiserver": func(c *rest.Config) *rest.Config { return c },
		"direct":         s.direct,
	}
}

// A worker can act on the task of its Pod and on no other, whichever path its requests take.
func TestWorkers(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "work")
	// This is more than the role of workers grants, so that this path to the events is tested too.
	s.c.Kubectl(t, "create", "clusterrole", "appender", "--verb=create", "--resource=executionevents.core.platform.ai")
	t.Cleanup(func() { s.c.Kubectl(t, "delete", "clusterrole", "appender") })
	s.c.Kubectl(t, "-n", "work", "create", "rolebinding", "appender", "--clusterrole=appender", "--serviceaccount=work:platform-ai-worker")
	s.c.MustShell(t, "until kubectl auth can-i create executionevents -n work --as system:serviceaccount:work:platform-ai-worker; do :; done")
	for _, session := range []string{"talk", "secret"} {
		o := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: session}}
		if _, err := w.platform.CoreV1alpha1().Sessions(w.namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, mine := w.run(t, "mine", "talk")
	w.run(t, "other", "secret")
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			c := via(mine)
			s.send(t, c, "POST", w.events("mine"), message).Want(t, 201, `"streamID":"mine"`)
			s.send(t, c, "POST", w.events("other"), message).Want(t, 403, "the caller's credential is for another task")
			s.send(t, c, "GET", w.events("mine"), "").Want(t, 200, "ModelMessage")
			s.send(t, c, "GET", w.events("other"), "").Want(t, 403, "for another task")
			s.send(t, c, "POST", w.path("executionevents"), `{"taskName": "mine", "type": "ModelMessage"}`).Want(t, 201, `"streamID":"mine"`)
			s.send(t, c, "POST", w.path("executionevents"), `{"taskName": "other", "type": "ModelMessage"}`).Want(t, 403, "for another task")
			s.send(t, c, "POST", w.path("tasks/mine/result"), "done").Want(t, 204, "")
			s.send(t, c, "POST", w.path("tasks/other/result"), "done").Want(t, 403, "for another task")
			s.send(t, c, "POST", w.events("mine"), `{"type": "TaskSucceeded"}`).Want(t, 403, "controller-owned paths")
			s.send(t, c, "GET", w.path("sessions/talk/transcript"), "").Want(t, 200, "")
			s.send(t, c, "GET", w.path("sessions/secret/transcript"), "").Want(t, 403, "does not use this session")
			s.send(t, c, "GET", strings.Replace(w.path("tasks"), "/work/", "/work-other/", 1), "").
				Want(t, 403, `worker identity: the ServiceAccount's namespace is \"work\", the request's is \"work-other\"`)
			s.send(t, c, "GET", "/apis/core.platform.ai/v1alpha1", "").Want(t, 200, "APIResourceList")
		})
	}
	t.Run("REST", func(t *testing.T) {
		c := s.direct(mine)
		s.send(t, c, "POST", "/internal/v1/events/work/task/mine", message).Want(t, 201, `"seq"`)
		s.send(t, c, "POST", "/internal/v1/events/work/task/other", message).Want(t, 403, "for another task")
		s.send(t, c, "POST", "/internal/v1/results/work/mine", "done").Want(t, 204, "")
		s.send(t, c, "POST", "/internal/v1/results/work/other", "done").Want(t, 403, "for another task")
		s.send(t, c, "POST", "/internal/v1/events/work-other/task/mine", message).Want(t, 403, "worker identity")
		s.send(t, s.direct(w.worker(t, nil)), "POST", "/internal/v1/events/work/task/mine", message).Want(t, 403, "not bound to one Pod")
	})
	t.Run("metrics", func(t *testing.T) {
		s.send(t, s.direct(s.Config()), "GET", "/metrics", "").Want(t, 200, `platform_worker_identity_proofs_total{outcome="proved"}`)
	})
}

// A worker may be faster than the controller; then it is told to retry. Afterwards it is the worker of the attempt that the
// task's status names, until the task has ended.
func TestAttempts(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "attempts")
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			name := strings.ToLower(way)
			o := w.task(t, name, "")
			j1, p1 := w.job(t, name+"-1", name, o)
			c := via(w.worker(t, p1))
			later := func(text string) {
				t.Helper()
				r := s.send(t, c, "POST", w.events(name), message).Want(t, 503, text)
				if r.Header.Get("Retry-After") != "1" || !strings.Contains(r.Body, `"kind":"Status"`) {
					t.Errorf("the answer is %v %s", r.Header, r.Body)
				}
			}
			later("names no Job")
			w.publish(t, o, v1alpha1.TaskRunning, j1.Name, "")
			later("does not have the UID")
			w.publish(t, o, v1alpha1.TaskRunning, j1.Name, runID)
			later("does not have the UID")
			w.publish(t, o, v1alpha1.TaskRunning, j1.Name, j1.UID)
			later("has not accepted a Pod")
			w.publish(t, o, v1alpha1.TaskRunning, j1.Name, j1.UID, p1)
			s.send(t, c, "POST", w.events(name), message).Want(t, 201, "")

			j2, p2 := w.job(t, name+"-2", name, o)
			second := via(w.worker(t, p2))
			s.send(t, second, "POST", w.events(name), message).Want(t, 403, "this is another attempt")
			w.publish(t, o, v1alpha1.TaskRunning, j2.Name, j2.UID, p2)
			s.send(t, second, "POST", w.events(name), message).Want(t, 201, "")
			s.send(t, c, "POST", w.events(name), message).Want(t, 403, "this is another attempt")
			w.publish(t, o, v1alpha1.TaskRunning, j2.Name, "of-another-job")
			s.send(t, second, "POST", w.events(name), message).Want(t, 403, "by its UID: this is another attempt")

			w.publish(t, o, v1alpha1.TaskFailed, j2.Name, j2.UID)
			s.send(t, second, "POST", w.events(name), message).Want(t, 409, "the task has ended and its event stream is closed")
			s.send(t, second, "GET", w.path("tasks/"+name), "").Want(t, 403, "has ended")
			s.send(t, second, "POST", w.path("tasks/"+name+"/result"), "late").Want(t, 403, "has ended")
		})
	}
}

// Each link of the chain is needed.
func TestBrokenChains(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "broken")
	o := w.task(t, "a", "")
	good, own := w.job(t, "a-1", "a", o)
	_, free := w.job(t, "free", "a", nil)
	_, labelled := w.job(t, "labelled", "b", o)
	_, ended := w.job(t, "ended", "a", o)
	_, gone := w.job(t, "gone", "a", o)
	_, debugged := w.job(t, "debugged", "a", o)
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the cluster changes new Pods, too
		now, err := w.kube.CoreV1().Pods(w.namespace).Get(t.Context(), debugged.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "none"}}}
		_, err = w.kube.CoreV1().Pods(w.namespace).UpdateEphemeralContainers(t.Context(), debugged.Name, now, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.publish(t, o, v1alpha1.TaskRunning, good.Name, good.UID, own)

	bare := own.DeepCopy()
	bare.ObjectMeta = metav1.ObjectMeta{Name: "bare", Labels: map[string]string{v1alpha1.LabelTask: "a"}}
	bare, err := w.kube.CoreV1().Pods(w.namespace).Create(t.Context(), bare, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.end(t, ended)
	lost := map[string]*rest.Config{}
	for way := range s.ways() { // tokens that no server has seen and cached
		lost[way] = w.worker(t, gone)
	}
	s.c.Kubectl(t, "-n", w.namespace, "delete", "pod", gone.Name, "--grace-period=0", "--force", "--wait")

	unbound := w.worker(t, nil)
	endedToken := w.worker(t, ended)
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			s.send(t, via(w.worker(t, own)), "POST", w.events("a"), message).Want(t, 201, "")
			for want, c := range map[string]*rest.Config{
				"the token is not bound to one Pod":         unbound,
				"Pod bare is not controlled by a Job":       w.worker(t, bare),
				"Job free is not controlled by a Task":      w.worker(t, free),
				`is \"b\", its Job is controlled by Task a`: w.worker(t, labelled),
				"Pod " + ended.Name + " has ended":          endedToken,
				"has ephemeral containers":                  w.worker(t, debugged),
			} {
				s.send(t, via(c), "POST", w.events("a"), message).Want(t, 403, want)
				s.send(t, via(c), "GET", w.path("tasks"), "").Want(t, 403, want)
			}
			// kube-apiserver, which is asked on both paths, learns of the deletion by a watch.
			for {
				if r := s.send(t, via(lost[way]), "GET", w.path("tasks"), ""); r.Code == 401 {
					break
				} else if r.Code != 503 || t.Context().Err() != nil {
					t.Fatalf("the token of a deleted Pod: %d %s", r.Code, r.Body)
				}
				lost[way] = rest.CopyConfig(lost[way])
			}
		})
	}
}

// No client can supply the extras that identify a worker's task.
func TestForgedExtras(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "forged")
	o, mine := w.run(t, "mine", "")
	other, _ := w.run(t, "other", "")
	headers := func(user string, extra ...string) []string {
		h := []string{"X-Remote-User", user, "X-Remote-Group", "system:masters"}
		for i := 0; i < len(extra); i += 2 {
			h = append(h, "X-Remote-Extra-"+strings.ReplaceAll(extra[i], "/", "%2F"), extra[i+1])
		}
		return h
	}
	claim := func(o *v1alpha1.Task) []string {
		return []string{v1alpha1.ExtraTaskNamespace, o.Namespace, v1alpha1.ExtraTaskName, o.Name, v1alpha1.ExtraTaskUID, string(o.UID)}
	}
	const worker = "system:serviceaccount:forged:platform-ai-worker"

	// Headers of a client that is not the proxy are ignored: the worker keeps its identity, and an anonymous caller stays
	// anonymous.
	s.send(t, s.direct(mine), "POST", w.events("other"), message, headers(worker, claim(other)...)...).Want(t, 403, "for another task")
	s.send(t, s.direct(w.worker(t, nil)), "POST", w.events("mine"), message, headers(worker, claim(o)...)...).Want(t, 403, "not bound to one Pod")
	s.send(t, s.direct(s.Anonymous()), "POST", w.events("mine"), message, headers(worker, claim(o)...)...).Want(t, 403, "system:anonymous")

	// The proxy's certificate proves who the caller is, but not which task it works on.
	proxy := s.direct(s.Config())
	proxy.TLSClientConfig = rest.TLSClientConfig{
		CAFile: proxy.TLSClientConfig.CAFile, CertFile: s.c.Dir + "/pki/front-proxy-client.crt", KeyFile: s.c.Dir + "/pki/front-proxy-client.key",
	}
	s.send(t, proxy, "POST", w.events("mine"), message, headers(worker, claim(o)...)...).Want(t, 403, "not bound to one Pod")
	// Such extras neither restrict nor help anybody else: this is an administrator, who has no task.
	s.send(t, proxy, "POST", w.events("mine"), message, headers("somebody", claim(other)...)...).Want(t, 201, "")

	// Impersonation through kube-apiserver is the same.
	as := func(user string, extra ...string) *rest.Config {
		c := s.Config()
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}, Extra: map[string][]string{}}
		for i := 0; i < len(extra); i += 2 {
			c.Impersonate.Extra[extra[i]] = []string{extra[i+1]}
		}
		return c
	}
	for way, via := range s.ways() {
		t.Run(way, func(t *testing.T) {
			s.send(t, via(as(worker, claim(o)...)), "POST", w.events("mine"), message).Want(t, 403, "not bound to one Pod")
			s.send(t, via(as("somebody", claim(other)...)), "POST", w.events("mine"), message).Want(t, 201, "")
		})
	}
}
