// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/pkg/usage/usagetest"
)

var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// serve makes the resource on records, for a caller with rights such as "list tasks".
func serve(l usage.Reader, rights ...string) (*Resource, context.Context) {
	r := New(Options{
		Ledger: l, Clock: clocktesting.NewFakePassiveClock(start.Add(time.Hour)),
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			asked := strings.TrimSpace(a.GetVerb() + " " + a.GetResource() + " " + a.GetName())
			for _, right := range rights {
				if right == asked && a.GetNamespace() == "team" && a.GetAPIGroup() == v1alpha1.GroupName {
					return authorizer.DecisionAllow, "", nil
				}
			}
			return authorizer.DecisionDeny, "", nil
		}),
		Providers: func(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
			return &v1alpha1.ProviderList{Items: []v1alpha1.Provider{{Spec: v1alpha1.ProviderSpec{Prices: []v1alpha1.ProviderPrice{
				{Model: "m", EffectiveFrom: "2026-01-01", Currency: "EUR", Input: "1", Output: "2"},
			}}}}}, nil
		},
	})
	return r, request.WithUser(request.WithNamespace(context.Background(), "team"), &user.DefaultInfo{Name: "a"})
}

var reader = []string{"list tasks", "list repositorymonitors", "list sessions"}

func gatewayed() *usagetest.Ledger {
	l := &usagetest.Ledger{}
	for i, gateway := range []string{"", "g"} {
		uid := fmt.Sprintf("t%d", i)
		l.Tasks = append(l.Tasks, usage.Task{
			Namespace: "team", UID: uid, RootTaskUID: uid, Name: uid, GatewayOwner: gateway, CreatedAt: start, ObservedAt: start,
			Work: usage.Work{Kind: usage.KindIssue, Repository: "o/r", Number: int64(i + 1)},
		})
		l.Observations = append(l.Observations, usage.Observation{
			ID: uid, Namespace: "team", TaskUID: uid, AttemptID: "1", Scope: usage.ScopeCall, Model: "m", Status: usage.StatusCompleted, Complete: true,
			Counts: usage.Counts{InputTokens: new(int64(10)), OutputTokens: new(int64(1))}, StartedAt: start, ObservedAt: start,
		})
	}
	return l
}

// A report needs all three rights, also for kinds that are not served yet. Requests of a Gateway need that Gateway.
func TestAccess(t *testing.T) {
	for i := range reader {
		rights := append([]string{}, reader...)
		r, ctx := serve(gatewayed(), append(rights[:i], rights[i+1:]...)...)
		if _, err := r.create(ctx, &v1alpha1.UsageReport{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), strings.TrimPrefix(reader[i], "list ")) {
			t.Errorf("without the right to %s: %v", reader[i], err)
		}
	}
	for rights, want := range map[string]int64{"": 1, "get gateways g": 2, "get gateways other": 1} {
		r, ctx := serve(gatewayed(), append([]string{rights}, reader...)...)
		u, err := r.create(ctx, &v1alpha1.UsageReport{})
		if err != nil {
			t.Fatal(err)
		}
		if s := u.Status.Summary; s.WorkRequests != want || *s.TotalTokens != 11*want {
			t.Errorf("with %q: %d requests, %d tokens, want %d", rights, s.WorkRequests, *s.TotalTokens, want)
		}
		if got := u.Status.Summary.Cost; got.Completeness != v1alpha1.UsageComplete || got.Amounts[0] != (v1alpha1.UsageAmount{Currency: "EUR", Amount: []string{"", "0.000012", "0.000024"}[want]}) {
			t.Errorf("cost %+v", got)
		}
	}
}

func TestErrors(t *testing.T) {
	huge := gatewayed()
	huge.Observations[0].InputTokens = new(usage.MaxTokens)
	many := gatewayed()
	for i := range 19_997 { // with two tasks and their observations one too many
		o := many.Observations[0]
		o.ID = fmt.Sprintf("more-%d", i)
		many.Observations = append(many.Observations, o)
	}
	allowed := append([]string{"get gateways g"}, reader...)
	for name, c := range map[string]struct {
		ledger usage.Reader
		spec   v1alpha1.UsageReportSpec
		code   int32
		want   string
	}{
		"no ledger":      {nil, v1alpha1.UsageReportSpec{}, http.StatusNotImplemented, "records no usage"},
		"kind":           {gatewayed(), v1alpha1.UsageReportSpec{Kind: "pr"}, http.StatusBadRequest, "kind: must be issue or pull_request"},
		"limit":          {gatewayed(), v1alpha1.UsageReportSpec{Limit: new(int32(101))}, http.StatusBadRequest, "limit: must be between 1 and 100"},
		"offset":         {gatewayed(), v1alpha1.UsageReportSpec{Offset: -1}, http.StatusBadRequest, "offset"},
		"date":           {gatewayed(), v1alpha1.UsageReportSpec{From: "yesterday"}, http.StatusBadRequest, "from: must be a UTC date"},
		"far date":       {gatewayed(), v1alpha1.UsageReportSpec{Until: "3000-01-01"}, http.StatusBadRequest, "until: must be between"},
		"future":         {gatewayed(), v1alpha1.UsageReportSpec{AsOf: "2026-05-01T01:00:01.1Z"}, http.StatusBadRequest, "asOf: must not be in the future"},
		"order":          {gatewayed(), v1alpha1.UsageReportSpec{From: "2026-05-01", Until: "2026-05-01"}, http.StatusBadRequest, "until: must be after from"},
		"other team":     {gatewayed(), v1alpha1.UsageReportSpec{Teams: []string{"b"}}, http.StatusBadRequest, `teams: must be the namespace of the report, "team"`},
		"several teams":  {gatewayed(), v1alpha1.UsageReportSpec{Teams: []string{"team", "b"}}, http.StatusBadRequest, "several teams are not supported"},
		"repository":     {gatewayed(), v1alpha1.UsageReportSpec{Repository: "r"}, http.StatusBadRequest, "repository: must be OWNER/REPOSITORY"},
		"no work":        {gatewayed(), v1alpha1.UsageReportSpec{Mode: v1alpha1.UsageOfWork}, http.StatusBadRequest, "workID: is required"},
		"unknown work":   {gatewayed(), v1alpha1.UsageReportSpec{Mode: v1alpha1.UsageOfWork, WorkID: "work-1"}, http.StatusNotFound, "no work request"},
		"category":       {gatewayed(), v1alpha1.UsageReportSpec{Mode: v1alpha1.UsageOther, Category: "all"}, http.StatusNotFound, "review_only, other_requests or unassociated"},
		"records":        {many, v1alpha1.UsageReportSpec{}, http.StatusUnprocessableEntity, "narrow it"},
		"tokens":         {huge, v1alpha1.UsageReportSpec{}, http.StatusUnprocessableEntity, "narrow the period"},
		"narrow enough":  {many, v1alpha1.UsageReportSpec{Repository: "o/other"}, 0, ""},
		"as many as may": {&usagetest.Ledger{Tasks: many.Tasks, Observations: many.Observations[1:]}, v1alpha1.UsageReportSpec{}, 0, ""},
	} {
		r, ctx := serve(c.ledger, allowed...)
		_, err := r.create(ctx, &v1alpha1.UsageReport{Spec: c.spec})
		code, text := int32(0), ""
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			code, text = status.Status().Code, err.Error()
		}
		if (err == nil) != (c.code == 0) || code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %v, want %d %q", name, code, err, c.code, c.want)
		}
	}
}

// namespaces lists one namespace with a UID, or none if uid is empty.
func namespaces(uid types.UID) corev1listers.NamespaceLister {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if uid != "" {
		_ = index.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: uid}})
	}
	return corev1listers.NewNamespaceLister(index)
}
