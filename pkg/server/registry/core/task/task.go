// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task serves tasks. What belongs to them has packages of its own in the folders of this one, each of which is given what it
// needs: stored tasks (package stored), stores, and funcs. This package puts them together.
//
//large:imports it puts the subresources of tasks together, and each is a package
package task

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/agentrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/attendance"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/cancellation"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/connectorcall"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/content"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/delegation"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/events"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/fork"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/hostcall"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/mail"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/meter"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/prior"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/progress"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/record"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/retention"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/schedule"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/token"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/trace"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/server/registry/core/tooleffect"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// Options are what the server gives tasks. All fields are required except Loopback, ExecutionWorkspaces,
// LocalRuns, Transactions, Retention and TreeTasks.
type Options struct {
	// Log stores the events of tasks.
	Log *eventlog.Log
	// Timelines answers pages and streams of events.
	Timelines *timeline.Server
	// Blobs stores results, logs and artifacts.
	Blobs *blob.Store
	// Recordings store what runs said and did. They are also a projection of Log.
	Recordings *recording.Store
	// Recording is how much is recorded where an agent does not say it.
	Recording v1alpha1.RecordingMode
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
	// Accounts keep what is spent of Budgets. They are also a projection of Log.
	Accounts *spending.Store
	// Seal seals who asked for a task. Without it, no requester is verified.
	Seal *external.Seal
	// CheckTask, if it is set, refuses a task that the transaction of its creator, or of its parent if that is not nil,
	// does not allow. It may ask for the names of all tools that the task would have. Its error is an API error.
	CheckTask func(ctx context.Context, t, parent *v1alpha1.Task, tools func() ([]string, error)) error
	// CheckTool, if it is set, returns why a task may not call a tool in its transaction.
	CheckTool func(ctx context.Context, t *v1alpha1.Task, tool string) string
	// Transactions gives tasks transaction tokens of their own, which Secrets stores. Without it they get none.
	Transactions token.Service
	// Secrets is a client of the server that has the Secrets.
	Secrets kubernetes.Interface
	// Linked gives out tokens of linked accounts, and LinkedTransport makes the requests with them. Default: one that reaches public
	// addresses only.
	Linked          *connection.Hub
	LinkedTransport http.RoundTripper
	// Effects are what tools change elsewhere with linked accounts.
	Effects *tooleffect.Effects
	// CodeHosts makes calls on code hosts.
	CodeHosts *hostaccess.Access
	// Retention removes old events of ended tasks.
	Retention retention.Policy
	// TreeTasks is how many tasks may be delegated in one tree, whatever the Agents allow; 0 means no limit.
	TreeTasks int32
}

// Resources are what tasks need of other resources. All fields are required. The funcs read in the context's namespace, and their errors
// are API errors.
type Resources struct {
	Agent stored.Agents
	Tool  func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// ConnectorProviders and Connections are what is stored of them.
	ConnectorProviders *resource.Stored[*v1alpha1.ConnectorProvider]
	Connections        *resource.Stored[*v1alpha1.Connection]
	// Requests decides about model requests.
	Requests *modelrequest.Requests
	// Claim records that a task worked on a pull request.
	Claim hostcall.Claim
	// GatewayEvent reads an event of a gateway.
	GatewayEvent func(ctx context.Context, name string) (*v1alpha1.GatewayEvent, error)
	// Reply serves POST of reply.
	Reply func(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error)
	// MaxReply is the maximum length of its body, in bytes.
	MaxReply int64
}

// Resource is the resource tasks. Building its Storage, which may be done once, binds it to the store. Other resources read
// and change tasks through it. What a subresource does is the method of a type of its own.
type Resource struct {
	resource.Resource

	tasks     stored.Tasks
	clock     clock.PassiveClock
	timelines *timeline.Server
	// checkTool is that of Options.
	checkTool func(ctx context.Context, t *v1alpha1.Task, tool string) string

	priors        prior.Priors
	requesters    requester.Requesters
	delegations   delegation.Delegations
	events        *events.Events
	requests      *modelrequest.Tasks
	agentRequests *agentrequest.Requests
	meters        *meter.Meters
	content       *content.Contents
	remains       content.Remains
	trimmer       retention.Trimmer

	// What is kept in memory.
	trees      *tree.Trees
	attendance *attendance.Attendance
	runs       *schedule.Runs
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

// New makes the resource tasks over what is stored of them. The guard limits workers to their own task.
func New(o Options, tasks stored.Tasks, of Resources, guard resource.Guard[*v1alpha1.Task]) *Resource {
	r := &Resource{tasks: tasks, timelines: o.Timelines, clock: o.Clock, checkTool: o.CheckTool, trimmer: retention.Trimmer{Log: o.Log, Recordings: o.Recordings, Clock: o.Clock, Policy: o.Retention}}
	r.priors = prior.Priors{Tasks: tasks, Authorizer: o.Authorizer}
	r.requesters = requester.Requesters{
		Tasks: tasks, Agents: of.Agent, Authorizer: o.Authorizer, Clock: o.Clock, Seal: o.Seal, Check: o.CheckTask, Event: of.GatewayEvent,
		Tokens: token.Tokens{Tasks: tasks, Log: o.Log, Clock: o.Clock, Service: o.Transactions, Secrets: o.Secrets},
	}
	r.trees, r.attendance, r.runs = tree.New(), attendance.New(o.Clock), schedule.NewRuns()
	r.meters = meter.New(o.Log)
	r.requests = of.Requests.Tasks(o.Log, r.trees)
	r.content = content.New(content.Options{
		Tasks: tasks, Log: o.Log, Blobs: o.Blobs, Clock: o.Clock, Authorizer: o.Authorizer, Guard: guard,
	})
	r.remains = content.Remains{Tasks: tasks, Log: o.Log, Blobs: o.Blobs, Recordings: o.Recordings, Release: o.Accounts.Release}
	r.events = events.New(events.Options{
		Tasks: tasks, Log: o.Log, Clock: o.Clock, Authorizer: o.Authorizer, Requests: r.requests, Ending: r.content.Ending, Recording: o.Recording, Ends: later.New(o.Clock),
	})
	r.agentRequests = agentrequest.New(agentrequest.Options{Tasks: tasks, Guard: guard, Log: o.Log, Events: r.events, Clock: o.Clock, Recordings: o.Recordings, Recording: o.Recording, Agent: of.Agent})
	letters := &mail.Mail{Tasks: tasks, Trees: r.trees, Log: o.Log, Events: r.events}
	plans := progress.Plans{Log: o.Log, Events: r.events}
	r.delegations = delegation.Delegations{Tasks: tasks, Agents: of.Agent, Trees: r.trees, Clock: o.Clock, Inherit: r.requesters.Inherit, TreeTasks: o.TreeTasks}
	hosts := hostcall.New(hostcall.Options{Access: o.CodeHosts, Tasks: tasks, Agents: of.Agent, CheckTool: o.CheckTool, Claim: of.Claim, Authorizer: o.Authorizer, Loopback: o.Loopback})
	linked := connectorcall.New(connectorcall.Options{
		Accounts: o.Linked, Connections: of.Connections, Providers: of.ConnectorProviders, Effects: o.Effects, Log: o.Log, Verified: o.Seal.Verified,
		CheckTool: o.CheckTool, Transport: o.LinkedTransport, Clock: o.Clock,
	})
	cancellations := cancellation.Cancellations{Tasks: tasks, Log: o.Log, Trees: r.trees, Clock: o.Clock}
	v := rules{executionWorkspaces: o.ExecutionWorkspaces, local: o.LocalRuns, agent: of.Agent, tool: of.Tool, unwatched: r.attendance.Warning}
	r.Resource = &resource.Definition[*v1alpha1.Task]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tasks"),
		Kind:       "Task",
		Singular:   "task",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker), Creators: []resource.Role{resource.Worker}, Writers: resource.Writers()},
		Scopes:     &external.Scopes{Of: scopes},
		ShortNames: []string{"tk"},
		Categories: []string{"platform"},
		Fields:     fields(r.trees),
		Columns:    columns(r.meters.Usage, r.runs),
		Guard:      guard,
		Stored:     tasks.Stored,
		Shape: resource.Kept[*v1alpha1.Task]{
			Default:          setDefaults,
			Begin:            r.begin,
			Admitted:         r.delegations.Admitted,
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
			BeforeDelete:     cancellations.BeforeDelete,
			AfterDelete:      r.afterDelete,
		},
		Subresources: []resource.Subresource[*v1alpha1.Task]{
			{Name: "events", Subpath: true, MaxBody: events.MaxBytes, Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.serveEvents, New: func() runtime.Object { return &v1alpha1.ExecutionEvent{} }, Readers: resource.Users(resource.Approver, resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "stream", Methods: []string{http.MethodGet}, Connect: r.streamEvents, Readers: resource.Users(resource.Approver)},
			{Name: "trace", Methods: []string{http.MethodGet}, Connect: trace.Traces{Log: o.Log, Clock: o.Clock, HasResult: r.content.HasResult}.Serve, New: func() runtime.Object { return &v1alpha1.TaskTrace{} }, Readers: resource.Users(resource.Approver)},
			{Name: "recording", Subpath: true, Methods: []string{http.MethodGet}, Connect: record.Records{Store: o.Recordings}.Serve, New: func() runtime.Object { return &v1alpha1.TaskRecording{} }, Readers: resource.Writers()},
			{Name: "calls", New: func() runtime.Object { return &v1alpha1.TaskCallList{} }, Get: r.content.Calls, Readers: resource.Users()},
			{Name: "plan", MaxBody: progress.MaxBytes, New: func() runtime.Object { return &v1alpha1.TaskPlan{} }, Get: plans.Get, Create: plans.Update, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "messages", MaxBody: mail.MaxBytes, New: func() runtime.Object { return &v1alpha1.TaskMessage{} }, Create: letters.Send, Creators: []resource.Role{resource.Worker}},
			{Name: "reply", MaxBody: of.MaxReply, New: func() runtime.Object { return &v1alpha1.TaskReply{} }, Create: of.Reply, Creators: []resource.Role{resource.Worker}},
			{Name: "inbox", New: func() runtime.Object { return &v1alpha1.TaskInbox{} }, Get: letters.Show, Create: letters.Read, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "codehost", MaxBody: hostcall.MaxBytes, New: func() runtime.Object { return &v1alpha1.TaskCodeHostCall{} }, Create: hosts.Create, Creators: append(resource.Writers(), resource.Worker)},
			{Name: "connectortool", MaxBody: connectorcall.MaxBytes, New: func() runtime.Object { return &v1alpha1.TaskConnectorCall{} }, Create: linked.Create, Creators: []resource.Role{resource.Worker}},
			{Name: "cancel", New: func() runtime.Object { return &v1alpha1.TaskCancellation{} }, Create: cancellations.Create, Creators: append(resource.Writers(), resource.Worker)},
			{Name: "detach", New: func() runtime.Object { return &v1alpha1.TaskDetachment{} }, Create: cancellations.Detach, Creators: append(resource.Writers(), resource.Worker)},
			{Name: "transactiontoken", MaxBody: token.MaxBytes, Methods: []string{http.MethodPost}, Connect: r.requesters.Tokens.Receive, Creators: []resource.Role{resource.Worker}},
			{Name: "fork", New: func() runtime.Object { return &v1alpha1.TaskFork{} }, Create: fork.Forks{Tasks: tasks, Log: o.Log, Later: later.New(o.Clock), Authorizer: o.Authorizer, Loopback: o.Loopback}.Create, Creators: resource.Writers()},
			{Name: "log", MaxBody: content.MaxBytes, Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.content.Logs, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "result", MaxBody: content.MaxBytes, Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.content.Result, New: func() runtime.Object { return &v1alpha1.TaskResult{} }, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: "delta", MaxBody: content.MaxBytes, Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.content.Delta, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
			{Name: runspec.ModelsSubresource, Subpath: true, Methods: []string{http.MethodGet, http.MethodPost}, Connect: noModels, Readers: []resource.Role{resource.Worker}, Creators: []resource.Role{resource.Worker}},
			{Name: "artifacts", MaxBody: content.MaxBytes, Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.content.Artifacts, Subpath: true, New: func() runtime.Object { return &v1alpha1.TaskArtifactList{} }, Readers: resource.Users(resource.Worker), Creators: []resource.Role{resource.Worker}},
		},
	}
	return r
}

func fields(known *tree.Trees) []resource.Field[*v1alpha1.Task] {
	return []resource.Field[*v1alpha1.Task]{
		{Path: "spec.type", Value: func(t *v1alpha1.Task) string { return string(t.Spec.Type) }},
		{Path: "spec.agentRef.name", Value: func(t *v1alpha1.Task) string {
			if t.Spec.AgentRef == nil {
				return ""
			}
			return t.Spec.AgentRef.Name
		}},
		{Path: "spec.sessionRef.name", Value: stored.Session},
		{Path: "status.phase", Value: func(t *v1alpha1.Task) string { return string(t.Status.Phase) }},
		// As with events, a task that was not delegated is the root of its own tree.
		{Path: "rootTask", Value: known.RootName},
		{Path: "rootTaskUID", Value: func(t *v1alpha1.Task) string {
			uid, _ := stored.Root(t)
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
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	go r.remains.Sweep(ctx) // ends with ctx
	go func() {             // ends with ctx
		if err := r.readAll(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot read the tasks that exist at the start")
		}
		r.attendance.Attend(ctx, r.tasks)
	}()
	if r.trimmer.Policy != (retention.Policy{}) {
		go r.trimmer.Retain(ctx) // ends with ctx
	}
	return paths, nil
}

// readAll tells what is kept in memory about tasks of those that exist at the start: those that no controller has picked up, the runs
// of schedules, and the trees of those that were delegated.
func (r *Resource) readAll(ctx context.Context) error {
	err := r.tasks.EachOf(ctx, &internalversion.ListOptions{}, func(t *v1alpha1.Task) {
		if t.Status.Phase == "" {
			r.attendance.Created(t)
		}
		r.runs.Created(t)
		if d := t.Status.Delegation; d != nil {
			r.trees.Add(t.Namespace, t.Name, t.UID, d)
		}
	})
	if err != nil {
		return err
	}
	r.runs.Loaded()
	return r.trees.Complete(ctx, r.tasks)
}

func (r *Resource) afterCreate(t *v1alpha1.Task) {
	r.trees.Created(t)
	r.runs.Created(t)
	r.attendance.Created(t)
}

func (r *Resource) afterStatus(t *v1alpha1.Task) {
	r.runs.Changed(t)
	r.attendance.Changed(t)
	if t.Status.Phase.Terminal() {
		r.agentRequests.Forget(t.UID)
		r.content.Over(t.UID)
	}
}

// afterDelete removes the task's content. If a crash or a failure prevents that, the next sweep does it.
func (r *Resource) afterDelete(ctx context.Context, t *v1alpha1.Task) {
	defer r.timelines.Deleted(t.UID)
	r.content.Over(t.UID)
	r.attendance.Settled(t.UID)
	r.trees.Remove(t)
	r.runs.Remove(t)
	r.requests.Forget(t.UID)
	r.agentRequests.Forget(t.UID)
	r.meters.Forget(t.UID)
	if err := r.remains.Forget(ctx, stored.Stream(t)); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the content of a deleted task; the next start removes it", "task", klog.KObj(t))
	}
}
