// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/object"
)

const (
	// MaxPending is how many effects of a task may wait for their approvals.
	MaxPending = 256
	// MaxResponseBytes is how long a response may be that is kept, in bytes.
	MaxResponseBytes = 256 << 10

	// Limits of the status, in bytes.
	maxHolder  = 256
	maxMessage = 1024
)

// Responses keeps what tools answered, with the content of their tasks. *blob.Store does.
type Responses interface {
	// KeepAnswer keeps an answer of the task with a UID by an id, unless one is kept by it already. It returns when the answer is durable.
	KeepAnswer(ctx context.Context, namespace string, task types.UID, id string, answer []byte) error
	// Answer returns an answer; ok is false if none is kept by the id.
	Answer(ctx context.Context, task types.UID, id string) (answer []byte, ok bool, err error)
}

// Options are what the ledger needs. All fields are required.
type Options struct {
	Stored    *resource.Stored[*v1alpha1.ToolEffect]
	Responses Responses
	// TaskOf reads a task. Errors are API errors.
	TaskOf func(ctx context.Context, namespace, name string) (*v1alpha1.Task, error)
	Clock  clock.WithTicker
	// Holder names this server in leases.
	Holder string
}

// Effects are the effects of tools of a server. All methods may be called concurrently. Their errors are API errors.
type Effects struct {
	o Options
	// locks has the tasks for which effects are reserved and the approvals with which they are claimed, so that what is counted stays true.
	// One process writes the store.
	locks keymutex.KeyMutex
}

// New returns the effects of tools of a server.
func New(o Options) *Effects {
	o.Holder = clip.Text(o.Holder, maxHolder)
	return &Effects{o: o, locks: keymutex.NewHashed(0)}
}

// hold takes a lock.
func (e *Effects) hold(key string) (done func()) {
	e.locks.LockKey(key)
	return func() { _ = e.locks.UnlockKey(key) } // never fails
}

// Reserve stores an effect in the state Pending, or returns the one of the same call, in whatever state. It is durable. With dryRun nothing
// is stored. spec.createdAt is set if it is zero. A task that has MaxPending effects in the state Pending gets no more (429).
func (e *Effects) Reserve(ctx context.Context, namespace string, spec v1alpha1.ToolEffectSpec, dryRun bool) (*v1alpha1.ToolEffect, error) {
	name, err := Name(&spec)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	defer e.hold("task/" + string(spec.TaskUID))()
	found, err := e.Get(ctx, namespace, name)
	if err == nil {
		return found, check(found)
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	from, to := object.Only(string(spec.TaskUID))
	waiting, err := e.o.Stored.Count(FieldPendingTask, from, to, MaxPending)
	if err != nil {
		return nil, err
	}
	if waiting >= MaxPending {
		return nil, apierrors.NewTooManyRequestsError(fmt.Sprintf("task %q has %d calls that wait for approval; at most %d may wait", spec.TaskName, waiting, MaxPending))
	}
	if spec.CreatedAt.IsZero() {
		spec.CreatedAt = metav1.NewMicroTime(e.o.Clock.Now())
	}
	row, _, err := e.o.Stored.Ensure(ctx, &v1alpha1.ToolEffect{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}, dryRun)
	if err != nil {
		return nil, err
	}
	return row, check(row)
}

// Get reads an effect.
func (e *Effects) Get(ctx context.Context, namespace, name string) (*v1alpha1.ToolEffect, error) {
	row, err := e.o.Stored.Get(resource.AsServer(ctx, namespace), name)
	if apierrors.IsNotFound(err) { // the store's error names the resource of the request instead
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tooleffects"), name)
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// change changes the status of an effect, provided that it was not replaced by another of that name. mutate may be called several times.
func (e *Effects) change(ctx context.Context, effect *v1alpha1.ToolEffect, mutate func(row *v1alpha1.ToolEffect, now time.Time) error) (*v1alpha1.ToolEffect, error) {
	ctx = context.WithValue(resource.AsServer(ctx, effect.Namespace), writing{}, true)
	row, err := e.o.Stored.UpdateStored(ctx, effect.Name, func(row *v1alpha1.ToolEffect) error {
		if row.UID != effect.UID {
			return apierrors.NewConflict(v1alpha1.Resource("tooleffects"), row.Name, errors.New("it was deleted, and reserved once more; ask for an approval of that"))
		}
		if err := check(row); err != nil {
			return err
		}
		return mutate(row, e.o.Clock.Now())
	})
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tooleffects"), effect.Name)
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// says returns a message as it is stored: without what looks like a secret, and not too long.
func says(message string) string {
	message, _ = redact.Text(message)
	return clip.Marked(message, maxMessage)
}
