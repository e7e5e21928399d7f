// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/pkg/usage/usagetest"
)

// measuredLedger has the two tasks of gatewayed, and requests of chats at the same and at later times.
func measuredLedger() *usagetest.Ledger {
	l := gatewayed()
	for i := range 5 {
		at := start.Add(time.Duration(i/2) * time.Minute)
		l.Observations = append(l.Observations, usage.Observation{
			ID: fmt.Sprintf("c%d", i), Namespace: "team", SessionName: "talk", Scope: usage.ScopeCall, Model: "m", User: "ann",
			Status: usage.StatusStarted, StartedAt: at, ObservedAt: at,
		})
	}
	return l
}

func names(t *testing.T, r *Resource, ctx context.Context, o internalversion.ListOptions) string {
	t.Helper()
	var all []string
	for {
		obj, err := r.measurements(ctx, &o)
		if err != nil {
			return err.Error()
		}
		list := obj.(*v1alpha1.UsageMeasurementList)
		if o.Limit > 0 && len(list.Items) > int(o.Limit) {
			t.Errorf("a page of %d has %d", o.Limit, len(list.Items))
		}
		for i := range list.Items {
			all = append(all, list.Items[i].Name)
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return strings.Join(all, " ")
		}
	}
}

func TestMeasurements(t *testing.T) {
	const everything = "c0 c1 t0 c2 c3 c4"
	r, ctx := serve(measuredLedger(), reader...)
	selector := func(s string) internalversion.ListOptions {
		return internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(s)}
	}
	asOf := internalversion.ListOptions{ResourceVersion: fmt.Sprint(start.UnixNano()), ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 2}
	for name, c := range map[string]struct {
		o    internalversion.ListOptions
		want string
	}{
		"all":            {internalversion.ListOptions{}, everything},
		"pages of one":   {internalversion.ListOptions{Limit: 1}, everything},
		"pages of two":   {internalversion.ListOptions{Limit: 2}, everything},
		"a page":         {internalversion.ListOptions{Limit: 100}, everything},
		"as of a time":   {asOf, "c0 c1 t0"},
		"task":           {selector("spec.taskUID=t0"), "t0"},
		"of a Gateway":   {selector("spec.taskUID=t1"), ""},
		"session":        {selector("spec.sessionName=talk"), "c0 c1 c2 c3 c4"},
		"state":          {selector("status.state=completed,spec.model=m"), "t0"},
		"other":          {selector("spec.user!=ann"), "t0"},
		"name":           {selector("metadata.name=c3"), "c3"},
		"labels":         {internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}, ""},
		"made-up token":  {internalversion.ListOptions{Continue: "e30"}, "continue: is not a continue token of this list"},
		"future":         {internalversion.ListOptions{ResourceVersion: "9000000000000000000"}, "Timeout: Too large resource version: 9000000000000000000, current: 1777597200000000000"},
		"not a revision": {internalversion.ListOptions{ResourceVersion: "x"}, `resourceVersion: "x": must be a number`},
	} {
		if got := names(t, r, ctx, c.o); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := names(t, r, request.WithNamespace(ctx, "elsewhere"), internalversion.ListOptions{}); !strings.Contains(got, "may not list tasks") {
		t.Errorf("another namespace: %s", got)
	}
	if got := names(t, r, request.WithNamespace(ctx, ""), internalversion.ListOptions{}); !strings.Contains(got, "one namespace at a time") {
		t.Errorf("all namespaces: %s", got)
	}
	owner, octx := serve(measuredLedger(), append([]string{"get gateways g"}, reader...)...)
	if got := names(t, owner, octx, internalversion.ListOptions{Limit: 3}); got != "c0 c1 t0 t1 c2 c3 c4" {
		t.Errorf("with the Gateway: %s", got)
	}
}

// A measurement is read with the rights of a report, and its unknown counts are null.
func TestMeasurement(t *testing.T) {
	for i := range reader {
		rights := append([]string{}, reader...)
		r, ctx := serve(measuredLedger(), append(rights[:i], rights[i+1:]...)...)
		if _, err := r.measurement(ctx, "t0"); !apierrors.IsForbidden(err) {
			t.Errorf("without the right to %s: %v", reader[i], err)
		}
	}
	r, ctx := serve(measuredLedger(), reader...)
	for _, name := range []string{"t1", "nothing"} { // of a Gateway that the caller may not get, and of nobody
		if _, err := r.measurement(ctx, name); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := r.measurement(ctx, "t0")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Status
	if m.Spec.TaskUID != "t0" || *s.InputTokens != 10 || *s.OutputTokens != 1 || s.CachedInputTokens != nil || s.CacheWriteInputTokens != nil || !s.Complete {
		t.Errorf("%+v %+v", m.Spec, s)
	}
	for want, o := range map[string]*usage.Observation{
		"":            {Status: usage.StatusStarted},
		"Unavailable": {Status: usage.StatusStarted, Gap: usage.GapFinalUsage},
		"0":           {Status: usage.StatusFailed, Counts: usage.Counts{InputTokens: new(int64)}},
	} {
		if m := measured(o); count(m, m.Status.InputTokens) != want {
			t.Errorf("%+v is shown as %q, want %q", o, count(m, m.Status.InputTokens), want)
		}
	}
}

// Records of an earlier namespace of the name are not shown.
func TestMeasurementsOfEarlierNamespace(t *testing.T) {
	l := measuredLedger()
	for i := range l.Observations {
		l.Observations[i].NamespaceUID = []string{"old", "new", ""}[i%3]
	}
	r, ctx := serve(l, append([]string{"get gateways g"}, reader...)...)
	r.namespaces = namespaces("new")
	if got := names(t, r, ctx, internalversion.ListOptions{Limit: 2}); got != "c0 t1 c2 c3" {
		t.Errorf("%s", got)
	}
	r.namespaces = namespaces("")
	if got := names(t, r, ctx, internalversion.ListOptions{}); got != "c0 c3" {
		t.Errorf("of a namespace that does not exist: %s", got)
	}
	_, err := r.create(ctx, &v1alpha1.UsageReport{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), `the identity of the namespace "team" cannot be read`) {
		t.Errorf("a report on a namespace that cannot be read: %v", err)
	}
}
