// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker proves, in a cluster, which task a worker works for.
//
// A worker's token is one of its Pod: the host says so in the extras pod-name and pod-uid of the user. From there the
// proof goes up: the Pod exists with that UID, is active, runs as the ServiceAccount and is controlled by a Job; the
// Job is controlled by a Task; the Task's status names the Job, by name and UID, and the Pod, by UID. Every link is a
// UID, so that nothing of an earlier name is taken for a later one, and the last link is what the controller wrote. The
// Pod's spec must be what the Job's template makes, each time the Pod is looked at. Whoever can make Pods and Jobs in the
// namespace does not become a worker by it; who can make tokens of the workers' accounts, or execute in their Pods, does.
//
// What is proved is put into the user's extras, as a token of the standalone host has it; the resources hold the
// worker to that task. Nobody else's extras of these names are let through.
//
// A refusal is 403, and final. If a retry may succeed (the controller writes the UIDs of Job and Pod after they were
// made), the answer is 503 with Retry-After.
package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	batchv1client "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// extraPrefix starts the keys of the extras that only this package sets.
const extraPrefix = v1alpha1.GroupName + "/task-"

// Options configure a Filter. All fields without a default are needed.
type Options struct {
	// Pods and Jobs read the host's objects from the host itself, not from a cache.
	Pods corev1client.PodsGetter
	Jobs batchv1client.JobsGetter
	// Task reads a Task from the store, not from a cache. Its error is NotFound for a Task that does not exist.
	Task func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error)
	// Serializer writes refusals in the encoding that the request accepts.
	Serializer runtime.NegotiatedSerializer
	// Remember is how long a Pod that was found active is taken to be so. Default: 30 s.
	Remember time.Duration
	// Clock tells when that is over. Default: the real clock.
	Clock clock.PassiveClock
	// Metrics, where set, gets the proofs' metrics.
	Metrics prometheus.Registerer
}

// Filter identifies workers. It is safe for concurrent use.
type Filter struct {
	o       Options
	metrics *metrics
	// chains has a *chain for each Pod's UID, the least recently used forgotten first.
	chains *lru.Cache
	// flights makes concurrent requests of one Pod wait for one lookup.
	flights singleflight.Group
}

// New fails on missing options, and where the metrics are registered already.
func New(o Options) (*Filter, error) {
	if o.Pods == nil || o.Jobs == nil || o.Task == nil || o.Serializer == nil {
		return nil, errors.New("worker: Pods, Jobs, Task and Serializer are needed")
	}
	if o.Remember == 0 {
		o.Remember = defaultRemember
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := &Filter{o: o, metrics: newMetrics(), chains: lru.New(maxChains)}
	if o.Metrics != nil {
		if err := o.Metrics.Register(f.metrics); err != nil {
			return nil, fmt.Errorf("worker: metrics: %w", err)
		}
	}
	return f, nil
}

// Wrap gives next requests whose user has the extras of a task if, and only if, the user is proved to be its worker.
// It must be the innermost filter: it needs the user as authentication and impersonation leave it, and what a refusal
// tells is only for the authorized.
func (f *Filter) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		caller, known := request.UserFrom(ctx)
		info, parsed := request.RequestInfoFrom(ctx)
		if !known || !parsed {
			responsewriters.RespondWithError(w, r, apierrors.NewInternalError(errors.New("the caller of the request is not known")), f.o.Serializer)
			return
		}
		as, err := f.identify(ctx, caller, info)
		if err != nil {
			responsewriters.RespondWithError(w, r, err, f.o.Serializer)
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithUser(ctx, as)))
	})
}

// identify is the caller with what is proved of it. Errors are API errors.
func (f *Filter) identify(ctx context.Context, caller user.Info, info *request.RequestInfo) (user.Info, error) {
	namespace, account, ok := workerAccount(caller)
	if !ok || !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName {
		return withExtras(caller, nil), nil
	}
	start := f.o.Clock.Now()
	t, err := f.prove(ctx, namespace, account, caller, info)
	f.metrics.proved(err, f.o.Clock.Since(start))
	if err != nil {
		return nil, apiError(ctx, info, err)
	}
	return withExtras(caller, map[string]string{
		v1alpha1.ExtraTaskNamespace: t.Namespace, v1alpha1.ExtraTaskName: t.Name, v1alpha1.ExtraTaskUID: string(t.UID),
		v1alpha1.ExtraTaskRun: string(t.Status.JobUID),
	}), nil
}

// prove finds the task that the caller, an account of workers, works for. Errors that are not refusals
// tell of the host or the store.
func (f *Filter) prove(ctx context.Context, namespace, account string, caller user.Info, info *request.RequestInfo) (*v1alpha1.Task, error) {
	if info.Namespace != namespace {
		return nil, never("the ServiceAccount's namespace is %q, the request's is %q", namespace, info.Namespace)
	}
	pod, err := podOf(caller)
	if err != nil {
		return nil, err
	}
	pod.namespace = namespace
	c, err := f.chain(ctx, pod)
	if err != nil {
		return nil, err
	}
	if c.account != account {
		return nil, never("Pod %s runs as ServiceAccount %q, not %q", pod.name, c.account, account)
	}
	t, err := f.o.Task(ctx, namespace, c.task.name)
	if err != nil {
		return nil, missing("Task", c.task.name, err)
	}
	if err := current(c, t, isAppend(info)); err != nil {
		return nil, err
	}
	return t, nil
}

// current tells whether the chain leads to the present attempt of a task that runs. An append to a task that ended is
// let through to the event log, which refuses it as it does for everybody.
func current(c *chain, t *v1alpha1.Task, appends bool) error {
	s := &t.Status
	switch {
	case t.UID != c.task.uid:
		return never("Job %s is controlled by an earlier Task %s", c.job.name, t.Name)
	case s.Phase.Terminal() && appends:
		return nil
	case s.Phase.Terminal():
		return never("Task %s has ended", t.Name)
	case s.JobName == "":
		return later("the status of Task %s names no Job", t.Name)
	case s.JobName != c.job.name:
		return never("the status of Task %s names Job %s, not %s: this is another attempt", t.Name, s.JobName, c.job.name)
	case s.JobUID == "" || s.JobUID != c.job.uid && string(s.JobUID) == c.run:
		return later("the status of Task %s does not have the UID of Job %s yet", t.Name, c.job.name)
	case s.JobUID != c.job.uid:
		return never("the status of Task %s names another Job %s, by its UID: this is another attempt", t.Name, c.job.name)
	case s.PodUID == "":
		return later("the controller has not accepted a Pod for Task %s yet", t.Name)
	case s.PodUID != c.pod.uid:
		return never("Pod %s is not the one that the controller accepted for Task %s", c.pod.name, t.Name)
	}
	return nil
}

// workerAccount is the namespace and name of the caller's ServiceAccount, if that is one of workers.
func workerAccount(u user.Info) (namespace, name string, ok bool) {
	namespace, name, err := serviceaccount.SplitUsername(u.GetName())
	if err != nil {
		return "", "", false
	}
	switch name {
	case v1alpha1.ServiceAccountAIWorker, v1alpha1.ServiceAccountAgentWorker, v1alpha1.ServiceAccountContainerWorker:
		return namespace, name, true
	}
	return "", "", false
}

// podOf is the Pod that the caller's token is bound to.
func podOf(u user.Info) (podRef, error) {
	names, uids := u.GetExtra()[serviceaccount.PodNameKey], u.GetExtra()[serviceaccount.PodUIDKey]
	if len(names) != 1 || len(uids) != 1 || names[0] == "" || uids[0] == "" {
		return podRef{}, never("the token is not bound to one Pod")
	}
	return podRef{name: names[0], uid: types.UID(uids[0])}, nil
}

// isAppend tells whether the request is one to append events.
func isAppend(info *request.RequestInfo) bool {
	if info.Verb != "create" {
		return false
	}
	return info.Resource == "tasks" && info.Subresource == "events" || info.Resource == "executionevents" && info.Subresource == ""
}

// withExtras is u with exactly these extras of a task, each once. A u that others may hold is not changed.
func withExtras(u user.Info, own map[string]string) user.Info {
	have := u.GetExtra()
	foreign := 0
	for key := range have {
		if strings.HasPrefix(key, extraPrefix) {
			foreign++
		}
	}
	if foreign == 0 && len(own) == 0 {
		return u
	}
	extra := make(map[string][]string, len(have)+len(own))
	for key, v := range have {
		if !strings.HasPrefix(key, extraPrefix) {
			extra[key] = v
		}
	}
	for key, v := range own {
		extra[key] = []string{v}
	}
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra}
}

// apiError is what the client gets. What the host or the store says is for the operator only.
func apiError(ctx context.Context, info *request.RequestInfo, err error) error {
	r, refused := errors.AsType[*refusal](err)
	if refused && !r.later {
		return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, errors.New("worker identity: "+r.why))
	}
	why := "it cannot be proved now"
	if refused {
		why = r.why
	} else if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "A worker's identity could not be proved")
	}
	e := apierrors.NewServiceUnavailable("worker identity: " + why + "; try again")
	e.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return e
}
