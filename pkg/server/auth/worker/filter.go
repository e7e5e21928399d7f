// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker establishes, in a cluster, which task a worker works for.
//
// A worker's token is bound to its Pod: the cluster puts the extras pod-name and pod-uid into the user. From there
// the owners are followed upwards. The Pod must exist with that UID, be active, run as the ServiceAccount and be
// controlled by a Job. The Job must be controlled by a Task. The Task's status must name the Job, by name and UID,
// and the Pod, by UID. Every link is checked by UID, so that a reused name is never taken for the earlier object, and
// the last link was written by the controller. Each time the Pod is looked up, its spec must be the one that the
// Job's template produces. Creating Pods and Jobs in the namespace is therefore not enough to become a worker;
// creating tokens for the workers' ServiceAccounts, or executing commands in their Pods, is.
//
// The result is put into the user's extras, in the same form as in a token of the standalone host. The resources then
// limit the worker to that task. Extras of these names are removed from all other users.
//
// A refusal is 403, and final. If a retry may succeed (the controller writes the UIDs of Job and Pod after they were
// created), the answer is 503 with Retry-After.
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

// extraPrefix is the prefix of the extras that only this package sets.
const extraPrefix = v1alpha1.GroupName + "/task-"

// Options configure a Filter. All fields without a default are required.
type Options struct {
	// Pods and Jobs read the host's objects from the host itself, not from a cache.
	Pods corev1client.PodsGetter
	Jobs batchv1client.JobsGetter
	// Task reads a Task from the store, not from a cache. Its error is NotFound for a Task that does not exist.
	Task func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error)
	// Serializer writes refusals in the encoding that the request accepts.
	Serializer runtime.NegotiatedSerializer
	// Remember is how long a Pod that was found active is assumed to remain so. Default: 30 s.
	Remember time.Duration
	// Clock is the clock for Remember. Default: the real clock.
	Clock clock.PassiveClock
	// Metrics, if set, registers the metrics.
	Metrics prometheus.Registerer
}

// Filter identifies workers. It is safe for concurrent use.
type Filter struct {
	o       Options
	metrics *metrics
	// chains holds a *chain for each Pod's UID and evicts the least recently used first.
	chains *lru.Cache
	// flights makes concurrent requests from one Pod share one lookup.
	flights singleflight.Group
}

// New makes a Filter. It fails if an option is missing or if the metrics are already registered.
func New(o Options) (*Filter, error) {
	if o.Pods == nil || o.Jobs == nil || o.Task == nil || o.Serializer == nil {
		return nil, errors.New("the filter needs Pods, Jobs, Task and Serializer")
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
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return f, nil
}

// Wrap passes requests to next. The user of a request has the extras of a task if, and only if, it was established to
// be the worker of that task. Wrap must be the innermost filter: it needs the user after authentication and
// impersonation, and the details in a refusal are only for authorized callers.
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

// identify returns the caller with the extras of the task that it was established to work for. Errors are API errors.
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

// prove finds the task that the caller, a ServiceAccount of workers, works for. An error that is not a refusal is one
// of the host or the store.
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

// current checks that the chain leads to the present attempt of a running task. An append to a task that has ended is
// passed on to the event log, which refuses it as it does for everybody.
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

// workerAccount returns the namespace and name of the caller's ServiceAccount, if it is one of workers.
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

// podOf returns the Pod that the caller's token is bound to.
func podOf(u user.Info) (podRef, error) {
	names, uids := u.GetExtra()[serviceaccount.PodNameKey], u.GetExtra()[serviceaccount.PodUIDKey]
	if len(names) != 1 || len(uids) != 1 || names[0] == "" || uids[0] == "" {
		return podRef{}, never("the token is not bound to one Pod")
	}
	return podRef{name: names[0], uid: types.UID(uids[0])}, nil
}

// isAppend reports whether the request appends events.
func isAppend(info *request.RequestInfo) bool {
	if info.Verb != "create" {
		return false
	}
	return info.Resource == "tasks" && info.Subresource == "events" || info.Resource == "executionevents" && info.Subresource == ""
}

// withExtras returns u with exactly these extras of a task, each with one value. It does not modify u, which others
// may hold.
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

// apiError returns the error for the client. It logs errors of the host or the store and does not show their details
// to the client.
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
