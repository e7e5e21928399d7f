// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/quickclock"
)

// stranger is a server of version 2025-06-18 with sessions, which does what the SDK's server never does.
type stranger struct {
	*httptest.Server

	// on answers requests by their method, and GET ones by "GET". An answer that is missing is as the protocol has it.
	on map[string]http.HandlerFunc

	mu       sync.Mutex
	sessions int
	// seen are the methods of the messages, in order; answered those messages of the client that are answers.
	seen     []string
	answered []string
	keys     []string // the idempotency keys of what was seen
}

// requestOf is the message in the context of a handler.
func requestOf(r *http.Request) (m request) {
	_ = json.Unmarshal([]byte(r.Header.Get("X-Test-Body")), &m)
	return m
}

func newStranger(t *testing.T, on map[string]http.HandlerFunc) *stranger {
	t.Helper()
	s := &stranger{on: on}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Set("X-Test-Body", string(body))
		m := requestOf(r)
		if r.Method == http.MethodGet {
			m.Method = http.MethodGet
		}
		s.mu.Lock()
		if s.seen = append(s.seen, m.Method); r.Method == http.MethodPost && m.Method == "" {
			s.answered = append(s.answered, r.Header.Get(headerSession)+" "+string(body))
		}
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			s.keys = append(s.keys, m.Method+" "+key)
		}
		s.mu.Unlock()
		if h := s.on[m.Method]; h != nil {
			h(w, r)
			return
		}
		s.answer(w, m)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) answer(w http.ResponseWriter, m request) {
	switch m.Method {
	case methodDiscover:
		http.Error(w, "unknown method", http.StatusBadRequest)
	case "initialize":
		s.mu.Lock()
		s.sessions++
		w.Header().Set(headerSession, fmt.Sprintf("s-%d", s.sessions))
		s.mu.Unlock()
		answer(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
	case "tools/list":
		answer(w, m, `{"tools":[{"name":"weather","inputSchema":{"type":"object"}}]}`)
	case methodCall:
		text("fine")(w, m)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// did returns how often the client sent a message, and its answers.
func (s *stranger) did(method string) (times int, answered []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		if m == method {
			times++
		}
	}
	return times, append([]string{}, s.answered...)
}

// open makes the tool. The time of a call is the longest there is, because none is about that.
func (s *stranger) open(t *testing.T, c clock.WithDelayedExecution) (*tool.Catalogue, error) {
	t.Helper()
	sp := spec(s.URL, "")
	sp.HTTP = &v1alpha1.ToolHTTP{Timeout: v1alpha1.DurationOf(maxTimeout), AuthSecretRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}
	tl, err := Open(t.Context(), "weather", sp, Options{Guard: allowed(s.URL), Clock: c, Credential: credential})
	if err != nil {
		return nil, err
	}
	return tool.NewCatalogue(tl)
}

func (s *stranger) mustOpen(t *testing.T, c clock.WithDelayedExecution) *tool.Catalogue {
	t.Helper()
	tools, err := s.open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

const fine = `{"success":true,"data":{"text":"fine"}}`

// events begins a stream and returns how its events are written.
func events(w http.ResponseWriter) func(format string, a ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(format string, a ...any) {
		_, _ = fmt.Fprintf(w, format, a...)
		_ = http.NewResponseController(w).Flush()
	}
}

// TestRequestsOfTheServer: a server may ask before it goes on with a request, and gets an answer to each. One that does not take
// an answer delays nothing.
func TestRequestsOfTheServer(t *testing.T) {
	over := make(chan struct{})
	var s *stranger
	await := func(n int) {
		kit.Await(t, "the answers", func() bool { _, all := s.did(""); return len(all) >= n })
	}
	s = newStranger(t, map[string]http.HandlerFunc{
		"initialize": func(w http.ResponseWriter, r *http.Request) {
			_, before := s.did("")
			w.Header().Set(headerSession, "the-session")
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":\"early\",\"method\":\"ping\"}\n\n")
			await(len(before) + 1)
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n\n", requestOf(r).ID)
		},
		methodCall: func(w http.ResponseWriter, r *http.Request) {
			_, before := s.did("")
			event := events(w)
			event("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n")
			for i, method := range []string{"ping", "sampling/createMessage", "roots/list", "elicitation/create", "of/its/own"} {
				event("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%q}\n\n", i, method)
				await(len(before) + i + 1)
			}
			event("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n\n", requestOf(r).ID)
		},
		"": func(w http.ResponseWriter, r *http.Request) { // the answers of the client
			if strings.Contains(r.Header.Get("X-Test-Body"), `"id":1,`) {
				<-over
			}
			w.WriteHeader(http.StatusInternalServerError)
		},
	})
	t.Cleanup(func() { close(over) }) // before the server is closed, which waits for its handlers
	c := s.mustOpen(t, nil)
	if r := c.Call(tool.WithApproval(t.Context(), "the-approval"), "weather", "{}"); r.Text != fine {
		t.Error(r.Text)
	}
	_, got := s.did("")
	none := func(i int) string {
		return fmt.Sprintf(`the-session {"error":{"code":-32601,"message":"method not found"},"id":%d,"jsonrpc":"2.0"}`, i)
	}
	early := `the-session {"id":"early","jsonrpc":"2.0","result":{}}`
	want := []string{early, early, `the-session {"id":0,"jsonrpc":"2.0","result":{}}`, none(1), none(2), none(3), none(4)}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("answered\n%s", strings.Join(got, "\n"))
	}
	if keys := strings.Join(s.keys, ", "); keys != "tools/call the-approval" {
		t.Errorf("messages with the approval: %s", keys)
	}
}

// TestForgottenSession: a call whose session the server forgot is made in another one, once.
func TestForgottenSession(t *testing.T) {
	for name, forgets := range map[string]func(w http.ResponseWriter){
		"no text": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"text":    func(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) },
		"message": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		},
	} {
		for _, at := range []string{"notifications/initialized", "tools/list", methodCall} {
			t.Run(name+" at "+at, func(t *testing.T) {
				var s *stranger
				forgotten := ""
				s = newStranger(t, map[string]http.HandlerFunc{at: func(w http.ResponseWriter, r *http.Request) {
					if id := r.Header.Get(headerSession); forgotten == "all" || id == forgotten {
						forgets(w)
						return
					}
					s.answer(w, requestOf(r))
				}})
				c := s.mustOpen(t, nil)
				forgotten = "s-2"
				if r := c.Call(t.Context(), "weather", "{}"); r.Text != fine {
					t.Error(r.Text)
				}
				if n, _ := s.did("initialize"); n != 3 {
					t.Errorf("%d sessions", n)
				}
				forgotten = "all"
				if r := c.Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, "answered with status 404") || r.ErrorType != tool.TypeUnavailable {
					t.Error(r.Text)
				}
				if n, _ := s.did("initialize"); n != 5 {
					t.Errorf("%d sessions", n)
				}
			})
		}
	}
}

// TestDiscovery: a server that gives no usable answer to the first request of the newest version is spoken to as earlier versions
// do, and is not asked again in the next session.
func TestDiscovery(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	as := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, discover := range map[string]http.HandlerFunc{
		"silent":        silent,
		"silent stream": func(w http.ResponseWriter, r *http.Request) { events(w)(": wait\n\n"); silent(w, r) },
		"stream that is kept alive for ever": func(w http.ResponseWriter, r *http.Request) {
			events(w)("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
			silent(w, r)
		},
		"accepted":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"no content":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"nothing":          as("application/json", ""),
		"page":             as("text/html", "<html>"),
		"null":             as("application/json", "null"),
		"other shape":      as("application/json", `{"jsonrpc":"2.0","id":1,"result":"yes"}`),
		"empty result":     as("application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`),
		"other id":         as("application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`),
		"error without id": as("application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown"}}`),
		"error of a shape": as("application/json", `{"error":"unknown method"}`),
		"stream that ends": as("text/event-stream", ": nothing\n\n"),
		"broken off":       func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"server error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(time.Unix(1000, 0))
			s := newStranger(t, map[string]http.HandlerFunc{methodDiscover: discover})
			type made struct {
				c   *tool.Catalogue
				err error
			}
			opened := make(chan made, 1)
			go func() { c, err := s.open(t, now); opened <- made{c, err} }()
			if strings.Contains(name, "silent") || strings.Contains(name, "for ever") {
				kit.Await(t, "the first request", func() bool { n, _ := s.did(methodDiscover); return n == 1 && now.HasWaiters() })
				now.Step(maxDiscoveryTime - 1)
				if n, _ := s.did("initialize"); n != 0 {
					t.Error("the server was not waited for")
				}
				now.Step(1)
			}
			o := <-opened
			if o.err != nil {
				t.Fatal(o.err)
			}
			if r := o.c.Call(t.Context(), "weather", "{}"); r.Text != fine {
				t.Error(r.Text)
			}
			if n, _ := s.did(methodDiscover); n != 1 {
				t.Errorf("asked for the newest version %d times", n)
			}
		})
	}
}

// TestDiscoveryAgain: a server that no longer takes sessions of an earlier version is asked for the newest one again.
func TestDiscoveryAgain(t *testing.T) {
	newest := false
	s := newStranger(t, map[string]http.HandlerFunc{})
	s.on["initialize"] = func(w http.ResponseWriter, r *http.Request) {
		if newest {
			http.Error(w, "no sessions here", http.StatusBadRequest)
			return
		}
		s.answer(w, requestOf(r))
	}
	s.on[methodDiscover] = func(w http.ResponseWriter, r *http.Request) {
		if newest {
			answer(w, requestOf(r), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			return
		}
		s.answer(w, requestOf(r))
	}
	c := s.mustOpen(t, nil)
	newest = true
	if r := c.Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, "status 400: no sessions here") {
		t.Error(r.Text)
	}
	if r := c.Call(t.Context(), "weather", "{}"); r.Text != fine {
		t.Error(r.Text)
	}
}

// TestResumption: an answer whose stream ends after an event with an id is asked for again. Where that is not possible, whether the
// call was carried out is unknown.
func TestResumption(t *testing.T) {
	aborted := func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	for name, tc := range map[string]struct {
		call, get http.HandlerFunc
		want      string
		gets      int
		waits     string
	}{
		"ends":                   {call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\ndata:\n\n") }, want: fine, gets: 1, waits: "[1s]"},
		"ends after an id alone": {call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\n\n") }, want: fine, gets: 1, waits: "[1s]"},
		"asks for patience":      {call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\nretry: 7000\ndata:\n\n") }, want: fine, gets: 1, waits: "[7s]"},
		"breaks off": {call: func(w http.ResponseWriter, r *http.Request) {
			events(w)("id: a-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\nid: a-2\ndata: {\"json")
			aborted(w, r)
		}, want: fine, gets: 1, waits: "[1s]"},
		"ends in an event": {call: func(w http.ResponseWriter, _ *http.Request) {
			events(w)("id: a-1\ndata:\n\nid: a-2\ndata: {\"json")
		}, want: fine, gets: 1, waits: "[1s]"},
		"ends in an id": {call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\ndata:\n\nid: a-") }, want: fine, gets: 1, waits: "[1s]"},
		"ends without an empty line": {call: func(w http.ResponseWriter, r *http.Request) {
			events(w)("id: a-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}", requestOf(r).ID)
		}, want: fine, waits: "[]"},
		"without ids":             {call: func(w http.ResponseWriter, _ *http.Request) { events(w)("data:\n\n") }, want: "whether it was carried out is unknown: the answer did not arrive: the stream ended without response", waits: "[]"},
		"without ids, broken off": {call: func(w http.ResponseWriter, r *http.Request) { events(w)("data: {"); aborted(w, r) }, want: "whether it was carried out is unknown: the answer did not arrive: unexpected EOF", waits: "[]"},
		"JSON, broken off": {call: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":`)
			_ = http.NewResponseController(w).Flush()
			aborted(w, r)
		}, want: "whether it was carried out is unknown: the answer did not arrive: unexpected EOF", waits: "[]"},
		"JSON, cut": {call: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":3,"resu`)
		}, want: "whether it was carried out is unknown: the answer did not arrive: it answered with status 200 and, as", waits: "[]"},
		"accepted only": {call: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, want: "whether it was carried out is unknown", waits: "[]"},
		"not resumable": {
			call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\ndata:\n\n") },
			get:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
			want: "is unknown: the answer did not arrive: the stream ended without response, and is not resumed: status 405", gets: 1, waits: "[1s]",
		},
		"fails for long": {
			call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\ndata:\n\n") },
			get:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			want: "whether it was carried out is unknown", gets: 5, waits: "[1s 1s 1s 1s 1s]",
		},
		"no progress": {
			call: func(w http.ResponseWriter, _ *http.Request) { events(w)("id: a-1\ndata:\n\n") },
			get:  func(w http.ResponseWriter, _ *http.Request) { events(w)(": nothing\n\n") },
			want: "whether it was carried out is unknown", gets: 5, waits: "[1s 1s 1s 1s 1s]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s *stranger
			var id json.RawMessage
			var resumed []string
			s = newStranger(t, map[string]http.HandlerFunc{
				methodCall: func(w http.ResponseWriter, r *http.Request) { id = requestOf(r).ID; tc.call(w, r) },
				http.MethodGet: func(w http.ResponseWriter, r *http.Request) {
					resumed = append(resumed, fmt.Sprint(r.Header.Get("Last-Event-ID"), r.Header.Get(headerSession), r.Header.Get(headerVersion), r.Header.Get("Authorization"), r.Header.Get("Accept")))
					if tc.get != nil {
						tc.get(w, r)
						return
					}
					events(w)("id: a-9\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n\n", id)
				},
			})
			now := quickclock.New()
			r := s.mustOpen(t, now).Call(t.Context(), "weather", "{}")
			if !strings.Contains(r.Text, tc.want) || (tc.want == fine) == (r.ErrorType == tool.TypeOutcomeUnknown) {
				t.Error(r.Text)
			}
			if n, _ := s.did(methodCall); n != 1 {
				t.Errorf("called %d times", n)
			}
			if got := fmt.Sprint(now.Waits()); got != tc.waits {
				t.Errorf("waited %s", got)
			}
			if len(resumed) != tc.gets {
				t.Errorf("resumed %d times", len(resumed))
			}
			for _, got := range resumed {
				if want := fmt.Sprint("a-1", "s-2", "2025-06-18", "Bearer "+credential, "text/event-stream"); got != want {
					t.Errorf("resumed with %s", got)
				}
			}
		})
	}
}

// TestPolling: a server may end the stream again and again, as long as each has a new event.
func TestPolling(t *testing.T) {
	var s *stranger
	var id json.RawMessage
	s = newStranger(t, map[string]http.HandlerFunc{
		methodCall: func(w http.ResponseWriter, r *http.Request) {
			id = requestOf(r).ID
			events(w)("id: 0\nretry: 2000\ndata:\n\n")
		},
		http.MethodGet: func(w http.ResponseWriter, r *http.Request) {
			if n, _ := s.did(http.MethodGet); n < 12 {
				events(w)("id: %d\ndata:\n\n", n)
				return
			}
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"after %s\"}]}}\n\n", id, r.Header.Get("Last-Event-ID"))
		},
	})
	if r := s.mustOpen(t, quickclock.New()).Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, `"text":"after 11"`) {
		t.Error(r.Text)
	}
}

// TestLeftOut: what is text reaches the model, with a word on what is not.
func TestLeftOut(t *testing.T) {
	const image, link = `{"type":"image","data":"eA==","mimeType":"image/png"}`, `{"type":"resource_link","uri":"file:///etc/passwd","name":"x"}`
	const resource = `{"type":"resource","resource":{"uri":"a://b","text":"inside"}}`
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"a map"},` + image + `]}`:                                                     `{"success":true,"data":{"text":"a map","leftOut":"1 image; only text and structured content can be shown"}}`,
		`{"content":[` + link + `,{"type":"text","text":"a"},` + resource + `,{"type":"text","text":"b"},` + link + `]}`: `{"success":true,"data":{"text":"a\nb","leftOut":"2 resource links, 1 embedded resource; only text and structured content can be shown"}}`,
		`{"content":[{"type":"audio","data":"%%%"},{"type":"text","text":"a"},{"type":"x-own","b":1},null,7]}`:           `{"success":true,"data":{"text":"a","leftOut":"1 audio recording, 3 parts of another kind; only text and structured content can be shown"}}`,
		`{"content":[` + image + `],"structuredContent":{"n":1}}`:                                                        `{"success":true,"data":{"structured":{"n":1},"leftOut":"1 image; only text and structured content can be shown"}}`,
		`{"content":[` + image + `]}`:                  `weather was called, but its result cannot be shown: it is 1 image, and only text and structured content can be shown`,
		`{"content":"text"}`:                           `weather was called, but its result cannot be shown: its content is no list`,
		`{"content":[]}`:                               `{"success":true,"data":{}}`,
		`{"content":null,"structuredContent":{"n":1}}`: `{"success":true,"data":{"structured":{"n":1}}}`,
		`{"isError":true,"content":[{"type":"text","text":"no such city"},` + image + `]}`: `weather reports that the call failed: no such city (left out: 1 image)`,
		`{"isError":true,"content":[` + image + `]}`:                                       `weather reports that the call failed: (left out: 1 image)`,
		`{"isError":true,"content":[],"structuredContent":{"code":7}}`:                     `weather reports that the call failed: {\"code\":7}`,
		`{"isError":true}`: `weather reports that the call failed"`,
	} {
		s := newStranger(t, map[string]http.HandlerFunc{methodCall: func(w http.ResponseWriter, r *http.Request) { answer(w, requestOf(r), result) }})
		if r := s.mustOpen(t, nil).Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", result, r.Text)
		}
	}
}

// TestMannersOfServers: answers that differ from the protocol in what does not matter are read, and errors keep their text.
func TestMannersOfServers(t *testing.T) {
	as := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", string(requestOf(r).ID)))
		}
	}
	const result = `"result":{"content":[{"type":"text","text":"fine"}]}`
	wide := func(s string) string { // UTF-16
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteByte(c)
			b.WriteByte(0)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		call http.HandlerFunc
		want string
	}{
		"byte order mark":             {as(200, "application/json", "\ufeff"+`{"jsonrpc":"2.0","id":ID,`+result+`}`), fine},
		"byte order mark of a stream": {as(200, "text/event-stream", "\ufeff"+`data: {"jsonrpc":"2.0","id":ID,`+result+"}\n\n"), fine},
		"line ends of a Mac":          {as(200, "text/event-stream; charset=utf-8", `data: {"jsonrpc":"2.0","id":ID,`+result+"}\r\r"), fine},
		"charset":                     {as(200, "application/json; charset=iso-8859-1", `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"f`+"\xfc"+`r"}]}}`), `"text":"für"`},
		"wide":                        {as(200, "application/json; charset=utf-16le", wide(`{"jsonrpc":"2.0","id":3,`+result+`}`)), fine},
		"text as id":                  {as(200, "application/json", `{"jsonrpc":"2.0","id":"ID",`+result+`}`), fine},
		"no version":                  {as(200, "application/json", `{"id":ID,"error":null,`+result+`}`), fine},
		"list of messages":            {as(200, "application/json", `[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":ID,`+result+`}]`), fine},
		"answer to another request":   {as(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n"+`data: {"jsonrpc":"2.0","id":ID,`+result+"}\n\n"), fine},
		"created":                     {as(201, "text/plain", `{"jsonrpc":"2.0","id":ID,`+result+`}`), fine},
		"error without id":            {as(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such city"}}`), "answered with an error: no such city"},
		"error with details":          {as(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"invalid","data":{"city":"unknown"}}}`), `answered with an error: invalid: {\"city\":\"unknown\"}`},
		"error of another shape":      {as(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":"no such city"}`), "answered with an error: no such city"},
		"status and message":          {as(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such city"}}`), "answered with status 400: no such city"},
		"status and object":           {as(429, "application/json", `{"message":"slow down, `+credential+`"}`), `answered with status 429: {\"message\":\"slow down, [REDACTED]\"}`},
		"status and text":             {as(403, "text/plain; charset=iso-8859-1", "f\xfcr dich nicht"), "answered with status 403: für dich nicht"},
		"status and page":             {as(502, "text/html", "<html>nginx</html>"), `answered with status 502"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t, map[string]http.HandlerFunc{methodCall: tc.call})
			if r := s.mustOpen(t, nil).Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, tc.want) {
				t.Error(r.Text)
			}
		})
	}
}

// TestOtherToolsOfTheServer: a tool can be used whatever the server says about it and about others.
func TestOtherToolsOfTheServer(t *testing.T) {
	s := newStranger(t, map[string]http.HandlerFunc{"tools/list": func(w http.ResponseWriter, r *http.Request) {
		answer(w, requestOf(r), `{"tools":[null,{"name":"other","annotations":"none","inputSchema":7,"icons":{}},`+
			`{"name":"weather","title":7,"annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"},"outputSchema":[],"_meta":[]}]}`)
	}})
	if r := s.mustOpen(t, nil).Call(t.Context(), "weather", "{}"); r.Text != fine {
		t.Error(r.Text)
	}
}

// TestRepeatedCredential: a server that repeats the credential does not show it to the model, wherever and however it writes it.
func TestRepeatedCredential(t *testing.T) {
	const odd = `k/0"1&2<3\4é-long`
	var answered http.HandlerFunc
	s := newStranger(t, map[string]http.HandlerFunc{methodCall: func(w http.ResponseWriter, r *http.Request) { answered(w, r) }})
	sp := spec(s.URL, "")
	sp.HTTP = &v1alpha1.ToolHTTP{Timeout: v1alpha1.DurationOf(maxTimeout), AuthSecretRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}
	tl, err := Open(t.Context(), "weather", sp, Options{Guard: allowed(s.URL), Credential: odd})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tool.NewCatalogue(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, written := range []string{`k\/0\"1\u00262\u003c3\\4\u00e9-long`, `k/0\"1&2<3\\4é-long`, `{\"key\":\"k\\/0\\\"1\\u00262<3\\\\4é-long\"}`, `k%2F0%221%262%3C3%5C4%C3%A9-long`} {
		for name, body := range map[string]string{
			"text":       `"result":{"content":[{"type":"text","text":"you sent W"}]}`,
			"structured": `"result":{"content":[],"structuredContent":{"you":"W","W":12345678901234567}}`,
			"failure":    `"result":{"isError":true,"content":[{"type":"text","text":"you sent W"}]}`,
			"details":    `"result":{"isError":true,"structuredContent":{"you":"W"}}`,
			"error":      `"error":{"code":-1,"message":"you sent W","data":{"you":"W"}}`,
		} {
			for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
				answered = func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, requestOf(r).ID, strings.ReplaceAll(body, "W", written))
				}
				r := c.Call(t.Context(), "weather", "{}")
				shown := status == http.StatusOK || name == "error" // a result with such a status is none
				if strings.Contains(r.Text, "[REDACTED]") != shown || strings.Contains(r.Text, "0026") || strings.Contains(r.Text, "4é") || strings.Contains(r.Text, "4%C3") || strings.Contains(r.Text, "00e9") {
					t.Errorf("%s %d %s: %s", name, status, written, r.Text)
				}
			}
		}
	}
}
