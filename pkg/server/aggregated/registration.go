// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/metric"
)

const (
	// AnnotationReadyAt is set on an APIService that is not available, so that kube-apiserver checks it again.
	AnnotationReadyAt = "platform.ai/ready-at"
	// caKey is the key of the ConfigMap SERVICE-ca.
	caKey = "ca.crt"
	// managedBy is the label with which Helm marks what it installs.
	managedBy = "app.kubernetes.io/managed-by"
	// knockMin and knockMax bound the time between two updates of an APIService that stays unavailable.
	knockMin, knockMax = 250 * time.Millisecond, 5 * time.Second
	// lookAgain is how long after the last check the registration is checked again, even if no change was seen.
	lookAgain = 10 * time.Minute
	// helmGrace is how long a server waits before it creates again an APIService that Helm had installed. "helm uninstall"
	// deletes the APIService first and the server's permissions and Pod within seconds after it.
	helmGrace = 10 * time.Second
)

// registration maintains the APIService of the group and the ConfigMap with the CA.
//
// The APIService names the one store that is served under it, in annotations that applying the manifests does not change.
// A server with another store is not ready and writes nothing; see judge. A server with that store repairs what others
// change.
//
// kube-apiserver checks a server that failed at growing intervals, up to 30 s, but checks it immediately when the
// APIService changes. So while a server is ready but its APIService is not Available, the server changes an
// annotation of the APIService, repeatedly and at growing intervals.
type registration struct {
	client    dynamic.Interface
	host      kubernetes.Interface
	namespace string
	service   string
	store     string // the identity of this server's store
	takeOver  string // the store that this one may replace, until it has done so
	cert      *certificate
	clock     clock.WithTickerAndDelayedExecution
	changed   chan struct{} // receives at most one pending value when there is something to check
	answering atomic.Bool   // this server is ready
	repairs   *prometheus.CounterVec
	place     *place // nil if the Service selects by readiness

	mu     sync.Mutex // guards reason
	reason error      // why this server may not serve the group; nil if it may

	mine    bool                       // this server has been registered since it started
	port    int64                      // a port that the server's Service has; 0 before it was looked up
	written string                     // the CA that this server wrote or found last, in base64
	seen    *unstructured.Unstructured // the APIService when it last belonged to this server
	delay   time.Duration              // the time before the next knock; 0 while the APIService is available
	before  time.Time                  // the time of the last knock
	gone    time.Time                  // when this server's APIService was found missing; zero while it is there
}

func apiServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func apiServiceName() string {
	return v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group
}

// registration makes the registration of this server with the given store.
func (a *assembly) registration(store string) (*registration, error) {
	client, err := dynamic.NewForConfig(a.config)
	if err != nil {
		return nil, fmt.Errorf("client of the APIService: %w", err)
	}
	repairs, err := metric.Register(a.Metrics, newRepairs())
	if err != nil {
		return nil, err
	}
	return &registration{
		client: client, host: a.host, namespace: a.Namespace, service: a.ServiceName, store: store, takeOver: a.TakeOver,
		cert: a.cert, clock: a.Clock, changed: make(chan struct{}, 1), reason: errUnread, repairs: repairs, place: a.place,
	}, nil
}

// ready returns nil if this server may serve the group, and otherwise the reason why not.
func (r *registration) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// answers is called when the server starts and stops answering requests.
func (r *registration) answers(yes bool) {
	r.answering.Store(yes)
	r.wake()
}

func (r *registration) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run works until ctx ends.
func (r *registration) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("registration"))
	services, err := r.follow(ctx, apiServices(), "", apiServiceName())
	if err != nil {
		return err
	}
	maps, err := r.follow(ctx, configMaps(), r.namespace, r.service+"-ca")
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), services.HasSynced) {
		return nil
	}
	for {
		timer := r.clock.NewTimer(r.look(ctx, services, maps))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-r.changed:
		case <-timer.C():
		case <-r.cert.renewed:
		}
		timer.Stop()
	}
}

// follow watches a single object.
func (r *registration) follow(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(r.client, gvr, namespace, 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.wake() }, DeleteFunc: func(any) { r.wake() }, UpdateFunc: func(any, any) { r.wake() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s %s: %w", gvr.Resource, name, err)
	}
	go informer.RunWithContext(ctx)
	return informer, nil
}

// look does what is currently necessary and returns when to check again.
func (r *registration) look(ctx context.Context, services, maps cache.SharedIndexInformer) time.Duration {
	log := klog.FromContext(ctx)
	wait, err := r.keep(ctx, only(services))
	if err != nil && ctx.Err() == nil {
		log.Error(err, "The APIService could not be updated; trying again", "name", apiServiceName())
	}
	if r.ready() != nil || !maps.HasSynced() {
		return wait
	}
	if err := r.publishCA(ctx, only(maps)); err != nil && ctx.Err() == nil {
		log.Error(err, "The CA could not be published; trying again")
		return min(wait, knockMax)
	}
	return wait
}

// only returns the one object that is followed; nil while it does not exist.
func only(i cache.SharedIndexInformer) *unstructured.Unstructured {
	for _, obj := range i.GetStore().List() {
		return obj.(*unstructured.Unstructured)
	}
	return nil
}

// keep does what the APIService currently needs and returns when to check again.
func (r *registration) keep(ctx context.Context, s *unstructured.Unstructured) (time.Duration, error) {
	switch {
	case s == nil && r.mine:
		return r.restore(ctx)
	case s == nil:
		r.decide(ctx, errAbsent)
		return lookAgain, nil
	}
	if err := r.judge(claimOf(s)); err != nil {
		r.decide(ctx, err)
		return lookAgain, nil
	}
	c := claimOf(s)
	if change, fields := r.missing(c, r.portOf(ctx, c)); len(change) > 0 {
		if err := r.claim(ctx, s, change); err != nil {
			if !r.mine {
				r.decide(ctx, fmt.Errorf("the APIService %s could not be changed: %w", apiServiceName(), err))
			}
			return knockMax, err
		}
		r.delay = 0 // the change has the effect of a knock
		if c.store == r.store || r.mine {
			r.repaired(ctx, fields...)
		}
	}
	r.written = r.bundle()
	r.mine, r.seen, r.takeOver, r.gone = true, s, "", time.Time{}
	r.decide(ctx, nil)
	return r.knock(ctx, s)
}

// decide stores whether this server may serve the group; err is the reason why not, or nil.
func (r *registration) decide(ctx context.Context, err error) {
	r.mu.Lock()
	before := r.reason
	r.reason = err
	r.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		klog.FromContext(ctx).Error(err, "This server is not ready")
	}
}

// claim changes the APIService, but only the version of it that was judged.
func (r *registration) claim(ctx context.Context, s *unstructured.Unstructured, change map[string]any) error {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["resourceVersion"] = s.GetResourceVersion()
	err := r.patch(ctx, change)
	if apierrors.IsConflict(err) {
		r.wake()
	}
	return err
}

// knock makes kube-apiserver check this server again if the APIService is not available.
func (r *registration) knock(ctx context.Context, s *unstructured.Unstructured) (time.Duration, error) {
	if available(s) || !r.answering.Load() {
		r.delay = 0
		return lookAgain, nil
	}
	now := r.clock.Now()
	if wait := r.delay - now.Sub(r.before); r.delay > 0 && wait > 0 {
		return wait, nil
	}
	r.delay, r.before = min(max(2*r.delay, knockMin), knockMax), now
	if r.place != nil { // somebody may have removed the label
		if err := r.place.mark(ctx); err != nil {
			return r.delay, err
		}
	}
	at := now.UTC().Format(time.RFC3339Nano)
	return r.delay, r.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationReadyAt: at}}})
}

func (r *registration) patch(ctx context.Context, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.client.Resource(apiServices()).Patch(ctx, apiServiceName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: DefaultService})
	return err
}

// restore creates the APIService of this server again, unless the server's namespace is being deleted, or Helm deletes the
// rest of the installation, too. In these cases a leftover APIService would block the deletion of every namespace.
func (r *registration) restore(ctx context.Context) (time.Duration, error) {
	if r.seen.GetLabels()[managedBy] == "Helm" {
		if r.gone.IsZero() {
			r.gone = r.clock.Now()
		}
		if wait := helmGrace - r.clock.Since(r.gone); wait > 0 {
			return wait, nil
		}
	}
	ns, err := r.host.CoreV1().Namespaces().Get(ctx, r.namespace, metav1.GetOptions{})
	if err != nil {
		return knockMax, err
	}
	if ns.DeletionTimestamp != nil {
		return lookAgain, nil
	}
	klog.FromContext(ctx).Info("The APIService was deleted; creating it again", "name", apiServiceName())
	// Do not force this: if somebody has created the APIService meanwhile, it is judged like any other.
	if err := apply(ctx, r.client.Resource(apiServices()), r.lost(), false); err != nil {
		return knockMax, err
	}
	r.repaired(ctx, fieldObject)
	return knockMax, nil
}

// apply creates or changes an object by server-side apply. Unlike create, it can be permitted for a single name.
func apply(ctx context.Context, c dynamic.ResourceInterface, object map[string]any, force bool) error {
	_, err := c.Apply(ctx, (&unstructured.Unstructured{Object: object}).GetName(), &unstructured.Unstructured{Object: object},
		metav1.ApplyOptions{FieldManager: DefaultService, Force: force})
	return err
}

// available reports whether kube-apiserver found the server available when it last checked.
func available(s *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Available" {
			return m["status"] == "True"
		}
	}
	return false
}

// publishCA writes the CA into the ConfigMap that clients read if they connect directly to this server. m is the
// present ConfigMap, or nil. If the operator gave the certificate, the operator publishes its CA.
func (r *registration) publishCA(ctx context.Context, m *unstructured.Unstructured) error {
	ca := string(r.cert.ca())
	if ca == "" {
		return nil
	}
	if m != nil {
		if have, _, _ := unstructured.NestedString(m.Object, "data", caKey); have == ca {
			return nil
		}
	}
	return apply(ctx, r.client.Resource(configMaps()).Namespace(r.namespace), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": r.namespace, "name": r.service + "-ca"},
		"data": map[string]any{caKey: ca},
	}, true)
}
