// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"encoding/json"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// PublishRun gives a task a run, as the controller does before it makes the run's token. Its previous run is over then.
func (s *Server) PublishRun(t testing.TB, namespace, task string) {
	t.Helper()
	api := s.Core(t).Tasks(namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a controller of the server may write the status, too
		o, err := api.Get(t.Context(), task, metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.Status.Phase, o.Status.JobUID = v1alpha1.TaskRunning, uuid.NewUUID()
		_, err = api.UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// WorkerToken gives a task a run, and returns the token of its worker, made as the controller makes it.
func (s *Server) WorkerToken(t testing.TB, namespace, task string, uid types.UID) string {
	t.Helper()
	const account = "platform-ai-worker"
	s.ServiceAccount(t, namespace, account, "platform-worker")
	s.PublishRun(t, namespace, task)
	return s.TokenOf(t, namespace, account, authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: task, UID: uid,
	}})
}

// Worker gives a task a run, and returns the client of its worker.
func (s *Server) Worker(t testing.TB, namespace, task string, uid types.UID) kubernetes.Interface {
	t.Helper()
	c := s.With(s.WorkerToken(t, namespace, task, uid))
	return kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(c))
}

// RESTWorker gives a task a run, and returns the REST client of its worker.
func (s *Server) RESTWorker(t testing.TB, task *v1alpha1.Task) *Client {
	t.Helper()
	return s.Stranger(t).With("Authorization", "Bearer "+s.WorkerToken(t, "default", task.Name, task.UID))
}

// RESTTask makes a task natively, and returns the REST client of its worker.
func (s *Server) RESTTask(t testing.TB, name string, configure ...func(*v1alpha1.TaskSpec)) (*v1alpha1.Task, *Client) {
	t.Helper()
	made := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}
	for _, f := range configure {
		f(&made.Spec)
	}
	task := kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").Create(t.Context(), made, metav1.CreateOptions{}))
	return task, s.RESTWorker(t, task)
}

// RESTFamily makes a task named lead with the children a and b, and returns the REST clients of their workers.
func (s *Server) RESTFamily(t testing.TB) map[string]*Client {
	t.Helper()
	api := s.Core(t)
	kit.Must[*v1alpha1.Agent](t)(api.Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "chief"}, Spec: v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true}},
	}, metav1.CreateOptions{}))
	lead := kit.Must[*v1alpha1.Task](t)(api.Tasks("default").Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "lead"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "p", AgentRef: &v1alpha1.NamespacedReference{Name: "chief"}},
	}, metav1.CreateOptions{}))
	workers := map[string]*Client{"lead": s.RESTWorker(t, lead)}
	for _, name := range []string{"a", "b"} {
		workers["lead"].Post(TasksPath, fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[
			{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","name":"lead","uid":%q,"controller":true}]},"spec":{"type":"container","command":["true"]}}`, name, lead.UID)).Want(t, 201)
		workers[name] = s.RESTWorker(t, kit.Must[*v1alpha1.Task](t)(api.Tasks("default").Get(t.Context(), name, metav1.GetOptions{})))
	}
	return workers
}

// Waiting is a task whose agent can ask for approvals.
type Waiting struct {
	Task *v1alpha1.Task
	// Post appends an event as the task's worker.
	Post func(e *v1alpha1.ExecutionEvent) error
	t    testing.TB
}

// NewWaiting makes a task that somebody creates.
func NewWaiting(t testing.TB, s *Server, by core.CoreV1alpha1Interface, name string, finalizers ...string) Waiting {
	t.Helper()
	made := kit.Must[*v1alpha1.Task](t)(by.Tasks("default").Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}, metav1.CreateOptions{}))
	c := s.Worker(t, "default", name, made.UID).Discovery().RESTClient()
	made = kit.Must[*v1alpha1.Task](t)(by.Tasks("default").Get(t.Context(), name, metav1.GetOptions{}))
	return Waiting{Task: made, t: t, Post: func(e *v1alpha1.ExecutionEvent) error {
		e = e.DeepCopy()
		e.TypeMeta = metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "ExecutionEvent"}
		body := kit.Must[[]byte](t)(json.Marshal(e))
		return c.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/tasks", name, "events").
			SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	}}
}

// Spec is the approval of a call with these arguments.
func (w Waiting) Spec(args string) v1alpha1.ApprovalSpec {
	return v1alpha1.ApprovalSpec{
		TaskName: w.Task.Name, TaskUID: w.Task.UID, Action: "delete it", TargetTool: "exec", ToolCallID: "call",
		TargetArgsDigest: kit.Must[string](w.t)(approval.Digest([]byte(args))),
	}
}

// Ask requests approval of a call with these arguments, as the worker does.
func (w Waiting) Ask(args string, change ...func(*v1alpha1.ApprovalSpec)) string {
	w.t.Helper()
	spec := w.Spec(args)
	for _, f := range change {
		f(&spec)
	}
	e := approval.RequestEvent("default", spec)
	if err := w.Post(e); err != nil {
		w.t.Fatal(err)
	}
	return approval.IDOf(e)
}

// Decide decides on an approval with one word.
func Decide(t testing.TB, c core.CoreV1alpha1Interface, id, word string) (*v1alpha1.Approval, error) {
	t.Helper()
	return c.Approvals("default").Decide(t.Context(), id, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: word}}, metav1.CreateOptions{})
}
