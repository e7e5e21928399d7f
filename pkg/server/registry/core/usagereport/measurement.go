// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"context"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/usage"
)

// Measurements returns the resource usagemeasurements, which are a view of the ledger. They cannot be watched.
func (r *Resource) Measurements() resource.Resource {
	return &resource.Definition[*v1alpha1.UsageMeasurement]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("usagemeasurements"),
		Kind:       "UsageMeasurement",
		Singular:   "usagemeasurement",
		Roles:      resource.Roles{Readers: resource.Users()},
		Scopes:     &external.Scopes{Of: scopes},
		ShortNames: []string{"um"},
		Fields:     measurementFields(),
		Columns:    measurementColumns(),
		Shape:      resource.View[*v1alpha1.UsageMeasurement]{Get: r.measurement, List: r.measurements},
		Subresources: []resource.Subresource[*v1alpha1.UsageMeasurement]{
			{Name: "recording", Get: r.recording, New: func() runtime.Object { return &v1alpha1.RequestRecording{} }, Readers: resource.Writers()},
		},
	}
}

// records is a view of the ledger for one request. Its caller may read the usage of the namespace.
type records struct {
	usage.View

	asOf time.Time
	last time.Time // the start of the record that was listed last
	uid  string    // of the namespace
	// gateway reports whether the caller may get a Gateway, and tasks has the answer for tasks that were looked up.
	gateway func(name string) (bool, error)
	tasks   map[string]bool
}

// records authorizes the caller and opens the view. The caller of this func closes it.
func (r *Resource) records(ctx context.Context, asOf time.Time) (*records, error) {
	namespace := request.NamespaceValue(ctx)
	if namespace == "" {
		return nil, apierrors.NewBadRequest("usagemeasurements are read one namespace at a time")
	}
	if err := r.authorize(ctx, "usagemeasurements", namespace); err != nil {
		return nil, err
	}
	if r.o.Ledger == nil {
		return nil, problem(http.StatusNotImplemented, "NotImplemented", "this server records no usage of models")
	}
	uid, err := r.identity(namespace, nowhere) // it may be listed after its end, like every other kind
	if err != nil {
		return nil, err
	}
	v, err := r.o.Ledger.At(ctx, namespace, asOf)
	if err != nil {
		return nil, err
	}
	gateway := func(name string) (bool, error) { return r.may(ctx, "get", "gateways", namespace, name) }
	return &records{View: v, asOf: asOf, uid: uid, gateway: gateway, tasks: map[string]bool{}}, nil
}

// shows reports whether the caller may read a record: it is of this namespace and not of an earlier one of its name, and
// its task is of no Gateway that the caller may not get.
func (v *records) shows(o *usage.Observation) (bool, error) {
	if v.uid != "" && o.NamespaceUID != "" && o.NamespaceUID != v.uid {
		return false, nil
	}
	if known, ok := v.tasks[o.TaskUID]; ok || o.TaskUID == "" {
		return known || o.TaskUID == "", nil
	}
	t, err := v.Task(o.TaskUID)
	if err != nil {
		return false, err
	}
	may := true
	if t != nil && t.GatewayOwner != "" {
		if may, err = v.gateway(t.GatewayOwner); err != nil {
			return false, err
		}
	}
	v.tasks[o.TaskUID] = may
	return may, nil
}

// measurement reads one by its name.
func (r *Resource) measurement(ctx context.Context, name string) (*v1alpha1.UsageMeasurement, error) {
	v, err := r.records(ctx, r.o.Clock.Now())
	if err != nil {
		return nil, err
	}
	defer v.Close()
	o, err := v.Observation(name)
	if err != nil {
		return nil, err
	}
	shown := false
	if o != nil {
		if shown, err = v.shows(o); err != nil {
			return nil, err
		}
	}
	if !shown {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("usagemeasurements"), name)
	}
	return measured(o), nil
}

// recording reads what was said in the request of a measurement.
func (r *Resource) recording(_ context.Context, p resource.Parent[*v1alpha1.UsageMeasurement]) (runtime.Object, error) {
	m := p.Object
	said, err := r.o.Recordings.Request(m.Namespace, m.Name, m.Status.StartedAt.Time)
	if err != nil {
		return nil, err
	}
	if said == nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("usagemeasurements/recording"), m.Name)
	}
	said.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}
	return said, nil
}

func measured(o *usage.Observation) *v1alpha1.UsageMeasurement {
	return &v1alpha1.UsageMeasurement{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.ID, UID: types.UID(o.ID), CreationTimestamp: metav1.NewTime(o.StartedAt.Truncate(time.Second)),
			ResourceVersion: strconv.FormatInt(o.ObservedAt.UnixNano(), 10),
		},
		Spec: v1alpha1.UsageMeasurementSpec{
			TaskUID: types.UID(o.TaskUID), TaskName: o.TaskName, SessionName: o.SessionName, AttemptID: o.AttemptID, CounterID: o.CounterID,
			Scope: string(o.Scope), Source: string(o.Source), Provider: o.Provider, Model: o.Model, User: o.User,
		},
		Status: v1alpha1.UsageMeasurementStatus{
			State: string(o.Status), InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, CachedInputTokens: o.CachedInputTokens,
			CacheWriteInputTokens: o.CacheWriteInputTokens, Complete: o.Complete, Gap: o.Gap,
			StartedAt: metav1.NewMicroTime(o.StartedAt), ObservedAt: metav1.NewMicroTime(o.ObservedAt),
		},
	}
}
