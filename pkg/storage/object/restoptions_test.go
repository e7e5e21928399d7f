// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"crypto/aes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit"
)

// podStrategy lets the generic registry serve example pods.
type podStrategy struct {
	apiruntime.ObjectTyper
	names.NameGenerator
}

func (podStrategy) NamespaceScoped() bool                                       { return true }
func (podStrategy) PrepareForCreate(context.Context, apiruntime.Object)         {}
func (podStrategy) PrepareForUpdate(_ context.Context, _, _ apiruntime.Object)  {}
func (podStrategy) Validate(context.Context, apiruntime.Object) field.ErrorList { return nil }
func (podStrategy) Canonicalize(apiruntime.Object)                              {}
func (podStrategy) AllowCreateOnUpdate(context.Context) bool                    { return false }

func (podStrategy) AllowUnconditionalUpdate(context.Context) bool { return true }

func (podStrategy) WarningsOnCreate(context.Context, apiruntime.Object) []string { return nil }

func (podStrategy) WarningsOnUpdate(_ context.Context, _, _ apiruntime.Object) []string { return nil }

func (podStrategy) ValidateUpdate(_ context.Context, _, _ apiruntime.Object) field.ErrorList {
	return nil
}

var examplePods = schema.GroupResource{Group: "example.apiserver.k8s.io", Resource: "pods"}

func newDB(t *testing.T, dir string, reg prometheus.Registerer) (engine.Engine, *DB) {
	t.Helper()
	e, err := local.Open(context.Background(), local.Options{Dir: dir, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(context.Background(), e, Options{Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	return e, db
}

func newRegistry(t *testing.T, o RESTOptions) *registry.Store {
	t.Helper()
	o.Scheme = newScheme(t)
	o.Codecs = serializer.NewCodecFactory(o.Scheme)
	strategy := podStrategy{o.Scheme, names.SimpleNameGenerator}
	s := &registry.Store{
		NewFunc: newPod, NewListFunc: newPodList, DefaultQualifiedResource: examplePods, SingularQualifiedResource: examplePods,
		CreateStrategy: strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		TableConvertor: rest.NewDefaultTableConvertor(examplePods),
	}
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: NewRESTOptionsGetter(o), AttrFunc: podAttrs}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRegistry runs the generic registry on the store as an API server does, with
// and without a watch cache, encrypted and not.
func TestRegistry(t *testing.T) {
	block, err := aes.NewCipher([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := aestransformer.NewGCMTransformer(block)
	if err != nil {
		t.Fatal(err)
	}
	for _, cache := range []bool{false, true} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("cacher=%v encrypted=%v", cache, encrypted), func(t *testing.T) {
				metrics := prometheus.NewPedanticRegistry()
				e, db := newDB(t, t.TempDir(), metrics)
				o := RESTOptions{DB: db, Cacher: cache}
				if encrypted {
					o.Transformers = map[schema.GroupResource]value.Transformer{examplePods: gcm}
				}
				s := newRegistry(t, o)
				serve(t, s)
				found := stored(t, e)
				if !strings.Contains(found, "/registry/example.apiserver.k8s.io/pods/ns/") {
					t.Errorf("keys are not where they should be: %q", found)
				}
				if plain := strings.Contains(found, "secret-label"); plain == encrypted {
					t.Errorf("encrypted %v, but plain text on disk %v", encrypted, plain)
				}
				if n, err := metrics.Gather(); err != nil || len(n) < 30 {
					t.Errorf("%d metrics, %v", len(n), err)
				}
				s.Destroy()
				db.Close()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// serve exercises every verb.
func serve(t *testing.T, s *registry.Store) {
	t.Helper()
	ctx := request.WithNamespace(testContext(t), "ns")
	kit.Await(t, "the watch cache has filled itself", func() bool { return s.ReadinessCheck() == nil })
	w, err := s.Watch(ctx, &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range 6 {
		p := pod(fmt.Sprint("p", i))
		p.Labels = map[string]string{"v": "secret-label"}
		if _, err := s.Create(ctx, p, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(ctx, pod("p0"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	list, err := s.List(ctx, &internalversion.ListOptions{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := list.(*example.PodList); !ok || len(l.Items) != 4 || l.Continue == "" || l.RemainingItemCount == nil || *l.RemainingItemCount != 2 {
		t.Errorf("list: %v", list)
	}
	update := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old apiruntime.Object) (apiruntime.Object, error) {
		p, _ := old.DeepCopyObject().(*example.Pod)
		p.Labels["v"] = "changed"
		return p, nil
	})
	if _, _, err := s.Update(ctx, "p1", update, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Delete(ctx, "p2", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "p2", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of a deleted object: %v", err)
	}
	want := strings.Repeat("ADDED ", 6) + "MODIFIED DELETED "
	var got strings.Builder
	for range 8 {
		ev := next(t, w)
		got.WriteString(string(ev.Type) + " ")
	}
	if got.String() != want {
		t.Errorf("watched %s, want %s", &got, want)
	}
	if _, err := s.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{}); err != nil {
		t.Error(err)
	}
	for range 5 {
		if ev := next(t, w); ev.Type != watch.Deleted {
			t.Errorf("%s after the collection was deleted", ev.Type)
		}
	}
}

// stored returns everything in the database as one string.
func stored(t *testing.T, e engine.Engine) string {
	t.Helper()
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var all bytes.Buffer
	for ok := it.First(); ok; ok = it.Next() {
		all.Write(it.Key())
		all.Write(it.Value())
	}
	return all.String()
}

func TestUnknownGroupIsRefused(t *testing.T) {
	scheme := newScheme(t)
	g := NewRESTOptionsGetter(RESTOptions{Scheme: scheme, Codecs: serializer.NewCodecFactory(scheme)})
	if _, err := g.GetRESTOptions(schema.GroupResource{Group: "nowhere", Resource: "things"}, nil); err == nil {
		t.Error("a resource whose group the scheme does not know got storage")
	}
}

// TestCorruptObject damages an object on disk. It must be reported as corrupt, must not hide the names of
// others, and can be deleted unread on explicit request.
func TestCorruptObject(t *testing.T) {
	h := open(t, func(s *setup) { s.config.MarkCorrupt, s.db.ObjectCacheBytes = true, -1 })
	ctx := testContext(t)
	create(t, h, "good")
	bad := create(t, h, "bad")
	key, err := h.key(podKey("bad"), false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.engine.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Set(versionKey(nil, key, revisionOf(t, bad)), []byte("bits flipped")), h.engine.Apply(b, engine.Sync)); err != nil {
		t.Fatal(err)
	}
	if err := h.Get(ctx, podKey("bad"), storage.GetOptions{}, &example.Pod{}); !storage.IsCorruptObject(err) {
		t.Errorf("get: %v", err)
	}
	_, err = listAt(h, h.db.Revision())
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonStoreReadError || len(status.Status().Details.Causes) != 1 {
		t.Errorf("list: %v", err)
	}
	unread := storage.DeleteOptions{ExpectTransformOrDecodeError: true}
	all := storage.ValidateAllObjectFunc
	if err := h.Delete(ctx, podKey("bad"), &example.Pod{}, nil, all, nil, storage.DeleteOptions{}); err == nil {
		t.Error("deleted an unreadable object in the normal way")
	}
	if err := h.Delete(ctx, podKey("good"), &example.Pod{}, nil, all, nil, unread); err == nil {
		t.Error("deleted a readable object unread")
	}
	if err := h.Delete(ctx, podKey("bad"), &example.Pod{}, nil, all, nil, unread); err != nil {
		t.Errorf("delete unread: %v", err)
	}
	if got, err := listAt(h, h.db.Revision()); err != nil || len(got) != 1 {
		t.Errorf("list after: %v, %v", got, err)
	}
}

// TestClosedStoreRefuses checks that nothing hangs or panics after Close.
func TestClosedStoreRefuses(t *testing.T) {
	h := open(t, func(s *setup) { s.db.ObjectCacheBytes = -1 })
	create(t, h, "a")
	w := watchFrom(t, h, h.db.Revision())
	h.Store.Close()
	ended(t, w)
	if _, err := h.Watch(context.Background(), "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}); !errors.Is(err, ErrClosed) {
		t.Errorf("watch of a closed store: %v", err)
	}
	create(t, h, "b") // other users of the index keep working
	h.shut(t)
	if err := h.Get(context.Background(), podKey("a"), storage.GetOptions{}, &example.Pod{}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if err := h.Create(context.Background(), podKey("c"), pod("c"), nil, 0); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("create: %v", err)
	}
	if _, err := h.db.NewStore(Config{NewFunc: newPod, Codec: h.codec, ResourcePrefix: "/pods/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("new store: %v", err)
	}
	if err := h.ReadinessCheck(); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("readiness: %v", err)
	}
}
