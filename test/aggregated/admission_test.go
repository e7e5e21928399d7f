// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/platform-ai/platform/test/kit"
)

var quotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// until repeats a creation as a dry run until its outcome is as wanted: the server learns of changed policies and webhooks
// by a watch, so they take effect a moment later.
func (s *Server) until(namespace string, wanted func(*unstructured.Unstructured, error) bool) (*unstructured.Unstructured, error) {
	s.t.Helper()
	c := s.Dynamic(s.t).Resource(tasks).Namespace(namespace)
	for {
		u, err := c.Create(s.t.Context(), task("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if wanted(u, err) || s.t.Context().Err() != nil {
			return u, err
		}
	}
}

const rules = `[{apiGroups: [core.platform.ai], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [tasks]}]`

// A policy of the cluster applies to objects of this server, which the cluster's own admission never sees.
func TestValidatingPolicy(t *testing.T) {
	s := Start(t)
	s.namespace("vap")
	s.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short-names.test}
spec:
  matchConstraints: {resourceRules: ` + rules + `}
  paramKind: {apiVersion: v1, kind: ConfigMap}
  validations:
  - {expression: "size(object.metadata.name) <= int(params.data.limit)", messageExpression: "'names have at most ' + params.data.limit + ' letters'"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short-names.test}
spec:
  policyName: short-names.test
  validationActions: [Deny]
  paramRef: {name: limit, parameterNotFoundAction: Allow}
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: vap}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limit, namespace: vap}
data: {limit: "4"}
---
# Who binds a policy with parameters lets the server read them.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: params.test}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: params.test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: params.test}
subjects: [{kind: ServiceAccount, name: platform-apiserver, namespace: platform-system}]
`)
	t.Cleanup(func() {
		s.c.Kubectl(t, "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "short-names.test")
		s.c.Kubectl(t, "delete", "clusterrole,clusterrolebinding", "params.test")
	})
	_, err := s.until("vap", func(_ *unstructured.Unstructured, err error) bool {
		return err != nil && strings.Contains(err.Error(), "names have at most 4 letters")
	})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a long name: %v", err)
	}
	c := s.Dynamic(t).Resource(tasks)
	if _, err := c.Namespace("vap").Create(t.Context(), task("ok"), metav1.CreateOptions{}); err != nil {
		t.Errorf("a short name: %v", err)
	}
	if _, err := c.Namespace("default").Create(t.Context(), task("elsewhere"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a long name elsewhere: %v", err)
	}
	// Neither REST nor a direct connection bypasses it.
	straight := s.dynamic(s.direct(s.Config())).Resource(tasks).Namespace("vap")
	if _, err := straight.Create(t.Context(), task("toolong"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a long name, straight: %v", err)
	}
}

// policy makes a policy of the cluster for what is created of a resource in a namespace, until the test ends. labels are YAML.
func (s *Server) policy(namespace, resource, name, labels, expression, message, action string) {
	s.t.Helper()
	s.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `, labels: {` + labels + `}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [core.platform.ai], apiVersions: [v1alpha1], operations: [CREATE], resources: [` + resource + `]}]}
  validations: [{expression: "` + expression + `", message: ` + message + `}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec:
  policyName: ` + name + `
  validationActions: [` + action + `]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + namespace + `}}}
`)
	s.t.Cleanup(func() {
		s.c.Kubectl(s.t, "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)
	})
}

// A policy of the cluster on executionevents holds for what a worker appends to its task, on both paths to the server.
func TestPolicyOnEvents(t *testing.T) {
	s := Start(t)
	w := newWorkload(t, s, "events")
	_, worker := w.run(t, "a", "")
	s.policy("events", "executionevents", "good-events.test", "", "!has(object.summary) || object.summary != 'bad'", "events say nothing bad", "Deny")
	kit.Await(t, "the verdict of the policy", func() bool {
		r := s.send(t, s.Config(), "POST", w.path("executionevents")+"?dryRun=All", `{"taskName": "a", "type": "ModelMessage", "summary": "bad"}`)
		return r.Code == http.StatusUnprocessableEntity
	})
	for way, via := range s.ways() {
		for summary, code := range map[string]int{"good": http.StatusCreated, "bad": http.StatusUnprocessableEntity} {
			r := s.send(t, via(worker), "POST", w.events("a"), `{"type": "ModelMessage", "summary": "`+summary+`"}`)
			if r.Code != code || summary == "bad" && !strings.Contains(r.Body, "events say nothing bad") {
				t.Errorf("%s, %s: %d %s", way, summary, r.Code, r.Body)
			}
		}
	}
}

func TestMutatingPolicy(t *testing.T) {
	s := Start(t)
	s.namespace("map")
	s.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: prompt.test}
spec:
  matchConstraints: {resourceRules: ` + rules + `}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {"team": namespaceObject.metadata.name}}, spec: Object.spec{priority: 7}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: prompt.test}
spec:
  policyName: prompt.test
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: map}}}
`)
	t.Cleanup(func() {
		s.c.Kubectl(t, "delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "prompt.test")
	})
	mutated := func(u *unstructured.Unstructured, err error) bool {
		return err == nil && u.GetLabels()["team"] == "map"
	}
	u, err := s.until("map", func(u *unstructured.Unstructured, err error) bool { return err != nil || mutated(u, err) })
	if err != nil {
		t.Fatal(err)
	}
	if priority, _, _ := unstructured.NestedInt64(u.Object, "spec", "priority"); priority != 7 {
		t.Errorf("spec.priority is %d", priority)
	}
	// A restarted server knows the schemas that the policy needs from its first answer on.
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Run()
	u, err = s.dynamic(s.direct(s.Config())).Resource(tasks).Namespace("map").Create(t.Context(), task("first"), metav1.CreateOptions{})
	if !mutated(u, err) {
		t.Errorf("after a restart: %v %v", u, err)
	}
	s.AwaitAvailable("True")
}

// webhook serves admission reviews over TLS on loopback, where the server can reach it but no Service can.
func (s *Server) webhook(name, kind string, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	s.t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.TLS = serverTLS(s.t, certPEM, keyPEM)
	srv.StartTLS()
	s.t.Cleanup(srv.Close)
	s.apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: %s
  clientConfig: {url: "%s", caBundle: %s}
  rules: %s
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 30
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: hooks}}
`, kind, name, name, srv.URL, base64.StdEncoding.EncodeToString(certPEM), rules))
	s.t.Cleanup(func() { s.c.Kubectl(s.t, "delete", kind, name) })
}

func TestWebhooks(t *testing.T) {
	s := Start(t)
	s.namespace("hooks")
	var mu sync.Mutex
	var callers []string
	s.webhook("mutate.hooks.test", "MutatingWebhookConfiguration", func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{
			Allowed: true, PatchType: &kind, Patch: []byte(`[{"op": "add", "path": "/metadata/annotations", "value": {"hooked": "yes"}}]`),
		}
	})
	s.webhook("validate.hooks.test", "ValidatingWebhookConfiguration", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		mu.Lock()
		defer mu.Unlock()
		callers = append(callers, r.UserInfo.Username)
		var u unstructured.Unstructured
		err := json.Unmarshal(r.Object.Raw, &u.Object)
		if err == nil && u.GetAnnotations()["hooked"] == "yes" && u.GetName() != "refused" {
			return &admissionv1.AdmissionResponse{Allowed: true}
		}
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not with this name", Code: http.StatusForbidden}}
	})
	_, err := s.until("hooks", func(u *unstructured.Unstructured, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		return err == nil && u.GetAnnotations()["hooked"] == "yes" && len(callers) > 0
	})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Dynamic(t).Resource(tasks).Namespace("hooks")
	if u, err := c.Create(t.Context(), task("ok"), metav1.CreateOptions{}); err != nil || u.GetAnnotations()["hooked"] != "yes" {
		t.Errorf("created: %v %v", u, err)
	}
	if _, err := c.Create(t.Context(), task("refused"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not with this name") {
		t.Errorf("a refused name: %v", err)
	}
	if last := callers[len(callers)-1]; last != "kubernetes-admin" && last != "admin" {
		t.Errorf("the webhook saw %q", last)
	}
}

// The cluster's quota controller counts tasks, and this server charges them to the quota.
func TestQuota(t *testing.T) {
	s := Start(t)
	ctx := t.Context()
	s.namespace("quota")
	const counted = "count/tasks.core.platform.ai"
	// The controller learns of new kinds every 30 s. It takes minutes to look again at a quota that it saw before that, so
	// the test makes the quota again until it is counted.
	for known := false; !known; {
		s.apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: tasks, namespace: quota}, spec: {hard: {` + counted + `: "2"}}}`)
		s.await(quotas, "quota", "tasks", func(u *unstructured.Unstructured) bool {
			_, known, _ = unstructured.NestedString(u.Object, "status", "used", counted)
			_, looked, _ := unstructured.NestedString(u.Object, "status", "hard", counted)
			return looked
		})
		if !known {
			s.c.Kubectl(t, "--namespace", "quota", "delete", "resourcequota", "tasks")
		}
	}
	used := func(n string) {
		t.Helper()
		s.await(quotas, "quota", "tasks", func(u *unstructured.Unstructured) bool {
			got, _, _ := unstructured.NestedString(u.Object, "status", "used", counted)
			return got == n
		})
	}
	// The server, too, learns what the controller writes with a delay.
	followed := func(not string) {
		t.Helper()
		_, err := s.until("quota", func(_ *unstructured.Unstructured, err error) bool {
			return err == nil || !strings.Contains(err.Error(), not)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used("0")
	followed("status unknown for quota")
	c := s.Dynamic(t).Resource(tasks).Namespace("quota")
	for _, name := range []string{"a", "b"} {
		if _, err := c.Create(ctx, task(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	used("2")
	if _, err := c.Create(ctx, task("c"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: tasks") {
		t.Errorf("a third task: %v", err)
	}
	if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	used("1") // the controller saw the deletion
	followed("exceeded quota: tasks")
	if _, err := c.Create(ctx, task("c"), metav1.CreateOptions{}); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// A namespace that is being deleted takes no new tasks.
func TestEndingNamespace(t *testing.T) {
	s := Start(t)
	s.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ending}}`)
	s.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: ending, finalizers: [test.platform.ai/hold]}}`)
	s.c.Kubectl(t, "delete", "namespace", "ending", "--wait=false")
	_, err := s.until("ending", func(_ *unstructured.Unstructured, err error) bool { return err != nil })
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, "NamespaceTerminating") {
		t.Errorf("a task in a namespace that ends: %v", err)
	}
	s.c.Kubectl(t, "--namespace", "ending", "patch", "configmap", "held", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	s.awaitGone(namespaces, "", "ending")
	if _, err := s.until("nowhere", func(_ *unstructured.Unstructured, err error) bool { return err != nil }); !apierrors.IsNotFound(err) {
		t.Errorf("a task in a namespace that is not there: %v", err)
	}
}
