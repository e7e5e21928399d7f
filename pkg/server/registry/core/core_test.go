// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// server is all resources over a store on disk, without HTTP.
type server struct {
	t       *testing.T
	scheme  *runtime.Scheme
	codecs  serializer.CodecFactory
	storage map[string]rest.Storage
	log     *eventlog.Log
	blobs   *blob.Store
	said    *transcript.Store
	close   func()
}

// controllers may create executionevents/controlled; everybody may get tasks.
const controllers = "controllers"

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == controllers && a.GetVerb() == "create" && a.GetResource() == "executionevents" && a.GetSubresource() == "controlled" {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetVerb() == "get" && a.GetResource() == "tasks" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "", nil
}

func start(t *testing.T) *server { return startIn(t, t.TempDir()) }

func startIn(t *testing.T, dir string) *server { return startAt(t, dir, clock.RealClock{}) }

func startAt(t *testing.T, dir string, now clock.WithTicker) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{t: t, scheme: runtime.NewScheme(), storage: map[string]rest.Storage{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(s.scheme, schema.GroupVersion{Version: "v1"})
	check(install.Install(s.scheme))
	s.codecs = serializer.NewCodecFactory(s.scheme, serializer.EnableStrict)
	e, err := local.Open(ctx, local.Options{Dir: dir})
	check(err)
	objects, err := object.Open(ctx, e, object.Options{})
	check(err)
	s.log, err = eventlog.Open(ctx, e, eventlog.Options{})
	check(err)
	s.blobs = blob.New(e, blob.Limits{}, clock.RealClock{})
	s.said = transcript.New(e, transcript.Options{})
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: objects, Scheme: s.scheme, Codecs: s.codecs})
	timelines, err := timeline.New(timeline.Options{Log: s.log, Clock: clock.RealClock{}})
	check(err)
	for _, r := range core.All(core.Options{
		Options:     task.Options{Log: s.log, Timelines: timelines, Blobs: s.blobs, Authorizer: authorizer.AuthorizerFunc(authorize), Clock: now},
		Transcripts: s.said,
	}) {
		check(r.Register(s.scheme))
		paths, err := r.Storage(ctx, resource.Config{Scheme: s.scheme, RESTOptions: getter, Clock: clock.RealClock{}})
		check(err)
		maps.Copy(s.storage, paths)
	}
	closed := false
	s.close = func() {
		if closed {
			return
		}
		closed = true
		cancel()
		for _, st := range s.storage {
			st.Destroy()
		}
		objects.Close()
		if err := errors.Join(s.log.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.close)
	return s
}

// as is the context of a request in the namespace "default".
func (s *server) as(name string, extra map[string][]string) context.Context {
	ctx := request.WithNamespace(s.t.Context(), "default")
	return request.WithUser(ctx, &user.DefaultInfo{Name: name, Extra: extra})
}

func (s *server) user() context.Context { return s.as("someone", nil) }

// decode reads one object strictly, with its defaults.
func (s *server) decode(text string) (runtime.Object, error) {
	return runtime.Decode(s.codecs.UniversalDecoder(v1alpha1.SchemeGroupVersion), []byte(text))
}

func (s *server) create(ctx context.Context, path string, obj runtime.Object) (runtime.Object, error) {
	return s.storage[path].(rest.Creater).Create(withPath(ctx, path), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

func withPath(ctx context.Context, path string) context.Context {
	res, sub, _ := strings.Cut(path, "/")
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: v1alpha1.GroupName, APIVersion: "v1alpha1", Resource: res, Subresource: sub, Namespace: "default",
	})
}

// createNamed posts to a subresource, whether it is created or connected.
func (s *server) createNamed(ctx context.Context, path, name string, obj runtime.Object) (runtime.Object, error) {
	codec := s.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	if _, ok := s.storage[path].(rest.Connecter); ok {
		w := s.call(ctx, path, name, "", "POST", []byte(runtime.EncodeOrDie(codec, obj)))
		if w.Code < 300 {
			return runtime.Decode(codec, w.Body.Bytes())
		}
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(w.Code), Message: w.Body.String()}}
	}
	return s.storage[path].(rest.NamedCreater).Create(withPath(ctx, path), name, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

// apply decodes and creates an object of YAML text.
func (s *server) apply(resource, text string) (runtime.Object, error) {
	obj, err := s.decode(text)
	if err != nil {
		return nil, err
	}
	return s.create(s.user(), resource, obj)
}

func (s *server) mustApply(resource, text string) runtime.Object {
	s.t.Helper()
	obj, err := s.apply(resource, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

func (s *server) update(ctx context.Context, path, name string, change func(runtime.Object)) (runtime.Object, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		change(obj)
		return obj, nil
	})
	obj, _, err := s.storage[path].(rest.Updater).Update(withPath(ctx, path), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return obj, err
}

func (s *server) task(name string) *v1alpha1.Task {
	s.t.Helper()
	obj, err := s.storage["tasks"].(rest.Getter).Get(s.user(), name, &metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return obj.(*v1alpha1.Task)
}

func (s *server) setPhase(name string, p v1alpha1.TaskPhase) {
	s.t.Helper()
	_, err := s.update(s.user(), "tasks/status", name, func(o runtime.Object) { o.(*v1alpha1.Task).Status.Phase = p })
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) remove(resource, name string) {
	s.t.Helper()
	_, _, err := s.storage[resource].(rest.GracefulDeleter).Delete(withPath(s.user(), resource), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// answers writes what a handler responds as its status and JSON.
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

// withoutValues ends with its context, and knows nothing that it knows.
type withoutValues struct{ context.Context }

func (withoutValues) Value(any) any { return nil }

// call sends a request to a connect subresource: "tasks/result", "name", "GET ?query", body.
func (s *server) call(ctx context.Context, path, name, sub, what string, body []byte) *httptest.ResponseRecorder {
	s.t.Helper()
	method, query, _ := strings.Cut(what, " ")
	// As behind a real server, the request itself knows the caller, but not the namespace.
	caller, _ := request.UserFrom(ctx)
	req := httptest.NewRequestWithContext(request.WithUser(withoutValues{ctx}, caller), method, "/"+query, bytes.NewReader(body))
	w := httptest.NewRecorder()
	res, last, _ := strings.Cut(path, "/")
	parts := []string{res, name, last}
	if sub != "" {
		parts = append(parts, strings.Split(sub, "/")...)
	}
	verb := map[string]string{"GET": "get", "POST": "create"}[method]
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb, APIGroup: v1alpha1.GroupName, Resource: res, Parts: parts})
	responder := answers{w, s.codecs}
	h, err := s.storage[path].(rest.Connecter).Connect(ctx, name, nil, responder)
	if err != nil {
		responder.Error(err)
		return w
	}
	h.ServeHTTP(w, req)
	return w
}

// A file of every kind's resource is an example that the server accepts.
func TestExamples(t *testing.T) {
	s := start(t)
	files, err := filepath.Glob("../../../../artifacts/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, path := range files {
		have[strings.TrimSuffix(filepath.Base(path), ".yaml")] = true
	}
	for _, kind := range []string{"agent", "provider", "tool", "skill", "session", "task", "executionevent"} {
		if !have[kind] {
			t.Errorf("no example of %s", kind)
			continue
		}
		text, err := os.ReadFile("../../../../artifacts/examples/" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			obj, err := s.apply(kind+"s", string(doc))
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			if got := obj.GetObjectKind().GroupVersionKind().Kind; got != "" && !strings.EqualFold(got, kind) {
				t.Errorf("%s: is a %s", kind, got)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	s := start(t)
	task := s.mustApply("tasks", `apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata: {name: a}
spec: {type: agent, agentRef: {name: x}, prompt: p, workspace: {gitRepo: "https://h/r"}, sessionRef: {name: s}, retryPolicy: {maxRetries: 1}}`).(*v1alpha1.Task)
	spec := task.Spec
	if *spec.Priority != 500 || spec.TimeZone != "UTC" || spec.ConcurrencyPolicy != v1alpha1.ConcurrencyForbid || *spec.StartingDeadlineSeconds != 100 ||
		*spec.SuccessfulRunsHistoryLimit != 3 || *spec.FailedRunsHistoryLimit != 1 || *spec.RetryPolicy.BackoffMultiplier != 2 ||
		!*spec.SessionRef.Append || *spec.SessionRef.MaxMessages != 50 || spec.Workspace.Intent != v1alpha1.WorkspaceRead {
		t.Errorf("task: %+v", spec)
	}
	tool := s.mustApply("tools", `apiVersion: core.platform.ai/v1alpha1
kind: Tool
metadata: {name: a}
spec: {description: d, http: {url: "https://h/"}}`).(*v1alpha1.Tool)
	if h := tool.Spec.HTTP; h.Method != v1alpha1.ToolPost || h.AuthInject != v1alpha1.AuthInjectHeader || h.Timeout.Duration.String() != "30s" {
		t.Errorf("tool: %+v", h)
	}
	agent := s.mustApply("agents", `apiVersion: core.platform.ai/v1alpha1
kind: Agent
metadata: {name: a}
spec: {coordination: {enabled: true}, tools: [{name: t}], session: {}}`).(*v1alpha1.Agent)
	if c := agent.Spec.Coordination; *c.MaxConcurrentChildren != 5 || *c.MaxDepth != 3 || c.MaxIterations != 0 || !*agent.Spec.Tools[0].Enabled || *agent.Spec.Session.MaxMessages != 50 {
		t.Errorf("agent: %+v", agent.Spec)
	}
	provider := s.mustApply("providers", `apiVersion: core.platform.ai/v1alpha1
kind: Provider
metadata: {name: a}
spec: {type: openai, secretRef: {name: s}}`).(*v1alpha1.Provider)
	if provider.Spec.SecretRef.Key != "api-key" {
		t.Errorf("provider: %+v", provider.Spec)
	}
}
