// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// reads counts what is read, by kind.
type reads map[string]int

// counted is a server whose tasks are root, middle and leaf, each delegated by the one before it, with an Agent, a Provider and a Budget.
type counted struct {
	reads

	revision uint64 // of the newest change to Budgets
	tasks    map[string]*v1alpha1.Task
	log      *eventlog.Log
	requests *modelrequest.Requests
}

func count(t *testing.T) *counted {
	t.Helper()
	c := &counted{reads: reads{}, revision: 1, tasks: map[string]*v1alpha1.Task{}}
	now := clocktesting.NewFakeClock(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: localtest.NewDisk().FS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	accounts, err := spending.Open(e, now)
	if err != nil {
		t.Fatal(err)
	}
	c.log, err = eventlog.Open(t.Context(), e, eventlog.Options{Projections: []eventlog.Projection{accounts}, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.log.Close() })
	above := ""
	for _, name := range []string{"root", "middle", "leaf"} {
		one := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		if above != "" {
			one.Status.Delegation = &v1alpha1.TaskDelegation{Parent: above, ParentUID: types.UID(above), Root: "root", RootUID: "root"}
		}
		c.tasks[name], above = one, name
	}
	c.tasks["root"].Spec.AI = &v1alpha1.TaskAI{TokenBudget: new(int64(1 << 40))}
	c.tasks["leaf"].Spec.AgentRef = &v1alpha1.NamespacedReference{Name: "a"}
	perMinute := &v1alpha1.RateLimit{RequestsPerMinute: new(int32(2))}
	c.requests = modelrequest.New(modelrequest.Options{Readers: modelrequest.Readers{
		Task: func(_ context.Context, name string) (*v1alpha1.Task, error) {
			c.reads["Task"]++
			return c.tasks[name], nil
		},
		Agent: func(context.Context, string) (*v1alpha1.Agent, error) {
			c.reads["Agent"]++
			return &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, Spec: v1alpha1.AgentSpec{
				ProviderRef: &v1alpha1.NamespacedReference{Name: "p"}, RateLimit: perMinute,
			}}, nil
		},
		Provider: func(context.Context, string) (*v1alpha1.Provider, error) {
			c.reads["Provider"]++
			return &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}, Spec: v1alpha1.ProviderSpec{RateLimit: perMinute}}, nil
		},
		UpdateProvider: func(_ context.Context, _ string, mutate func(*v1alpha1.Provider) error) (*v1alpha1.Provider, error) {
			c.reads["Provider written"]++
			return nil, mutate(&v1alpha1.Provider{})
		},
		Budgets: func(_ context.Context, namespace string) ([]v1alpha1.Budget, error) {
			c.reads["Budgets"]++
			return []v1alpha1.Budget{{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: namespace, UID: "all"}, Spec: v1alpha1.BudgetSpec{
				Limit: v1alpha1.BudgetLimit{Tokens: new(int64(1 << 40))}, Window: v1alpha1.BudgetMonth,
			}}}, nil
		},
	}, Clock: now, Accounts: accounts, Ends: later.New(now), Changed: func(string) (uint64, bool) { return c.revision, true }})
	return c
}

// check compares what was read since the last check.
func (c *counted) check(t *testing.T, when string, want reads) {
	t.Helper()
	if diff := cmp.Diff(want, c.reads); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", when, diff)
	}
	clear(c.reads)
}

// TestReadOnce: whatever decides about a request, be it a rate, a token budget of a task, a Budget, a price or a failing Provider, is
// read once when the request begins, and at most once when it ends. Budgets are read once for each change.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	c := count(t)
	tasks, leaf := c.requests.Tasks(c.log, tree.New()), c.tasks["leaf"]
	appends := func(events ...*v1alpha1.ExecutionEvent) error {
		clean := eventlog.Sanitize(events)
		ctx, end, err := tasks.Begin(t.Context(), leaf, clean)
		if err != nil {
			return err
		}
		list, err := c.log.AppendSanitized(ctx, stored.Stream(leaf), clean)
		end(list)
		return err
	}
	says := func(typ v1alpha1.EventType, call int, content map[string]any) *v1alpha1.ExecutionEvent {
		content["iteration"], content["provider"], content["model"] = call, "p", "m"
		return event.New(typ, v1alpha1.SeverityInfo, string(typ)+string(rune('0'+call)), string(typ), content)
	}
	start := func(call int) *v1alpha1.ExecutionEvent {
		return says(v1alpha1.EventModelRequestStarted, call, map[string]any{"maxInputTokens": 10})
	}
	try := func(when string, want reads, events ...*v1alpha1.ExecutionEvent) {
		t.Helper()
		if err := appends(events...); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		c.check(t, when, want)
	}
	try("a start", reads{"Task": 2, "Agent": 1, "Provider": 1, "Budgets": 1}, start(1))
	try("a failure", reads{"Task": 2, "Agent": 1, "Provider": 1, "Provider written": 1}, says(v1alpha1.EventModelRequestFailed, 1, map[string]any{"errorClass": "auth"}))
	c.revision++
	try("an end without a start, and a start", reads{"Task": 2, "Agent": 1, "Provider": 2, "Budgets": 1},
		says(v1alpha1.EventModelRequestCompleted, 7, map[string]any{"inputTokens": 1, "outputTokens": 1}), start(2))
	if err := appends(start(3)); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a request beyond the rate: %v", err)
	}
	c.check(t, "a refusal", reads{"Task": 2, "Agent": 1, "Provider": 1})

	// A caller has the same limits, whose turns are taken.
	asked := models.Asked{Namespace: "team", Provider: "p", Model: "m", Agent: "a", Caller: &user.DefaultInfo{Name: "u"}, MaxTokens: 1, MaxInput: 1}
	if _, err := c.requests.Start(t.Context(), asked); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a caller's request beyond the rate of a task: %v", err)
	}
	c.check(t, "a refused caller", reads{"Agent": 1, "Provider": 1})
	c = count(t)
	m, err := c.requests.Start(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	m.End(models.NothingUsed)
	c.check(t, "a chat", reads{"Agent": 1, "Provider": 1, "Budgets": 1})
	asked.Read = &v1alpha1.Provider{}
	if m, err = c.requests.Start(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	m.End(models.NothingUsed)
	c.check(t, "an API that has read the Provider", reads{"Agent": 1})
}
