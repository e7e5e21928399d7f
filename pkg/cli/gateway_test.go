// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// gatewayNow is the time of the tests.
var gatewayNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// records is a server with the objects of testdata/gateway.yaml, which notes what it is asked for.
type records struct {
	t          *testing.T
	events     []v1alpha1.GatewayEvent
	deliveries []v1alpha1.GatewayDelivery
	others     map[string]any // by path
	asked      []string
	clock      clock.Clock
}

func newRecords(t *testing.T) *records {
	t.Helper()
	raw, err := os.ReadFile("testdata/gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := &records{t: t, others: map[string]any{}, clock: testclock.NewFakeClock(gatewayNow)}
	var bindings []any
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var one map[string]any
		if err := yaml.Unmarshal([]byte(document), &one); err != nil {
			t.Fatal(err)
		}
		switch one["kind"] {
		case "GatewayEvent":
			r.events = append(r.events, decodeAs[v1alpha1.GatewayEvent](t, document))
		case "GatewayDelivery":
			r.deliveries = append(r.deliveries, decodeAs[v1alpha1.GatewayDelivery](t, document))
		case "GatewayBinding":
			bindings = append(bindings, one)
		case "Task":
			r.others["tasks/"+decodeAs[v1alpha1.Task](t, document).Name] = one
		default:
			t.Fatalf("testdata: %v", one["kind"])
		}
	}
	r.others[gatewayBindings] = map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "GatewayBindingList", "items": bindings}
	return r
}

func decodeAs[T any](t *testing.T, document string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (r *records) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	path := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/apis/core.platform.ai/v1alpha1/"), "namespaces/default/")
	resource, name, _ := strings.Cut(path, "/")
	var answer any = metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound, Message: path + " not found"}
	asked := req.Method + " " + path
	switch event, delivery := indexOf(r.events, name), indexOf(r.deliveries, name); {
	case resource == "gatewayrecordqueries":
		var q v1alpha1.GatewayRecordQuery
		if err := json.Unmarshal(body, &q); err != nil {
			r.t.Error(err)
		}
		spec, err := json.Marshal(q.Spec)
		if err != nil {
			r.t.Error(err)
		}
		asked, answer = "query "+string(spec), r.find(q)
	case strings.HasSuffix(path, "/retry"), strings.HasSuffix(path, "/abandon"), strings.HasSuffix(path, "/replay"):
		asked += " " + string(body)
		answer = map[string]any{"kind": "X", "status": map[string]string{"state": "Rejected", "reason": "NoBinding", "stateMessage": "no\nbinding"}}
	case resource == gatewayEvents && event >= 0:
		answer = r.events[event]
	case resource == gatewayDeliveries && delivery >= 0:
		answer = r.deliveries[delivery]
	case path == "tasks/gw-hidden":
		answer = metav1.Status{Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Message: "tasks are not for you"}
	case r.others[path] != nil:
		answer = r.others[path]
	case name == "" && strings.Contains(req.Header.Get("Accept"), "as=Table"):
		answer = map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": []map[string]string{{"name": "Name"}}, "rows": []string{}}
	}
	r.asked = append(r.asked, asked)
	w.Header().Set("Content-Type", "application/json")
	if s, failed := answer.(metav1.Status); failed {
		w.WriteHeader(int(s.Code))
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer = s
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		r.t.Error(err)
	}
}

func indexOf[T any, P interface {
	*T
	GetName() string
}](all []T, name string) int {
	return slices.IndexFunc(all, func(one T) bool { return P(&one).GetName() == name })
}

// find answers a query; a page has at most two records.
func (r *records) find(q v1alpha1.GatewayRecordQuery) *v1alpha1.GatewayRecordQuery {
	s, from := &q.Spec, 0
	if s.Cursor != "" {
		if _, err := fmt.Sscanf(s.Cursor, "after-%d", &from); err != nil {
			r.t.Error(err)
		}
	}
	has := func(want, is string) bool { return want == "" || want == is }
	in := func(state string) bool { return len(s.States) == 0 || slices.Contains(s.States, state) }
	events := slices.DeleteFunc(slices.Clone(r.events), func(e v1alpha1.GatewayEvent) bool {
		return s.Records != v1alpha1.GatewayRecordsEvents || !has(s.Gateway, e.Spec.GatewayName) || !has(s.Session, e.Status.SessionName) || !in(string(e.Status.State))
	})
	sent := slices.DeleteFunc(slices.Clone(r.deliveries), func(d v1alpha1.GatewayDelivery) bool {
		return s.Records != v1alpha1.GatewayRecordsDeliveries || !has(s.Event, d.Spec.EventID) || !has(s.Session, d.Spec.SessionName) || !in(string(d.Status.State))
	})
	to := from + min(int(s.Limit), 2)
	if to < len(events)+len(sent) {
		q.Status.Continue = fmt.Sprintf("after-%d", to)
	}
	q.Status.Events, q.Status.Deliveries = events[min(from, len(events)):min(to, len(events))], sent[min(from, len(sent)):min(to, len(sent))]
	return &q
}

// run runs a command, and returns what it printed.
func (r *records) run(ctx context.Context, address, args string) (printed string, code int) {
	var b strings.Builder
	r.asked = nil
	cmd, term := newCommand(Streams{In: strings.NewReader(""), Out: &b, Err: &b}, "platform")
	term.clock = r.clock
	cmd.SetArgs(append([]string{"--kubeconfig", "/dev/null", "-s", address}, strings.Fields(args)...))
	err := execute(func() error { return cmd.ExecuteContext(ctx) }, cmd)
	if err := term.screen.Flush(); err != nil {
		r.t.Error(err)
	}
	if err != nil && !silent(err) {
		note(&b, "platform: "+explain(err))
	}
	return b.String(), exitCode(ctx, err)
}

// TestGatewayCommands: what commands about gateways ask the server for, and what they print.
func TestGatewayCommands(t *testing.T) {
	r := newRecords(t)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	for _, c := range []struct {
		args       string
		code       int
		asked, out string
	}{
		{"gateway list", 0, "GET gateways", "nothing found"},
		{"gateway get chat", 1, "GET gateways/chat", "platform: gateways/chat not found"},
		{"gateway class list", 0, "GET gatewayclasses", "nothing found"},
		{"gateway class get irc", 1, "GET gatewayclasses/irc", "platform: gatewayclasses/irc not found"},
		{"gateway binding list -o json", 0, "GET gatewaybindings", "{\n"},
		{"gateway identity get sam", 1, "GET gatewayidentities/sam", "platform: gatewayidentities/sam not found"},
		{"gateway events get none", 1, "GET gatewayevents/none", "platform: gatewayevents/none not found"},
		{
			"gateway events list --gateway chat --binding b --session s --task t --state Queued,Rejected --limit 3 --continue after-1 --cursor after-1", 0,
			`query {"records":"events","gateway":"chat","binding":"b","session":"s","task":"t","states":["Queued","Rejected"],"limit":3,"cursor":"after-1"}`, "nothing found",
		},
		{"gateway deliveries list --event gev-none", 0, `query {"records":"deliveries","event":"gev-none","limit":500}`, "nothing found"},
		{"gateway events list --event x", 1, "", "platform: unknown flag: --event"},
		{"gateway events list --state Lost", 1, "", `platform: --state: "Lost" is not one of Queued, Dispatching, TaskCreated, Completed, Rejected, DeadLettered, Expired`},
		{"gateway deliveries list --state Queued", 1, "", `platform: --state: "Queued" is not one of Pending, Sending, RetryScheduled, Delivered, Failed, DeadLettered, Expired`},
		{"gateway events list --continue a --cursor b", 1, "", "platform: --cursor: differs from --continue"},
		{"gateway events replay gev-1", 0, `POST gatewayevents/gev-1/replay {"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayEvent"}`, "gatewayevent gev-1: Rejected: NoBinding: no binding\n"},
		{"gateway deliveries retry gdl-1", 0, `POST gatewaydeliveries/gdl-1/retry {"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayDelivery"}`, "gatewaydelivery gdl-1: Rejected"},
		{"gateway deliveries abandon gdl-1", 0, `POST gatewaydeliveries/gdl-1/abandon {"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayDelivery"}`, "gatewaydelivery gdl-1: Rejected"},
		{"gateway events explain none", 1, "GET gatewayevents/none", "platform: gatewayevents/none not found"},
	} {
		out, code := r.run(t.Context(), s.URL, c.args)
		last := ""
		if n := len(r.asked); n > 0 {
			last = r.asked[n-1]
		}
		if code != c.code || last != c.asked || !strings.HasPrefix(out, c.out) {
			t.Errorf("%s: exit code %d\nasked   %q\nwant    %q\nprinted %q\nwant    %q", c.args, code, r.asked, c.asked, out, c.out)
		}
	}
}

// TestGatewayReports compares what commands make of records with golden files.
func TestGatewayReports(t *testing.T) {
	r := newRecords(t)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	var all strings.Builder
	for _, args := range []string{
		"gateway events list --limit 3", "gateway events list -o wide", "gateway events list --limit 1 -o yaml", "gateway events list -o name", "gateway deliveries list", "gateway deliveries list -o wide",
		"gateway deliveries list -o custom-columns=NAME:.metadata.name,AT:.status.nextAttemptAt",
		"gateway events explain gev-done", "gateway events explain gev-head", "gateway events explain gev-behind", "gateway events explain gev-nobody", "gateway events explain gev-full",
	} {
		out, code := r.run(t.Context(), s.URL, args)
		fmt.Fprintf(&all, "$ platform %s\n%s(exit code %d)\n\n", args, out, code)
	}
	text := all.String()
	for minute := range 60 { // times are local
		at := time.Date(2026, 1, 1, 11, minute, 0, 0, time.UTC)
		text = strings.ReplaceAll(text, at.Local().Format(time.DateTime), at.Format(time.DateTime))
	}
	golden(t, "gateway.txt", []byte(text))
}

// TestGatewayWatch: changes of events and of deliveries are lines; what is stored, what is removed and what is of no interest is none; and
// a server that has forgotten where the watch was is a warning.
func TestGatewayWatch(t *testing.T) {
	stored := newRecords(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	change := func(kind string, object any, name string) string {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, strings.Replace(string(raw), `"name":"`+name+`"`, `"resourceVersion":"8","name":"`+name+`"`, 1))
	}
	event, delivery := stored.events[indexOf(stored.events, "gev-behind")], stored.deliveries[indexOf(stored.deliveries, "gdl-head")]
	asked := make(chan string, 100)
	var forgotten atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
		asked <- strings.Join([]string{resource, q.Get("fieldSelector"), q.Get("limit"), q.Get("resourceVersion")}, " ")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case q.Get("watch") == "" && resource == gatewayEvents:
			_, _ = io.WriteString(w, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayEventList","metadata":{"resourceVersion":"`+map[bool]string{false: "7", true: "9"}[forgotten.Load()]+`"},"items":[{"metadata":{"name":"stored"}}]}`)
		case q.Get("watch") == "":
			_, _ = io.WriteString(w, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayDeliveryList","metadata":{"resourceVersion":"7"},"items":[]}`)
		case resource == gatewayEvents && q.Get("resourceVersion") == "7":
			forgotten.Store(true)
			_, _ = io.WriteString(w, change("ADDED", event, event.Name)+change("DELETED", event, event.Name)+`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`+"\n")
		case resource == gatewayDeliveries && q.Get("resourceVersion") == "7":
			_, _ = io.WriteString(w, change("MODIFIED", delivery, delivery.Name))
		default:
			w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
			<-req.Context().Done()
		}
	}))
	defer s.Close()
	seen := map[string]bool{}
	out, code := "", -1
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, code = (&records{t: t, clock: clock.RealClock{}}).run(ctx, s.URL, "gateway watch --gateway chat --session s,1")
	}()
	const selected, sent = `spec.gatewayName=chat,status.sessionName=s\,1`, `spec.gatewayName=chat,spec.sessionName=s\,1`
	for want := []string{
		"gatewayevents " + selected + " 1 ", "gatewayevents " + selected + "  7", "gatewayevents " + selected + "  9", "gatewaydeliveries " + sent + " 1 ", "gatewaydeliveries " + sent + "  7", "gatewaydeliveries " + sent + "  8",
	}; !allIn(seen, want); {
		select {
		case one := <-asked:
			seen[one] = true
		case <-t.Context().Done():
			t.Fatalf("asked %v, want %v", seen, want)
		}
	}
	stop()
	<-done
	at := func(m metav1.MicroTime) string { return m.Local().Format(time.DateTime) }
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	want := []string{
		at(event.Spec.CreatedAt) + "  event     Queued          gev-behind  chat, U2: and now?",
		at(*delivery.Status.UpdatedAt) + "  delivery  RetryScheduled  gdl-head  chat, final, sent 2 of 10 times, may have been posted, next attempt now, message p-7, the adapter answered 503",
		"Warning: changes of gatewayevents were missed; to see where they are now: platform gateway events list",
	}
	slices.Sort(want)
	if !slices.Equal(lines, want) || code != codeInterrupt {
		t.Errorf("exit code %d\n%s\nwant\n%s", code, out, strings.Join(want, "\n"))
	}
}

func allIn(seen map[string]bool, want []string) bool {
	return !slices.ContainsFunc(want, func(one string) bool { return !seen[one] })
}
