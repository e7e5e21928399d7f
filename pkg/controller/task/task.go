// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task drives tasks through their phases.
//
// A reconcile runs the list of steps; the function steps documents their order. What they decide
// is written to the status by one patch at the end, which fails if the task changed meanwhile.
//
// Three rules make sure that the recorded state stays correct after a crash at any point:
//
//   - An attempt is recorded (attempts, jobName, jobUID, phase Running) before it is started,
//     and started by a later reconcile. The executor starts a jobUID at most once.
//   - The terminal event is appended before the terminal status. The event log accepts only
//     one. The event that it holds decides the phase, even if this reconcile came to another
//     result.
//   - Everything before the terminal status may be repeated.
//
//large:imports it is the controller of what everything else is about: what a task needs when it starts, works, waits and ends
package task

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/fairshare"
)

// Options configure the controller of tasks.
type Options struct {
	// Executor runs the workers. Required.
	Executor executor.Executor
	// ContainerRefusal, when not empty, fails container tasks with this message.
	ContainerRefusal string
	// ImageRefusal, when not empty, fails container tasks that name an image with this message.
	ImageRefusal string
	// ProgramRefusal, when not empty, fails tasks that run programs with this message: container tasks, and ai tasks
	// with a tool for it.
	ProgramRefusal string
	// NetworkRefusal, when not empty, fails tasks of Agents whose programs are to have the network with this message.
	NetworkRefusal string
	// MountRefusal, when not empty, fails tasks that want a Secret mounted with this message.
	MountRefusal string
	// RepositoryRefusal, when not empty, fails tasks with a workspace with this message.
	RepositoryRefusal string
	// PublicationRefusal, when not empty, fails tasks that change their repository with this message. Otherwise Publisher carries out the
	// steps of their publication, with the addresses in RepositoryAllow, as host:port, although they are not public.
	PublicationRefusal string
	Publisher          Publisher
	RepositoryAllow    []string
	// LocalRuns says that runs are processes on this machine. The controller then warns about settings that only a
	// cluster can honour.
	LocalRuns bool
	// RequireSecretHosts refuses tasks that use a Secret that does not name the hosts to which its values may be sent.
	RequireSecretHosts bool
	// MaxRunning limits running tasks of all namespaces. 0 means no limit.
	MaxRunning int
	// MaxRunningPerNamespace limits running tasks of one namespace. 0 means no limit.
	MaxRunningPerNamespace int
	// Shares say how free slots are divided among namespaces, and which are reserved.
	Shares fairshare.Shares
	// Pools is the ledger of the places of coding agents, by default one of its own, and PoolOptions configure new pools.
	Pools       *Pools
	PoolOptions agentprogram.PoolOptions
	// Metrics, if set, registers the metrics of slots.
	Metrics prometheus.Registerer
	// ReferenceGrace is how long after its creation a task waits for objects it
	// refers to, as when a folder of manifests is applied in the wrong order. Default 5 s.
	ReferenceGrace time.Duration
	// WebhookAllow lists destinations, as host:port, that callbacks may reach although their addresses are not public.
	WebhookAllow []string
	// SearchKey is the key for the search service that the tool web_search uses.
	SearchKey string
	// Workers is the number of tasks reconciled at once. Default 8.
	Workers int
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	// NewID makes run ids. Default: random UUIDs.
	NewID func() types.UID
}

func (o *Options) complete() {
	if o.ReferenceGrace == 0 {
		o.ReferenceGrace = 5 * time.Second
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.NewID == nil {
		o.NewID = uuid.NewUUID
	}
	if o.Pools == nil {
		o.Pools = NewPools(o.Clock.Now)
	}
}

// Add registers the controller with a manager. The manager's client must read Secrets,
// ConfigMaps, Sessions and ExecutionEvents from the server, not from a cache. Its cache need
// only hold pending Approvals.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	o.complete()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Task{}, sessionIndex, sessionOf); err != nil {
		return fmt.Errorf("index of tasks: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Task{}, priorIndex, priorOf); err != nil {
		return fmt.Errorf("index of tasks: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Task{}, parentIndex, parentOf); err != nil {
		return fmt.Errorf("index of tasks: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Approval{}, approvalTask, taskOfApproval); err != nil {
		return fmt.Errorf("index of approvals: %w", err)
	}
	w, err := newWire(mgr.GetConfig(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return err
	}
	room := newSlots(o.MaxRunning, o.MaxRunningPerNamespace, o.Shares, o.Clock.Now, taskAPI{w}.shows)
	if err := showSlots(ctx, o.Metrics, room); err != nil {
		return err
	}
	skills, err := showSkills(o.Metrics)
	if err != nil {
		return err
	}
	kin := newSiblings(o.Clock.Now, taskAPI{w}.shows)
	o.Pools.shows = taskAPI{w}.shows
	r := &step.Reconciler[*v1alpha1.Task]{
		Client: mgr.GetClient(),
		New:    func() *v1alpha1.Task { return &v1alpha1.Task{} },
		Steps:  steps(o, w, room, kin, skills),
	}
	told := newAnnouncer(func(ctx context.Context, n news) {
		w.tell(ctx, n, metav1.NewTime(o.Clock.Now()))
	})
	err = builder.ControllerManagedBy(mgr).Named("task").
		For(&v1alpha1.Task{}).
		Owns(&v1alpha1.Task{}). // scheduled runs wake their schedule
		Watches(&v1alpha1.Task{}, keepLedger(room)).
		Watches(&v1alpha1.Task{}, keepLedger(kin)).
		Watches(&v1alpha1.Task{}, wakeQueue(mgr.GetClient())).
		Watches(&v1alpha1.Task{}, wakeNext(mgr.GetClient())).
		Watches(&v1alpha1.Task{}, told.changes()).
		Watches(&v1alpha1.Approval{}, handler.EnqueueRequestsFromMapFunc(waitingTask)).
		Watches(&v1alpha1.Tool{}, handler.EnqueueRequestsFromMapFunc(approvalAPI{w}.waitForTool), builder.WithPredicates(changedTool())).
		WatchesRawSource(exits(o.Executor)).
		WatchesRawSource(given(room)).
		WatchesRawSource(given(published{o.Publisher})).
		WatchesRawSource(given(kin)).
		WatchesRawSource(given(o.Pools)).
		WatchesRawSource(noted{source.Kind(mgr.GetCache(), client.Object(&v1alpha1.Task{}), keepLedger(o.Pools)), o.Pools.begin}).
		WatchesRawSource(wallClock{clock: o.Clock, list: unfinished(mgr.GetClient())}.source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("task controller: %w", err)
	}
	if err := mgr.Add(told); err != nil {
		return fmt.Errorf("task controller: %w", err)
	}
	return mgr.Add(sweeper{executor: o.Executor, tasks: mgr.GetAPIReader()})
}

// exits wakes a task when its run ends or begins to wait for something else.
func exits(e executor.Executor) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		wake := func(r executor.Ref) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}})
		}
		e.OnExit(ctx, wake)
		e.OnWaiting(ctx, wake)
		return nil
	})
}

// published wakes the tasks of whose publication a step is over.
type published struct{ Publisher }

func (p published) wakeBy(f func(types.NamespacedName)) {
	if p.Publisher != nil {
		p.OnEnd(f)
	}
}

// given wakes the tasks that are given a slot.
func given(room interface {
	wakeBy(func(types.NamespacedName))
},
) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		room.wakeBy(func(k types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: k}) })
		return nil
	})
}

// noted is a source of which something is to be done when all that existed at the start has come.
type noted struct {
	source.SyncingSource
	then func()
}

// WaitForSync returns when that was done.
func (n noted) WaitForSync(ctx context.Context) error {
	err := n.SyncingSource.WaitForSync(ctx)
	if err == nil {
		n.then()
	}
	return err
}

// ledger follows the tasks that the cache shows.
type ledger interface {
	// remember is called for each task that exists at the start, observe for each later version of a task, and forget
	// for one that is gone.
	remember(t *v1alpha1.Task)
	observe(t *v1alpha1.Task)
	forget(t *v1alpha1.Task)
}

// keepLedger passes what the cache shows to the ledger of slots. The controller's workers begin
// when the ledger knows all existing tasks.
func keepLedger(room ledger) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	tell := func(o client.Object, f func(*v1alpha1.Task)) {
		if t, ok := o.(*v1alpha1.Task); ok {
			f(t)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e ctrlevent.CreateEvent, _ queue) {
			if e.IsInInitialList {
				tell(e.Object, room.remember)
				return
			}
			tell(e.Object, room.observe)
		},
		UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, _ queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // deleted and created again without an event for it
				tell(e.ObjectOld, room.forget)
			}
			tell(e.ObjectNew, room.observe)
		},
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, _ queue) { tell(e.Object, room.forget) },
	}
}

// steps returns the steps of a reconcile in calling order, with their dependencies. Each is in the file of its name.
// The order follows these rules:
//
//   - deletion is first: a task that is being deleted is neither begun nor started.
//   - finalizer comes before begin, because a task has the finalizer from its first phase on.
//   - children comes before completed, because children may end after their parent.
//   - completed comes before every step that could start something: a task in a terminal phase stays there.
//   - cancel comes before schedule and admit: a requested cancellation takes effect before another attempt.
//   - admit records an attempt and ends the reconcile; run starts it in a later one, when it is stored.
//   - parked comes before run: pending approvals are handled before the run is examined.
//   - publish comes after run, because it follows it; a publication that has begun is not cancelled by cancel, but by publish.
func steps(o Options, w *wire, room *slots, kin *siblings, skills *skillMetrics) []step.Step[*v1alpha1.Task] {
	refs := newResolver(o, w.Client, w.live)
	tasks, events, approvals, runs := taskAPI{w}, eventAPI{w}, approvalAPI{w}, runAPI{w}
	kids := childAPI{w}
	ids := newIdentity(w.Client, o.Clock.Now)
	sess := &sessions{client: w.Client, now: o.Clock.Now}
	talk := &conversation{existing: sess.existing, append: sessionAPI{w}.appendMessages}
	lost := lostCalls{each: events.eachEvent, append: events.append}
	unsettled := func(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error) {
		if err := lost.settle(ctx, t); err != nil { // first, because the end of an approved call settles its approval, too
			return nil, err
		}
		return approvals.unsettled(ctx, t, why)
	}
	from := origin{each: events.eachEvent}
	end := &finisher{
		origin: from,
		now:    o.Clock.Now, fresh: tasks.fresh, lost: lost.settle, unsettled: approvals.unsettled, terminal: events.terminalEvent,
		usage: events.usage, result: resultAPI{w}.result, converse: talk.add, release: sess.release, touchAgent: agentAPI{w}.touchAgent,
	}
	hook := newWebhook(o.WebhookAllow)
	appendEvents := untilClosed(events.append)
	tell := func(typ string) func(ctx context.Context, t *v1alpha1.Task, reason, message string) {
		return func(ctx context.Context, t *v1alpha1.Task, reason, message string) {
			w.tell(ctx, news{task: t, typ: typ, reason: reason, message: message}, metav1.NewTime(o.Clock.Now()))
		}
	}
	warn := tell(corev1.EventTypeWarning)
	family := offspring{stored: kids.stored, cancelBelow: kids.cancelBelow}
	iterate := iterations{plan: tasks.planOf, agent: agentAPI{w}.agentOf, append: appendEvents, unsettled: approvals.unsettled, end: family.before(end.end)}
	attempt := run{
		now: o.Clock.Now, executor: o.Executor, resolve: refs.resolve, account: ids.account, token: ids.token,
		append: appendEvents, unsettled: unsettled, end: family.before(end.end), iterate: iterate.next, warn: warn, note: tell(corev1.EventTypeNormal),
		settleChildren: family.settle, skills: skills,
	}
	pub := publish{
		now: o.Clock.Now, publisher: o.Publisher, origin: from, append: appendEvents, end: end.end, delta: resultAPI{w}.delta, secret: secretAPI{w}.workspaceSecret,
		children: kids.stored, allow: o.RepositoryAllow, lately: newSightings(o.Clock.Now),
		evidence: evidence{create: func(ctx context.Context, l *v1alpha1.UsageLink) error { return w.Create(ctx, l) }},
	}
	attempt.publish = pub.begin
	pool := pooled{places: o.Pools, options: o.PoolOptions, image: ImageOf(o.Executor), existing: poolAPI{w}.existing, note: tell(corev1.EventTypeNormal)}
	shown := execution{now: o.Clock.Now, pods: o.Executor.ByReference()}
	list := []step.Step[*v1alpha1.Task]{
		{Name: "deletion", Do: deletion{executor: o.Executor, end: end.end, dropFinalizer: tasks.dropFinalizer, children: kids.stored, owned: kids.owned, remove: runs.remove, forget: pub.forget}.do},
		{Name: "finalizer", Do: finalizer{add: tasks.addFinalizer}.do},
		{Name: "begin", Do: begin{append: appendEvents}.do},
		{Name: "children", Do: children{shown: kids.shown, runs: runs.children, result: resultAPI{w}.result}.do},
		{Name: "completed", Do: completed{end: end.end, post: hook.post, warn: warn}.do},
		{Name: "cancel", Do: cancel{executor: o.Executor, end: end.end, children: kids.stored}.do},
		{Name: "schedule", Do: scheduler{
			now: o.Clock.Now, fresh: tasks.fresh, append: appendEvents, end: end.end,
			children: runs.children, create: runs.createChild, remove: runs.remove, warn: warn, note: tell(corev1.EventTypeNormal),
		}.do},
		{Name: "admit", Do: admit{
			origin: from, prior: prior{cached: w.Client, delta: resultAPI{w}.delta}, credentials: pub.freeze,
			append: appendEvents, now: o.Clock.Now, newID: o.NewID, grace: o.ReferenceGrace, end: end.end, resolve: refs.resolve,
			lockSession: sess.lock, takePlace: pool.take, leavePlace: o.Pools.leave, takeSlot: room.take, leaveSlot: room.leave, warn: warn,
			checkChild: delegated{parent: kids.parent, agentOf: agentAPI{w}.agentOf}.check, takeChild: kin.take, leaveChild: kin.leave,
		}.do},
		{Name: "run", Do: parked{
			now: o.Clock.Now, park: o.Executor.Park, pending: approvals.pendingApprovals, tool: approvals.tool, children: kids.shown, append: appendEvents, next: attempt.do,
		}.do},
		{Name: "publish", Do: pub.do},
	}
	for i := range list {
		list[i] = shown.after(closed(o.Executor, end.end, list[i]))
	}
	return list
}

// runRef returns the reference of the current or last attempt of a task.
func runRef(t *v1alpha1.Task) executor.Ref {
	return executor.Ref{Namespace: t.Namespace, Name: t.Name, UID: t.UID, Attempt: t.Status.Attempts}
}

// endFunc brings a task to a terminal phase.
type endFunc func(ctx context.Context, t *v1alpha1.Task, o outcome) error

// appendFunc appends events of a task in one commit.
type appendFunc func(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error
