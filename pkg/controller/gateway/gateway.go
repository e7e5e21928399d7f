// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway has what people write in chat systems answered by agents. There is one controller for each thing that goes on:
//
//   - of classes (class.go): whether gateways of a GatewayClass can be used;
//   - of gateways (probe.go): whether the adapter of a Gateway answers, which the server finds out (gateways/probe);
//   - of bindings (binding.go): whether events are routed by a GatewayBinding;
//   - of sessions (dispatch.go): makes the task of the event whose turn it is, and the delivery of its answer. Meanwhile it tells in the
//     conversation what the task asks an approval for (announce.go);
//   - of decisions (decide.go): has the server decide on an approval as somebody wrote (gatewayevents/decide);
//   - of deliveries (deliver.go): has the server send the delivery of a session whose turn it is (gatewaydeliveries/send);
//   - of what was delivered (delivered.go): writes that down where people look for it.
//
// The server accepts events and speaks with adapters, because it has their credentials. This package has none.
//
// # Order
//
// The order of the events of a session was decided when they were accepted (status.transcriptOrder). Only the first one that is not ended is
// worked on (next.go): the next one gets its task when the answer to the first one is a delivery. Deliveries of a session are sent in the
// same order, and one that has to be repeated holds the others of its session and no others. Sessions do not wait for each other.
//
// # Once
//
// The task of an event and its delivery have names that are derived from the event, and so has the message of the agent in the session.
// Whatever a controller was doing when it was killed, it does again, and finds that the object of that name exists. A controller holds an
// event by a lease while it makes the task, so that another one waits. Each write of a state fails if the record changed meanwhile.
//
// # What is cached
//
// Only records that are not ended are cached (selected by the field open), because there may be millions of others. A record that ends looks
// to the cache as if it were deleted.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/visible"
)

// Options configure the controllers. What is not set has its default.
type Options struct {
	// Clock is required.
	Clock clock.PassiveClock
	// Metrics, if set, registers the metrics.
	Metrics prometheus.Registerer
	// Holder names this process in the leases of events. Default: the host's name and the id of the process.
	Holder string
	// ClaimLease is how long a process holds an event whose task it makes. Default 1 min.
	ClaimLease time.Duration
	// TaskTimeout limits a task whose binding does not say so. Default 30 min.
	TaskTimeout time.Duration
	// EventExpiry is when an event expires that does not say so. Default 24 h.
	EventExpiry time.Duration
	// BatchSize is how many sessions are worked on at once, from 1 to 100. Default 25.
	BatchSize int
	// TranscriptMessages is how many messages of the session a task reads. Default 50.
	TranscriptMessages int32
	// DeliveryAttempts is how often a delivery is sent before it is given up. Default 10.
	DeliveryAttempts int32
	// ResultGrace is how long after the end of a task its result is waited for. Default 30 s.
	ResultGrace time.Duration
}

// maxBatch is how many sessions may be worked on at once.
const maxBatch = 100

// complete sets defaults.
func (o *Options) complete() {
	o.ClaimLease = cmp.Or(o.ClaimLease, time.Minute)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, 30*time.Minute)
	o.EventExpiry = cmp.Or(o.EventExpiry, 24*time.Hour)
	o.BatchSize = min(max(cmp.Or(o.BatchSize, 25), 1), maxBatch)
	o.TranscriptMessages = cmp.Or(o.TranscriptMessages, 50)
	o.DeliveryAttempts = cmp.Or(o.DeliveryAttempts, 10)
	o.ResultGrace = cmp.Or(o.ResultGrace, 30*time.Second)
	if o.Holder == "" {
		// A process that was started again on its host takes its own leases up: the one before it is gone.
		name, err := os.Hostname()
		if err != nil {
			name = "controller"
		}
		o.Holder = fmt.Sprintf("%s/%d", name, os.Getpid())
	}
}

// Add registers the controllers. The manager's cache must have open GatewayEvents and GatewayDeliveries only.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	o.complete()
	counts, err := newMetrics(ctx, o.Metrics, mgr.GetClient(), o.Clock)
	if err != nil {
		return err
	}
	api, err := newWire(mgr.GetConfig(), mgr.GetScheme())
	if err != nil {
		return err
	}
	w := &world{
		Client: mgr.GetClient(), live: mgr.GetAPIReader(), wire: api, now: o.Clock.Now, o: o, counts: counts,
		written: lru.New(maxRemembered), touched: lru.New(maxRemembered),
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return errors.Join(w.addClasses(mgr), w.addGateways(mgr), w.addBindings(mgr), w.addSessions(mgr), w.addDecisions(mgr), w.addDeliveries(mgr), w.addDelivered(mgr))
}

// maxRemembered bounds what is kept in memory about objects.
const maxRemembered = 1 << 14

// The indexes of the cache.
const (
	ofSession = "session"
	ofBinding = "binding"
	ofGateway = "gateway"
	ofAgent   = "agent"
	ofClass   = "class"
	ofRoot    = "root"
)

// addIndexes adds the indexes of the cache.
func addIndexes(ctx context.Context, to client.FieldIndexer) error {
	for _, i := range []struct {
		of   client.Object
		name string
		key  client.IndexerFunc
	}{
		{&v1alpha1.GatewayEvent{}, ofSession, key(func(e *v1alpha1.GatewayEvent) string { return e.Status.SessionName })},
		{&v1alpha1.GatewayEvent{}, ofBinding, key(func(e *v1alpha1.GatewayEvent) string { return e.Status.BindingName })},
		{&v1alpha1.GatewayEvent{}, ofGateway, key(func(e *v1alpha1.GatewayEvent) string { return e.Spec.GatewayName })},
		{&v1alpha1.GatewayDelivery{}, ofSession, key(func(d *v1alpha1.GatewayDelivery) string { return d.Spec.SessionName })},
		{&v1alpha1.GatewayDelivery{}, ofGateway, key(func(d *v1alpha1.GatewayDelivery) string { return d.Spec.GatewayName })},
		{&v1alpha1.Approval{}, ofRoot, key(rootOf)},
		{&v1alpha1.Gateway{}, ofClass, key(func(g *v1alpha1.Gateway) string { return g.Spec.GatewayClassName })},
		{&v1alpha1.GatewayBinding{}, ofGateway, key(func(b *v1alpha1.GatewayBinding) string { return b.Spec.GatewayRef.Name })},
		{&v1alpha1.GatewayBinding{}, ofAgent, key(func(b *v1alpha1.GatewayBinding) string { return b.Spec.AgentRef.Name })},
	} {
		if err := to.IndexField(ctx, i.of, i.name, i.key); err != nil {
			return fmt.Errorf("index of gateways: %w", err)
		}
	}
	return nil
}

// key makes an index of a field; an object in which it is empty is not in the index.
func key[T client.Object](of func(T) string) client.IndexerFunc {
	return func(o client.Object) []string {
		if t, ok := o.(T); ok {
			if name := of(t); name != "" {
				return []string{name}
			}
		}
		return nil
	}
}

// world is what the controllers act on.
type world struct {
	client.Client
	wire
	// live reads from the server, never from a cache.
	live   client.Reader
	now    func() time.Time
	o      Options
	counts *metrics
	// written has the versions of records that this process wrote (see outdated), and touched when it noted an activity of a binding.
	written, touched *lru.Cache
}

// version is a version of a record.
type version struct {
	resourceVersion string
	at              time.Time
}

// wrote remembers that this process wrote a record, or knows its newest version.
func (w *world) wrote(o client.Object) {
	w.written.Add(o.GetUID(), version{o.GetResourceVersion(), w.now()})
}

const (
	// lag is how long the cache may take to show what was written. After that what it shows is believed, because the server may have been
	// restored from a backup, which has older versions.
	lag = 10 * time.Second
	// again is when something is looked at again that is about to change.
	again = time.Second
)

// outdated reports whether the cache shows an older version of a record than this process has written. What would be done about that was
// done. The newer version wakes the session.
func (w *world) outdated(o client.Object) bool {
	known, ok := w.written.Get(o.GetUID())
	if !ok {
		return false
	}
	v, ok := known.(version)
	if !ok || w.now().Sub(v.at) > lag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), v.resourceVersion)
	return err == nil && order < 0
}

// get reads an object. It returns false if there is none of that name.
func get(ctx context.Context, from client.Reader, namespace, name string, o client.Object) (bool, error) {
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

// options returns those of a controller that works on n things at once. A failure is tried again after at most a minute, so that nothing has
// to be started again after an outage.
func options(n int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: n,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, time.Minute),
	}
}

// parallel is how many classes, gateways or bindings are looked at at once.
const parallel = 8

// maxMessage is how long a message of a status may be, in bytes.
const maxMessage = 1024

// brief makes a message fit into a status.
func brief(message string) string { return clip.Marked(visible.Line(message), maxMessage) }

// stamp returns a time with the precision of the times of records.
func stamp(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

// whole returns a time in whole seconds, as it is stored, and not before t.
func whole(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.Add(time.Second - time.Nanosecond)).Rfc3339Copy()
	return &at
}

// backoff returns how long to wait after n failures: 1 s, and then twice as long each time.
func backoff(n int32, most time.Duration) time.Duration {
	return min(time.Second<<min(max(n-1, 0), 20), most)
}
