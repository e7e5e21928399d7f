// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usagereport serves usagereports, where a selection is created and answered with the report, and
// usagemeasurements, the records that reports are made of, and stores usagelinks, what controllers know of pull requests.
//
// Both show tasks, sessions and what RepositoryMonitors asked for, so the caller needs to list all three in the
// namespace, even while no RepositoryMonitors are served. The caller also needs to get each Gateway whose tasks are shown. A request
// that has a task of another Gateway is left out as a whole. Workers read no usage.
//
// The resourceVersion of a measurement, and of a list of them, is a time of recording in nanoseconds, so all pages of a list show the
// ledger as of one time. Measurements cannot be watched.
//
// A usagelink is one observation of a pull request. Only controllers create them: the roles of users do not name them. What a tool of a
// task did on a code host is recorded as well, by Claim. Without links, reports have null for whatever concerns pull requests, which tables
// show as Unavailable.
package usagereport

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	report "github.com/platform-ai/platform/pkg/readmodel/usage"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/usage"
)

// Options are what usagereports need.
type Options struct {
	// Ledger has the records. Without it every report is refused.
	Ledger     usage.Reader
	Authorizer authorizer.Authorizer
	Clock      clock.PassiveClock
	// Providers lists the Providers of the request's namespace.
	Providers func(ctx context.Context, opts *internalversion.ListOptions) (runtime.Object, error)
	// ChangeLink stores what is made of a link of a namespace and of what is known of it; without it usagelinks are refused.
	ChangeLink ChangeLink
	// Recordings has what was said in requests.
	Recordings *recording.Store
}

// ChangeLink is that of a ledger.
type ChangeLink = func(ctx context.Context, namespace, id string, decide func(v usage.View, old *usage.Link) (*usage.Link, error)) error

// Resource is the resource usagereports.
type Resource struct {
	resource.Resource
	o          Options
	namespaces corev1.NamespaceLister // may be nil
}

// New makes the resource usagereports.
func New(o Options) *Resource {
	r := &Resource{o: o}
	r.Resource = &resource.Definition[*v1alpha1.UsageReport]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("usagereports"),
		Kind:     "UsageReport",
		Singular: "usagereport",
		Roles:    resource.Roles{Creators: resource.Users()},
		Scopes:   &external.Scopes{Of: scopes},
		Shape:    resource.Action[*v1alpha1.UsageReport]{Create: r.create},
	}
	return r
}

// Storage builds the storage.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	r.namespaces = c.Namespaces
	return r.Resource.Storage(ctx, c)
}

// create answers a selection with its report.
func (r *Resource) create(ctx context.Context, u *v1alpha1.UsageReport) (*v1alpha1.UsageReport, error) {
	namespace := request.NamespaceValue(ctx)
	if err := r.authorize(ctx, "usagereports", namespace); err != nil {
		return nil, err
	}
	if r.o.Ledger == nil {
		return nil, problem(http.StatusNotImplemented, "NotImplemented", "this server records no usage of models")
	}
	q, err := report.Parse(&u.Spec, namespace, r.o.Clock.Now())
	if err != nil {
		return nil, statusOf(err)
	}
	source := report.Source{Gateway: func(name string) (bool, error) { return r.may(ctx, "get", "gateways", namespace, name) }}
	if source.NamespaceUID, err = r.identity(namespace, ""); err != nil {
		return nil, err
	}
	if source.Prices, err = r.prices(ctx); err != nil {
		return nil, err
	}
	if source.View, err = r.o.Ledger.At(ctx, namespace, q.AsOf()); err != nil {
		return nil, err
	}
	defer source.View.Close()
	status, err := q.Report(source)
	if err != nil {
		return nil, statusOf(err)
	}
	u.Namespace, u.Status = namespace, *status
	return u, nil
}

// pageOfProviders is how many Providers are read at a time.
const pageOfProviders = 500

// prices reads the prices of the namespace's Providers.
func (r *Resource) prices(ctx context.Context) (usage.Prices, error) {
	prices := usage.Prices{}
	for opts := (&internalversion.ListOptions{Limit: pageOfProviders}); ; {
		obj, err := r.o.Providers(ctx, opts)
		if err != nil {
			return nil, err
		}
		list, ok := obj.(*v1alpha1.ProviderList)
		if !ok {
			return nil, apierrors.NewInternalError(fmt.Errorf("list of providers: %T", obj))
		}
		for i := range list.Items {
			prices.Set(list.Items[i].Name, list.Items[i].Spec.Prices)
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return prices, nil
		}
	}
}

// statusOf turns an error of a report into an API error.
func statusOf(err error) error {
	switch {
	case errors.Is(err, report.ErrInvalid):
		return problem(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	case errors.Is(err, report.ErrNotFound):
		return problem(http.StatusNotFound, metav1.StatusReasonNotFound, err.Error())
	case errors.Is(err, report.ErrTooMany), errors.Is(err, usage.ErrTooLarge):
		// Not the reason Invalid: the selection is valid and too wide.
		return problem(http.StatusUnprocessableEntity, "TooMuchSelected", err.Error())
	}
	return err
}

func problem(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}
