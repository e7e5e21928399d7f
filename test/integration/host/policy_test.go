// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// dryRun returns what the server would answer to a new task.
func dryRun(s *standalone.Server, t *testing.T, set ...any) error {
	t.Helper()
	_, err := s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("probe", set...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// await repeats the dry run until the error is as wanted: none, or one that is Invalid and has the text.
func await(t *testing.T, want string, ask func() error) {
	t.Helper()
	var err error
	timeout := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, kit.Patience, true, func(context.Context) (bool, error) {
		if err = ask(); want == "" {
			return err == nil, nil
		}
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), want), nil
	})
	if timeout != nil {
		t.Fatalf("the server went on answering %v, want %q", err, want)
	}
}

// Point 13: policies apply to our objects, in this process: to new and to changed ones, from the first request after a
// restart on, and until their binding is deleted.
func TestPoliciesReachOurObjects(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	const message = "priorities above 900 are for operators"
	high := func() error { return dryRun(s, t, "priority", int64(901)) }
	if err := high(); err != nil {
		t.Fatalf("without a policy: %v", err)
	}
	if _, err := s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("a", "priority", int64(900)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	host.Install(t, s.Kubernetes(t), host.Policy("priority", "!has(object.spec.priority) || object.spec.priority <= 900", message), host.Deny("priority"))
	await(t, message, high)
	if err := dryRun(s, t, "priority", int64(900)); err != nil {
		t.Errorf("a task that the policy allows: %v", err)
	}
	raise := func() error {
		_, err := s.In(t, standalone.Tasks).Patch(t.Context(), "a", types.MergePatchType,
			[]byte(`{"spec":{"priority":1000}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := raise(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
		t.Errorf("a change that the policy refuses: %v", err)
	}

	s.Restart(t)
	if err := high(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
		t.Errorf("the first request after a restart: %v", err)
	}
	err := s.Kubernetes(t).AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "priority", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "", high)
}

// Policies on executionevents hold on every path of an event. If one event of a list is refused, none is stored.
func TestPoliciesReachEvents(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	kit.Must[any](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("a"), metav1.CreateOptions{}))
	c := s.Kubernetes(t).Discovery().RESTClient()
	post := func(resource, body string) error {
		path, query, _ := strings.Cut(resource, "?")
		req := c.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/" + path)
		if query != "" {
			req = req.Param("dryRun", "All")
		}
		return req.SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
	}
	event := func(summary string) string {
		return `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEvent","type":"ModelMessage","taskName":"a","summary":"` + summary + `"}`
	}
	const message = "events of a say nothing bad"
	p := host.Policy("events", "!(object.taskName == 'a' && object.metadata.namespace == 'default' && object.summary.contains('bad'))", message)
	p.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"executionevents"}
	host.Install(t, s.Kubernetes(t), p, host.Deny("events"))
	await(t, message, func() error { return post("executionevents?dryRun=All", event("bad")) })
	for resource, body := range map[string]string{
		"executionevents": event("bad"),
		"tasks/a/events":  strings.Replace(event("bad"), `"taskName":"a",`, "", 1), // the path names it
	} {
		if err := post(resource, body); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", resource, err)
		}
	}
	list := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEventList","items":[` + event("good") + `,` + event("bad") + `]}`
	if err := post("tasks/a/events", list); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "items[1]: ") {
		t.Errorf("a list: %v", err)
	}
	if l := kit.Must[*unstructured.UnstructuredList](t)(s.In(t, standalone.ExecutionEvents).List(t.Context(), metav1.ListOptions{})); len(l.Items) > 0 {
		t.Errorf("refused events were stored: %v", l.Items)
	}
	if err := post("tasks/a/events", event("good")); err != nil {
		t.Error(err)
	}
}

// Decisions on approvals, plans and messages are no events when they arrive, and become such. The policies hold for them as well.
func TestPoliciesReachWhatBecomesAnEvent(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c, workers := s.Core(t), s.RESTFamily(t)
	asking := standalone.NewWaiting(t, s, c, "asking")
	n := 0 // makes each request another one
	post := func(path, body string) error {
		n++
		if a := workers["a"].Post(path, fmt.Sprintf(body, n)); a.Code >= http.StatusMultipleChoices {
			return errors.New(a.Body)
		}
		return nil
	}
	requests := map[v1alpha1.EventType]func() error{
		v1alpha1.EventApprovalApproved: func() error {
			n++
			_, err := standalone.Decide(t, c, asking.Ask(fmt.Sprintf(`{"n":%d}`, n)), "approve")
			return err
		},
		v1alpha1.EventPlanUpdated: func() error { return post("/internal/v1/plans/default/a", `{"plan_document":"step %d"}`) },
		v1alpha1.EventTaskMessageReceived: func() error {
			return post("/internal/v1/messages/default", `{"fromTask":"a","toTask":"b","parentTask":"lead","content":"hello %d"}`)
		},
	}
	const message = "nobody decides, plans or writes"
	p := host.Policy("quiet", "!(object.type in ['ApprovalApproved', 'PlanUpdated', 'TaskMessageReceived'] || has(object.summary) && object.summary == 'probe')", message)
	p.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"executionevents"}
	count := func() map[v1alpha1.EventType]int {
		n := map[v1alpha1.EventType]int{}
		for _, e := range kit.Must[*v1alpha1.ExecutionEventList](t)(c.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{})).Items {
			if requests[e.Type] != nil {
				n[e.Type]++
			}
		}
		return n
	}
	for typ, request := range requests {
		if err := request(); err != nil {
			t.Fatalf("%s without a policy: %v", typ, err)
		}
	}
	stored := count()
	if len(stored) != len(requests) {
		t.Errorf("stored without a policy: %v", stored)
	}
	host.Install(t, s.Kubernetes(t), p, host.Deny("quiet"))
	await(t, message, func() error {
		probe := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, TaskName: "a", Summary: "probe"}
		_, err := c.ExecutionEvents("default").Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	for typ, request := range requests {
		if err := request(); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if now := count(); !maps.Equal(now, stored) {
		t.Errorf("%v were stored, and then %v", stored, now)
	}
}

// A policy's parameters are objects of the server. Changing them changes what is refused, also for a second policy after
// the first one was deleted.
func TestPolicyParameters(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	ctx, k := t.Context(), s.Kubernetes(t)
	params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Data: map[string]string{"priority": "10"}}
	kit.Must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("default").Create(ctx, params, metav1.CreateOptions{}))
	for i, most := range []string{"20", "30"} {
		p := host.Policy(fmt.Sprintf("limits-%d", i), "object.spec.priority <= int(params.data.priority)", "too high for "+most)
		p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
		b := host.Deny(p.Name)
		b.Spec.ParamRef = &admissionv1.ParamRef{Name: "limits", ParameterNotFoundAction: ptr.To(admissionv1.DenyAction)}
		host.Install(t, k, p, b)
		above := func() error { return dryRun(s, t, "priority", int64(15)) }
		await(t, "too high for "+most, func() error { return dryRun(s, t, "priority", int64(31)) })
		params.Data["priority"] = most
		kit.Must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("default").Update(ctx, params, metav1.UpdateOptions{}))
		await(t, "", above)
		params.Data["priority"] = "10"
		kit.Must[*corev1.ConfigMap](t)(k.CoreV1().ConfigMaps("default").Update(ctx, params, metav1.UpdateOptions{}))
		await(t, "too high for "+most, above)
		if err := k.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, b.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "", above)
	}
}

// A policy that cannot be evaluated is not stored, and only administrators write policies.
func TestPoliciesAreGuarded(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx := t.Context()
	policies := s.Kubernetes(t).AdmissionregistrationV1().ValidatingAdmissionPolicies()
	for expression, want := range map[string]string{
		"object.spec.priority <":       "Syntax error",
		"object.spec.priority + 1":     "must evaluate to bool",
		"1 + 1":                        "must evaluate to bool",
		"params.data.x == 'y'":         "undeclared reference to 'params'",
		"variables.limit > 3":          "undefined field 'limit'",
		"authorizer.group('').check()": "compilation failed",
	} {
		_, err := policies.Create(ctx, host.Policy("bad", expression, "no"), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.validations[0].expression") {
			t.Errorf("%s: %v", expression, err)
		}
	}
	empty := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	_, err := s.Kubernetes(t).AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, empty, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.policyName") || !strings.Contains(err.Error(), "spec.validationActions") {
		t.Errorf("an empty binding: %v", err)
	}
	for _, role := range []string{"view", "edit", "admin"} {
		user := rest.CopyConfig(s.Config())
		user.Impersonate.UserName = role
		asUser, err := kubernetes.NewForConfig(user)
		if err != nil {
			t.Fatal(err)
		}
		bindRole(t, s.Kubernetes(t), role)
		_, err = asUser.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, host.Policy("mine", "true", "no"), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("a policy by a user with role %s: %v", role, err)
		}
	}
}

// bindRole gives a user the ClusterRole of the same name, everywhere.
func bindRole(t *testing.T, k kubernetes.Interface, role string) {
	t.Helper()
	kit.Must[*rbacv1.ClusterRoleBinding](t)(k.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
	}, metav1.CreateOptions{}))
}
