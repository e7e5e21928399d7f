// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// Tasks derives the rows of tasks from their objects, in the commits of the objects. The rows outlive them.
type Tasks struct{ Ledger *Ledger }

// Change returns what to write when a task is created, changed or deleted.
func (x Tasks) Change(old, now runtime.Object) func(engine.Batch) error {
	before, was := old.(*v1alpha1.Task)
	after, is := now.(*v1alpha1.Task)
	var t *usage.Task
	switch {
	case is:
		t = usage.TaskOf(after)
		if was && reflect.DeepEqual(usage.TaskOf(before), t) {
			return nil
		}
	case was:
		t = usage.TaskOf(before)
		t.Deleted = true
	default:
		return nil
	}
	return func(b engine.Batch) error { return x.Ledger.putTask(b, t) }
}

func (l *Ledger) putTask(b engine.Batch, t *usage.Task) error {
	at, err := l.now(b)
	t.ObservedAt, t.NamespaceUID = at, l.namespaceUID(t.Namespace)
	return errors.Join(err, putTask(b, t))
}

// CatchTask records a task that an earlier version of the server stored, unless it is recorded already.
func (l *Ledger) CatchTask(task *v1alpha1.Task) error {
	key := taskOfKey(string(task.UID))
	if _, ok, err := l.engine.Get(key); err != nil || ok {
		return err
	}
	return l.commit(engine.Upkeep, func(b engine.Batch) error {
		if _, ok, err := l.engine.Get(key); err != nil || ok { // a group in flight may write it, too, which does no harm
			return err
		}
		return l.putTask(b, usage.TaskOf(task))
	})
}
