// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

// request is a message of the client.
type request struct {
	ID     json.RawMessage
	Method string
	Params struct{ Cursor string }
}

// scripted is a server of the newest protocol that answers tools/list and tools/call as the test wants.
func scripted(t *testing.T, list func(w http.ResponseWriter, r request), call func(w http.ResponseWriter, r request)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m request
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		switch m.Method {
		case "server/discover":
			answer(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
		case "tools/list":
			list(w, m)
		case "tools/call":
			call(w, m)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func answer(w http.ResponseWriter, r request, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// offers answers tools/list with a tool of the schema.
func offers(schema string) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, r request) {
		answer(w, r, `{"tools":[{"name":"weather","inputSchema":`+schema+`}]}`)
	}
}

func text(s string) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, r request) {
		answer(w, r, `{"content":[{"type":"text","text":"`+s+`"}]}`)
	}
}

const object = `{"type":"object"}`

// TestScripted shows that the scripted server is a good one, so that what the other tests refuse is what they vary.
func TestScripted(t *testing.T) {
	c := mustOpen(t, scripted(t, offers(object), text("fine")), "")
	if r := c.Call(t.Context(), "weather", "{}"); r.Text != `{"success":true,"data":{"text":"fine"}}` {
		t.Error(r.Text)
	}
}

// TestAddresses: a server cannot be where only the platform's own network is.
func TestAddresses(t *testing.T) {
	inside := scripted(t, offers(object), text("inside"))
	port := inside[strings.LastIndex(inside, ":"):]
	to := func(code int, target string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(code)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	for name, tc := range map[string]struct {
		url   string
		guard egress.Guard
		want  string
	}{
		"loopback":                {inside, egress.Guard{}, "address of the server of weather is not allowed"},
		"name of loopback":        {"http://localhost" + port, egress.Guard{}, "is not allowed"},
		"mapped":                  {"http://[::ffff:127.0.0.1]" + port, egress.Guard{}, "is not allowed"},
		"link-local":              {"http://169.254.1.1/", egress.Guard{}, "is not allowed"},
		"metadata":                {"http://169.254.169.254/", egress.Guard{Private: true}, "is not allowed"},
		"private":                 {"http://10.0.0.1/", egress.Guard{}, "is not allowed"},
		"redirect to another":     {to(307, inside), egress.Guard{}, "redirects to another host"},
		"redirect to metadata":    {to(308, "http://169.254.169.254/"), egress.Guard{}, "redirects to another host"},
		"redirect with a user":    {to(307, "http://u:p@127.0.0.1/"), egress.Guard{}, "redirects to another host"},
		"redirect without a body": {to(302, "/x"), egress.Guard{}, "redirects without the request's body"},
		"redirect for ever":       {to(307, "/x"), egress.Guard{}, "redirects more than 10 times"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "redirect") {
				tc.guard = allowed(tc.url)
			}
			_, err := Open(t.Context(), "weather", spec(tc.url, ""), Options{Guard: tc.guard})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRedirectAtHome: another path of the same server is followed.
func TestRedirectAtHome(t *testing.T) {
	h := handler(docs(citySchema), false)
	url, _ := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp/" {
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
			return
		}
		h.ServeHTTP(w, r)
	}))
	if r := mustOpen(t, url, "").Call(t.Context(), "weather", `{"city":"data"}`); r.Failed() {
		t.Error(r.Text)
	}
}

// endless writes for as long as the client reads.
func endless(w io.Writer, block []byte) {
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// TestHostileAnswers: what a server sends is limited in size, depth and number, whether as JSON or as events.
func TestHostileAnswers(t *testing.T) {
	filler := []byte(strings.Repeat(" ", 64<<10))
	stream := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	page := func(w http.ResponseWriter, r request) {
		answer(w, r, fmt.Sprintf(`{"tools":[{"name":"a%s","inputSchema":{"type":"object"}}],"nextCursor":"%sx"}`, r.Params.Cursor, r.Params.Cursor))
	}
	many := strings.Repeat(`{"name":"a","inputSchema":{"type":"object"}},`, maxNames)
	deep := strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)
	lists := map[string]struct {
		list func(http.ResponseWriter, request)
		want string
	}{
		"endless": {func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, filler)
		}, "more than 2 MiB"},
		"endless line": {func(w http.ResponseWriter, _ request) { stream(w); endless(w, filler) }, "more than 2 MiB"},
		"endless notifications": {func(w http.ResponseWriter, _ request) {
			stream(w)
			endless(w, []byte("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"))
		}, "more than 2 MiB"},
		"endless requests": {func(w http.ResponseWriter, _ request) {
			stream(w)
			endless(w, []byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n"))
		}, "more than 256 requests"},
		"decompression bomb": {func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 10_000 { // 640 MB
				if _, err := z.Write(filler); err != nil {
					return
				}
			}
			_ = z.Close()
		}, "more than 2 MiB"},
		"deep": {func(w http.ResponseWriter, r request) { answer(w, r, `{"tools":`+deep+`}`) }, "nested more than 64 deep"},
		"deep in events": {func(w http.ResponseWriter, r request) {
			stream(w)
			_, _ = fmt.Fprintf(w, ": \"\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\n: \"\ndata: \"result\":%s}\n\n", r.ID, deep)
		}, "nested more than 64 deep"},
		"very deep":      {func(w http.ResponseWriter, r request) { answer(w, r, `{"tools":`+strings.Repeat("[", 1<<20)) }, "cannot be used"},
		"pages for ever": {page, "more than 8 pages"},
		"too many names": {func(w http.ResponseWriter, r request) {
			answer(w, r, `{"tools":[`+many+`{"name":"weather","inputSchema":{}}]}`)
		}, "more than 1024 tools"},
		"two of a name": {func(w http.ResponseWriter, r request) {
			answer(w, r, `{"tools":[{"name":"weather","inputSchema":{}},{"name":"weather","inputSchema":{}}]}`)
		}, "two tools with the name"},
		"null": {func(w http.ResponseWriter, r request) { answer(w, r, `{"tools":[null]}`) }, "does not offer"},
		"no JSON": {func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("<html>"))
		}, "cannot be used"},
		"other type": {func(w http.ResponseWriter, _ request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>"))
		}, "cannot be used"},
		"refused": {func(w http.ResponseWriter, _ request) { w.WriteHeader(http.StatusUnauthorized) }, "answered with status 401"},
		"request instead": {func(w http.ResponseWriter, _ request) {
			stream(w)
			_, _ = w.Write([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\"}\n\n"))
		}, "without response"},
		"error": {func(w http.ResponseWriter, r request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"key %s %s"}}`, r.ID, credential, strings.Repeat("x", 9000))
		}, "answered with an error: key [REDACTED] xxx"},
		"long header": {func(w http.ResponseWriter, _ request) { w.Header().Set("X", strings.Repeat("x", 300<<10)) }, "cannot be reached"},
	}
	for name, tc := range lists {
		t.Run("list "+name, func(t *testing.T) {
			_, err := open(t, scripted(t, tc.list, text("")), "")
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 3000 || strings.Contains(err.Error(), credential) {
				t.Errorf("got %.300v", err)
			}
		})
	}
	calls := map[string]struct {
		call func(http.ResponseWriter, request)
		want string
	}{
		"too large":    {text(strings.Repeat("x", 1<<20)), "larger than 1 MiB"},
		"endless":      {func(w http.ResponseWriter, _ request) { stream(w); endless(w, filler) }, "larger than 1 MiB"},
		"deep":         {func(w http.ResponseWriter, r request) { answer(w, r, `{"content":[],"structuredContent":`+deep+`}`) }, "nested more than 64 deep"},
		"null content": {func(w http.ResponseWriter, r request) { answer(w, r, `{"content":[null]}`) }, "weather"},
		"asks for input": {func(w http.ResponseWriter, r request) {
			answer(w, r, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}}`)
		}, "asks for more input"},
		"not for a model": {func(w http.ResponseWriter, r request) {
			answer(w, r, `{"content":[{"type":"resource_link","uri":"file:///etc/passwd","name":"x"}]}`)
		}, "it is 1 resource link, and only text and structured content"},
	}
	for name, tc := range calls {
		t.Run("call "+name, func(t *testing.T) {
			r := mustOpen(t, scripted(t, offers(object), tc.call), "").Call(t.Context(), "weather", "{}")
			if !r.Failed() || !strings.Contains(r.Text, tc.want) {
				t.Errorf("got %.300s", r.Text)
			}
		})
	}
}

// TestDrip: a server that answers slowly, by the byte, is left when the time is over.
func TestDrip(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	url := scripted(t, offers(object), func(w http.ResponseWriter, _ request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := w.Write([]byte(":")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond): // the drip; whatever its pace, the answer never ends
			}
		}
	})
	tl, err := Open(t.Context(), "weather", spec(url, ""), Options{Guard: allowed(url)})
	if err != nil {
		t.Fatal(err)
	}
	tl.(*remote).server.timeout = 100 * time.Millisecond // of the call alone, which would never end by itself, so that it can be short
	c, err := tool.NewCatalogue(tl)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Call(t.Context(), "weather", "{}"); r.ErrorType != tool.TypeOutcomeUnknown || !strings.Contains(r.Text, "took longer than 100ms") {
		t.Error(r.Text)
	}
}

// TestSchemaBombs: a schema that would take too long, or that reaches for other documents, is refused.
func TestSchemaBombs(t *testing.T) {
	var laughs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&laughs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	for name, tc := range map[string]struct{ schema, want string }{
		"large":            {`{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`, "larger than 65536 bytes"},
		"many values":      {`{"type":"object","enum":[` + strings.Repeat("1,", 10_000) + `1]}`, "at most 5000 values"},
		"deep":             {strings.Repeat(`{"type":"object","not":`, 70) + "{}" + strings.Repeat("}", 70), "nested more than 64 deep"},
		"doubling":         {`{"type":"object","$ref":"#/$defs/a0","$defs":{` + laughs.String() + `"a40":{}}}`, "more than 10000 rules to one value"},
		"endless":          {`{"type":"object","$ref":"#"}`, "leads to itself without an end"},
		"endless by two":   {`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "leads to itself without an end"},
		"another document": {`{"type":"object","$ref":"http://169.254.169.254/"}`, "references to other documents are not allowed"},
		"a file":           {`{"type":"object","$ref":"file:///etc/passwd"}`, "references to other documents are not allowed"},
		"a relative file":  {`{"type":"object","$ref":"../passwd"}`, `failing loading "passwd": references to other documents are not allowed`},
		"dangling":         {`{"type":"object","$ref":"#/type/x"}`, "not found"},
		"base":             {`{"type":"object","properties":{"a":{"$id":"http://x/","$ref":"y"}}}`, "references to other documents are not allowed"},
		"no object":        {`{"type":"array"}`, `"type": "object"`},
		"no schema":        {`"x"`, "not a JSON object"},
		"missing":          {`null`, "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, scripted(t, offers(tc.schema), text("")), "")
			if reason(err) != v1alpha1.ReasonToolInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.300v", err)
			}
		})
	}
	// A schema that uses references without harm is accepted.
	for _, schema := range []string{
		`{"$id":"x","type":"object","properties":{"a":{"$ref":"#/$defs/a~1b"},"b":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#"},"default":{"$ref":"#/properties/a"}}}`,
		`{"type":"object","$defs":{"a":{"$anchor":"a","type":"object","properties":{"b":{"$ref":"#a"}}}},"properties":{"a":{"$ref":"#a"}}}`,
		`{"type":"object","properties":{"a":{"default":{"$ref":"#/nowhere"},"enum":[{"$ref":"http://h/"}],"const":{"$id":"x"},"examples":[{"$ref":"file:///etc/passwd"}]}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!root$)\\w+$"}}}`,
	} {
		mustOpen(t, scripted(t, offers(schema), text("")), "")
	}
}
