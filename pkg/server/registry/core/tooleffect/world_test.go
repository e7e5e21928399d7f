// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/object"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// tasks are the tasks that the ledger asks for, by their names.
type tasks struct {
	mu  sync.Mutex
	all map[string]*v1alpha1.Task
	err error // of each read, if set
}

func (s *tasks) set(name string, uid types.UID, phase v1alpha1.TaskPhase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}, Status: v1alpha1.TaskStatus{Phase: phase}}
}

func (s *tasks) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

func (s *tasks) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *tasks) get(name string) (*v1alpha1.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.all[name]
	switch {
	case s.err != nil:
		return nil, s.err
	case !ok:
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks"), name)
	}
	return t.DeepCopy(), nil
}

// world is the ledger of a server over a store on a disk in memory, without HTTP. The task "work" runs.
type world struct {
	*Effects
	t       *testing.T
	disk    *localtest.Disk
	clock   *clocktesting.FakeClock
	tasks   *tasks
	blobs   *blob.Store
	storage map[string]rest.Storage
	// limits are those of the next open.
	limits blob.Limits
	close  func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, disk: localtest.NewDisk(), clock: clocktesting.NewFakeClock(noon), tasks: &tasks{all: map[string]*v1alpha1.Task{}}}
	w.tasks.set("work", "uid-work", v1alpha1.TaskRunning)
	w.open()
	t.Cleanup(func() { w.close() })
	return w
}

// open starts a server over the disk.
func (w *world) open() {
	w.t.Helper()
	check := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	check(install.Install(scheme))
	ctx, cancel := context.WithCancel(w.t.Context())
	e, err := local.Open(ctx, local.Options{Dir: localtest.Dir, FS: w.disk.FS()})
	check(err)
	objects, err := object.Open(ctx, e, object.Options{Clock: w.clock})
	check(err)
	w.blobs = blob.New(e, w.limits, w.clock)
	stored := resource.NewStored[*v1alpha1.ToolEffect](v1alpha1.Resource("tooleffects"))
	kind := Definition(Kind{Stored: stored, Clock: w.clock, Task: func(_ context.Context, name string) (*v1alpha1.Task, error) { return w.tasks.get(name) }})
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: objects, Scheme: scheme, Codecs: serializer.NewCodecFactory(scheme, serializer.EnableStrict)})
	for _, r := range guard.Close(&guard.Workers{}, []resource.Resource{kind}) {
		check(r.Register(scheme))
		w.storage, err = r.Storage(ctx, resource.Config{Scheme: scheme, RESTOptions: getter, Clock: w.clock})
		check(err)
	}
	w.Effects = New(Options{
		Stored: stored, Responses: w.blobs, Clock: w.clock, Holder: "server",
		TaskOf: func(_ context.Context, namespace, name string) (*v1alpha1.Task, error) {
			if namespace != "default" {
				return nil, fmt.Errorf("asked for a task of namespace %q", namespace)
			}
			return w.tasks.get(name)
		},
	})
	w.close = func() {
		cancel()
		for _, s := range w.storage {
			s.Destroy()
		}
		objects.Close()
		if err := e.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// reopen ends the server and starts another one.
func (w *world) reopen() {
	w.t.Helper()
	w.close()
	w.open()
}

// losePower ends the server as if the power had failed, and starts another one.
func (w *world) losePower(unsynced int, seed uint64) {
	w.t.Helper()
	crashed := w.disk.Crash(unsynced, seed)
	w.close()
	w.disk = crashed
	w.open()
}

// spec is a call of a task, which differs by its id from others.
func spec(task, call string) v1alpha1.ToolEffectSpec {
	return v1alpha1.ToolEffectSpec{
		TaskName: task, TaskUID: types.UID("uid-" + task), Attempt: 1, CallID: call, Tool: "star", ConnectorProvider: "github",
		Connection: v1alpha1.ToolEffectConnection{Name: "github-1", UID: "uid-c", Generation: 1, GrantSequence: 2},
		ToolDigest: "d1", PolicyDigest: "d2", RequestDigest: "d3", TimeoutSeconds: 30,
	}
}

func (w *world) reserve(task, call string) *v1alpha1.ToolEffect {
	w.t.Helper()
	e, err := w.Reserve(w.t.Context(), "default", spec(task, call), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// claim claims an effect that can be claimed.
func (w *world) claim(e *v1alpha1.ToolEffect, approval string) *Claim {
	w.t.Helper()
	c, err := w.Claim(w.t.Context(), e, approval)
	if err != nil || c.Replayed() {
		w.t.Fatalf("claim of %s: %v, %+v", e.Spec.CallID, err, c)
	}
	return c
}

// ok ends the test on an error.
func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// now returns an effect as it is stored.
func (w *world) now(e *v1alpha1.ToolEffect) *v1alpha1.ToolEffect {
	w.t.Helper()
	row, err := w.Get(w.t.Context(), e.Namespace, e.Name)
	w.ok(err)
	return row
}

// is checks the state of an effect, and that what belongs to a state is there and nothing else.
func (w *world) is(e *v1alpha1.ToolEffect, want v1alpha1.ToolEffectState, message string) {
	w.t.Helper()
	s := w.now(e).Status
	if s.State != want || s.Message != message && (message == "" || !strings.Contains(s.Message, message)) {
		w.t.Errorf("%s is %s: %q; want %s: %q", e.Spec.CallID, s.State, s.Message, want, message)
	}
	if held := s.State == v1alpha1.ToolEffectInFlight; held != (s.LeaseOwner != "") || held != (s.LeaseExpiresAt != nil) {
		w.t.Errorf("the lease in state %s: %q until %v", s.State, s.LeaseOwner, s.LeaseExpiresAt)
	}
	if s.State == v1alpha1.ToolEffectPending && s.ApprovalID != "" || s.UpdatedAt == nil {
		w.t.Errorf("%+v", s)
	}
}

// code checks the HTTP status of an API error, and what it says.
func code(t *testing.T, what string, err error, want int32, says ...string) {
	t.Helper()
	s, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || s.ErrStatus.Code != want {
		t.Errorf("%s: %v, want a status %d", what, err, want)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
}

// as is the context of a request of an administrator.
func (w *world) as(sub string) context.Context {
	ctx := request.WithUser(request.WithNamespace(w.t.Context(), "default"), &user.DefaultInfo{Name: "admin"})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: v1alpha1.GroupName, APIVersion: "v1alpha1", Resource: "tooleffects", Subresource: sub, Namespace: "default",
	})
}
