// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// Parcel is an entry of a ledger with states: something that is sent, and sent again.
type Parcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ParcelSpec   `json:"spec,omitempty"`
	Status            ParcelStatus `json:"status,omitempty"`
}

type ParcelSpec struct {
	Text string `json:"text,omitempty"`
}

type ParcelStatus struct {
	State       string      `json:"state,omitempty"`
	Attempts    int         `json:"attempts,omitempty"`
	NextAttempt metav1.Time `json:"nextAttempt,omitempty"`
	Holder      string      `json:"holder,omitempty"`
	Until       metav1.Time `json:"until,omitempty"`
}

type ParcelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Parcel `json:"items"`
}

func (p *Parcel) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func (l *ParcelList) DeepCopyObject() runtime.Object {
	c := &ParcelList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Parcel))
	}
	return c
}

func (*Parcel) OpenAPIModelName() string     { return "test.kit.v1.Parcel" }
func (*ParcelList) OpenAPIModelName() string { return "test.kit.v1.ParcelList" }

var parcelsGVR = widgetGV.WithResource("parcels")

const retention = time.Hour

// parcelDefinition is the whole of a ledger with states. Entries are due at first, and again when somebody retries them.
func parcelDefinition(c clock.PassiveClock) *resource.Definition[*Parcel] {
	begin := func(p *Parcel) { p.Status = ParcelStatus{State: "Pending", NextAttempt: metav1.NewTime(c.Now())} }
	return &resource.Definition[*Parcel]{
		Unguarded: true,
		Resource:  parcelsGVR, Kind: "Parcel", Singular: "parcel",
		Fields: []resource.Field[*Parcel]{
			{Path: "status.state", Indexed: true, Value: func(p *Parcel) string { return p.Status.State }},
			{Path: "spec.text", Value: func(p *Parcel) string { return p.Spec.Text }},
		},
		Shape: resource.StateLedger[*Parcel]{
			Kept: resource.Kept[*Parcel]{PrepareForCreate: func(_ context.Context, p *Parcel) { begin(p) }},
			States: resource.States{
				Initial: []string{"Pending"}, Held: []string{"Sending"}, Ended: []string{"Delivered", "DeadLettered"},
				Table: []resource.Transition{
					{From: "Pending", To: "Sending"},
					{From: "Sending", To: "Sending"}, // by another worker, when the lease has ended
					{From: "Sending", To: "Delivered"},
					{From: "Sending", To: "RetryScheduled"},
					{From: "Sending", To: "DeadLettered"},
					{From: "RetryScheduled", To: "Sending"},
					{From: "DeadLettered", To: "Pending", Via: "retry"},
				},
			},
			Entry: func(p *Parcel) resource.Entry {
				return resource.Entry{State: p.Status.State, Next: p.Status.NextAttempt.Time, Holder: p.Status.Holder, Until: p.Status.Until.Time}
			},
			Retention: retention,
		},
		Subresources: []resource.Subresource[*Parcel]{{
			Name: "retry", New: func() runtime.Object { return &Parcel{} },
			Create: func(ctx context.Context, p resource.Parent[*Parcel], _ runtime.Object) (runtime.Object, error) {
				return p.Update(ctx, func(now *Parcel) error {
					if now.Status.State != "DeadLettered" {
						return apierrors.NewConflict(parcelsGVR.GroupResource(), now.Name, errors.New("only a parcel that was given up is sent again"))
					}
					begin(now)
					return nil
				})
			},
		}},
	}
}

// ledger is the ledger of parcels over a store in a folder.
type ledger struct {
	t       *testing.T
	engine  *counted
	def     *resource.Definition[*Parcel]
	storage map[string]registryrest.Storage
	scheme  *runtime.Scheme
	options generic.RESTOptionsGetter
}

// counted counts the rows that are read.
type counted struct {
	engine.Engine
	rows atomic.Int64
}

type countedIter struct {
	engine.Iter
	of *counted
}

func (c *counted) NewIter(lower, upper []byte) (engine.Iter, error) {
	it, err := c.Engine.NewIter(lower, upper)
	return countedIter{it, c}, err
}

func (c *counted) Get(key []byte) ([]byte, bool, error) { c.rows.Add(1); return c.Engine.Get(key) }
func (i countedIter) First() bool                       { i.of.rows.Add(1); return i.Iter.First() }
func (i countedIter) Next() bool                        { i.of.rows.Add(1); return i.Iter.Next() }
func (i countedIter) SeekGE(k []byte) bool              { i.of.rows.Add(1); return i.Iter.SeekGE(k) }

func openLedger(t *testing.T, dir string, c clock.WithTicker, o object.Options) *ledger {
	t.Helper()
	e := must[engine.Engine](t)(local.Open(t.Context(), local.Options{Dir: dir}))
	l := &ledger{t: t, engine: &counted{Engine: e}, def: parcelDefinition(c), storage: map[string]registryrest.Storage{}}
	o.Clock = c
	db := must[*object.DB](t)(object.Open(t.Context(), l.engine, o))
	l.scheme = must[*runtime.Scheme](t)(apiserver.NewScheme(widgets))
	if err := l.def.Register(l.scheme); err != nil {
		t.Fatal(err)
	}
	l.options = object.NewRESTOptionsGetter(object.RESTOptions{DB: db, Scheme: l.scheme, Codecs: apiserver.Codecs(l.scheme)})
	maps.Copy(l.storage, must[map[string]registryrest.Storage](t)(l.def.Storage(t.Context(), resource.Config{Scheme: l.scheme, Clock: c, RESTOptions: l.options})))
	t.Cleanup(func() {
		for _, s := range l.storage {
			s.Destroy()
		}
		db.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// ctx is the context of a request to a path below a namespace.
func (l *ledger) ctx(ns, subresource string) context.Context {
	ctx := request.WithNamespace(l.t.Context(), ns)
	return request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Resource: "parcels", Subresource: subresource, Namespace: ns})
}

func (l *ledger) create(ns, name string) {
	l.t.Helper()
	p := &Parcel{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: ParcelSpec{Text: name}}
	must[runtime.Object](l.t)(l.storage["parcels"].(registryrest.Creater).Create(l.ctx(ns, ""), p, registryrest.ValidateAllObjectFunc, &metav1.CreateOptions{}))
}

// put writes the status of a parcel, as a client that has read it.
func (l *ledger) put(p *Parcel) error {
	_, _, err := l.storage["parcels/status"].(registryrest.Updater).Update(l.ctx(p.Namespace, "status"), p.Name,
		registryrest.DefaultUpdatedObjectInfo(p), registryrest.ValidateAllObjectFunc, registryrest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

func (l *ledger) get(ns, name string) *Parcel {
	l.t.Helper()
	return must[*Parcel](l.t)(l.def.Get(l.ctx(ns, ""), name))
}

// to writes another state, as whoever read the parcel.
func (l *ledger) to(ns, name, state string, set func(*ParcelStatus)) error {
	l.t.Helper()
	p := l.get(ns, name).DeepCopyObject().(*Parcel)
	p.Status.State, p.Status.Holder, p.Status.Until = state, "", metav1.Time{}
	if set != nil {
		set(&p.Status)
	}
	return l.put(p)
}

// lease sets a lease of a minute from a time.
func lease(holder string, from time.Time) func(*ParcelStatus) {
	return func(s *ParcelStatus) { s.Holder, s.Until = holder, metav1.NewTime(from.Add(time.Minute)) }
}
