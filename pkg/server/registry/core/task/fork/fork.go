// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fork serves the forks of tasks: tasks that continue others from a point of their history. A fork is created through the API
// as the caller. What it begins with is derived by package readmodel/fork.
package fork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/readmodel/fork"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
)

const (
	// maxSource is how many bytes of the source's name a generated name contains.
	maxSource = 42
	// maxTask is the maximum size of a new task as JSON, in bytes.
	maxTask = 1 << 20
	// suffixDigits is the number of hexadecimal digits that are added to a generated name.
	suffixDigits = 8
)

// Forks serves the forks of tasks. All fields are required except Loopback.
type Forks struct {
	Tasks stored.Tasks
	Log   *eventlog.Log
	// Later stores events that the disk has no room for.
	Later *later.Queue
	// Authorizer decides who may read what a fork takes over.
	Authorizer authorizer.Authorizer
	// Loopback is the configuration of the server's client of itself. Without it tasks cannot be forked.
	Loopback *restclient.Config
}

// Create serves POST of the subresource fork. It creates a task that continues another from a point of its history. The new task is created
// through the API as the caller, by impersonation over the loopback client. A caller who may fork but may not create tasks is therefore
// refused, and policies on tasks apply. The caller must also be allowed to get the source. The fork
// events are appended afterwards and can be repeated: if they cannot be stored, the server tries again,
// and if a request is cut off in between, a retry of the client adds what is missing.
func (r Forks) Create(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	f, ok := obj.(*v1alpha1.TaskFork)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskFork, not %T", obj))
	}
	if err := r.mayFork(ctx, p.Object); err != nil {
		return nil, err
	}
	if p.Object.DeletionTimestamp != nil {
		return nil, refusal.Deleted(p.Object)
	}
	seq, err := r.forkPoint(ctx, p.Object, f.Spec.AfterSeq)
	if err != nil {
		return nil, err
	}
	if err := checkCheckpoint(f.Spec.ExecutionCheckpoint); err != nil {
		return nil, err
	}
	made, history, err := r.makeFork(ctx, p, &f.Spec, seq)
	if err != nil {
		return nil, err
	}
	replayed := history == nil
	if replayed {
		seq = forkedAt(made)
	}
	if !p.DryRun {
		r.tell(ctx, &told{p.Object, made, seq})
	}
	if replayed {
		if history, err = r.forkContext(ctx, p.Object, seq); err != nil {
			return nil, err
		}
	}
	f.Status = v1alpha1.TaskForkStatus{
		Namespace: p.Object.Namespace, SourceTaskName: p.Object.Name, NewTaskName: made.Name,
		AfterSeq: seq, Replayed: replayed, ForkContext: history,
	}
	return f, nil
}

// forkPoint returns the sequence number that afterSeq refers to.
func (r Forks) forkPoint(ctx context.Context, t *v1alpha1.Task, after *intstr.IntOrString) (int64, error) {
	head, err := r.Log.Head(ctx, stored.Stream(t))
	if err != nil {
		return 0, err
	}
	if after == nil || after.Type == intstr.String && after.StrVal == v1alpha1.ForkLatest {
		return head.LatestSeq, nil
	}
	seq := int64(after.IntVal)
	if after.Type == intstr.String {
		if seq, err = strconv.ParseInt(after.StrVal, 10, 64); err != nil {
			return 0, apierrors.NewBadRequest(fmt.Sprintf("spec.afterSeq: %q: must be a number or %q", after.StrVal, v1alpha1.ForkLatest))
		}
	}
	switch {
	case seq < 0:
		return 0, apierrors.NewBadRequest(fmt.Sprintf("spec.afterSeq: %d: must not be negative", seq))
	case seq > head.LatestSeq:
		return 0, apierrors.NewBadRequest(fmt.Sprintf("spec.afterSeq: %d: the newest event of task %q is %d", seq, t.Name, head.LatestSeq))
	case seq == 0:
		return 0, nil
	}
	_, err = r.Log.Get(ctx, t.Namespace, event.Name(t.Name, seq))
	if errors.Is(err, eventlog.ErrNotFound) {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("spec.afterSeq: %d: task %q has no such event any more", seq, t.Name))
	}
	return seq, err
}

// checkCheckpoint checks the syntax of a checkpoint reference.
func checkCheckpoint(c *v1alpha1.ExecutionCheckpointReference) error {
	if c == nil {
		return nil
	}
	if !rule.IsDigest(c.Digest) {
		return apierrors.NewBadRequest(`spec.executionCheckpoint.digest: must be "sha256:" and 64 lower-case hexadecimal digits`)
	}
	return nil
}

// makeFork creates the task and returns it with the history that it was given. If an earlier
// identical request has already created the task, it is returned without history.
func (r Forks) makeFork(ctx context.Context, p stored.Parent, f *v1alpha1.TaskForkSpec, seq int64) (*v1alpha1.Task, *v1alpha1.ForkContext, error) {
	source, keyed := p.Object, f.IdempotencyKey != "" && f.NewTaskName == ""
	name := forkName(source.Name, f)
	if keyed {
		made, err := r.forkOf(ctx, source, f, name)
		if made != nil || err != nil {
			return made, nil, err
		}
	}
	if f.ExecutionCheckpoint != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("spec.executionCheckpoint: task %q did not use a class-backed workspace with data-only suspension, so there is no saved data to start from", source.Name))
	}
	history, err := r.forkContext(ctx, source, seq)
	if err != nil {
		return nil, nil, err
	}
	t, err := r.newFork(ctx, source, f, seq, history)
	if err != nil {
		return nil, nil, err
	}
	t.Name = name
	undo, err := r.ownSession(ctx, source, t, f, seq, p.DryRun)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := r.asCaller(ctx)
	if err != nil {
		return nil, nil, err
	}
	opts := metav1.CreateOptions{FieldManager: fieldManager}
	if p.DryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	made, err := tasks.CoreV1alpha1().Tasks(source.Namespace).Create(ctx, t, opts)
	if keyed && apierrors.IsAlreadyExists(err) { // an identical request was faster
		made, err = r.forkOf(ctx, source, f, name)
		if made == nil && err == nil {
			err = apierrors.NewConflict(v1alpha1.Resource("tasks"), name, errors.New("the fork was deleted meanwhile; try again"))
		}
		return made, nil, err
	}
	if err != nil {
		undo()
	}
	return made, history, err
}

// fieldManager is the field manager of forked tasks.
const fieldManager = "platform-fork"

// forkName returns the name of the new task.
func forkName(source string, f *v1alpha1.TaskForkSpec) string {
	if f.NewTaskName != "" {
		return f.NewTaskName
	}
	source = strings.TrimRight(source[:min(len(source), maxSource)], "-.")
	// The random part is 32 bits of a UUID. If the name is taken, the request fails with a conflict
	// and never returns the other task.
	suffix := strings.ReplaceAll(string(uuid.NewUUID()), "-", "")
	if f.IdempotencyKey != "" {
		suffix = digestOf(f.IdempotencyKey)
	}
	return source + "-fork-" + suffix[:suffixDigits]
}

// forkOf returns the task of that name; nil if there is none. It is a conflict if a different
// request created it.
func (r Forks) forkOf(ctx context.Context, source *v1alpha1.Task, f *v1alpha1.TaskForkSpec, name string) (*v1alpha1.Task, error) {
	made, err := r.Tasks.Get(request.WithNamespace(ctx, source.Namespace), name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, err
	}
	conflict := func(what string) error {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), name, errors.New(what))
	}
	a := made.Annotations
	switch {
	case a[v1alpha1.AnnotationForkSourceUID] != string(source.UID), a[v1alpha1.AnnotationForkKeyDigest] != digestOf(f.IdempotencyKey):
		return nil, conflict("the name that the idempotency key makes is taken by another task")
	case a[v1alpha1.AnnotationForkCheckpointDigest] != checkpointDigest(f.ExecutionCheckpoint):
		return nil, conflict("the idempotency key was used with another executionCheckpoint")
	case explicit(f.AfterSeq) && f.AfterSeq.String() != a[v1alpha1.AnnotationForkSourceSeq]:
		return nil, conflict("the idempotency key was used with afterSeq " + a[v1alpha1.AnnotationForkSourceSeq])
	}
	return made, nil
}

// explicit reports whether afterSeq is a number. The latest sequence may have advanced when a
// request is repeated, so it is not compared.
func explicit(after *intstr.IntOrString) bool {
	return after != nil && after.String() != v1alpha1.ForkLatest
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func checkpointDigest(c *v1alpha1.ExecutionCheckpointReference) string {
	if c == nil {
		return ""
	}
	return digestOf(c.Name + "\x00" + c.UID + "\x00" + c.Digest)
}

func forkedAt(t *v1alpha1.Task) int64 {
	seq, err := strconv.ParseInt(t.Annotations[v1alpha1.AnnotationForkSourceSeq], 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

// newFork returns the new task, without its name.
func (r Forks) newFork(ctx context.Context, source *v1alpha1.Task, f *v1alpha1.TaskForkSpec, seq int64, history *v1alpha1.ForkContext) (*v1alpha1.Task, error) {
	t := &v1alpha1.Task{Spec: *source.Spec.DeepCopy()}
	withoutOwnBranch(&t.Spec, source)
	t.Namespace = source.Namespace
	t.Labels = map[string]string{v1alpha1.LabelParentTask: v1alpha1.LabelValue(source.Name)}
	t.Annotations = map[string]string{
		v1alpha1.AnnotationParentTaskName:       source.Name,
		v1alpha1.AnnotationForkSourceTask:       source.Name,
		v1alpha1.AnnotationForkSourceUID:        string(source.UID),
		v1alpha1.AnnotationForkSourceSeq:        strconv.FormatInt(seq, 10),
		v1alpha1.AnnotationForkContextTruncated: strconv.FormatBool(history.Truncated),
		v1alpha1.AnnotationDisableCoordination:  "true",
	}
	if f.IdempotencyKey != "" {
		t.Annotations[v1alpha1.AnnotationForkKeyDigest] = digestOf(f.IdempotencyKey)
	}
	if d := checkpointDigest(f.ExecutionCheckpoint); d != "" {
		t.Annotations[v1alpha1.AnnotationForkCheckpointDigest] = d
	}
	override(&t.Spec, f, history)
	if ref := t.Spec.AgentRef; ref != nil {
		t.Annotations[v1alpha1.AnnotationForkAgent] = v1alpha1.MemoryAgent(t)
	}
	if gates := gatesAbove(source); len(gates) > 0 {
		t.Annotations[v1alpha1.AnnotationForkGates] = strings.Join(gates, ",")
	}
	if err := r.detach(ctx, t); err != nil {
		return nil, err
	}
	b, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode the new task: %w", err)
	}
	if len(b) > maxTask {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the new task would have %d bytes, more than %d", len(b), maxTask))
	}
	return t, nil
}

// override changes the source's spec into that of the fork.
func override(s *v1alpha1.TaskSpec, f *v1alpha1.TaskForkSpec, history *v1alpha1.ForkContext) {
	s.Schedule, s.TimeZone, s.ConcurrencyPolicy, s.Suspend = "", "", "", false
	s.StartingDeadlineSeconds, s.SuccessfulRunsHistoryLimit, s.FailedRunsHistoryLimit = nil, nil, nil
	s.RequestedBy, s.Transaction = nil, nil
	if s.SessionRef != nil {
		s.SessionRef.PromptIncluded = false // the prompt of the fork is its own
	}
	if f.AgentRef != nil {
		s.AgentRef = f.AgentRef.DeepCopy()
	}
	if f.Workspace != nil {
		s.Workspace = f.Workspace.DeepCopy()
	}
	own := strings.TrimSpace(f.Prompt) != ""
	if s.Type == v1alpha1.TaskTypeContainer && !own {
		return // a container does not read a prompt
	}
	prompt := plan.Prompt(s)
	if own {
		prompt = f.Prompt
	}
	s.Prompt = fork.Prompt(history, prompt)
}

// detach removes the fork from a session that is gone or belongs to a gateway.
func (r Forks) detach(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.SessionRef == nil {
		return nil
	}
	client, err := r.client(nil)
	if err != nil {
		return err
	}
	s, err := client.CoreV1alpha1().Sessions(t.Namespace).Get(ctx, t.Spec.SessionRef.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && s.Spec.SessionType == v1alpha1.SessionTypeGateway:
		t.Spec.SessionRef = nil
		return nil
	case err != nil:
		return fmt.Errorf("session of the source: %w", err)
	}
	return nil
}

// forkContext reads the history of a task up to a sequence number.
func (r Forks) forkContext(ctx context.Context, t *v1alpha1.Task, seq int64) (*v1alpha1.ForkContext, error) {
	first := max(0, seq-fork.MaxEvents)
	if seq == 0 {
		return fork.Context(t.Namespace, t.Name, 0, nil, false), nil
	}
	page, err := r.Log.TaskPage(ctx, stored.Stream(t), first, int(seq-first), nil)
	if err != nil {
		return nil, err
	}
	older := first > 0 || len(page.Events) > 0 && page.Events[0].Seq > 1
	return fork.Context(t.Namespace, t.Name, seq, page.Events, older), nil
}

// withoutOwnBranch removes the generated branch of the source from the spec of its fork, which gets one of its own.
func withoutOwnBranch(spec *v1alpha1.TaskSpec, source *v1alpha1.Task) {
	if w := spec.Workspace; w != nil && w.PushBranch == stored.OwnBranch(source) {
		w.PushBranch = ""
	}
}
