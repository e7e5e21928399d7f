// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task serves tasks and what belongs to them: events, result, log, artifacts and cancellation. A task's
// content is stored by its UID and deleted together with the task.
//
// Two things wait in memory for each other, which suffices because the server writes one process:
//
//   - Creations and cancellations in a tree (treelocks.go). Policies and webhooks judge a child without a lock. After them, the create
//     takes the lock of its tree, looks at the parent once more, and holds the lock until the child is stored. A cancellation has the
//     lock alone. It therefore covers every child that was stored before it, and refuses every later one, however long webhooks take.
//   - Followers of a log and the writes that they wait for (followers.go). A follower takes a channel, looks at the store, and waits for
//     the channel, which the next write of the log or the end of its task closes. It looks at the store only after a change.
//
// # Trees
//
// The server alone decides whose child a task is: it derives the place of a child from the stored parent when a worker creates the
// child, and records it in status.delegation (delegation.go). Controllers, guards and the rules of package plan believe this record.
// Labels, annotations and owner references only show it, so nobody makes a child by writing them. The rules are applied here, where
// the model can read a refusal, and those that may have changed once more by the controller before the child starts.
//
// A tree is treated as a whole:
//
//   - A cancellation marks a task and all tasks below it in one commit, with an event for each (cancel.go). No event that begins work
//     is stored after the mark (event.Begins): the append is refused with 403. The worker then stops and the controller looks again.
//   - A deletion first cancels what is below (delete.go). The controller then deletes what the task owns, and removes the task after
//     that. With propagationPolicy Orphan the tasks below stay, with their events and results, but those that have not ended are
//     cancelled all the same. A task that is to go on is detached first.
//   - A detached task belongs to the tree's events and limits, but no longer to its parent: nobody waits for it, and no cancellation or
//     deletion from above reaches it, nor what it delegated (detach.go).
//   - All events of a tree have its rootTask, so its stream is one list and one watch, which is resumed at its last revision. The field
//     selector rootTask means the tree of the task that has this name now. What earlier roots of the name left over is hidden while
//     the name is taken, and is found by taskName; rootTaskUID selects one tree, whatever became of its root (leftovers.go).
//
// The tasks of a family, which are a parent and its children, write to each other (messages.go). A message is an event of the
// recipient's stream, so it is durable, redacted, counted in the limits of the stream, readable for whoever may read the events, and
// removed with them.
package task

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

// Options are what tasks need besides the object store. All fields are required except Loopback, ExecutionWorkspaces,
// LocalRuns, Agent, Tool, Provider, UpdateProvider, Budgets, Gate, Transactions, Retention and TreeTasks.
type Options struct {
	// Log stores the events of tasks.
	Log *eventlog.Log
	// Timelines answers pages and streams of events.
	Timelines *timeline.Server
	// Blobs stores results, logs and artifacts.
	Blobs *blob.Store
	// Authorizer decides who may append events that only controllers may write, and who may fork a task.
	Authorizer authorizer.Authorizer
	// Clock times conditions and artifacts.
	Clock clock.WithTickerAndDelayedExecution
	// Loopback is the configuration of the server's client of itself, which it uses to act for its callers. Without
	// it tasks cannot be forked.
	Loopback *restclient.Config
	// ExecutionWorkspaces accepts tasks that request an external sandbox.
	ExecutionWorkspaces bool
	// LocalRuns is set if runs are processes on the server's machine. Users are then warned about settings that only
	// a cluster can honour.
	LocalRuns bool
	// Agent and Tool read what tasks refer to, in the context's namespace. Without them, these references are first
	// checked when a task is to start.
	Agent func(ctx context.Context, name string) (*v1alpha1.Agent, error)
	Tool  func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// Provider reads a Provider in the context's namespace. Without it, rate limits of Providers have no effect.
	Provider func(ctx context.Context, name string) (*v1alpha1.Provider, error)
	// UpdateProvider changes the status of a Provider in the context's namespace. Without it, the server does not record
	// which Providers fail.
	UpdateProvider func(ctx context.Context, name string, mutate func(*v1alpha1.Provider) error) (*v1alpha1.Provider, error)
	// Accounts keep what is spent of Budgets. They are also a projection of Log.
	Accounts *spending.Store
	// Budgets returns the Budgets of a namespace. Without it, none has an effect.
	Budgets func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error)
	// Gate applies rate limits and token budgets. Default: one that only tasks use.
	Gate *modelgate.Gate
	// Seal seals who asked for a task. Without it, no requester is verified.
	Seal *external.Seal
	// CheckTask, if it is set, refuses a task that the transaction of its creator, or of its parent if that is not nil,
	// does not allow. It may ask for the names of all tools that the task would have. Its error is an API error.
	CheckTask func(ctx context.Context, t, parent *v1alpha1.Task, tools func() ([]string, error)) error
	// CheckTool, if it is set, returns why a task may not call a tool in its transaction.
	CheckTool func(ctx context.Context, t *v1alpha1.Task, tool string) string
	// Transactions gives tasks transaction tokens of their own, which Secrets stores. Without it they get none.
	Transactions TransactionTokens
	// Secrets is a client of the server that has the Secrets.
	Secrets kubernetes.Interface
	// Retention removes old events of ended tasks.
	Retention Retention
	// TreeTasks is how many tasks may be delegated in one tree, whatever the Agents allow; 0 means no limit.
	TreeTasks int32
}

// Resource is the resource tasks. Building its Storage, which may be done once, binds it to the store. It has many methods
// because other resources read and change tasks through it. What a subresource does is the method of a type of its own.
type Resource struct {
	resource.Resource
	callers

	definition *resource.Definition[*v1alpha1.Task] // the same
	guard      resource.Guard[*v1alpha1.Task]
	ends       ends
	trees      trees
	inboxes    inboxes
	pendings   *pendings
	followers  followers
	meters     meters
	agent      func(ctx context.Context, name string) (*v1alpha1.Agent, error)
	log        *eventlog.Log
	timelines  *timeline.Server
	blobs      *blob.Store
	clock      clock.Clock
	retention  Retention
	treeTasks  int32
	attendance *attendance
	runs       *runs
	models     *modelgate.Gate
	accounts   *spending.Store
	budgetsOf  func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error) // nil for none
	provider   func(ctx context.Context, name string) (*v1alpha1.Provider, error)     // may be nil
	cooling    cooling
	seal       *external.Seal

	transactions TransactionTokens // may be nil
	secrets      kubernetes.Interface

	checkTask func(ctx context.Context, t, parent *v1alpha1.Task, tools func() ([]string, error)) error // may be nil
	checkTool func(ctx context.Context, t *v1alpha1.Task, tool string) string                           // may be nil
	scheme    *runtime.Scheme

	updateProvider func(ctx context.Context, name string, mutate func(*v1alpha1.Provider) error) (*v1alpha1.Provider, error) // may be nil
	admission      admission.Interface                                                                                       // may be nil

	mu    sync.Mutex // guards tasks
	tasks store      // nil until Storage has been called
}

// store is what this package needs of the tasks' own storage.
type store interface {
	rest.Lister
	rest.Updater
	// Revision returns the revision of the whole store.
	Revision(ctx context.Context) (uint64, error)
	// Each calls f with each task of the request's namespace; see package resource.
	Each(ctx context.Context, revision uint64, f func(*v1alpha1.Task) error) (uint64, error)
	// Stage prepares an update that is committed together with other changes; see package resource.
	Stage(ctx context.Context, name string, mutate func(*v1alpha1.Task) error) (engine.Part, error)
}

var _ resource.Resource = (*Resource)(nil)

// rules are the validation rules of a server.
type rules struct {
	executionWorkspaces, local bool

	agent func(ctx context.Context, name string) (*v1alpha1.Agent, error)
	tool  func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// unwatched returns warnings about a namespace that no controller watches.
	unwatched func(namespace string) []string
}

// New makes the resource tasks. The guard limits workers to their own task.
func New(o Options, guard resource.Guard[*v1alpha1.Task]) *Resource {
	r := &Resource{guard: guard, log: o.Log, timelines: o.Timelines, blobs: o.Blobs, callers: callers{o.Authorizer, o.Loopback}, clock: o.Clock, retention: o.Retention}
	r.models, r.agent, r.provider = cmp.Or(o.Gate, modelgate.New(o.Clock, fairshare.Shares{})), o.Agent, o.Provider
	r.accounts, r.budgetsOf = o.Accounts, o.Budgets
	r.updateProvider, r.seal, r.checkTask, r.checkTool = o.UpdateProvider, o.Seal, o.CheckTask, o.CheckTool
	r.transactions, r.secrets = o.Transactions, o.Secrets
	r.treeTasks = o.TreeTasks
	r.attendance, r.runs = newAttendance(o.Clock), newRuns()
	r.trees.known = make(chan struct{})
	r.pendings = newPendings()
	r.meters.log = o.Log
	content := &contents{callers: r.callers, get: r.get, log: r.log, blobs: r.blobs, clock: r.clock, ends: &r.ends, followers: &r.followers, guard: guard}
	v := rules{executionWorkspaces: o.ExecutionWorkspaces, local: o.LocalRuns, agent: o.Agent, tool: o.Tool, unwatched: r.attendance.warning}
	r.definition = &resource.Definition[*v1alpha1.Task]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tasks"),
		Kind:       "Task",
		Singular:   "task",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker), Creators: []resource.Role{resource.Worker}, Writers: resource.Writers()},
		ShortNames: []string{"tk"},
		Categories: []string{"platform"},
		Fields:     fields(&r.trees),
		Columns:    columns(r.meters.usage, r.runs),
		Guard:      guard,
		Shape: resource.Kept[*v1alpha1.Task]{
			Default:          setDefaults,
			Begin:            kin{r}.beginCreate,
			Admitted:         kin{r}.admitted,
			PrepareForCreate: r.prepareForCreate,
			PrepareForUpdate: r.prepareForUpdate,
			Validate:         v.validate,
			ValidateUpdate:   validateUpdate,
			PrepareForStatus: r.prepareForStatus,
			StatusFinalizer:  v1alpha1.FinalizerCleanup,
			ValidateStatus:   r.validateStatus,
			ValidateName:     validateName,
			Warnings:         v.warnings,
			AfterStatus:      r.afterStatus,
			AfterCreate:      r.afterCreate,
			BeforeDelete:     kin{r}.beforeDelete,
			AfterDelete:      r.afterDelete,
		},
		Subresources: []resource.Subresource[*v1alpha1.Task]{
			{Name: "events", Subpath: true, MaxBody: maxEvents, Methods: []string{http.MethodGet, http.MethodPost}, Connect: appends{r}.events, New: func() runtime.Object { return &v1alpha1.ExecutionEvent{} }, Readers: resource.Users(resource.Approver, resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "stream", Methods: []string{http.MethodGet}, Connect: r.streamEvents, Readers: resource.Users(resource.Approver)},
			{Name: "trace", Methods: []string{http.MethodGet}, Connect: traces{r.log, r.blobs, r.clock}.trace, New: func() runtime.Object { return &v1alpha1.TaskTrace{} }, Readers: resource.Users(resource.Approver)},
			{Name: "calls", New: func() runtime.Object { return &v1alpha1.TaskCallList{} }, Get: calls{r.blobs}.get, Readers: resource.Users()},
			{Name: "plan", MaxBody: maxPlan, New: func() runtime.Object { return &v1alpha1.TaskPlan{} }, Get: plans{r}.get, Create: plans{r}.update, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "messages", MaxBody: maxMail, New: func() runtime.Object { return &v1alpha1.TaskMessage{} }, Create: mail{r}.send, Creators: []resource.Role{resource.Worker}},
			{Name: "inbox", New: func() runtime.Object { return &v1alpha1.TaskInbox{} }, Get: mail{r}.show, Create: mail{r}.read, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "cancel", New: func() runtime.Object { return &v1alpha1.TaskCancellation{} }, Create: kin{r}.cancel, Creators: append(resource.Writers(), resource.Worker)},
			{Name: "detach", New: func() runtime.Object { return &v1alpha1.TaskDetachment{} }, Create: kin{r}.detachChild, Creators: append(resource.Writers(), resource.Worker)},
			{Name: "transactiontoken", MaxBody: tokenexchange.MaxToken, Methods: []string{http.MethodPost}, Connect: transacted{r}.receive, Creators: []resource.Role{resource.Worker}},
			{Name: "fork", New: func() runtime.Object { return &v1alpha1.TaskFork{} }, Create: forks{r.callers, r.get, r.log, later.New(o.Clock)}.fork, Creators: resource.Writers()},
			{Name: "log", MaxBody: maxContent, Methods: []string{http.MethodGet, http.MethodPost}, Connect: content.logs, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "result", MaxBody: maxContent, Methods: []string{http.MethodGet, http.MethodPost}, Connect: content.result, New: func() runtime.Object { return &v1alpha1.TaskResult{} }, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "artifacts", MaxBody: maxContent, Methods: []string{http.MethodGet, http.MethodPost}, Connect: content.artifacts, Subpath: true, New: func() runtime.Object { return &v1alpha1.TaskArtifactList{} }, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
		},
	}
	r.Resource = r.definition
	return r
}

func fields(known *trees) []resource.Field[*v1alpha1.Task] {
	return []resource.Field[*v1alpha1.Task]{
		{Path: "spec.type", Value: func(t *v1alpha1.Task) string { return string(t.Spec.Type) }},
		{Path: "spec.agentRef.name", Value: func(t *v1alpha1.Task) string {
			if t.Spec.AgentRef == nil {
				return ""
			}
			return t.Spec.AgentRef.Name
		}},
		{Path: "spec.sessionRef.name", Value: session},
		{Path: "status.phase", Value: func(t *v1alpha1.Task) string { return string(t.Status.Phase) }},
		// As with events, a task that was not delegated is the root of its own tree.
		{Path: "rootTask", Value: known.rootName},
		{Path: "rootTaskUID", Value: func(t *v1alpha1.Task) string {
			uid, _ := rootOf(t)
			return string(uid)
		}},
		{Path: "parentTaskUID", Value: parentUID},
	}
}

// parentUID returns the UID of the task that a task was delegated by, that it was forked from, or whose schedule it is a run of;
// empty for others, also if somebody gave them the label of children.
func parentUID(t *v1alpha1.Task) string {
	if d := t.Status.Delegation; d != nil {
		return string(d.ParentUID)
	}
	if source := t.Annotations[v1alpha1.AnnotationForkSourceUID]; source != "" {
		return source
	}
	if owner := metav1.GetControllerOfNoCopy(t); owner != nil && owner.Kind == "Task" {
		return string(owner.UID)
	}
	return ""
}

// setDefaults sets the defaults that depend on the type of the task; the others are set by tags.
func setDefaults(t *v1alpha1.Task) {
	if w := t.Spec.Workspace; w != nil {
		w.Intent = effectiveIntent(&t.Spec)
	}
}

// warnings describe settings that are accepted but do not have the effect that users may expect.
func (r rules) warnings(ctx context.Context, t, old *v1alpha1.Task) []string {
	if old != nil && equality.Semantic.DeepEqual(t.Spec, old.Spec) {
		return nil
	}
	w := r.supportWarnings(ctx, t)
	if old != nil {
		return w
	}
	if r.unwatched != nil {
		w = append(w, r.unwatched(t.Namespace)...)
	}
	path := field.NewPath("spec", "env")
	for i, e := range t.Spec.Env {
		if len(e.Name) > len(reservedEnv) && e.Name[:len(reservedEnv)] == reservedEnv {
			w = append(w, fmt.Sprintf("%s: variables named %s* are set by the platform and win over this one", path.Index(i).Child("name"), reservedEnv))
		}
	}
	if t.Spec.Schedule == "" && t.Spec.Suspend {
		w = append(w, "spec.suspend: without a schedule it only stops the iterations of an autonomous agent")
	}
	return w
}

const reservedEnv = "PLATFORM_"

// Storage builds the storage. It also starts goroutines, which end with ctx, to remove content of tasks that no
// longer exist, to apply Retention and to report tasks that no controller picks up.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	r.scheme, r.admission = c.Scheme, c.Admission
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	tasks, ok := paths["tasks"].(store)
	if !ok {
		return nil, fmt.Errorf("resource tasks: %T has no list and update", paths["tasks"])
	}
	r.mu.Lock()
	r.tasks = tasks
	r.mu.Unlock()
	go sweeper{r.get, r.forget, tasks, r.log, r.blobs}.sweep(ctx) // ends with ctx
	status, ok := paths["tasks/status"].(rest.Updater)
	if !ok {
		return nil, fmt.Errorf("resource tasks: %T has no update", paths["tasks/status"])
	}
	go attendant{r.get, tasks, status, r.attendance, &r.trees, r.runs, r.clock}.attend(ctx) // ends with ctx
	if r.retention != (Retention{}) {
		go trimmer{r.log, r.clock, r.retention}.retain(ctx) // ends with ctx
	}
	return paths, nil
}

func (r *Resource) storage() (store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		return nil, apierrors.NewServiceUnavailable("tasks are not served yet")
	}
	return r.tasks, nil
}

// get reads a task of the request's namespace from the store, regardless of the caller. Errors are API errors.
func (r *Resource) get(ctx context.Context, name string) (*v1alpha1.Task, error) {
	t, err := r.definition.Get(ctx, name)
	if apierrors.IsNotFound(err) { // the store's error names the resource of the request instead
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks"), name)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (r *Resource) afterCreate(t *v1alpha1.Task) {
	r.trees.created(t)
	r.runs.created(t)
	r.attendance.created(t)
}

func (r *Resource) afterStatus(t *v1alpha1.Task) {
	r.runs.changed(t)
	r.attendance.changed(t)
	if t.Status.Phase.Terminal() {
		r.followers.wake(t.UID, true)
	}
}

// afterDelete removes the task's content. If a crash or a failure prevents that, the next sweep does it.
func (r *Resource) afterDelete(ctx context.Context, t *v1alpha1.Task) {
	defer r.timelines.Deleted(t.UID)
	r.followers.wake(t.UID, true)
	r.attendance.settled(t.UID)
	r.trees.remove(t)
	r.runs.remove(t)
	r.models.Forget(t.UID)
	r.meters.forget(t.UID)
	if err := r.forget(ctx, stream(t)); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the content of a deleted task; the next start removes it", "task", klog.KObj(t))
	}
}

func (r *Resource) forget(ctx context.Context, s eventlog.Stream) error {
	if err := r.log.DeleteStream(ctx, s); err != nil {
		return err
	}
	if r.accounts != nil {
		if err := r.accounts.Release(s.UID); err != nil {
			return err
		}
	}
	return r.blobs.Delete(ctx, s.UID)
}
