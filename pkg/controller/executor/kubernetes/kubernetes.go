// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes runs workers as Jobs of a cluster.
//
// A run is a Job with the name executor.Ref.JobName, controlled by its Task. The Job and its
// one Pod hold all its state, so that any controller process can take over: labels and
// annotations say which attempt of which task it is, and what the controller did to it.
//
// Invariants
//
//   - The name of the Job and the annotation platform.ai/run-id make sure that a run starts
//     once: the API server creates an object of a name only once.
//   - A Job never runs a second Pod: backoffLimit 0, restartPolicy Never, podReplacementPolicy
//     Failed, and a failure policy that fails the Job with the Pod. Only the controller
//     retries.
//   - The Pod of a run is the first one that its Job controls and whose spec is what
//     the Job's template makes (pkg/workerpod). No other Pod has an effect on the state.
//   - Secrets reach the Pod by reference only. No value of a Secret is in the Job.
//   - A run is over when its Pod is: the run of a Job that is being deleted goes on until then.
//     The executor does not wait for a Pod whose node does not answer.
//   - The spool of a run is an emptyDir: it outlives the container, which is not restarted, but not
//     the Pod. So no other worker can deliver it, and the Pod's grace period has time for a delivery
//     (deliverySeconds), at the deadline and when the node is drained. The outcome is lost only if the
//     server is away for longer, or the Pod is killed within that time. The worker then reports
//     ResultNotSubmitted if it can; at the deadline the task is not retried for it, because its
//     work was done.
//   - The time of a run counts from when its worker begins: until then the Job has no deadline.
//     Its state says what it waits for.
//   - The controller gives up a run that does not start in time or whose node does not answer,
//     and keeps the reason in memory. After a restart of the controller, the Pod shows that its
//     node does not answer, and the Task's condition WaitingToStart says what a run that never
//     began had waited for. No annotation of the Job says why a run was given up.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

var _ executor.Executor = &Executor{}

// Defaults of Options.
const (
	DefaultUnreachableTimeout = 60 * time.Second
	DefaultStartTimeout       = 5 * time.Minute
	// DefaultAPIURL contains variables that the kubelet expands, so it needs no DNS.
	DefaultAPIURL = "https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
	// DefaultSearchSecret is the name of the Secret in a task's namespace that holds the key of the search service.
	DefaultSearchSecret = "platform-search"
)

// DefaultMemoryLimit returns the default of Options.MemoryLimit.
func DefaultMemoryLimit() resource.Quantity { return resource.MustParse("1Gi") }

// Options configure an Executor.
type Options struct {
	// Client is the client of the cluster. Required.
	Client kubernetes.Interface
	// Namespaces are the namespaces whose runs are watched; empty means all.
	Namespaces []string
	// Store returns the identity of the store that holds the tasks; empty if it is not known. Jobs are marked with it,
	// and List returns only Jobs with the mark. If Store is nil, the identity is never known.
	Store func(context.Context) (string, error)
	// WorkerImage is an image with the worker program as its entrypoint, and the program of package workspace at its ProgramPath.
	// Required.
	WorkerImage string
	// AIImage runs tasks of type ai, and GeneralImage those of type container that name no image.
	// Default: WorkerImage. The worker program is copied into containers of other images.
	AIImage, GeneralImage string
	// AgentImages run tasks of type agent, by the type of the coding agent.
	AgentImages agentprogram.Images
	// APIURL is the address of the API server, as seen from pods. Default: DefaultAPIURL.
	APIURL string
	// SandboxOff runs the programs of all runs without a sandbox in their pods.
	SandboxOff bool
	// WebFetchAllow lists host:port that the tool web_fetch may reach although their addresses are private.
	WebFetchAllow []string
	// RepositoryAllow lists host:port from which repositories of tasks may be fetched although their addresses are private.
	RepositoryAllow []string
	// SearchURL is the URL of the search service that the tool web_search uses; empty means none.
	SearchURL string
	// SearchSecret names a Secret of the task's namespace whose entry "api-key" is the key of the
	// search service. The Secret need not exist. Default: DefaultSearchSecret.
	SearchSecret string
	// Exchange says how runs with a transaction token ask for those of children.
	Exchange tokenexchange.Options
	// UnreachableTimeout is how long a node may fail to answer before its runs are given up,
	// counted from when the cluster noticed. Default 60 s.
	UnreachableTimeout time.Duration
	// StartTimeout is how long scheduling, mounting and pulling images may take, counted from the creation of the
	// Pod. There is no limit for waiting until the quota of the namespace has room for the Pod. Default 5 min.
	StartTimeout time.Duration
	// MemoryLimit is the limit for runs that set none. Default 1 GiB.
	MemoryLimit resource.Quantity
	// Clock defaults to the real clock.
	Clock clock.WithTicker
}

func (o *Options) complete() error {
	if o.Client == nil || o.WorkerImage == "" {
		return errors.New("an executor of Jobs needs Client and WorkerImage")
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{metav1.NamespaceAll}
	}
	o.AIImage = cmp.Or(o.AIImage, o.WorkerImage)
	o.GeneralImage = cmp.Or(o.GeneralImage, o.WorkerImage)
	o.APIURL = cmp.Or(o.APIURL, DefaultAPIURL)
	o.SearchSecret = cmp.Or(o.SearchSecret, DefaultSearchSecret)
	o.UnreachableTimeout = cmp.Or(o.UnreachableTimeout, DefaultUnreachableTimeout)
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	if o.MemoryLimit.IsZero() {
		o.MemoryLimit = DefaultMemoryLimit()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Executor runs workers as Jobs. All methods but OnWaiting and OnExit work without Run.
//
//large:lines each part of a Job and of its Pod is built by a method from the same options
type Executor struct {
	opts         Options
	exits, waits executor.Listeners

	// mu guards what follows.
	mu sync.Mutex
	// told holds the UIDs of Jobs whose end the listeners were told.
	told map[types.UID]struct{}
	// waiting holds, by the UID of a Job, what the listeners were last told that it waits for.
	waiting map[types.UID]news
	// warned holds, by the UID of a Job, how many of its Pods were refused when that was last logged.
	warned map[types.UID]int
	// verdicts holds, by the UID of a Job, why its run was given up.
	verdicts map[types.UID]*verdict
	// events holds the Events about Jobs and Pods, and relayed, by the UID of the Job, the UIDs of those that were written for
	// the Task.
	events  map[eventsOf]cache.Indexer
	relayed map[types.UID]map[types.UID]struct{}
	// lastPods holds, by the UID of the Job, the last state of a *corev1.Pod that was deleted
	// before its Job. The Job itself records less about it. It has a lock of its own.
	lastPods *lru.Cache
	// known is the identity of the store as it was read last.
	known atomic.Pointer[string]
}

// maxLastPods bounds how many Pods that are gone are kept, at about 8 KiB each. They are needed
// soon after they are gone, if at all.
const maxLastPods = 1024

// New makes an Executor. It sends no request to the cluster.
func New(o Options) (*Executor, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Executor{opts: o, told: map[types.UID]struct{}{}, waiting: map[types.UID]news{}, warned: map[types.UID]int{}, verdicts: map[types.UID]*verdict{}, events: map[eventsOf]cache.Indexer{}, relayed: map[types.UID]map[types.UID]struct{}{}, lastPods: lru.New(maxLastPods)}, nil
}

// ByReference returns true: the kubelet projects the token and the Secrets into the Pod.
func (e *Executor) ByReference() bool { return true }

// Start creates the run's Job. See executor.Executor.
func (e *Executor) Start(ctx context.Context, run executor.Run) (executor.State, error) {
	if run.Task == nil || run.ID == "" || run.UID == "" || run.Attempt < 1 {
		return executor.State{}, fmt.Errorf("run %s lacks its task, id, UID or attempt", run.Ref)
	}
	wanted := e.job(run)
	if err := e.mark(ctx, wanted); err != nil {
		return executor.State{}, err
	}
	jobs := e.opts.Client.BatchV1().Jobs(run.Namespace)
	job, err := jobs.Create(ctx, wanted, metav1.CreateOptions{})
	switch {
	case err == nil:
		return e.assess(job, nil).state, nil
	case apierrors.IsInvalid(err):
		return executor.State{}, fmt.Errorf("%w: %w", executor.ErrRefused, err)
	case !apierrors.IsAlreadyExists(err):
		return executor.State{}, fmt.Errorf("create Job %s: %w", run.JobName(), err)
	}
	if job, err = jobs.Get(ctx, run.JobName(), metav1.GetOptions{}); err != nil {
		return executor.State{}, fmt.Errorf("job %s: %w", run.JobName(), err)
	}
	if !isJobOf(job, run.Ref) {
		// The Job of an earlier task of this name goes away by itself.
		return executor.State{}, fmt.Errorf("a job %s exists that does not belong to this run", run.JobName())
	}
	if runID(job) != run.ID {
		return executor.State{}, fmt.Errorf("%s: %w", run.Ref, executor.ErrConflict)
	}
	// Others can read name, labels and run id, and may have created a Job with them first.
	if err := e.isAsWanted(ctx, job, wanted); err != nil {
		return executor.State{}, err
	}
	return e.stateOf(ctx, job)
}

// isAsWanted returns an error if the Job's template is not what the cluster makes of the wanted one.
func (e *Executor) isAsWanted(ctx context.Context, job, wanted *batchv1.Job) error {
	wanted = wanted.DeepCopy()
	wanted.Name, wanted.GenerateName = "", "dry-run-"
	made, err := e.opts.Client.BatchV1().Jobs(job.Namespace).Create(ctx, wanted, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("compare Job %s: %w", job.Name, err)
	}
	if !equality.Semantic.DeepEqual(job.Spec.Template.Spec, made.Spec.Template.Spec) {
		return fmt.Errorf("job %s has another template than this run's, so somebody else made it, or the controller's flags have changed: delete the Job", job.Name)
	}
	return nil
}

// State reads the Job and its Pod from the API server.
func (e *Executor) State(ctx context.Context, ref executor.Ref) (executor.State, error) {
	job, err := e.get(ctx, ref)
	if err != nil {
		return executor.State{}, err
	}
	return e.stateOf(ctx, job)
}

// get returns the Job of an attempt, or an executor.MissingError if there is none.
func (e *Executor) get(ctx context.Context, ref executor.Ref) (*batchv1.Job, error) {
	job, err := e.opts.Client.BatchV1().Jobs(ref.Namespace).Get(ctx, ref.JobName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !isJobOf(job, ref) {
		return nil, &executor.MissingError{What: fmt.Sprintf("there is no Job %s, it was deleted or never created", ref.JobName())}
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", ref.JobName(), err)
	}
	return job, nil
}

func (e *Executor) stateOf(ctx context.Context, job *batchv1.Job) (executor.State, error) {
	pods, err := e.opts.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(job.UID)}.String(),
	})
	if err != nil {
		return executor.State{}, fmt.Errorf("pods of Job %s: %w", job.Name, err)
	}
	return e.assess(job, pods.Items).state, nil
}

// store returns the present identity of the store that holds the tasks; empty if it is not known.
func (e *Executor) store(ctx context.Context) (string, error) {
	if e.opts.Store == nil {
		return "", nil
	}
	id, err := e.opts.Store(ctx)
	if err != nil {
		return "", fmt.Errorf("identity of the store: %w", err)
	}
	e.known.Store(&id)
	return id, nil
}

// foreign reports whether a Job is marked with another store than the one that was known last: it is of another installation in the
// cluster, whose controller alone decides about it.
func (e *Executor) foreign(job *batchv1.Job) bool {
	known, mark := e.known.Load(), job.Labels[v1alpha1.LabelStoreID]
	return known != nil && *known != "" && mark != "" && mark != *known
}

// mark marks the Job with the identity of the store.
func (e *Executor) mark(ctx context.Context, job *batchv1.Job) error {
	id, err := e.store(ctx)
	if err == nil && id != "" {
		job.Labels[v1alpha1.LabelStoreID] = id
	}
	return err
}

// Stop deletes the Job, which disappears when its Pod has ended.
func (e *Executor) Stop(ctx context.Context, ref executor.Ref) error {
	job, err := e.get(ctx, ref)
	if err != nil {
		return err
	}
	state, err := e.stateOf(ctx, job)
	if err != nil {
		return err
	}
	if state.Phase != executor.Running || job.DeletionTimestamp != nil {
		return nil
	}
	if err := e.annotate(ctx, job, map[string]any{annotationStopped: e.opts.Clock.Now().UTC().Format(time.RFC3339)}); err != nil {
		return gone(err)
	}
	return gone(e.deleteJob(ctx, job, metav1.DeletePropagationForeground))
}

// gone returns nil for the error that the Job no longer exists.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (e *Executor) deleteJob(ctx context.Context, job *batchv1.Job, how metav1.DeletionPropagation) error {
	err := e.opts.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &how, Preconditions: &metav1.Preconditions{UID: &job.UID},
	})
	if err != nil {
		return fmt.Errorf("delete Job %s: %w", job.Name, err)
	}
	return nil
}

// Deliver only returns the state: what a Pod leaves is deleted with it, so no run is Undelivered.
func (e *Executor) Deliver(ctx context.Context, ref executor.Ref, _ string) (executor.State, error) {
	return e.State(ctx, ref)
}

// Remove deletes the Jobs of all attempts of a task.
func (e *Executor) Remove(ctx context.Context, uid types.UID) error {
	jobs, err := e.list(ctx, labels.Set{labelTaskUID: string(uid)}.String())
	if err != nil {
		return err
	}
	for i := range jobs {
		state, err := e.stateOf(ctx, &jobs[i])
		if err != nil {
			return err
		}
		if state.Phase == executor.Running {
			return executor.ErrRunning
		}
	}
	for i := range jobs {
		if err := gone(e.deleteJob(ctx, &jobs[i], metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	return nil
}

// List returns all attempts that have a Job marked with the identity of this store. It leaves out Jobs without a
// mark: they cannot be proved to belong to it.
func (e *Executor) List(ctx context.Context) ([]executor.Ref, error) {
	store, err := e.store(ctx)
	if err != nil || store == "" {
		return nil, err
	}
	jobs, err := e.list(ctx, labels.Set{v1alpha1.LabelStoreID: store}.String()+","+labelTaskUID)
	if err != nil {
		return nil, err
	}
	var refs []executor.Ref
	for i := range jobs {
		if ref, ok := refOf(&jobs[i]); ok {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// listPage is how many Jobs are read at once.
const listPage = 500

func (e *Executor) list(ctx context.Context, selector string) ([]batchv1.Job, error) {
	var jobs []batchv1.Job
	for _, namespace := range e.opts.Namespaces {
		opts := metav1.ListOptions{LabelSelector: selector, Limit: listPage}
		for {
			page, err := e.opts.Client.BatchV1().Jobs(namespace).List(ctx, opts)
			if err != nil {
				return nil, fmt.Errorf("list Jobs: %w", err)
			}
			jobs = append(jobs, page.Items...)
			if opts.Continue = page.Continue; opts.Continue == "" {
				break
			}
		}
	}
	return jobs, nil
}

// OnWaiting calls f for every run that waits for something else than before or no longer waits, while Run runs.
func (e *Executor) OnWaiting(ctx context.Context, f func(executor.Ref)) {
	e.waits.Add(ctx, f)
}

// OnExit calls f for every run that ends while Run runs, until the context ends.
func (e *Executor) OnExit(ctx context.Context, f func(executor.Ref)) {
	e.exits.Add(ctx, f)
}
