// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site serves the stream of any task or session of the namespace "default" over HTTP, at /task/NAME and /session/NAME.
type site struct {
	t       *testing.T
	log     *eventlog.Log
	server  *Server
	metrics *prometheus.Registry
	url     string
	// transport returns a transport whose connections have small buffers.
	transport func() *http.Transport
	proto     string
	ended     chan string // receives the path of each stream that ended
	allowed   func(context.Context) error
}

type options struct {
	Options
	log eventlog.Options
}

func bothProtocols(t *testing.T, o func() options, test func(s *site)) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) { test(start(t, proto, o())) })
	}
}

// start serves over TLS on loopback.
func start(t *testing.T, proto string, o options) *site {
	t.Helper()
	s := newSite(t, proto, o, local.Options{Dir: t.TempDir()})
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.handle))
	server.EnableHTTP2 = proto == "HTTP/2.0"
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if n, ok := c.(interface{ NetConn() net.Conn }); ok { // a small buffer, so that little fits between server and client
			if tcp, ok := n.NetConn().(*net.TCPConn); ok {
				if err := tcp.SetWriteBuffer(64 << 10); err != nil {
					t.Error(err)
				}
			}
		}
		return ctx
	}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL
	s.transport = func() *http.Transport {
		tr := server.Client().Transport.(*http.Transport).Clone()
		dialer := &net.Dialer{}
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return c, c.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return tr
	}
	return s
}

// startInBubble serves in memory, for a test whose time is that of a bubble.
func startInBubble(t *testing.T, proto string, o options) *site {
	t.Helper()
	s := newSite(t, proto, o, local.Options{Dir: localtest.Dir, FS: localtest.NewDisk().FS()})
	protocols := &http.Protocols{}
	protocols.SetHTTP1(proto == "HTTP/1.1")
	protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
	l := pipenet.Listen()
	server := &http.Server{Handler: http.HandlerFunc(s.handle), Protocols: protocols}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	s.url = "http://server"
	s.transport = func() *http.Transport { return &http.Transport{DialContext: l.DialContext, Protocols: protocols} }
	return s
}

// newSite makes a site that is not served yet.
func newSite(t *testing.T, proto string, o options, store local.Options) *site {
	t.Helper()
	e, err := local.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	o.log.PurgeInterval = -1
	s := &site{t: t, proto: proto, metrics: prometheus.NewRegistry(), ended: make(chan string, 64)}
	if s.log, err = eventlog.Open(t.Context(), e, o.log); err != nil {
		t.Fatal(err)
	}
	o.Log, o.Registerer = s.log, s.metrics
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if s.server, err = New(o.Options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.log.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// respond writes errors as an API server does.
type respond struct{ w http.ResponseWriter }

func (r respond) Object(int, runtime.Object) {}
func (r respond) Error(err error) {
	code := http.StatusInternalServerError
	if status, ok := err.(apierrors.APIStatus); ok {
		code = int(status.Status().Code)
	}
	http.Error(r.w, err.Error(), code)
}

var _ rest.Responder = respond{}

func (s *site) handle(w http.ResponseWriter, req *http.Request) {
	line := timelineOf(req.URL.Path)
	line.Allowed = s.allowed
	s.server.Stream(line, respond{w}).ServeHTTP(w, req)
	s.ended <- req.URL.Path
}

func timelineOf(path string) *Timeline {
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return &Timeline{
		Type: v1alpha1.StreamType(kind), Namespace: "default", Name: name, UID: types.UID("uid-" + name),
		Reload: func(context.Context) error { return nil },
	}
}

func stream(task string) eventlog.Stream {
	return eventlog.Stream{Namespace: "default", Task: task, UID: types.UID("uid-" + task), Session: "s"}
}

func (s *site) add(task string, types ...v1alpha1.EventType) {
	s.t.Helper()
	s.addText(task, "", types...)
}

func (s *site) addText(task, text string, types ...v1alpha1.EventType) {
	s.t.Helper()
	var events []*v1alpha1.ExecutionEvent
	for _, typ := range types {
		events = append(events, &v1alpha1.ExecutionEvent{Type: typ, ContentText: text})
	}
	if _, err := s.log.Append(s.t.Context(), stream(task), events); err != nil {
		s.t.Fatal(err)
	}
}

// client is one open stream.
type client struct {
	t      *testing.T
	cancel context.CancelFunc
	frames *sse.Reader
	beats  chan struct{}
}

// open opens a stream on a separate connection.
func (s *site) open(path string) *client {
	s.t.Helper()
	tr := s.transport()
	ctx, cancel := context.WithTimeout(s.t.Context(), kit.Patience)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.Proto != s.proto || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %s", path, resp.Proto, resp.Status)
	}
	c := &client{t: s.t, cancel: cancel, beats: make(chan struct{}, 100)}
	c.frames = sse.NewReader(resp.Body, sse.Options{Comment: func(text string) {
		if text == "heartbeat" {
			c.beats <- struct{}{}
		}
	}})
	return c
}

// next returns a description of the next frame.
func (c *client) next() (string, error) {
	f, err := c.frames.Next()
	if err != nil {
		return "", err
	}
	if f.Type == event.FrameEvent {
		var e v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			return "", err
		}
		return f.ID + " " + string(e.Type), nil
	}
	if f.Type == event.FrameError { // it has no id
		return f.Type + " " + f.Data, nil
	}
	data, uid, found := strings.Cut(f.Data, `"streamUID":"`)
	if !found {
		return "", fmt.Errorf("%s frame without a UID: %s", f.Type, f.Data)
	}
	_, rest, _ := strings.Cut(uid, `"`) // TestAhead looks at UIDs
	return strings.TrimSpace(f.ID + " " + f.Type + " " + strings.TrimSuffix(data, ",") + rest), nil
}

func (c *client) want(frames ...string) {
	c.t.Helper()
	var got []string
	for range frames {
		text, err := c.next()
		if err != nil {
			text = err.Error()
		}
		got = append(got, text)
	}
	if d := cmp.Diff(frames, got); d != "" {
		c.t.Fatalf("frames (-want +got):\n%s", d)
	}
}

// wantMetrics compares all samples of the metrics of streams, as "name{label,label} value", sorted.
func (s *site) wantMetrics(want ...string) {
	s.t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s{%s} %v", strings.TrimPrefix(f.GetName(), "platform_execution_event_stream_"), strings.Join(labels, ","), m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("metrics (-want +got):\n%s", d)
	}
}

// A heartbeat is sent whenever it is due, and the timer stops with the stream.
func TestHeartbeat(t *testing.T) {
	fake := &clocktesting.FakeClock{}
	bothProtocols(t, func() options {
		fake = clocktesting.NewFakeClock(time.Now())
		return options{Options: Options{Clock: fake, WriteTimeout: time.Hour}}
	}, func(s *site) {
		c := s.open("/task/a")
		frames := make(chan string)
		go func() {
			defer close(frames)
			for {
				text, err := c.next()
				if err != nil {
					return
				}
				frames <- text
			}
		}()
		pass := func(seq int) { // when an event arrives, the timer of the last heartbeat is running
			s.add("a", v1alpha1.EventModelMessage)
			if text, want := <-frames, fmt.Sprintf("%d ModelMessage", seq); text != want {
				s.t.Fatalf("frame %q, want %q", text, want)
			}
		}
		for i := range 3 {
			pass(2*i + 1)
			fake.Step(15*time.Second - 1)
			pass(2*i + 2)
			if n := len(c.beats); n > 0 {
				s.t.Fatalf("%d heartbeats too early", n)
			}
			fake.Step(1)
			<-c.beats
		}
		c.cancel()
		<-s.ended
		for range frames { // until it is closed
		}
		if fake.HasWaiters() {
			s.t.Error("a timer is left")
		}
	})
}

// A stream ends when its caller may no longer read it: before the next event or, if there is none, at the next
// heartbeat.
func TestStreamsEndWithTheRight(t *testing.T) {
	fake := &clocktesting.FakeClock{}
	bothProtocols(t, func() options {
		fake = clocktesting.NewFakeClock(time.Now())
		return options{Options: Options{Clock: fake, WriteTimeout: time.Hour}}
	}, func(s *site) {
		var over atomic.Bool
		s.allowed = func(context.Context) error {
			if over.Load() {
				return apierrors.NewForbidden(v1alpha1.Resource("tasks"), "a", errors.New("it is over"))
			}
			return nil
		}
		end := `error {"code":403,"message":"tasks.core.platform.ai \"a\" is forbidden: it is over"}`
		s.add("a", v1alpha1.EventTaskStarted)
		c := s.open("/task/a")
		c.want("1 TaskStarted")
		over.Store(true)
		s.add("a", v1alpha1.EventModelMessage)
		c.want(end)
		<-s.ended

		over.Store(false)
		c = s.open("/task/a")
		c.want("1 TaskStarted", "2 ModelMessage")
		over.Store(true)
		fake.Step(15 * time.Second)
		c.want(end)
		<-s.ended
	})
}

// A client that reads nothing is disconnected once a write has taken too long; all others are served.
func TestSlowClientIsCut(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startInBubble(t, proto, options{})
				slow, good := s.open("/task/a"), s.open("/session/s?type=TaskStarted")
				read := make(chan string, 1)
				go func() { // from now on, so that it takes its heartbeats
					text, err := good.next()
					read <- fmt.Sprint(text, err)
				}()
				big := make([]v1alpha1.EventType, 50)
				for i := range big {
					big[i] = v1alpha1.EventModelMessage
				}
				for range 10 { // 16 MB: more than HTTP/2 lets a server send ahead
					s.addText("a", strings.Repeat("x y ", 8<<10), big...)
				}
				if path := <-s.ended; path != "/task/a" {
					t.Fatalf("%s ended", path)
				}
				s.add("b", v1alpha1.EventTaskStarted)
				if got := <-read; got != "501 TaskStarted<nil>" {
					t.Errorf("the good client reads %s", got)
				}
				var err error
				for err == nil {
					_, err = slow.next()
				}
				if errors.Is(err, io.EOF) {
					t.Error("the cut stream looks as if it had ended in good order")
				}
				s.wantMetrics("connections_current{session} 1", "connections_current{task} 0", "errors_total{write,task} 1")
			})
		})
	}
}

// A stream that was up to date and falls too far behind gets an error and ends.
func TestLaggingClientIsTold(t *testing.T) {
	bothProtocols(t, func() options {
		return options{Options: Options{MaxLag: 20, WriteTimeout: time.Hour}, log: eventlog.Options{WatchQueue: 8}}
	}, func(s *site) {
		s.add("a", v1alpha1.EventTaskStarted)
		c := s.open("/task/a")
		c.want("1 TaskStarted")
		big := make([]v1alpha1.EventType, 50)
		for i := range big {
			big[i] = v1alpha1.EventModelMessage
		}
		for range 15 { // 24 MB; the network buffers and one page of 256 events do not count as lag
			s.addText("a", strings.Repeat("x y ", 8<<10), big...)
		}
		var text string
		for seq := 2; ; seq++ {
			var err error
			if text, err = c.next(); err != nil {
				s.t.Fatalf("instead of event %d: %v", seq, err)
			}
			if text != fmt.Sprintf("%d ModelMessage", seq) {
				break
			}
		}
		if want := `error {"code":429,"message":"the watch fell too far behind"}`; text != want {
			s.t.Errorf("frame %s, want %s", text, want)
		}
		if _, err := c.next(); !errors.Is(err, io.EOF) {
			s.t.Errorf("behind the error: %v", err)
		}
		<-s.ended
		s.wantMetrics("connections_current{task} 0", "errors_total{list,task} 1")
	})
}

// Streams and pages report events that are no longer kept: those of a deleted task in its session's timeline, and
// those that were trimmed.
func TestGaps(t *testing.T) {
	bothProtocols(t, func() options { return options{} }, func(s *site) {
		s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
		s.add("b", v1alpha1.EventTaskStarted)
		s.add("a", v1alpha1.EventModelMessage, v1alpha1.EventTaskSucceeded)
		s.add("c", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage, v1alpha1.EventModelMessage, v1alpha1.EventTaskSucceeded)
		if err := s.log.DeleteStream(s.t.Context(), stream("a")); err != nil {
			s.t.Fatal(err)
		}
		if err := s.log.Trim(s.t.Context(), stream("c"), 3); err != nil {
			s.t.Fatal(err)
		}
		gap := func(from, to int) string {
			return fmt.Sprintf(`%d gap {"fromSeq":%d,"toSeq":%d,"reason":"retention"}`, to, from, to)
		}
		complete := `4 stream_complete {"lastSeq":4,"type":"TaskSucceeded"}`
		s.open("/task/c").want(gap(1, 2), "3 ModelMessage", "4 TaskSucceeded", complete)
		s.open("/task/c?after=1&type=TaskSucceeded").want(gap(2, 2), "4 TaskSucceeded", complete)
		s.open("/task/c?after=2").want("3 ModelMessage", "4 TaskSucceeded", complete)
		c := s.open("/session/s")
		c.want(gap(1, 2), "3 TaskStarted", gap(4, 7), "8 ModelMessage", "9 TaskSucceeded")
		s.add("b", v1alpha1.EventModelMessage)
		c.want("10 ModelMessage")
		s.open("/session/s?after=1").want(gap(2, 2), "3 TaskStarted")
		s.open("/session/s?after=7").want("8 ModelMessage")

		for path, want := range map[string][]v1alpha1.EventGap{
			"/task/c":            {{FromSeq: 1, ToSeq: 2, Reason: "retention"}},
			"/task/c?after=2":    nil,
			"/session/s":         {{FromSeq: 1, ToSeq: 2, Reason: "retention"}, {FromSeq: 4, ToSeq: 7, Reason: "retention"}},
			"/session/s?after=2": {{FromSeq: 4, ToSeq: 7, Reason: "retention"}},
		} {
			name, query, _ := strings.Cut(path, "?")
			p, err := s.server.Page(httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/?"+query, nil), timelineOf(name))
			if err != nil {
				s.t.Fatal(err)
			}
			got := p.Gaps
			if p.Gap != nil && len(got) == 0 {
				got = []v1alpha1.EventGap{*p.Gap}
			}
			if d := cmp.Diff(want, got); d != "" || len(got) > 0 && *p.Gap != got[0] {
				s.t.Errorf("gaps of %s (-want +got):\n%s", path, d)
			}
		}
	})
}

// Streams that are opened while their task is deleted all end.
func TestDeletionWhileStreamsOpen(t *testing.T) {
	bothProtocols(t, func() options { return options{} }, func(s *site) {
		s.add("a", v1alpha1.EventTaskStarted)
		const n = 20
		var opened, done sync.WaitGroup
		var clients [n]*client
		for i := range n {
			opened.Add(1)
			done.Go(func() {
				if i < n/2 {
					clients[i] = s.open("/task/a")
				}
				opened.Done()
				opened.Wait()
				if i >= n/2 {
					clients[i] = s.open("/task/a?type=WorkerStarted")
				}
			})
		}
		opened.Wait()
		if err := s.log.DeleteStream(s.t.Context(), stream("a")); err != nil {
			s.t.Fatal(err)
		}
		s.server.Deleted("uid-a")
		done.Wait()
		for _, c := range clients {
			var last string
			for {
				text, err := c.next()
				if err != nil {
					break
				}
				last = text
			}
			if !strings.HasSuffix(last, `"type":"TaskDeleted"}`) {
				s.t.Errorf("last frame %q", last)
			}
		}
		for range n {
			<-s.ended
		}
		if len(s.server.open) > 0 {
			s.t.Errorf("open streams are left: %v", s.server.open)
		}
	})
}

func TestReconnectsAreCounted(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventTaskSucceeded)
	s.open("/task/a").want("1 TaskStarted")
	s.open("/task/a?after=1").want("2 TaskSucceeded")
	s.open("/task/a?after=2").want(`2 stream_complete {"lastSeq":2,"type":"TaskSucceeded"}`)
	s.open("/session/s?after=1").want("2 TaskSucceeded")
	for range 3 {
		<-s.ended
	}
	s.wantMetrics("connections_current{session} 1", "connections_current{task} 0", "reconnects_total{session} 1", "reconnects_total{task} 2")
	if again, err := metric.Register(s.metrics, newMetrics()); err != nil || again != s.server.metrics {
		t.Errorf("a second server of the process: %v", err)
	}
}
