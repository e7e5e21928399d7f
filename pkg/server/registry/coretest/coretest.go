// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coretest serves all resources of the group over a store on disk, without HTTP, for the tests of each of them.
package coretest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/core/memory"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// Server is all resources over a store on disk, without HTTP.
type Server struct {
	t      testing.TB
	Scheme *runtime.Scheme
	Codecs serializer.CodecFactory
	// Storage has each resource and subresource by its path, such as tasks/cancel.
	Storage map[string]rest.Storage
	Log     *eventlog.Log
	// Stored is what is stored of the resources.
	Stored *core.Stored
	// Accounts are those of budgets.
	Accounts   *spending.Store
	Blobs      *blob.Store
	Recordings *recording.Store
	Said       *transcript.Store
	// Metrics are those of the event log.
	Metrics *prometheus.Registry
	// Close ends the server before its test does.
	Close func()

	engine engine.Engine
}

// Controllers is the name of a user who may create executionevents/controlled; every other one may get and list tasks, except
// that Stranger lists none.
const (
	Controllers = "controllers"
	Stranger    = "stranger"
)

// TreeTasks is how many tasks the server lets tasks delegate in one tree.
const TreeTasks = 40

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == Controllers && a.GetVerb() == "create" && a.GetResource() == "executionevents" && a.GetSubresource() == "controlled" {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetResource() == "tasks" && (a.GetVerb() == "get" || a.GetVerb() == "list" && a.GetUser().GetName() != Stranger) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "", nil
}

// Start makes a server in a folder of its own, which ends with the test.
func Start(t testing.TB) *Server { t.Helper(); return StartIn(t, t.TempDir()) }

// StartIn makes one over the store of a folder.
func StartIn(t testing.TB, dir string) *Server { t.Helper(); return StartAt(t, dir, clock.RealClock{}) }

// StartAt makes one with a clock of the test.
func StartAt(t testing.TB, dir string, now clock.WithTickerAndDelayedExecution) *Server {
	t.Helper()
	return StartOn(t, local.Options{Dir: dir}, now)
}

// StartOn makes one on a disk of the test.
func StartOn(t testing.TB, disk local.Options, now clock.WithTickerAndDelayedExecution) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Server{t: t, Stored: core.NewStored(), Scheme: runtime.NewScheme(), Storage: map[string]rest.Storage{}, Metrics: prometheus.NewRegistry()}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(s.Scheme, schema.GroupVersion{Version: "v1"})
	check(install.Install(s.Scheme))
	s.Codecs = serializer.NewCodecFactory(s.Scheme, serializer.EnableStrict)
	e, err := local.Open(ctx, disk)
	check(err)
	s.engine = e
	objects, err := object.Open(ctx, e, object.Options{})
	check(err)
	s.Accounts, err = spending.Open(e, now)
	check(err)
	s.Recordings = recording.New(e, recording.Limits{})
	s.Log, err = eventlog.Open(ctx, e, eventlog.Options{Projections: []eventlog.Projection{s.Accounts, s.Recordings}, Clock: now, Registerer: s.Metrics})
	check(err)
	s.Blobs = blob.New(e, blob.Limits{}, clock.RealClock{})
	s.Said = transcript.New(e, transcript.Options{Index: fulltext.New(e, transcript.IndexLetter)})
	memories := fulltext.New(e, memory.IndexLetter)
	getter := object.NewRESTOptionsGetter(object.RESTOptions{
		DB: objects, Scheme: s.Scheme, Codecs: s.Codecs,
		Indexes: map[schema.GroupResource]object.Index{v1alpha1.Resource("memories"): memory.Indexed{Index: memories}},
	})
	timelines, err := timeline.New(timeline.Options{Log: s.Log, Clock: clock.RealClock{}})
	check(err)
	for _, r := range core.All(core.Options{
		Options:     task.Options{Log: s.Log, Timelines: timelines, Blobs: s.Blobs, Recordings: s.Recordings, Recording: v1alpha1.RecordingFull, Accounts: s.Accounts, Authorizer: authorizer.AuthorizerFunc(authorize), Clock: now, TreeTasks: TreeTasks},
		Transcripts: s.Said, Memories: memories, Stored: s.Stored,
	}) {
		check(r.Register(s.Scheme))
		paths, err := r.Storage(ctx, resource.Config{Scheme: s.Scheme, RESTOptions: getter, Clock: clock.RealClock{}})
		check(err)
		maps.Copy(s.Storage, paths)
	}
	closed := false
	s.Close = func() {
		if closed {
			return
		}
		closed = true
		cancel()
		for _, st := range s.Storage {
			st.Destroy()
		}
		objects.Close()
		if err := errors.Join(s.Log.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.Close)
	return s
}

// As is the context of a request in the namespace "default".
func (s *Server) As(name string, extra map[string][]string) context.Context {
	ctx := request.WithNamespace(s.t.Context(), "default")
	return request.WithUser(ctx, &user.DefaultInfo{Name: name, Extra: extra})
}

// User is the context of a request of somebody.
func (s *Server) User() context.Context { return s.As("someone", nil) }

// Decode reads one object strictly, with its defaults.
func (s *Server) Decode(text string) (runtime.Object, error) {
	return runtime.Decode(s.Codecs.UniversalDecoder(v1alpha1.SchemeGroupVersion), []byte(text))
}

// Create creates an object at a path of Storage.
func (s *Server) Create(ctx context.Context, path string, obj runtime.Object) (runtime.Object, error) {
	return s.Storage[path].(rest.Creater).Create(WithPath(ctx, path), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

// WithPath is the context of a request to a path of Storage.
func WithPath(ctx context.Context, path string) context.Context {
	res, sub, _ := strings.Cut(path, "/")
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: v1alpha1.GroupName, APIVersion: "v1alpha1", Resource: res, Subresource: sub, Namespace: "default",
	})
}

// CreateNamed posts to a subresource, whether it is created or connected.
func (s *Server) CreateNamed(ctx context.Context, path, name string, obj runtime.Object) (runtime.Object, error) {
	codec := s.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	if _, ok := s.Storage[path].(rest.Connecter); ok {
		w := s.Call(ctx, path, name, "", "POST", []byte(runtime.EncodeOrDie(codec, obj)))
		if w.Code < 300 {
			return runtime.Decode(codec, w.Body.Bytes())
		}
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(w.Code), Message: w.Body.String()}}
	}
	return s.Storage[path].(rest.NamedCreater).Create(WithPath(ctx, path), name, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

// Apply decodes and creates an object of YAML text.
func (s *Server) Apply(resource, text string) (runtime.Object, error) {
	obj, err := s.Decode(text)
	if err != nil {
		return nil, err
	}
	return s.Create(s.User(), resource, obj)
}

// MustApply is Apply, of what must be accepted.
func (s *Server) MustApply(resource, text string) runtime.Object {
	s.t.Helper()
	obj, err := s.Apply(resource, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// Update changes an object.
func (s *Server) Update(ctx context.Context, path, name string, change func(runtime.Object)) (runtime.Object, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		change(obj)
		return obj, nil
	})
	obj, _, err := s.Storage[path].(rest.Updater).Update(WithPath(ctx, path), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return obj, err
}

// Rows returns the number of rows in a keyspace of the store.
func (s *Server) Rows(t *testing.T, keyspace byte) (n int) {
	t.Helper()
	it, err := s.engine.NewIter([]byte{keyspace}, []byte{keyspace + 1})
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// Task returns a task.
func (s *Server) Task(name string) *v1alpha1.Task {
	s.t.Helper()
	obj, err := s.Storage["tasks"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj.(*v1alpha1.Task)
}

// SetPhase writes the phase of a task, as its controller does.
func (s *Server) SetPhase(name string, p v1alpha1.TaskPhase) {
	s.t.Helper()
	_, err := s.Update(s.User(), "tasks/status", name, func(o runtime.Object) { o.(*v1alpha1.Task).Status.Phase = p })
	if err != nil {
		s.t.Fatal(err)
	}
}

// Remove deletes an object.
func (s *Server) Remove(resource, name string) {
	s.t.Helper()
	_, _, err := s.Storage[resource].(rest.GracefulDeleter).Delete(WithPath(s.User(), resource), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Responder writes what a handler responds, as its status and JSON, to w.
func (s *Server) Responder(w http.ResponseWriter) rest.Responder { return answers{w, s.Codecs} }

type answers struct {
	w      http.ResponseWriter
	codecs serializer.CodecFactory
}

func (a answers) Object(code int, obj runtime.Object) {
	a.w.WriteHeader(code)
	_, _ = io.WriteString(a.w, runtime.EncodeOrDie(a.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), obj))
}

func (a answers) Error(err error) {
	code := http.StatusInternalServerError
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		code = int(s.Status().Code)
	}
	http.Error(a.w, err.Error(), code)
}

// WithoutValues is a context that ends with the one in it, and has none of its values.
type WithoutValues struct{ context.Context }

// Value returns nothing.
func (WithoutValues) Value(any) any { return nil }

// Call sends a request to a connect subresource: "tasks/result", "name", "GET ?query", body.
func (s *Server) Call(ctx context.Context, path, name, sub, what string, body []byte) *httptest.ResponseRecorder {
	s.t.Helper()
	method, query, _ := strings.Cut(what, " ")
	// As behind a real server, the request itself knows the caller, but not the namespace.
	caller, _ := request.UserFrom(ctx)
	req := httptest.NewRequestWithContext(request.WithUser(WithoutValues{ctx}, caller), method, "/"+query, bytes.NewReader(body))
	w := httptest.NewRecorder()
	res, last, _ := strings.Cut(path, "/")
	parts := []string{res, name, last}
	if sub != "" {
		parts = append(parts, strings.Split(sub, "/")...)
	}
	verb := map[string]string{"GET": "get", "POST": "create"}[method]
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb, APIGroup: v1alpha1.GroupName, Resource: res, Parts: parts})
	responder := s.Responder(w)
	h, err := s.Storage[path].(rest.Connecter).Connect(ctx, name, nil, responder)
	if err != nil {
		responder.Error(err)
		return w
	}
	h.ServeHTTP(w, req)
	return w
}
