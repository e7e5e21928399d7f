// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func decision(word, reason string) *v1alpha1.ApprovalDecision {
	return &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word, Reason: reason}}
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
	alice, bob := s.As(t, "alice", "platform-editor"), s.As(t, "bob", "platform-approver")
	w := standalone.NewWaiting(t, s, alice, "a")
	list := kit.Must[*v1alpha1.ApprovalList](t)(bob.Approvals("default").List(t.Context(), metav1.ListOptions{}))
	open := func(o metav1.ListOptions) watch.Interface {
		o.ResourceVersion = list.ResourceVersion
		w := kit.Must[watch.Interface](t)(bob.Approvals("default").Watch(t.Context(), o))
		t.Cleanup(w.Stop)
		return w
	}
	all, pending, other := open(metav1.ListOptions{AllowWatchBookmarks: true}), open(metav1.ListOptions{FieldSelector: "status.state=pending"}), open(metav1.ListOptions{FieldSelector: "spec.taskName=b"})
	id := w.Ask(`{"rm":"x"}`, func(s *v1alpha1.ApprovalSpec) { s.RequestedBy = "mallory"; s.Timeout = "1h" })

	asked, text := told(t, all)
	if sp := asked.Spec; text != "ADDED pending" || asked.Name != id || sp.RequestedBy != "alice" || sp.ExpiresAt == nil || sp.TaskUID != w.Task.UID || asked.OwnerReferences[0].UID != w.Task.UID {
		t.Errorf("%s: %+v", text, asked)
	}
	if _, text := told(t, pending); text != "ADDED pending" {
		t.Error(text)
	}
	named := open(metav1.ListOptions{FieldSelector: "metadata.name=" + id})
	token := "ghp_" + strings.Repeat("aB3d", 9)
	answer := kit.Must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), id, decision("APPROVE", "fine, with "+token), metav1.CreateOptions{}))
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
		e.Content = approval.RequestEvent("default", w.Spec(`{"rm":"x"}`)).Content // has approvalID
		for range 2 {
			if err := w.Post(e); err != nil {
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
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	a, b := standalone.NewWaiting(t, s, admin, "a"), standalone.NewWaiting(t, s, admin, "b")
	var want []string
	for i := range 7 {
		want = append(want, a.Ask(fmt.Sprintf(`{"n":%d}`, i)))
	}
	want = append(want, b.Ask(`{}`))
	kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, admin, want[2], "decline"))
	names := func(o metav1.ListOptions) []string {
		t.Helper()
		var out []string
		for {
			l := kit.Must[*v1alpha1.ApprovalList](t)(admin.Approvals("default").List(t.Context(), o))
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
		"spec.taskUID=" + string(b.Task.UID): want[7:], "status.state=pending,spec.taskName=a": append(append([]string{}, want[:2]...), want[3:7]...),
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

	everywhere := kit.Must[*v1alpha1.ApprovalList](t)(admin.Approvals("").List(t.Context(), metav1.ListOptions{Limit: 5}))
	if len(everywhere.Items) != 5 || everywhere.RemainingItemCount == nil || *everywhere.RemainingItemCount != 3 {
		t.Errorf("%d items, %v remain", len(everywhere.Items), everywhere.RemainingItemCount)
	}
	client := kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(s.Config())).CoreV1alpha1().RESTClient()
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client, "approvals", metav1.NamespaceAll, fields.Everything()), &v1alpha1.Approval{}, 0, nil)
	seen := make(chan string, 100)
	kit.Must[cache.ResourceEventHandlerRegistration](t)(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) { seen <- string(o.(*v1alpha1.Approval).Status.State) },
	}))
	go informer.RunWithContext(t.Context()) // ends with the test
	cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)
	if n := len(informer.GetStore().List()); n != 8 {
		t.Errorf("the informer has %d", n)
	}
	kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, admin, want[0], "approve"))
	if got := <-seen; got != "approved" {
		t.Errorf("the informer saw %s", got)
	}
}

// Who may decide, what, and when.
func TestDecisionRules(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin, bob, viewer := s.As(t, ""), s.As(t, "bob", "platform-approver"), s.As(t, "vera", "platform-viewer")
	w := standalone.NewWaiting(t, s, admin, "a", "platform.ai/cleanup")
	first, second, late := w.Ask(`1`), w.Ask(`2`), w.Ask(`3`, func(s *v1alpha1.ApprovalSpec) {
		s.ExpiresAt = &metav1.MicroTime{Time: time.Now().Add(-10 * time.Second)} // within the tolerated clock skew
	})
	_, err := standalone.Decide(t, viewer, first, "approve")
	refused(t, "viewer", err, 403, `cannot create resource "approvals/decision"`)
	if _, err := viewer.Approvals("default").Get(t.Context(), first, metav1.GetOptions{}); err != nil {
		t.Errorf("viewer: %v", err)
	}
	_, err = standalone.Decide(t, bob, first, "maybe")
	refused(t, "word", err, 400, "spec.decision: must be approve, approved, decline or declined")
	_, err = bob.Approvals("default").Decide(t.Context(), first, decision("approve", strings.Repeat("ä", 1025)), metav1.CreateOptions{})
	refused(t, "reason", err, 400, "spec.reason: must be at most 1024 characters")
	_, err = standalone.Decide(t, bob, strings.Repeat("0", 64), "approve")
	refused(t, "unknown", err, 404, "not found")
	d := decision("approve", "")
	d.Spec.TaskName = "b"
	_, err = bob.Approvals("default").Decide(t.Context(), first, d, metav1.CreateOptions{})
	refused(t, "task", err, 404, "not found")
	dry := kit.Must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), first, decision("decline", ""), metav1.CreateOptions{DryRun: []string{"All"}}))
	if dry.Status.State != v1alpha1.ApprovalDeclined {
		t.Errorf("dry run: %+v", dry.Status)
	}

	d.Spec.TaskName = "a"
	d.Spec.Approval = &v1alpha1.ApprovalSpec{TaskName: "forged"}
	one := kit.Must[*v1alpha1.Approval](t)(bob.Approvals("default").Decide(t.Context(), first, d, metav1.CreateOptions{}))
	for _, word := range []string{"Approved", " approve "} {
		again := kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, admin, first, word))
		if diff := cmp.Diff(one, again); diff != "" {
			t.Errorf("the same again:\n%s", diff)
		}
	}
	_, err = standalone.Decide(t, admin, first, "declined")
	refused(t, "the other", err, 409, "it was already approved by bob")
	task := kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	notes := map[string]string{}
	for _, k := range []string{"decision-id", "decision-status", "decision-seq", "decided-at"} {
		notes[k] = task.Annotations["platform.ai/approval-"+k]
	}
	if diff := cmp.Diff(map[string]string{"decision-id": first, "decision-status": "approved", "decision-seq": "4", "decided-at": one.Status.DecisionTime.UTC().Format(time.RFC3339Nano)}, notes); diff != "" {
		t.Errorf("annotations: %s", diff)
	}

	_, err = standalone.Decide(t, bob, late, "approve")
	refused(t, "expired", err, 409, "it expired at ")
	if got := kit.Must[*v1alpha1.Approval](t)(bob.Approvals("default").Get(t.Context(), late, metav1.GetOptions{})); got.Status.State != v1alpha1.ApprovalExpired {
		t.Errorf("expired: %+v", got.Status)
	}

	if err := admin.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = standalone.Decide(t, bob, second, "approve")
	refused(t, "deleted", err, 410, `task "a" is being deleted`)
	w = standalone.NewWaiting(t, s, admin, "b")
	id := w.Ask(`1`)
	w.Task.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").UpdateStatus(t.Context(), w.Task, metav1.UpdateOptions{}))
	_, err = standalone.Decide(t, bob, id, "approve")
	refused(t, "ended", err, 409, `task "b" has ended: it is Succeeded`)
}

// What a worker may write about approvals.
func TestWorkersAskAndDoNotDecide(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	w := standalone.NewWaiting(t, s, admin, "a")
	id := w.Ask(`1`)
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalExpired} {
		refused(t, string(typ), w.Post(approval.DecisionEvent(typ, id, approval.Decision{})), 403, "terminal task and approval events must use controller-owned paths")
	}
	outcome := approval.OutcomeEvent(id, approval.Outcome{Outcome: v1alpha1.ApprovalSucceeded})
	refused(t, "outcome", w.Post(outcome), 403, "controller-owned paths")
	spec := w.Spec(`2`)
	spec.TaskUID = types.UID("other")
	refused(t, "task", w.Post(approval.RequestEvent("default", spec)), 400, "content.taskUID")
	spec = w.Spec(`2`)
	spec.TargetArgsDigest = "abc"
	refused(t, "digest", w.Post(approval.RequestEvent("default", spec)), 400, "content.targetArgsDigest")
	spec = w.Spec(`2`)
	e := approval.RequestEvent("default", spec)
	e.Content.Raw = bytes.Replace(e.Content.Raw, []byte(spec.TargetTool), []byte("other"), 1)
	refused(t, "id", w.Post(e), 400, "content.approvalID")
	if got := w.Ask(`1`); got != id {
		t.Errorf("asked twice: %s and %s", id, got)
	}
	if l := kit.Must[*v1alpha1.ApprovalList](t)(admin.Approvals("default").List(t.Context(), metav1.ListOptions{})); len(l.Items) != 1 {
		t.Errorf("%d approvals", len(l.Items))
	}
	// Even if somebody added the permission to the workers' role.
	c := s.Config()
	c.Impersonate = rest.ImpersonationConfig{UserName: "w", Groups: []string{"system:masters"}, Extra: map[string][]string{v1alpha1.ExtraTaskName: {"a"}}}
	_, err := standalone.Decide(t, kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1(), id, "approve")
	refused(t, "worker", err, 403, "names no task")
}

// Of many concurrent decisions one wins, even against expiry by a controller. All answers agree with it, and the stream has
// one decision.
func TestOneDecisionWins(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	w := standalone.NewWaiting(t, s, admin, "a")
	for round := range 3 {
		id := w.Ask(fmt.Sprint(round))
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
		expired := approval.DecisionEvent(v1alpha1.EventApprovalExpired, id, approval.Decision{TaskUID: w.Task.UID})
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
		final := kit.Must[*v1alpha1.Approval](t)(admin.Approvals("default").Get(t.Context(), id, metav1.GetOptions{})).Status
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
		l := kit.Must[*v1alpha1.ExecutionEventList](t)(admin.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=a"}))
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
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(kit.Must[[]byte](t)(os.ReadFile("../../../artifacts/examples/policies/approval.yaml"))), 4096)
	var p admissionv1.ValidatingAdmissionPolicy
	var b admissionv1.ValidatingAdmissionPolicyBinding
	if err := errors.Join(docs.Decode(&p), docs.Decode(&b)); err != nil {
		t.Fatal(err)
	}
	if err := docs.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		t.Errorf("more documents: %v", err)
	}
	alice, bob := s.As(t, "alice", "platform-editor", "platform-approver"), s.As(t, "bob", "platform-approver")
	w := standalone.NewWaiting(t, s, alice, "a")
	id, declined := w.Ask(`1`), w.Ask(`2`)
	host.Install(t, k, &p, &b)
	forged := decision("approve", "")
	forged.Spec.Approval = &v1alpha1.ApprovalSpec{TaskName: "a", RequestedBy: "carol"}
	dry := metav1.CreateOptions{DryRun: []string{"All"}}
	const message = "who requested a task may not approve its actions"
	kit.Await(t, "the policy in force", func() bool {
		_, err := alice.Approvals("default").Decide(t.Context(), id, forged, dry)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), message)
	})
	_, err := standalone.Decide(t, alice, id, " APPROVED")
	refused(t, "requester", err, 403, message)
	if a := kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, bob, id, "approve")); a.Status.DecisionActor != "bob" || a.Spec.RequestedBy != "alice" {
		t.Errorf("%+v", a)
	}
	kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, alice, declined, "decline"))
}

// A task records who created it, whatever its creator writes there.
func TestTaskKeepsItsRequester(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	alice, admin := s.As(t, "alice", "platform-editor"), s.As(t, "")
	const key = "platform.ai/requested-by"
	of := func(name, by string) *v1alpha1.Task {
		return &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{key: by}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}
	}
	a := kit.Must[*v1alpha1.Task](t)(alice.Tasks("default").Create(t.Context(), of("a", "mallory"), metav1.CreateOptions{}))
	if a.Annotations[key] != "alice" {
		t.Errorf("annotations %v", a.Annotations)
	}
	if b := kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Create(t.Context(), of("b", "carol"), metav1.CreateOptions{})); b.Annotations[key] != "carol" {
		t.Errorf("of a controller: %v", b.Annotations)
	}
	_, err := alice.Tasks("default").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":"bob"}}}`), metav1.PatchOptions{})
	refused(t, "change", err, 422, "is set by the server")
	a.Annotations = map[string]string{"mine": "x"}
	if a = kit.Must[*v1alpha1.Task](t)(alice.Tasks("default").Update(t.Context(), a, metav1.UpdateOptions{})); a.Annotations[key] != "alice" || a.Annotations["mine"] != "x" {
		t.Errorf("after a replacement: %v", a.Annotations)
	}
	applied := kit.Must[*v1alpha1.Task](t)(alice.Tasks("default").Patch(t.Context(), "c", types.ApplyPatchType,
		[]byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"c"},"spec":{"type":"container","command":["true"]}}`), metav1.PatchOptions{FieldManager: "me", Force: new(true)}))
	if applied.Annotations[key] != "alice" {
		t.Errorf("applied: %v", applied.Annotations)
	}
}
