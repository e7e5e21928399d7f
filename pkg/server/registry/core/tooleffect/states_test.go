// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/test/kit"
)

// every is all states.
var every = []v1alpha1.ToolEffectState{
	v1alpha1.ToolEffectPending, v1alpha1.ToolEffectInFlight, v1alpha1.ToolEffectSucceeded, v1alpha1.ToolEffectFailed, v1alpha1.ToolEffectOutcomeUnknown,
}

// in makes an effect that is in a state.
func (w *world) in(state v1alpha1.ToolEffectState, call string) *v1alpha1.ToolEffect {
	w.t.Helper()
	e := w.reserve("work", call)
	if state == v1alpha1.ToolEffectPending {
		return e
	}
	c := w.claim(e, "approval of "+call)
	switch state {
	case v1alpha1.ToolEffectSucceeded:
		w.ok(c.Succeed(w.t.Context(), 200, []byte("response of "+call)))
	case v1alpha1.ToolEffectFailed:
		w.ok(c.Fail(w.t.Context(), 422, "refused"))
	case v1alpha1.ToolEffectOutcomeUnknown:
		w.ok(c.Unknown(w.t.Context(), "the connection broke"))
	}
	return w.now(e)
}

// write writes a status as Effects does, or as somebody else.
func (w *world) write(e *v1alpha1.ToolEffect, own bool, change func(*v1alpha1.ToolEffectStatus)) error {
	ctx := resource.AsServer(w.t.Context(), e.Namespace)
	if own {
		ctx = context.WithValue(ctx, writing{}, true)
	}
	_, err := w.o.Stored.UpdateStored(ctx, e.Name, func(row *v1alpha1.ToolEffect) error {
		change(&row.Status)
		return nil
	})
	return err
}

// All transitions: those of the table are made, and the others refused, whoever writes.
func TestTransitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	allowed := map[v1alpha1.ToolEffectState][]v1alpha1.ToolEffectState{
		v1alpha1.ToolEffectPending:  {v1alpha1.ToolEffectInFlight, v1alpha1.ToolEffectFailed},
		v1alpha1.ToolEffectInFlight: {v1alpha1.ToolEffectSucceeded, v1alpha1.ToolEffectFailed, v1alpha1.ToolEffectOutcomeUnknown, v1alpha1.ToolEffectPending},
	}
	for _, from := range every {
		for _, to := range every {
			if from == to {
				continue
			}
			e := w.in(from, string(from)+" to "+string(to))
			change := func(s *v1alpha1.ToolEffectStatus) {
				s.State, s.LeaseOwner, s.LeaseExpiresAt = to, "", nil
				if to == v1alpha1.ToolEffectInFlight {
					s.LeaseOwner, s.LeaseExpiresAt = "server", leaseEnd(w.clock.Now(), 30)
				}
			}
			if err := w.write(e, false, change); !apierrors.IsInvalid(err) {
				t.Errorf("%s to %s by somebody else: %v", from, to, err)
			}
			w.is(e, from, e.Status.Message)
			err := w.write(e, true, change)
			if want := slices.Contains(allowed[from], to); (err == nil) != want || err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("%s to %s: %v, want %v", from, to, err, want)
			}
			if got := w.now(e).Status.State; (err == nil) != (got == to) {
				t.Errorf("%s to %s: %v, and it is %s", from, to, err, got)
			}
		}
	}
}

// Nobody takes over what is in flight, neither before the lease ends nor after that.
func TestNoTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.in(v1alpha1.ToolEffectInFlight, "1")
	for range 2 {
		err := w.write(e, true, func(s *v1alpha1.ToolEffectStatus) {
			s.LeaseOwner, s.LeaseExpiresAt = "another", leaseEnd(w.clock.Now(), 30)
		})
		if !apierrors.IsInvalid(err) {
			t.Errorf("at %s: %v", w.clock.Now(), err)
		}
		w.clock.Step(time.Hour)
	}
	if s := w.now(e).Status; s.LeaseOwner != "server" || !s.LeaseExpiresAt.Equal(leaseEnd(noon, 30)) {
		t.Errorf("%+v", s)
	}
}

// Administrators change neither spec nor status, not even where the state stays, and delete no effect whose task could make the call again.
func TestOnlyTheServerWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	effects, status := w.storage["tooleffects"].(rest.StandardStorage), w.storage["tooleffects/status"].(rest.Updater)
	put := func(u rest.Updater, sub, name string, change func(*v1alpha1.ToolEffect)) error {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			e := old.DeepCopyObject().(*v1alpha1.ToolEffect)
			change(e)
			return e, nil
		})
		_, _, err := u.Update(w.as(sub), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		return err
	}
	for _, state := range every {
		e := w.in(state, string(state))
		for what, change := range map[string]func(*v1alpha1.ToolEffectStatus){
			"approval": func(s *v1alpha1.ToolEffectStatus) { s.ApprovalID = "another" },
			"attempts": func(s *v1alpha1.ToolEffectStatus) { s.Attempts += 7 },
			"lease":    func(s *v1alpha1.ToolEffectStatus) { s.LeaseExpiresAt = leaseEnd(noon, 3000) },
			"digest":   func(s *v1alpha1.ToolEffectStatus) { s.ResponseDigest = "0" },
			"message":  func(s *v1alpha1.ToolEffectStatus) { s.Message = "another" },
		} {
			if err := put(status, "status", e.Name, func(e *v1alpha1.ToolEffect) { change(&e.Status) }); !apierrors.IsInvalid(err) {
				t.Errorf("%s: another %s: %v", state, what, err)
			}
		}
		if err := put(effects, "", e.Name, func(e *v1alpha1.ToolEffect) { e.Spec.RequestDigest = "another" }); !apierrors.IsInvalid(err) {
			t.Errorf("%s: another spec: %v", state, err)
		}
		w.ok(put(status, "status", e.Name, func(*v1alpha1.ToolEffect) {}))
		w.ok(put(effects, "", e.Name, func(e *v1alpha1.ToolEffect) { e.Labels = map[string]string{"a": "b"} }))
		if got := w.now(e).Status; got != e.Status && got.State != e.Status.State {
			t.Errorf("%+v, before %+v", got, e.Status)
		}
		remove := func() error {
			_, _, err := effects.Delete(w.as(""), e.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			return err
		}
		code(t, "deletion", remove(), 409, `task "work" has not ended`)
		w.tasks.fail(apierrors.NewServiceUnavailable("not now"))
		code(t, "deletion while tasks cannot be read", remove(), 503)
		w.tasks.fail(nil)
		switch state {
		case v1alpha1.ToolEffectPending:
			w.tasks.remove("work")
		case v1alpha1.ToolEffectInFlight:
			w.tasks.set("work", "another", v1alpha1.TaskRunning)
		default:
			w.tasks.set("work", "uid-work", v1alpha1.TaskFailed)
		}
		w.ok(remove())
		w.tasks.set("work", "uid-work", v1alpha1.TaskRunning)
	}
}

// Effects leave the store 14 days after they ended. Those that did not end stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, state := range every {
		w.in(state, string(state))
	}
	left := func() (n int) {
		w.ok(w.o.Stored.Select(t.Context(), "", fields.Everything(), func(*v1alpha1.ToolEffect) error { n++; return nil }))
		return n
	}
	w.clock.Step(14*24*time.Hour - time.Minute)
	if n := left(); n != len(every) {
		t.Errorf("before: %d effects", n)
	}
	kit.Await(t, "the end of three effects", func() bool {
		w.clock.Step(time.Minute)
		return left() == 2
	})
}

// Effects are found by state, task, approval and tool, and a page of a table shows them.
func TestSelectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, state := range every {
		w.in(state, string(state))
	}
	for selector, want := range map[string]int{
		"status.state=Pending": 1, "spec.taskName=work": 5, "taskName=work": 5, "taskName=other": 0, "status.approvalId=approval of Failed": 1,
		"spec.tool=star": 5, "spec.tool=other": 0, "pendingTask=uid-work": 1,
	} {
		list, err := w.storage["tooleffects"].(rest.Lister).List(w.as(""), &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)})
		w.ok(err)
		if n := len(list.(*v1alpha1.ToolEffectList).Items); n != want {
			t.Errorf("%s: %d effects, want %d", selector, n, want)
		}
	}
	table, err := w.storage["tooleffects"].(rest.TableConvertor).ConvertToTable(w.as(""), w.now(w.in(v1alpha1.ToolEffectFailed, "row")), nil)
	w.ok(err)
	cells := map[string]any{}
	for i, c := range table.ColumnDefinitions {
		cells[c.Name] = table.Rows[0].Cells[i]
	}
	for name, want := range map[string]string{
		"Tool": "star", "Provider": "github", "State": "Failed", "Task": "work", "Connection": "github-1", "Approval": "approval of row", "Response": "422", "Message": "refused",
	} {
		if cells[name] != want {
			t.Errorf("column %s: %v, want %s", name, cells[name], want)
		}
	}
}
