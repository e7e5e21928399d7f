// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Limits of a query.
const (
	maxPage   = 500
	maxStates = 16
	maxCursor = 1024
	maxName   = 253
)

// queries returns the resource gatewayrecordqueries. The caller needs the right to list what is answered besides: the right to ask does not
// imply it. A cursor names the last record that was looked at, so pages neither miss nor repeat a record while others come and go.
func (o *Options) queries() resource.Resource {
	return &resource.Definition[*v1alpha1.GatewayRecordQuery]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("gatewayrecordqueries"),
		Kind:     "GatewayRecordQuery",
		Singular: "gatewayrecordquery",
		Roles:    resource.Roles{Creators: resource.Users()},
		Scopes:   &external.Scopes{Read: scopeRead, Write: scopeRead}, // asked by a create
		Shape:    resource.Action[*v1alpha1.GatewayRecordQuery]{Create: o.answer},
	}
}

// ledger is a kind of records, as queries see it.
type ledger[T resource.Object] struct {
	name   string
	stored *resource.Stored[T]
	of     func(T) facts
	// session, task and event are the fields by which the few records of one are found; event is empty for events themselves.
	session, task, event string
	// states are all states, and usual is the one in which nearly all records are in the end.
	states []string
	usual  string
	// looks is how many records a page looks at.
	looks int
}

func (o *Options) eventLedger() *ledger[*v1alpha1.GatewayEvent] {
	return &ledger[*v1alpha1.GatewayEvent]{
		name: "gatewayevents", stored: o.Stored.Events, of: eventFacts, session: FieldEventSession, task: FieldEventTask, usual: eventCompleted, looks: maxLooked,
		states: []string{
			string(v1alpha1.GatewayEventAccepted), eventQueued, eventDispatching, eventTaskCreated, eventCompleted, eventRejected, eventDeadLettered, eventExpired,
		},
	}
}

func (o *Options) deliveryLedger() *ledger[*v1alpha1.GatewayDelivery] {
	return &ledger[*v1alpha1.GatewayDelivery]{
		name: "gatewaydeliveries", stored: o.Stored.Deliveries, of: deliveryFacts, session: FieldDeliverySession, task: FieldDeliveryTask, event: FieldDeliveryEvent, usual: deliveryDelivered, looks: maxLooked,
		states: []string{
			deliveryPending, deliverySending, deliveryRetryScheduled, deliveryDelivered, deliveryFailed, deliveryDeadLettered, deliveryExpired,
		},
	}
}

// answer answers a query.
func (o *Options) answer(ctx context.Context, q *v1alpha1.GatewayRecordQuery) (out *v1alpha1.GatewayRecordQuery, err error) {
	namespace := request.NamespaceValue(ctx)
	q.Namespace, q.Status = namespace, v1alpha1.GatewayRecordQueryStatus{}
	switch q.Spec.Records {
	case v1alpha1.GatewayRecordsEvents:
		q.Status.Events, q.Status.Continue, err = ask(ctx, o, o.eventLedger(), &q.Spec, namespace, func(e *v1alpha1.GatewayEvent) v1alpha1.GatewayEvent { return *e })
	case v1alpha1.GatewayRecordsDeliveries:
		q.Status.Deliveries, q.Status.Continue, err = ask(ctx, o, o.deliveryLedger(), &q.Spec, namespace, func(d *v1alpha1.GatewayDelivery) v1alpha1.GatewayDelivery { return *d })
	default:
		err = apierrors.NewBadRequest(fmt.Sprintf("records: %.64q: must be one of events, deliveries", q.Spec.Records))
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// ask returns a page of records, and where to go on.
func ask[T resource.Object, R any](ctx context.Context, o *Options, l *ledger[T], spec *v1alpha1.GatewayRecordQuerySpec, namespace string, value func(T) R) ([]R, string, error) {
	if err := o.mayList(ctx, namespace, l.name); err != nil {
		return nil, "", err
	}
	s, err := l.parse(spec, namespace)
	if err != nil {
		return nil, "", err
	}
	found, last, err := l.page(ctx, s)
	if err != nil {
		return nil, "", err
	}
	records := make([]R, 0, len(found))
	for _, obj := range found {
		obj.SetManagedFields(nil)
		records = append(records, value(obj))
	}
	next := ""
	if last != nil {
		if next, err = last.token(); err != nil {
			return nil, "", err
		}
	}
	return records, next, nil
}

// mayList requires the right to list a kind of records.
func (o *Options) mayList(ctx context.Context, namespace, kind string) error {
	if o.Authorizer == nil {
		return unavailable()
	}
	ok, err := guard.May(ctx, o.Authorizer, authorizer.AttributesRecord{Verb: "list", Namespace: namespace, Resource: kind})
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource("gatewayrecordqueries"), "", fmt.Errorf("a query needs the right to list the %s of the namespace %s", kind, namespace))
	}
	return nil
}

// selection is a query that was checked.
type selection struct {
	*v1alpha1.GatewayRecordQuerySpec
	namespace string
	limit     int
	after     *place // nil at the beginning
}

// parse checks a query. The error names the field.
func (l *ledger[T]) parse(spec *v1alpha1.GatewayRecordQuerySpec, namespace string) (*selection, error) {
	s := &selection{GatewayRecordQuerySpec: spec, namespace: namespace}
	var err error
	if s.limit, err = resource.Limit(spec.Limit, maxPage, maxPage); err != nil {
		return nil, err
	}
	for _, name := range [][2]string{{"gateway", spec.Gateway}, {"binding", spec.Binding}, {"session", spec.Session}, {"task", spec.Task}, {"event", spec.Event}} {
		if errs := validateText(name[1], false, maxName, field.NewPath(name[0])); len(errs) > 0 {
			return nil, apierrors.NewBadRequest(errs[0].Error())
		}
	}
	switch {
	case spec.Event != "" && l.event == "":
		return nil, apierrors.NewBadRequest("event: is for deliveries")
	case len(spec.States) > maxStates:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("states: must have at most %d items", maxStates))
	}
	for _, state := range spec.States {
		if !slices.Contains(l.states, state) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("states: %.64q: must be one of %s", state, strings.Join(l.states, ", ")))
		}
	}
	if spec.Cursor != "" {
		if s.after, err = placeOf(spec.Cursor); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return s, nil
}

// selects reports whether a record is asked for.
func (s *selection) selects(f facts) bool {
	for _, asked := range [][2]string{{s.Gateway, f.gateway}, {s.Binding, f.binding}, {s.Session, f.session}, {s.Task, f.task}, {s.Event, f.event}} {
		if asked[0] != "" && asked[0] != asked[1] {
			return false
		}
	}
	return len(s.States) == 0 || slices.Contains(s.States, f.state)
}

// place is where a record is in the order of queries. One that a client made up selects nothing that the client may not list.
type place struct {
	CreatedAt metav1.MicroTime `json:"createdAt"`
	ID        string           `json:"id"`
}

// compare orders records: the newest first, then by name.
func (p place) compare(other place) int {
	return cmp.Or(strings.Compare(newest(p.CreatedAt.Time), newest(other.CreatedAt.Time)), strings.Compare(p.ID, other.ID))
}

func (p place) token() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// placeOf parses a cursor.
func placeOf(token string) (*place, error) {
	p := &place{}
	if len(token) > maxCursor {
		return nil, errors.New("cursor: is not a continue of an answer")
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(token, "="))
	if err != nil || json.Unmarshal(b, p) != nil || p.ID == "" || p.CreatedAt.IsZero() {
		return nil, errors.New("cursor: is not a continue of an answer")
	}
	return p, nil
}
