// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/bench/report"
	"github.com/platform-ai/platform/test/chatadapter"
)

// Rows about gateways.
const (
	rowStarted = "gateway event to its task started"
	rowCalled  = "gateway answer stored to adapter called"
)

// intakes are how many events are posted over how many connections: fewer than may arrive from one address, or from all, without waiting.
var intakes = []struct {
	name                string
	connections, events int
}{{"gateway event to 202, one connection", 1, 900}, {"gateway event to 202, 64 connections", 64, 1800}}

// sessions is how many sessions the events belong to, at least; there is one for each connection.
const sessions = 10

// idle is how long after their first event sessions are left alone: their Agent is missing, and the controller looks for it after 1, 3, 7, 15 and
// 31 seconds.
const idle = 17 * time.Second

// gateways measures the way of an event of a chat system: in, to its task, and back.
func gateways(ctx context.Context, o Options, r *report.Report) error {
	for _, n := range intakes {
		if !o.wants(n.name) {
			continue
		}
		if err := intake(ctx, o, n.name, n.connections, n.events, r); err != nil {
			return err
		}
	}
	if o.wants(rowStarted) || o.wants(rowCalled) {
		if err := conversations(ctx, o, r); err != nil {
			return err
		}
	}
	return records(ctx, o, r)
}

// chat is a server with a gateway, and the adapter of that in this process.
type chat struct {
	*server
	client *http.Client
	url    string
	// called are when the adapter was called with each delivery.
	called chan delivery
	end    []func() error // in reverse order
}

// delivery is a delivery that arrived.
type delivery struct {
	event, name string
	at          time.Time
}

// startChat starts a server in a new folder, with the gateway chat. The Agent that answers in it is not there yet, so events wait.
func startChat(ctx context.Context, o Options, folder string) (_ *chat, err error) {
	dir := filepath.Join(o.Dir, folder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c := &chat{called: make(chan delivery, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	a := &chatadapter.Adapter{Can: protocol.Capability{
		InboundText: true, OutboundText: true, Threads: true, SenderIdentity: true, ExplicitSessions: true, IdempotentDelivery: true, InterimMessages: true,
	}}
	mux := http.NewServeMux()
	mux.Handle("GET /", a)
	mux.HandleFunc("POST "+protocol.PathDeliveries, c.take)
	a.Server = httptest.NewTLSServer(mux)
	c.end = append(c.end, func() error { a.Close(); return nil })
	if c.server, err = start(ctx, o.Bin, dir, "--gateway-allow", a.Host(), "--gateway-max-records-per-gateway", "10000"); err != nil {
		return nil, err
	}
	c.end = append(c.end, c.server.stop)
	if c.client, c.url, err = c.server.client(""); err != nil {
		return nil, err
	}
	objects := []struct {
		path, version, kind string
		object              runtime.Object
	}{
		{"/apis/core.platform.ai/v1alpha1/gatewayclasses", v1alpha1.SchemeGroupVersion.String(), "GatewayClass", a.Class()},
		{base + "gateways", v1alpha1.SchemeGroupVersion.String(), "Gateway", a.Gateway()},
		{base + "gatewaybindings", v1alpha1.SchemeGroupVersion.String(), "GatewayBinding", a.Binding("room")},
	}
	for _, s := range a.Secrets() {
		objects = append(objects, struct {
			path, version, kind string
			object              runtime.Object
		}{"/api/v1/namespaces/default/secrets", "v1", "Secret", s})
	}
	for _, ob := range objects {
		if err := c.create(ctx, ob.path, ob.version, ob.kind, ob.object); err != nil {
			return nil, err
		}
	}
	return c, c.ready(ctx)
}

func (c *chat) stop() (err error) {
	for _, end := range slices.Backward(c.end) {
		err = errors.Join(err, end())
	}
	return err
}

// create creates an object.
func (c *chat) create(ctx context.Context, path, version, kind string, o runtime.Object) error {
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	t["apiVersion"], t["kind"] = version, kind
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return send(ctx, c.client, http.MethodPost, c.url+path, body, nil)
}

// ready waits until events are accepted.
func (c *chat) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var g v1alpha1.Gateway
	for {
		if err := send(ctx, c.client, http.MethodGet, c.url+base+"gateways/chat", nil, &g); err != nil {
			return fmt.Errorf("the gateway does not become ready: %q: %w", g.Status.Message, err)
		}
		if g.Status.Ready {
			return nil
		}
		wait(ctx, 50*time.Millisecond)
	}
}

// take takes a delivery, as an adapter does.
func (c *chat) take(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var d protocol.Delivery
	if err := protocol.Decode(r.Body, protocol.MaxDeliveryBody, &d); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(protocol.Answer{Status: protocol.Delivered, ProviderMessageID: d.IdempotencyID}); err != nil {
		return // the delivery is repeated
	}
	select {
	case c.called <- delivery{d.OriginatingEventID, d.DeliveryID, at}:
	case <-r.Context().Done():
	}
}

// adapter returns a client that posts events from the nth address of this machine: how many come from one address is limited.
func (c *chat) adapter(n int) (*http.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	cfg = rest.AnonymousClientConfig(cfg)
	cfg.BearerToken = chatadapter.Inbound
	cfg.Dial = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}}).DialContext
	return rest.HTTPClientFor(cfg)
}

// post posts an event and returns the name of its record.
func (c *chat) post(ctx context.Context, from *http.Client, id, thread, text string) (string, error) {
	body, err := json.Marshal(chatadapter.Event(id, thread, text))
	if err != nil {
		return "", err
	}
	var reply protocol.Reply
	if err := send(ctx, from, http.MethodPost, c.url+"/api/v1/gateways/default/chat/events", body, &reply); err != nil {
		return "", err
	}
	if reply.Status != protocol.ReplyAccepted {
		return "", fmt.Errorf("event %s: %s: %s", id, reply.Status, reply.Message)
	}
	return reply.EventID, nil
}

// intake measures how fast events are stored, beside the execution events of tasks and the disk, before and after. The sessions of the
// events are there already, and nobody answers meanwhile.
func intake(ctx context.Context, o Options, name string, connections, events int, r *report.Report) (err error) {
	c, err := startChat(ctx, o, fmt.Sprintf("intake-%d", connections))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	token, err := workerToken(ctx, c.client, c.url)
	if err != nil {
		return err
	}
	l := appendLoad{token: token, clients: connections, batch: 1}
	for i := range min(connections, 8) {
		task := fmt.Sprintf("bench-%d", i)
		if err := openTask(ctx, c.client, c.url, task); err != nil {
			return err
		}
		l.tasks = append(l.tasks, task)
		defer func() { err = errors.Join(err, deleteTask(context.WithoutCancel(ctx), c.client, c.url, task)) }()
	}
	before, err := fsyncRate(o.Dir, o.Window/2)
	if err != nil {
		return err
	}
	first, cpu, err := l.run(ctx, c.server, o.Window/2)
	if err != nil {
		return err
	}
	rate, each, err := c.intake(ctx, connections, events)
	if err != nil {
		return err
	}
	second, _, err := l.run(ctx, c.server, o.Window/2)
	if err != nil {
		return err
	}
	after, err := fsyncRate(o.Dir, o.Window/2)
	if err != nil {
		return err
	}
	return addAll(r,
		report.Row{Name: name, Unit: "µs/event", Better: report.Lower, Ours: 1e6 / rate, Other: 2e6 / (first + second), OtherName: "event append", Within: 20},
		report.Row{Name: name, Unit: "events/s", Better: report.Higher, Ours: rate, Other: (before + after) / 2, OtherName: "raw fsync/s"},
		report.Row{Name: "processor time of one", Unit: "µs", Better: report.Lower, Ours: each, Other: cpu, OtherName: "event append"})
}

// intake posts events over connections and returns how many were answered a second, and the processor time of the server for each, in
// microseconds.
func (c *chat) intake(ctx context.Context, connections, events int) (rate, cpu float64, err error) {
	clients := make([]*http.Client, connections)
	for i := range clients {
		if clients[i], err = c.adapter(i); err != nil {
			return 0, 0, err
		}
		defer clients[i].CloseIdleConnections()
	}
	each := func(f func(ctx context.Context, connection int) error) error {
		work, ctx := errgroup.WithContext(ctx)
		for i := range clients {
			work.Go(func() error { return f(ctx, i) })
		}
		return work.Wait()
	}
	threads := max(sessions/connections, 1)
	thread := func(connection, n int) string { return fmt.Sprintf("%d-%d", connection, n%threads) }
	per := events/connections - threads // the first ones make the sessions
	if err := each(func(ctx context.Context, i int) error {
		for n := range threads {
			if _, err := c.post(ctx, clients[i], fmt.Sprintf("first-%d-%d", i, n), thread(i, n), buildLog); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	wait(ctx, idle)
	used, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	from := time.Now()
	if err := each(func(ctx context.Context, i int) error {
		for n := range per {
			if _, err := c.post(ctx, clients[i], fmt.Sprintf("e-%d-%d", i, n), thread(i, n), buildLog); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	took, n := time.Since(from), float64(per*connections)
	until, err := c.cpu()
	return n / took.Seconds(), (until - used) * 1e6 / n, err
}

// conversations measures events that are answered, one after the other, each in a session of its own.
func conversations(ctx context.Context, o Options, r *report.Report) (err error) {
	c, err := startChat(ctx, o, "conversations")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	vendor := httptest.NewServer(http.HandlerFunc(answerTask))
	defer vendor.Close()
	if err := makeProvider(ctx, c.client, c.url, "model", vendor.URL); err != nil {
		return err
	}
	talker := (&chatadapter.Adapter{}).Talker()
	talker.Spec.Model = &v1alpha1.AgentModel{Name: "m"}
	if err := c.create(ctx, base+"agents", v1alpha1.SchemeGroupVersion.String(), "Agent", talker); err != nil {
		return err
	}
	from, err := c.adapter(0)
	if err != nil {
		return err
	}
	l := &load{server: c.server, client: c.client, url: c.url}
	var started, called []float64
	for i := range alone + 3 { // the first ones make the worker's account and warm up
		name, err := c.post(ctx, from, fmt.Sprintf("e-%d", i), fmt.Sprintf("thread-%d", i), "Hello.")
		if err != nil {
			return err
		}
		var d delivery
		select {
		case d = <-c.called:
		case <-ctx.Done():
			return ctx.Err()
		}
		if d.event != name {
			return fmt.Errorf("a delivery for %s, not for %s", d.event, name)
		}
		toStart, toCall, err := l.way(ctx, d)
		if err != nil {
			return err
		}
		if i >= 3 {
			started, called = append(started, toStart), append(called, toCall)
		}
	}
	slices.Sort(started)
	slices.Sort(called)
	return addAll(r,
		report.Row{Name: rowStarted, Unit: "ms", Better: report.Lower, Ours: started[alone/2], Other: 20, OtherName: "(aim)"},
		report.Row{Name: rowCalled, Unit: "ms", Better: report.Lower, Ours: called[alone/2], Other: 5, OtherName: "(aim)"})
}

// way returns how long after it was accepted the event of a delivery had a task that was started, and how long after it was written the
// delivery reached the adapter, in ms, by the records.
func (l *load) way(ctx context.Context, d delivery) (toStart, toCall float64, err error) {
	var e v1alpha1.GatewayEvent
	var answer v1alpha1.GatewayDelivery
	if err := send(ctx, l.client, http.MethodGet, l.url+base+"gatewayevents/"+d.event, nil, &e); err != nil {
		return 0, 0, err
	}
	if err := send(ctx, l.client, http.MethodGet, l.url+base+"gatewaydeliveries/"+d.name, nil, &answer); err != nil {
		return 0, 0, err
	}
	if answer.Spec.Kind != v1alpha1.GatewayDeliveryFinal {
		return 0, 0, fmt.Errorf("the answer to %s is: %s", d.event, answer.Spec.Text)
	}
	at, err := l.events(ctx, e.Status.TaskName)
	if err != nil {
		return 0, 0, err
	}
	if at["TaskStarted"].IsZero() {
		return 0, 0, fmt.Errorf("task %s was not started", e.Status.TaskName)
	}
	ms := func(from metav1.MicroTime, to time.Time) float64 { return to.Sub(from.Time).Seconds() * 1000 }
	return ms(e.Spec.CreatedAt, at["TaskStarted"]), ms(answer.Spec.CreatedAt, d.at), nil
}
