// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func event(name string) *v1alpha1.GatewayEvent {
	return &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewayEventSpec{
		GatewayOwner: v1alpha1.GatewayOwner{GatewayName: "g", GatewayUID: "u"}, ExternalEventID: name, PayloadSHA256: strings.Repeat("0", 64),
		ProtocolVersion: v1alpha1.GatewayContractV1, EventType: "text", AccountID: "x", ContextID: "c", SenderID: "s", Text: "hi",
	}}
}

func delivery(name string) *v1alpha1.GatewayDelivery {
	return &v1alpha1.GatewayDelivery{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatewayDeliverySpec{
		GatewayOwner: v1alpha1.GatewayOwner{GatewayName: "g", GatewayUID: "u"}, IdempotencyID: name, EventID: "e", SessionName: "s",
		Kind: v1alpha1.GatewayDeliveryFinal, AccountID: "x", ContextID: "c", Text: "hi",
	}}
}

// selected returns how many objects a field selector selects.
func (w *world) selected(path, selector string) int {
	w.t.Helper()
	list, err := w.storage[path].(rest.Lister).List(w.as("ada", "default", path), &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)})
	if err != nil {
		w.t.Fatal(err)
	}
	return meta.LenList(list)
}

// TestEvents: an event that did not come from an adapter waits for a person; one that is routed goes through its states, with a lease, and is
// open until its end.
func TestEvents(t *testing.T) {
	var replayed []string
	var stored *resource.Stored[*v1alpha1.GatewayEvent]
	w := newWorld(t, Options{Replay: func(ctx context.Context, e *v1alpha1.GatewayEvent, by string) (*v1alpha1.GatewayEvent, error) {
		replayed = append(replayed, e.Name+" by "+by)
		return stored.UpdateStored(ctx, e.Name, func(e *v1alpha1.GatewayEvent) error {
			e.Status = v1alpha1.GatewayEventStatus{State: v1alpha1.GatewayEventQueued, SessionName: "s1", Replays: e.Status.Replays + 1, UpdatedAt: e.Status.UpdatedAt, CompletedAt: e.Status.CompletedAt}
			return nil
		})
	}})
	stored = w.o.Stored.Events
	made, err := w.create("gatewayevents", event("e"))
	if err != nil {
		t.Fatal(err)
	}
	if e := made.(*v1alpha1.GatewayEvent); e.Status.State != v1alpha1.GatewayEventRejected || e.Spec.CreatedAt.IsZero() || e.Status.CompletedAt == nil {
		t.Fatalf("%+v", e)
	}
	set := func(by string, state v1alpha1.GatewayEventState, until time.Duration) (*v1alpha1.GatewayEvent, error) {
		out, err := w.update("gatewayevents/status", "e", false, func(o runtime.Object) {
			s := &o.(*v1alpha1.GatewayEvent).Status
			s.State, s.LeaseHolder, s.LeaseUntil = state, by, nil
			if by != "" {
				s.LeaseUntil = w.o.soon(until)
			}
		})
		if err != nil {
			return nil, err
		}
		return out.(*v1alpha1.GatewayEvent), nil
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = set("", v1alpha1.GatewayEventQueued, 0)
	refused("a rejected event is queued by a status", err)
	w.may = func(a authorizer.Attributes) bool { return a.GetResource() != "gateways" || a.GetVerb() != "update" }
	if _, err := w.post("gatewayevents/replay", "e", metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("replay without the right to update the gateway: %v", err)
	}
	w.may = nil
	if _, err := w.post("gatewayevents/replay", "e", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(replayed) > 0 {
		t.Errorf("dry run: %v %v", err, replayed)
	}
	w.clock.Step(time.Second)
	out, err := w.post("gatewayevents/replay", "e", metav1.CreateOptions{})
	if err != nil || fmt.Sprint(replayed) != "[e by ada]" {
		t.Fatal(replayed, err)
	}
	if s := out.(*v1alpha1.GatewayEvent).Status; !s.UpdatedAt.Time.Equal(w.clock.Now()) || s.CompletedAt != nil || w.selected("gatewayevents", "open=true,openSession=s1,openGateway=default/g") != 1 {
		t.Errorf("replayed: %+v", s)
	}
	if _, err := w.post("gatewayevents/replay", "e", metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a queued event is replayed: %v", err)
	}
	_, err = set("", v1alpha1.GatewayEventDispatching, 0)
	refused("no lease", err)
	if _, err := set("one", v1alpha1.GatewayEventDispatching, time.Minute); err != nil {
		t.Error(err)
	}
	_, err = set("two", v1alpha1.GatewayEventDispatching, 2*time.Minute)
	refused("a second holder", err)
	w.clock.Step(time.Minute)
	if found, err := stored.Due(t.Context(), w.clock.Now(), 10); err != nil || len(found) != 1 {
		t.Errorf("due: %v, %v", found, err)
	}
	for _, step := range []struct {
		by    string
		state v1alpha1.GatewayEventState
	}{{"two", v1alpha1.GatewayEventDispatching}, {"", v1alpha1.GatewayEventTaskCreated}, {"", v1alpha1.GatewayEventCompleted}} {
		e, err := set(step.by, step.state, time.Minute)
		if err != nil || (e.Status.CompletedAt != nil) != (step.state == v1alpha1.GatewayEventCompleted) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if w.selected("gatewayevents", "open=true") != 0 || w.selected("gatewayevents", "openSession=s1") != 0 || w.selected("gatewayevents", "status.state=Completed,spec.gatewayName=g,status.sessionName=s1") != 1 {
		t.Error("an event that ended is open, or is not found")
	}
	if _, err := w.post("gatewayevents/replay", "e", metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an event that is answered is replayed: %v", err)
	}
	_, err = w.update("gatewayevents", "e", false, func(o runtime.Object) { o.(*v1alpha1.GatewayEvent).Spec.Text = "other" })
	refused("another text", err)
}

// TestDeliveries: a delivery begins complete, and people retry and abandon it, but not one that is being sent or was delivered.
func TestDeliveries(t *testing.T) {
	w := newWorld(t, Options{Expiry: time.Hour, MaxAttempts: 3})
	made, err := w.create("gatewaydeliveries", delivery("d"))
	if err != nil {
		t.Fatal(err)
	}
	if d := made.(*v1alpha1.GatewayDelivery); d.Status.State != v1alpha1.GatewayDeliveryPending || !d.Status.NextAttemptAt.Time.Equal(noon) ||
		!d.Status.ExpiresAt.Time.Equal(noon.Add(time.Hour)) || d.Spec.MaxAttempts != 3 || !d.Spec.CreatedAt.Time.Equal(noon) || !d.Status.UpdatedAt.Time.Equal(noon) {
		t.Fatalf("%+v", d)
	}
	set := func(by string, state v1alpha1.GatewayDeliveryState) error {
		_, err := w.update("gatewaydeliveries/status", "d", false, func(o runtime.Object) {
			s := &o.(*v1alpha1.GatewayDelivery).Status
			s.State, s.LeaseHolder, s.LeaseUntil, s.AttemptCount, s.OutcomeUnknown, s.LastError = state, by, nil, 3, true, "no answer"
			if by != "" {
				s.LeaseUntil = w.o.soon(time.Minute)
			}
		})
		return err
	}
	person := func(sub string) (*v1alpha1.GatewayDeliveryStatus, error) {
		out, err := w.post("gatewaydeliveries/"+sub, "d", metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return &out.(*v1alpha1.GatewayDelivery).Status, nil
	}
	if _, err := person("retry"); !apierrors.IsConflict(err) {
		t.Errorf("retry of a pending delivery: %v", err)
	}
	for by, state := range map[string]v1alpha1.GatewayDeliveryState{"": v1alpha1.GatewayDeliveryDelivered, "x": v1alpha1.GatewayDeliveryFailed} {
		if err := set(by, state); !apierrors.IsInvalid(err) {
			t.Errorf("pending to %s: %v", state, err)
		}
	}
	if err := set("server", v1alpha1.GatewayDeliverySending); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"retry", "abandon"} {
		if _, err := person(sub); !apierrors.IsConflict(err) {
			t.Errorf("%s while it is sent: %v", sub, err)
		}
	}
	if err := set("", v1alpha1.GatewayDeliveryDeadLettered); err != nil {
		t.Fatal(err)
	}
	if err := set("", v1alpha1.GatewayDeliveryPending); !apierrors.IsInvalid(err) {
		t.Errorf("a dead letter is pending by a status: %v", err)
	}
	for _, verb := range []string{"get", "update"} {
		w.may = func(a authorizer.Attributes) bool {
			return a.GetResource() != "gateways" || a.GetName() != "g" || a.GetVerb() != verb
		}
		if _, err := person("retry"); !apierrors.IsForbidden(err) {
			t.Errorf("without %s of the gateway: %v", verb, err)
		}
	}
	w.may = nil
	w.clock.Step(2 * time.Hour)
	s, err := person("retry")
	if err != nil {
		t.Fatal(err)
	}
	if s.State != v1alpha1.GatewayDeliveryPending || s.AttemptCount != 0 || s.ManualRetryCount != 1 || s.RetriedBy != "ada" || !s.OutcomeUnknown ||
		!s.ExpiresAt.Time.Equal(w.clock.Now().Add(time.Hour)) || !s.UpdatedAt.Time.Equal(w.clock.Now()) || w.selected("gatewaydeliveries", "open=true") != 1 {
		t.Errorf("retried: %+v", s)
	}
	if s, err = person("abandon"); err != nil || s.State != v1alpha1.GatewayDeliveryFailed || s.LastError != "given up by ada" || s.NextAttemptAt != nil || w.selected("gatewaydeliveries", "open=true") != 0 {
		t.Errorf("abandoned: %+v, %v", s, err)
	}
	if s, err = person("retry"); err != nil || s.ManualRetryCount != 2 {
		t.Errorf("retried again: %+v, %v", s, err)
	}
	table, err := w.storage["gatewaydeliveries"].(rest.TableConvertor).ConvertToTable(t.Context(), made, nil)
	if err != nil || fmt.Sprint(table.Rows[0].Cells[:7]) != "[d g final Pending 0 false now]" {
		t.Errorf("%v, %v", table, err)
	}
}

// TestPlumbing: the funcs of the server are called for controllers and answered with 503 where they are not there; a gateway is forgotten once.
func TestPlumbing(t *testing.T) {
	var forgot []string
	w := newWorld(t, Options{
		Probe: func(context.Context, *v1alpha1.Gateway) (*v1alpha1.GatewayProbe, error) {
			return &v1alpha1.GatewayProbe{Connected: true}, nil
		},
		Forget: func(_ context.Context, g *v1alpha1.Gateway) { forgot = append(forgot, g.Name) },
	})
	g := w.decode("Gateway", "{gatewayClassName: c, adapter: {serviceRef: {name: s}}, inboundAuthRef: {name: i, key: k}, outboundAuthRef: {name: o, key: k}}").(*v1alpha1.Gateway)
	g.Name, g.GenerateName = "g", ""
	for path, obj := range map[string]runtime.Object{"gateways": g, "gatewayevents": event("e"), "gatewaydeliveries": delivery("d")} {
		if _, err := w.create(path, obj); err != nil {
			t.Fatal(path, err)
		}
	}
	out, err := w.post("gateways/probe", "g", metav1.CreateOptions{})
	if p, ok := out.(*v1alpha1.GatewayProbe); err != nil || !ok || !p.Connected || p.Name != "g" || p.Namespace != "default" {
		t.Errorf("%v, %v", out, err)
	}
	for path, name := range map[string]string{"gatewayevents/replay": "e", "gatewaydeliveries/send": "d"} {
		if _, err := w.post(path, name, metav1.CreateOptions{}); apierrors.ReasonForError(err) != metav1.StatusReasonServiceUnavailable {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := w.storage["gateways"].(rest.GracefulDeleter).Delete(w.as("ada", "default", "gateways"), "g", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || fmt.Sprint(forgot) != "[g]" {
		t.Errorf("%v, %v", forgot, err)
	}
}

// ask asks for deliveries, page by page, and returns their names in the order of the answers.
func (w *world) ask(t *testing.T, spec v1alpha1.GatewayRecordQuerySpec, between func()) (names []string) {
	t.Helper()
	for pages := 0; ; pages++ {
		if pages > 100 {
			t.Fatalf("the pages do not end: %v", names)
		}
		out, err := w.create("gatewayrecordqueries", &v1alpha1.GatewayRecordQuery{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		s := out.(*v1alpha1.GatewayRecordQuery).Status
		for i := range s.Deliveries {
			names = append(names, s.Deliveries[i].Name)
		}
		for i := range s.Events {
			names = append(names, s.Events[i].Name)
		}
		if s.Continue == "" {
			return names
		}
		if spec.Limit > 0 && len(s.Deliveries)+len(s.Events) != int(spec.Limit) {
			t.Errorf("a page of %d that is not the last one", len(s.Deliveries)+len(s.Events))
		}
		spec.Cursor = s.Continue
		if between != nil {
			between()
		}
	}
}

// TestQueries: records are found by each filter, the newest first, also where several are of one microsecond, each once while others come,
// and of the namespace alone.
func TestQueries(t *testing.T) {
	w := newWorld(t, Options{})
	const n = 30
	add := func(i int, at time.Time) {
		d := delivery(fmt.Sprintf("d%02d", i))
		d.Spec.CreatedAt = metav1.NewMicroTime(at)
		d.Spec.GatewayName, d.Spec.SessionName, d.Spec.TaskName, d.Spec.EventID = fmt.Sprint("g", i%2), fmt.Sprint("s", i%3), fmt.Sprint("t", i%5), fmt.Sprint("e", i%10)
		if _, err := w.create("gatewaydeliveries", d); err != nil {
			t.Fatal(err)
		}
		foreign := d.DeepCopy()
		foreign.Namespace, foreign.ResourceVersion, foreign.UID = "default-2", "", ""
		if _, err := w.create("gatewaydeliveries", foreign); err != nil {
			t.Fatal(err)
		}
	}
	want := func(keep func(i int) bool) (names []string) { // three are of each microsecond
		for group := n/3 - 1; group >= 0; group-- {
			for i := group * 3; i < group*3+3; i++ {
				if keep(i) {
					names = append(names, fmt.Sprintf("d%02d", i))
				}
			}
		}
		return names
	}
	for i := range n {
		add(i, noon.Add(time.Duration(i/3)*time.Microsecond))
	}
	dead := func(i int) bool { return i%4 == 0 }
	for i := range n {
		if !dead(i) {
			continue
		}
		if _, err := w.update("gatewaydeliveries/status", fmt.Sprintf("d%02d", i), false, func(o runtime.Object) {
			o.(*v1alpha1.GatewayDelivery).Status.State = v1alpha1.GatewayDeliveryDeadLettered
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spec v1alpha1.GatewayRecordQuerySpec
		keep func(i int) bool
	}{
		"all":                     {v1alpha1.GatewayRecordQuerySpec{}, func(int) bool { return true }},
		"gateway":                 {v1alpha1.GatewayRecordQuerySpec{Gateway: "g1"}, func(i int) bool { return i%2 == 1 }},
		"state":                   {v1alpha1.GatewayRecordQuerySpec{States: []string{"DeadLettered"}}, dead},
		"state of a gateway":      {v1alpha1.GatewayRecordQuerySpec{Gateway: "g0", States: []string{"Pending"}}, func(i int) bool { return i%2 == 0 && !dead(i) }},
		"usual state of one":      {v1alpha1.GatewayRecordQuerySpec{Gateway: "g0", States: []string{"Delivered"}}, func(int) bool { return false }},
		"states":                  {v1alpha1.GatewayRecordQuerySpec{States: []string{"DeadLettered", "Pending"}}, func(int) bool { return true }},
		"session":                 {v1alpha1.GatewayRecordQuerySpec{Session: "s2"}, func(i int) bool { return i%3 == 2 }},
		"task and gateway":        {v1alpha1.GatewayRecordQuerySpec{Task: "t4", Gateway: "g0"}, func(i int) bool { return i%5 == 4 && i%2 == 0 }},
		"event":                   {v1alpha1.GatewayRecordQuerySpec{Event: "e7"}, func(i int) bool { return i%10 == 7 }},
		"a gateway with no event": {v1alpha1.GatewayRecordQuerySpec{Gateway: "g"}, func(int) bool { return false }},
	} {
		c.spec.Records = v1alpha1.GatewayRecordsDeliveries
		narrow := c.spec.Gateway == "" || len(c.spec.States) == 0 // otherwise pages may have fewer than their limit
		for _, limit := range []int32{0, 1, 2, 7} {
			if c.spec.Limit = limit; !narrow && limit > 0 {
				continue
			}
			if got, want := fmt.Sprint(w.ask(t, c.spec, nil)), fmt.Sprint(want(c.keep)); got != want {
				t.Errorf("%s by %d:\n%s, want\n%s", name, limit, got, want)
			}
		}
	}
	later := n
	got := w.ask(t, v1alpha1.GatewayRecordQuerySpec{Records: v1alpha1.GatewayRecordsDeliveries, Limit: 4}, func() {
		add(later, noon.Add(time.Hour))
		later++
	})
	if want := want(func(int) bool { return true }); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("while others come:\n%v, want\n%v", got, want)
	}
	if _, err := w.create("gatewayevents", event("e")); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, v1alpha1.GatewayRecordQuerySpec{Records: v1alpha1.GatewayRecordsEvents, States: []string{"Rejected"}}, nil); fmt.Sprint(got) != "[e]" {
		t.Errorf("events: %v", got)
	}
}

// TestBoundedQueries: a page looks at so many records and no more, and yet all are found; few records that are many are refused.
func TestBoundedQueries(t *testing.T) {
	w := newWorld(t, Options{})
	for i := range 10 {
		d := delivery(fmt.Sprint("d", i))
		d.Spec.CreatedAt = metav1.NewMicroTime(noon.Add(time.Duration(i) * time.Second))
		d.Spec.BindingName = fmt.Sprint("b", i%5)
		if _, err := w.create("gatewaydeliveries", d); err != nil {
			t.Fatal(err)
		}
	}
	l := w.o.deliveryLedger()
	l.looks = 3
	ctx := w.as("ada", "default", "gatewayrecordqueries")
	page := func(spec *v1alpha1.GatewayRecordQuerySpec) (names []string, next string, err error) {
		names, next, err = ask(ctx, w.o, l, spec, "default", func(d *v1alpha1.GatewayDelivery) string { return d.Name })
		return names, next, err
	}
	var sizes, all []string
	for spec := (&v1alpha1.GatewayRecordQuerySpec{Binding: "b3"}); ; {
		names, next, err := page(spec)
		if err != nil || len(sizes) > 10 {
			t.Fatal(sizes, err)
		}
		sizes, all = append(sizes, fmt.Sprint(len(names))), append(all, names...)
		if spec.Cursor = next; next == "" {
			break
		}
	}
	if fmt.Sprint(sizes, all) != "[1 0 1 0] [d8 d3]" {
		t.Errorf("%v %v", sizes, all)
	}
	if _, _, err := page(&v1alpha1.GatewayRecordQuerySpec{Session: "s"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "more than 3") {
		t.Errorf("%v", err)
	}
}

// TestQueriesAreRefused: what is wrong is named, and who may not list the records does not see them by a query.
func TestQueriesAreRefused(t *testing.T) {
	w := newWorld(t, Options{})
	w.may = func(a authorizer.Attributes) bool { return a.GetResource() != "gatewayevents" || a.GetVerb() != "list" }
	for want, spec := range map[string]v1alpha1.GatewayRecordQuerySpec{
		"400 records: ": {Records: "x"},
		"403 ":          {Records: v1alpha1.GatewayRecordsEvents},
		"400 states: \"Rejected\": must be one of Pending, Sending, RetryScheduled, Delivered, Failed, DeadLettered, Expired": {Records: v1alpha1.GatewayRecordsDeliveries, States: []string{"Pending", "Rejected"}},
		"400 cursor: ": {Records: v1alpha1.GatewayRecordsDeliveries, Cursor: "e30"},
		"400 limit: ":  {Records: v1alpha1.GatewayRecordsDeliveries, Limit: -1},
		"400 task: ":   {Records: v1alpha1.GatewayRecordsDeliveries, Task: "a\x00b"},
	} {
		_, err := w.create("gatewayrecordqueries", &v1alpha1.GatewayRecordQuery{Spec: spec})
		if got := answered(err); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.may = nil
	if _, err := w.create("gatewayrecordqueries", &v1alpha1.GatewayRecordQuery{Spec: v1alpha1.GatewayRecordQuerySpec{Records: v1alpha1.GatewayRecordsEvents, Event: "e"}}); !strings.HasPrefix(answered(err), "400 event: ") {
		t.Errorf("%v", err)
	}
}

// answered returns the code of an answer, and the error.
func answered(err error) string {
	if s, ok := err.(apierrors.APIStatus); ok {
		return fmt.Sprint(s.Status().Code, " ", err)
	}
	return fmt.Sprint(http.StatusOK)
}
