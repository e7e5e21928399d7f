// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		// The watch cache's alarm for a read that waits: it rings after 3 s, also when the read is long done.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"),
	)
}

const testPrefix = "test!"

var pods = schema.GroupResource{Resource: "pods"}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(s), examplev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newCodec(t testing.TB) runtime.Codec {
	return apitesting.TestCodec(serializer.NewCodecFactory(newScheme(t)), examplev1.SchemeGroupVersion)
}

// setup describes how a test's store is made.
type setup struct {
	engine local.Options
	db     Options
	config Config
}

// mode is one way to run the conformance helpers.
type mode struct {
	values, objects int64 // bytes of cache
	cacher          bool
	fields          storage.IndexerFuncs // that are indexed
}

// harness gives the conformance helpers what they need beyond storage.Interface.
type harness struct {
	*Store
	engine engine.Engine
}

func open(t testing.TB, with ...func(*setup)) harness {
	t.Helper()
	su := setup{
		engine: local.Options{OnFatal: func(err error) { t.Errorf("fatal: %v", err) }},
		config: Config{
			Codec: newCodec(t), Transformer: storagetesting.NewPrefixTransformer([]byte(testPrefix), false),
			NewFunc: newPod, ResourcePrefix: "/pods/", GroupResource: pods,
		},
	}
	for _, f := range with {
		f(&su)
	}
	if su.engine.Dir == "" {
		su.engine.Dir = t.TempDir()
	}
	e, err := local.Open(context.Background(), su.engine)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(context.Background(), e, su.db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := e.Close(); err != nil && !errors.Is(err, engine.ErrClosed) && !errors.Is(err, engine.ErrFailed) {
			t.Error(err)
		}
	})
	s, err := db.NewStore(su.config)
	if err != nil {
		t.Fatal(err)
	}
	return harness{Store: s, engine: e}
}

// shut closes what open opened, before the test ends.
func (h harness) shut(t testing.TB) {
	t.Helper()
	h.db.Close()
	if err := h.engine.Close(); err != nil {
		t.Error(err)
	}
}

func (h harness) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	old := h.transformer.Load()
	prefix, _ := (*old).(*storagetesting.PrefixTransformer)
	copied := *prefix
	next := modify(&copied)
	h.transformer.Store(&next)
	return func() { h.transformer.Store(old) }
}

func (h harness) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	old := h.transformer.Load()
	next := modify(*old)
	h.transformer.Store(&next)
	return func() { h.transformer.Store(old) }
}

func (h harness) validateKey(_ context.Context, t *testing.T, key string) {
	k, err := h.key(key, false)
	if err != nil {
		t.Fatal(err)
	}
	_, stored, err := h.load(k)
	if err != nil || stored == nil {
		t.Fatalf("no stored value: %v", err)
	}
	obj, err := runtime.Decode(h.codec, bytes.TrimPrefix(stored, []byte(testPrefix)))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := obj.(*example.Pod); !ok || p.ResourceVersion != "" || p.SelfLink != "" {
		t.Errorf("stored object %v has a revision or a link", obj)
	}
}

// compact also advances the revision by one, as the API server does when it compacts etcd. RunTestList
// relies on that.
func (h harness) compact(_ context.Context, t *testing.T, rv string) {
	rev, err := versioner.ParseResourceVersion(rv)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.db.Compact(rev); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Bump(1); err != nil {
		t.Fatal(err)
	}
}

func (h harness) increaseRV(_ context.Context, t *testing.T) int64 {
	rev, err := h.engine.Bump(1)
	if err != nil {
		t.Fatal(err)
	}
	return int64(rev)
}

// reads checks that a list transformed no value more than it had to.
func (h harness) reads(t *testing.T, _, objects uint64) {
	prefix, ok := (*h.transformer.Load()).(*storagetesting.PrefixTransformer)
	if !ok {
		t.Fatal("the transformer does not count")
	}
	if got := prefix.GetReadsAndReset(); got != objects {
		t.Errorf("transformed %d values, want %d", got, objects)
	}
}

// cached is a watch cache over a harness, as the cacher's own tests set it up.
type cached struct {
	*cacher.CacheDelegator
	cache *cacher.Cacher
	harness
	store    *recordingStore
	recorder *storagetesting.KubernetesRecorder
}

// eagerClock makes the watch cache look for compactions every 50 ms instead of
// every 15 s. Tests await that it has looked, so nothing depends on the pause.
type eagerClock struct{ clock.RealClock }

func (c eagerClock) NewTimer(d time.Duration) clock.Timer {
	if d == 15*time.Second {
		d = 50 * time.Millisecond
	}
	return eagerTimer{c.RealClock.NewTimer(d)}
}

type eagerTimer struct{ clock.Timer }

func (t eagerTimer) Reset(d time.Duration) bool {
	if d == 15*time.Second {
		d = 50 * time.Millisecond
	}
	return t.Timer.Reset(d)
}

// compactCached compacts the store and waits until the watch cache has noticed.
func (c *cached) compactCached(ctx context.Context, t *testing.T, rv string) {
	c.compact(ctx, t, rv)
	<-c.store.asked // it asks for the compacted revision
	<-c.store.asked // it asks again, so it is done with the first answer
}

func withCache(t testing.TB, h harness, keyFunc func(string, runtime.Object) (string, error)) *cached {
	t.Helper()
	AnnounceWatchProgress()
	recorder := storagetesting.NewKubernetesRecorder(noLists{})
	s := &recordingStore{Store: h.Store, recorder: recorder, asked: make(chan struct{})}
	config := cacher.Config{
		Storage: s, Versioner: versioner, GroupResource: pods, EventsHistoryWindow: cacher.DefaultEventFreshDuration,
		ResourcePrefix: "/pods/", KeyFunc: func(obj runtime.Object) (string, error) { return keyFunc("/pods/", obj) },
		GetAttrsFunc: podAttrs, NewFunc: newPod, NewListFunc: newPodList, Codec: h.codec, Clock: eagerClock{},
		IndexerFuncs: storage.IndexerFuncs{"spec.nodeName": nodeName},
		Indexers: &cache.Indexers{
			"f:spec.nodeName":      func(obj any) ([]string, error) { return []string{nodeName(obj.(runtime.Object))}, nil },
			"f:metadata.namespace": func(obj any) ([]string, error) { return []string{obj.(*example.Pod).Namespace}, nil },
		},
	}
	c, err := cacher.NewCacherFromConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	d := cacher.NewCacheDelegator(c, s)
	t.Cleanup(func() { d.Stop(); c.Stop() })
	return &cached{CacheDelegator: d, cache: c, harness: h, store: s, recorder: recorder}
}

func nodeName(obj runtime.Object) string {
	if p, ok := obj.(*example.Pod); ok {
		return p.Spec.NodeName
	}
	return ""
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	p, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no pod", obj)
	}
	return p.Labels, fields.Set{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy), "status.phase": string(p.Status.Phase),
		"metadata.name": p.Name, "metadata.namespace": p.Namespace,
	}, nil
}

// recordingStore notes the lists that the watch cache passes on, as the helpers
// expect them of an etcd client.
type recordingStore struct {
	*Store
	recorder *storagetesting.KubernetesRecorder
	asked    chan struct{}
}

func (r *recordingStore) CompactRevision() int64 {
	select {
	case r.asked <- struct{}{}:
	default:
	}
	return r.Store.CompactRevision()
}

func (r *recordingStore) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	if k, err := r.key(key, opts.Recursive); err == nil {
		if rev, from, err := storage.ValidateListOptions(k, versioner, opts); err == nil {
			//nolint:errcheck // noLists never fails
			r.recorder.List(ctx, k, kubernetes.ListOptions{Revision: rev, Limit: opts.Predicate.Limit, Continue: from})
		}
	}
	return r.Store.GetList(ctx, key, opts, out)
}

type noLists struct{ kubernetes.Interface }

func (noLists) List(context.Context, string, kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	return kubernetes.ListResponse{}, nil
}

var errSynthetic = errors.New("synthetic error")

type failingTransformer struct {
	value.Transformer
	on atomic.Bool
}

func (f *failingTransformer) TransformFromStorage(ctx context.Context, data []byte, dc value.Context) ([]byte, bool, error) {
	if f.on.Load() {
		return nil, false, errSynthetic
	}
	return f.Transformer.TransformFromStorage(ctx, data, dc)
}

type failingCodec struct {
	runtime.Codec
	on atomic.Bool
}

func (f *failingCodec) Decode(data []byte, gvk *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if f.on.Load() {
		return nil, nil, errSynthetic
	}
	return f.Codec.Decode(data, gvk, into)
}

func unsafeDeletion(t *testing.T, on bool) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, on)
}

func pod(name string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

func podKey(name string) string { return "/pods/ns/" + name }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func create(t testing.TB, s storage.Interface, name string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := s.Create(testContext(t), podKey(name), pod(name), out, 0); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return out
}

func setLabel(t testing.TB, s storage.Interface, name, val string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	err := s.GuaranteedUpdate(testContext(t), podKey(name), out, false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
		o.(*example.Pod).Labels = map[string]string{"v": val}
		return o, nil
	}), nil)
	if err != nil {
		t.Fatalf("update %s: %v", name, err)
	}
	return out
}

func remove(t testing.TB, s storage.Interface, name string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := s.Delete(testContext(t), podKey(name), out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
	return out
}

func revisionOf(t testing.TB, obj runtime.Object) uint64 {
	t.Helper()
	rev, err := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func bigValue(n int) string { return strings.Repeat("x", n) }
