// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/informers/externalversions"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// as returns the platform's client for a user who has the given cluster roles in the namespace default.
func as(t *testing.T, s *standalone.Server, name string, roles ...string) core.CoreV1alpha1Interface {
	t.Helper()
	for _, role := range roles {
		_, err := s.Kubernetes(t).RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := s.Config()
	if name != "" {
		c.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	}
	return must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1()
}

// waiting is a task whose agent can ask for approvals.
type waiting struct {
	t    *testing.T
	task *v1alpha1.Task
	post func(e *v1alpha1.ExecutionEvent) error
}

func newWaiting(t *testing.T, s *standalone.Server, by core.CoreV1alpha1Interface, name string, finalizers ...string) waiting {
	t.Helper()
	made := must[*v1alpha1.Task](t)(by.Tasks("default").Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}, metav1.CreateOptions{}))
	c := workerClient(t, s, "default", name, made.UID).Discovery().RESTClient()
	made = must[*v1alpha1.Task](t)(by.Tasks("default").Get(t.Context(), name, metav1.GetOptions{}))
	return waiting{t, made, func(e *v1alpha1.ExecutionEvent) error {
		e = e.DeepCopy()
		e.TypeMeta = metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "ExecutionEvent"}
		body := must[[]byte](t)(json.Marshal(e))
		return c.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/tasks", name, "events").
			SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	}}
}

func (w waiting) spec(args string) v1alpha1.ApprovalSpec {
	return v1alpha1.ApprovalSpec{
		TaskName: w.task.Name, TaskUID: w.task.UID, Action: "delete it", TargetTool: "exec", ToolCallID: "call",
		TargetArgsDigest: must[string](w.t)(approval.Digest([]byte(args))),
	}
}

// ask requests approval of a call with these arguments, as the worker does.
func (w waiting) ask(args string, change ...func(*v1alpha1.ApprovalSpec)) string {
	w.t.Helper()
	spec := w.spec(args)
	for _, f := range change {
		f(&spec)
	}
	e := approval.RequestEvent("default", spec)
	if err := w.post(e); err != nil {
		w.t.Fatal(err)
	}
	return approval.IDOf(e)
}

func decision(word, reason string) *v1alpha1.ApprovalDecision {
	return &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: reason}}
}

func decide(t *testing.T, c core.CoreV1alpha1Interface, id, word string) (*v1alpha1.Approval, error) {
	t.Helper()
	return c.Approvals("default").Decide(t.Context(), id, decision(word, ""), metav1.CreateOptions{})
}

// refused checks that an error has the code and the text.
func refused(t *testing.T, what string, err error, code int32, text string) {
	t.Helper()
	var s apierrors.APIStatus
	if !errors.As(err, &s) || s.Status().Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %d with %q", what, err, code, text)
	}
}

// told returns the next event of a watch of approvals in words.
func told(t *testing.T, w watch.Interface) (*v1alpha1.Approval, string) {
	t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			a, is := e.Object.(*v1alpha1.Approval)
			if !is {
				t.Fatalf("%s: %v", e.Type, apierrors.FromObject(e.Object))
			}
			if e.Type == watch.Bookmark {
				continue
			}
			return a, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, a.Status.State, a.Status.ExecutionOutcome))
		case <-t.Context().Done():
			t.Fatal("the test ended before the next event")
		}
	}
}

// An approval is requested, seen by a watch that waits for it, decided, carried out, and deleted with its task. A watch
// reports every change once, and again to a client that resumes before it.
func TestApprovalIsWatchedThroughItsLife(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	alice, bob := as(t, s, "alice", "platform-editor"), as(t, s, "bob", "platform-approver")
	w := newWaiting(t, s, alice, "a")
	list := must[*v1alpha1.ApprovalList](t)(bob.Approvals("default").List(t.Context(), metav1.ListOptions{}))
	open := func(o metav1.ListOptions) watch.Interface {
		o.ResourceVersion = list.ResourceVersion
		w := must[watch.Interface](t)(bob.Approvals("default").Watch(t.Context(), o))
		t.Cleanup(w.Stop)
		return w
	}
	all, pending, other := open(metav1.ListOptions{AllowWatchBookmarks: true}), open(metav1.ListOptions{FieldSelector: "status.state=pending"}), open(metav1.ListOptions{FieldSelector: "spec.taskName=b"})
	id := w.ask(`{"rm":"x"}`, func(s *v1alpha1.ApprovalSpec) { s.RequestedBy = "mallory"; s.Timeout = "1h" })

	asked, text := told(t, all)
	if sp := asked.Spec; text != "ADDED pending" || asked.Name != id || sp.RequestedBy != "alice" || sp.ExpiresAt == nil || sp.TaskUID != w.task.UID || asked.OwnerReferences[0].UID != w.task.UID {
		t.Errorf("%s: %+v", text, asked)
	}
	if _, text := told(t, pending); text != "ADDED pending" {
		t.Error(text)
	}
	named := open(metav1.ListOptions{FieldSelector: "metadata.name=" + id})
	token := "ghp_" + strings.Repeat("aB3d", 9)
	answer := must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), id, decision("APPROVE", "fine, with "+token), metav1.CreateOptions{}))
	approved, text := told(t, all)
	if diff := cmp.Diff(answer.Status, approved.Status); diff != "" || text != "MODIFIED approved not_started" {
		t.Errorf("%s, answer and watch differ:\n%s", text, diff)
	}
	if st := approved.Status; st.DecisionActor != "bob" || st.DecisionReason != "fine, with [REDACTED]" || st.DecisionSeq != 2 || approved.UID != asked.UID {
		t.Errorf("approved: %+v", approved)
	}
	if _, text := told(t, pending); text != "DELETED pending" {
		t.Error(text)
	}
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted} {
		e := &v1alpha1.ExecutionEvent{Type: typ, ToolName: "exec", DedupKey: string(typ)}
		e.Content = approval.RequestEvent("default", w.spec(`{"rm":"x"}`)).Content // has approvalID
		for range 2 {
			if err := w.post(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"MODIFIED approved running", "MODIFIED approved succeeded"}
	for _, text := range want {
		if _, got := told(t, all); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	if err := alice.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want = append([]string{"ADDED pending", "MODIFIED approved not_started"}, append(want, "DELETED approved succeeded")...)
	if last, got := told(t, all); got != want[4] || last.Spec.TargetTool != "exec" {
		t.Errorf("got %s %+v", got, last)
	}
	for name, w := range map[string]watch.Interface{"by name": named, "resumed": open(metav1.ListOptions{}), "by label": open(metav1.ListOptions{LabelSelector: "platform.ai/task=a"})} {
		for _, text := range want {
			if _, got := told(t, w); got != text {
				t.Errorf("%s: got %s, want %s", name, got, text)
			}
		}
	}
	select {
	case e := <-other.ResultChan():
		t.Errorf("another task: %v", e)
	default:
	}
	if _, err := bob.Approvals("default").Get(t.Context(), id, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its task is gone: %v", err)
	}
}

// Lists support pages and selectors; an informer has what the list has.
func TestApprovalsAreListed(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := as(t, s, "")
	a, b := newWaiting(t, s, admin, "a"), newWaiting(t, s, admin, "b")
	var want []string
	for i := range 7 {
		want = append(want, a.ask(fmt.Sprintf(`{"n":%d}`, i)))
	}
	want = append(want, b.ask(`{}`))
	must[*v1alpha1.Approval](t)(decide(t, admin, want[2], "decline"))
	names := func(o metav1.ListOptions) []string {
		t.Helper()
		var out []string
		for {
			l := must[*v1alpha1.ApprovalList](t)(admin.Approvals("default").List(t.Context(), o))
			for i := range l.Items {
				out = append(out, l.Items[i].Name)
			}
			if o.Limit > 0 && int64(len(l.Items)) > o.Limit {
				t.Errorf("%d items of %d", len(l.Items), o.Limit)
			}
			if o.Continue = l.Continue; o.Continue == "" {
				return out
			}
		}
	}
	for selector, want := range map[string][]string{
		"": want, "spec.taskName=a": want[:7], "spec.taskName=b": want[7:], "status.state=declined": want[2:3], "metadata.name=" + want[4]: want[4:5],
		"spec.taskUID=" + string(b.task.UID): want[7:], "status.state=pending,spec.taskName=a": append(append([]string{}, want[:2]...), want[3:7]...),
		"metadata.name=none": nil, "spec.taskName=none": nil,
	} {
		for _, limit := range []int64{0, 1, 3} {
			if diff := cmp.Diff(want, names(metav1.ListOptions{FieldSelector: selector, Limit: limit})); diff != "" {
				t.Errorf("%q by %d (-want +got):\n%s", selector, limit, diff)
			}
		}
	}
	_, err := admin.Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.action=x"})
	refused(t, "unknown selector", err, 400, "not a known field selector")
	_, err = admin.Approvals("default").List(t.Context(), metav1.ListOptions{Continue: "x"})
	refused(t, "bad continue", err, 400, "continue")

	everywhere := must[*v1alpha1.ApprovalList](t)(admin.Approvals("").List(t.Context(), metav1.ListOptions{Limit: 5}))
	if len(everywhere.Items) != 5 || everywhere.RemainingItemCount == nil || *everywhere.RemainingItemCount != 3 {
		t.Errorf("%d items, %v remain", len(everywhere.Items), everywhere.RemainingItemCount)
	}
	factory := externalversions.NewSharedInformerFactory(must[*versioned.Clientset](t)(versioned.NewForConfig(s.Config())), 0)
	informer := factory.Core().V1alpha1().Approvals()
	seen := make(chan string, 100)
	must[cache.ResourceEventHandlerRegistration](t)(informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) { seen <- string(o.(*v1alpha1.Approval).Status.State) },
	}))
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if n := len(informer.Informer().GetStore().List()); n != 8 {
		t.Errorf("the informer has %d", n)
	}
	must[*v1alpha1.Approval](t)(decide(t, admin, want[0], "approve"))
	if got := <-seen; got != "approved" {
		t.Errorf("the informer saw %s", got)
	}
}

// Who may decide, what, and when.
func TestDecisionRules(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin, bob, viewer := as(t, s, ""), as(t, s, "bob", "platform-approver"), as(t, s, "vera", "platform-viewer")
	w := newWaiting(t, s, admin, "a", "platform.ai/cleanup")
	first, second, late := w.ask(`1`), w.ask(`2`), w.ask(`3`, func(s *v1alpha1.ApprovalSpec) {
		s.ExpiresAt = &metav1.MicroTime{Time: time.Now().Add(-10 * time.Second)} // within the tolerated clock skew
	})
	_, err := decide(t, viewer, first, "approve")
	refused(t, "viewer", err, 403, `cannot create resource "approvals/decision"`)
	if _, err := viewer.Approvals("default").Get(t.Context(), first, metav1.GetOptions{}); err != nil {
		t.Errorf("viewer: %v", err)
	}
	_, err = decide(t, bob, first, "maybe")
	refused(t, "word", err, 400, "spec.decision: must be approve, approved, decline or declined")
	_, err = bob.Approvals("default").Decide(t.Context(), first, decision("approve", strings.Repeat("ä", 1025)), metav1.CreateOptions{})
	refused(t, "reason", err, 400, "spec.reason: must be at most 1024 characters")
	_, err = decide(t, bob, strings.Repeat("0", 64), "approve")
	refused(t, "unknown", err, 404, "not found")
	d := decision("approve", "")
	d.Spec.TaskName = "b"
	_, err = bob.Approvals("default").Decide(t.Context(), first, d, metav1.CreateOptions{})
	refused(t, "task", err, 404, "not found")
	dry := must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), first, decision("decline", ""), metav1.CreateOptions{DryRun: []string{"All"}}))
	if dry.Status.State != v1alpha1.ApprovalDeclined {
		t.Errorf("dry run: %+v", dry.Status)
	}

	d.Spec.TaskName = "a"
	d.Spec.Approval = &v1alpha1.ApprovalSpec{TaskName: "forged"}
	one := must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), first, d, metav1.CreateOptions{}))
	for _, word := range []string{"Approved", " approve "} {
		again := must[*v1alpha1.Approval](t)(decide(t, admin, first, word))
		if diff := cmp.Diff(one, again); diff != "" {
			t.Errorf("the same again:\n%s", diff)
		}
	}
	_, err = decide(t, admin, first, "declined")
	refused(t, "the other", err, 409, "it was already approved by bob")
	task := must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	notes := map[string]string{}
	for _, k := range []string{"decision-id", "decision-status", "decision-seq", "decided-at"} {
		notes[k] = task.Annotations["platform.ai/approval-"+k]
	}
	if diff := cmp.Diff(map[string]string{"decision-id": first, "decision-status": "approved", "decision-seq": "4", "decided-at": one.Status.DecisionTime.UTC().Format(time.RFC3339Nano)}, notes); diff != "" {
		t.Errorf("annotations: %s", diff)
	}

	_, err = decide(t, bob, late, "approve")
	refused(t, "expired", err, 409, "it expired at ")
	if got := must[*v1alpha1.Approval](t)(bob.Approvals("default").Get(t.Context(), late, metav1.GetOptions{})); got.Status.State != v1alpha1.ApprovalExpired {
		t.Errorf("expired: %+v", got.Status)
	}

	if err := admin.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = decide(t, bob, second, "approve")
	refused(t, "deleted", err, 410, `task "a" is being deleted`)
	w = newWaiting(t, s, admin, "b")
	id := w.ask(`1`)
	w.task.Status.Phase = v1alpha1.TaskSucceeded
	must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), w.task, metav1.UpdateOptions{}))
	_, err = decide(t, bob, id, "approve")
	refused(t, "ended", err, 409, `task "b" has ended: it is Succeeded`)
}

// What a worker may write about approvals.
func TestWorkersAskAndDoNotDecide(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := as(t, s, "")
	w := newWaiting(t, s, admin, "a")
	id := w.ask(`1`)
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalExpired} {
		refused(t, string(typ), w.post(approval.DecisionEvent(typ, id, approval.Decision{})), 403, "terminal task and approval events must use controller-owned paths")
	}
	outcome := approval.OutcomeEvent(id, approval.Outcome{Outcome: v1alpha1.ApprovalSucceeded})
	refused(t, "outcome", w.post(outcome), 403, "controller-owned paths")
	spec := w.spec(`2`)
	spec.TaskUID = types.UID("other")
	refused(t, "task", w.post(approval.RequestEvent("default", spec)), 400, "content.taskUID")
	spec = w.spec(`2`)
	spec.TargetArgsDigest = "abc"
	refused(t, "digest", w.post(approval.RequestEvent("default", spec)), 400, "content.targetArgsDigest")
	spec = w.spec(`2`)
	e := approval.RequestEvent("default", spec)
	e.Content.Raw = bytes.Replace(e.Content.Raw, []byte(spec.TargetTool), []byte("other"), 1)
	refused(t, "id", w.post(e), 400, "content.approvalID")
	if got := w.ask(`1`); got != id {
		t.Errorf("asked twice: %s and %s", id, got)
	}
	if l := must[*v1alpha1.ApprovalList](t)(admin.Approvals("default").List(t.Context(), metav1.ListOptions{})); len(l.Items) != 1 {
		t.Errorf("%d approvals", len(l.Items))
	}
	// Even if somebody added the permission to the workers' role.
	c := s.Config()
	c.Impersonate = rest.ImpersonationConfig{UserName: "w", Groups: []string{"system:masters"}, Extra: map[string][]string{v1alpha1.ExtraTaskName: {"a"}}}
	_, err := decide(t, must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1(), id, "approve")
	refused(t, "worker", err, 403, "names no task")
}

// Of many concurrent decisions one wins, even against expiry by a controller. All answers agree with it, and the stream has
// one decision.
func TestOneDecisionWins(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := as(t, s, "")
	w := newWaiting(t, s, admin, "a")
	for round := range 3 {
		id := w.ask(fmt.Sprint(round))
		const racers = 64
		words := []string{"approve", "decline"}
		errs, states := make([]error, racers), make([]v1alpha1.ApprovalState, racers)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range racers {
			wg.Go(func() {
				<-start
				a, err := admin.Approvals("default").Decide(t.Context(), id, decision(words[i%2], fmt.Sprint(i)), metav1.CreateOptions{})
				errs[i] = err
				if err == nil {
					states[i] = a.Status.State
				}
			})
		}
		expired := approval.DecisionEvent(v1alpha1.EventApprovalExpired, id, approval.Decision{TaskUID: w.task.UID})
		expired.TaskName = "a"
		var kept *v1alpha1.ExecutionEvent
		wg.Go(func() {
			<-start
			e, err := admin.ExecutionEvents("default").Create(t.Context(), expired, metav1.CreateOptions{})
			if err != nil {
				t.Error(err)
			}
			kept = e
		})
		close(start)
		wg.Wait()
		final := must[*v1alpha1.Approval](t)(admin.Approvals("default").Get(t.Context(), id, metav1.GetOptions{})).Status
		if kept.Seq != final.DecisionSeq || approval.StateOf(kept.Type) != final.State {
			t.Errorf("the controller was told of %s, which is event %d; it is %+v", kept.Type, kept.Seq, final)
		}
		for i := range racers {
			switch won := strings.HasPrefix(string(final.State), words[i%2]); {
			case won && (errs[i] != nil || states[i] != final.State):
				t.Errorf("%s: %s, %v", words[i%2], states[i], errs[i])
			case !won:
				refused(t, words[i%2], errs[i], 409, map[bool]string{true: "it expired", false: "it was already " + string(final.State)}[final.State == v1alpha1.ApprovalExpired])
			}
		}
		l := must[*v1alpha1.ExecutionEventList](t)(admin.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=a"}))
		if n := len(l.Items); n != 2*(round+1) || final.DecisionSeq != int64(n) {
			t.Errorf("%d events, decided by %d", n, final.DecisionSeq)
		}
	}
}

// A policy compares the requester with the decider, both as the server reports them and not as the client does.
func TestRequesterIsNotApprover(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	k := s.Kubernetes(t)
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(must[[]byte](t)(os.ReadFile("../../artifacts/examples/policies/approval.yaml"))), 4096)
	var p admissionv1.ValidatingAdmissionPolicy
	var b admissionv1.ValidatingAdmissionPolicyBinding
	if err := errors.Join(docs.Decode(&p), docs.Decode(&b)); err != nil {
		t.Fatal(err)
	}
	if err := docs.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		t.Errorf("more documents: %v", err)
	}
	alice, bob := as(t, s, "alice", "platform-editor", "platform-approver"), as(t, s, "bob", "platform-approver")
	w := newWaiting(t, s, alice, "a")
	id, declined := w.ask(`1`), w.ask(`2`)
	install(t, k, &p, &b)
	forged := decision("approve", "")
	forged.Spec.Approval = &v1alpha1.ApprovalSpec{TaskName: "a", RequestedBy: "carol"}
	dry := metav1.CreateOptions{DryRun: []string{"All"}}
	const message = "who requested a task may not approve its actions"
	eventually(t, func(ctx context.Context) bool {
		_, err := alice.Approvals("default").Decide(ctx, id, forged, dry)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), message)
	})
	_, err := decide(t, alice, id, " APPROVED")
	refused(t, "requester", err, 403, message)
	if a := must[*v1alpha1.Approval](t)(decide(t, bob, id, "approve")); a.Status.DecisionActor != "bob" || a.Spec.RequestedBy != "alice" {
		t.Errorf("%+v", a)
	}
	must[*v1alpha1.Approval](t)(decide(t, alice, declined, "decline"))
}

// eventually repeats a check until it holds, for changes that take effect with a delay.
func eventually(t *testing.T, so func(context.Context) bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(policyWait)
	for !so(t.Context()) {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("it did not become so")
		}
	}
}

// A task records who created it, whatever its creator writes there.
func TestTaskKeepsItsRequester(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	alice, admin := as(t, s, "alice", "platform-editor"), as(t, s, "")
	const key = "platform.ai/requested-by"
	of := func(name, by string) *v1alpha1.Task {
		return &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{key: by}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}
	}
	a := must[*v1alpha1.Task](t)(alice.Tasks("default").Create(t.Context(), of("a", "mallory"), metav1.CreateOptions{}))
	if a.Annotations[key] != "alice" {
		t.Errorf("annotations %v", a.Annotations)
	}
	if b := must[*v1alpha1.Task](t)(admin.Tasks("default").Create(t.Context(), of("b", "carol"), metav1.CreateOptions{})); b.Annotations[key] != "carol" {
		t.Errorf("of a controller: %v", b.Annotations)
	}
	_, err := alice.Tasks("default").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":"bob"}}}`), metav1.PatchOptions{})
	refused(t, "change", err, 422, "is set by the server")
	a.Annotations = map[string]string{"mine": "x"}
	if a = must[*v1alpha1.Task](t)(alice.Tasks("default").Update(t.Context(), a, metav1.UpdateOptions{})); a.Annotations[key] != "alice" || a.Annotations["mine"] != "x" {
		t.Errorf("after a replacement: %v", a.Annotations)
	}
	applied := must[*v1alpha1.Task](t)(alice.Tasks("default").Patch(t.Context(), "c", types.ApplyPatchType,
		[]byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"c"},"spec":{"type":"container","command":["true"]}}`), metav1.PatchOptions{FieldManager: "me", Force: new(true)}))
	if applied.Annotations[key] != "alice" {
		t.Errorf("applied: %v", applied.Annotations)
	}
}
