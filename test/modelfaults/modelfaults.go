// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelfaults serves the ways in which a model vendor, or what stands between it and its client, fails: the
// same list for each protocol. The bytes of each answer are in testdata, as they are on the wire.
package modelfaults

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"
	"time"
)

// Key is the API key that a client must use. Many of the answers repeat it, so that a test sees whether a text hides it.
const Key = "sk-fault-0123456789abcdef"

// Protocols are the folders of testdata.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// Fine is the answer without a fault. Its text is FineText.
const (
	Fine     = "fine"
	FineText = "All is well."
)

// then is what follows the recorded bytes.
type then int

const (
	end    then = iota // the body ends
	drop               // the connection ends, and the body does not
	hold               // nothing follows until the client leaves
	repeat             // the last event or line follows again and again until the client leaves
)

// Row is one way to fail.
type Row struct {
	// Name is that of the files in testdata.
	Name string
	then then
}

// Ends reports whether the server ends the answer.
func (r Row) Ends() bool { return r.then == end || r.then == drop }

// Patience is the time after which a client gives up an answer that ends with that only: nothing arrives for 5 minutes,
// or events without content for 10. It is 0 for all other rows. A test ends this time of its clients early.
func (r Row) Patience() time.Duration {
	switch {
	case r.Name == "endless-nothing":
		return 10 * time.Minute
	case r.then == hold, r.Name == "endless-pings":
		return 5 * time.Minute
	}
	return 0
}

// Rows returns all of them.
func Rows() []Row {
	return []Row{
		{Name: "key-refused"},
		{Name: "forbidden"},
		{Name: "unknown-model"},
		{Name: "bad-request"},
		{Name: "context-too-long"},
		{Name: "no-credit"},
		{Name: "rate-limited-seconds"},
		{Name: "rate-limited-date"},
		{Name: "rate-limited-for-an-hour"},
		{Name: "server-error"},
		{Name: "unavailable"},
		{Name: "overloaded"},
		{Name: "page-forbidden"},
		{Name: "page-bad-gateway"},
		{Name: "page-endless", then: repeat},
		{Name: "page-login"},
		{Name: "wrong-content-type"},
		{Name: "empty-stream"},
		{Name: "no-choices"},
		{Name: "not-json"},
		{Name: "error-in-stream"},
		{Name: "cut-in-text"},
		{Name: "dropped-in-text", then: drop},
		{Name: "cut-in-call"},
		{Name: "silent", then: hold},
		{Name: "endless-pings", then: repeat},
		{Name: "endless-nothing", then: repeat},
		{Name: "endless-text", then: repeat},
		{Name: "bad-arguments"},
		{Name: "unknown-tool"},
		{Name: "empty-answer"},
		{Name: "no-usage"},
	}
}

//go:embed testdata
var files embed.FS

// Server answers the first requests with a fault and all others without one.
type Server struct {
	*httptest.Server
	protocol string
	row      Row
	faults   int64
	asked    atomic.Int64
}

// Serve starts a server. The first n requests meet the fault.
func Serve(t testing.TB, protocol string, row Row, n int) *Server {
	t.Helper()
	s := &Server{protocol: protocol, row: row, faults: int64(n)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Asked returns the number of requests so far.
func (s *Server) Asked() int { return int(s.asked.Load()) }

// Events returns the number of events that a client sees of an answer with the fault before it goes on for ever. Clients do not see pings.
func (s *Server) Events() int {
	_, _, body, err := recorded(s.protocol, s.row.Name)
	if err != nil {
		panic(err)
	}
	return bytes.Count(body, []byte("data:")) - bytes.Count(body, []byte(`data: {"type": "ping"}`))
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client leave
	row := s.row
	if s.asked.Add(1) > s.faults {
		row = Row{Name: Fine}
	}
	status, head, body, err := recorded(s.protocol, row.Name)
	if err != nil {
		panic(err)
	}
	maps.Copy(w.Header(), head)
	w.WriteHeader(status)
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).Flush()
	switch row.then {
	case end:
	case drop:
		panic(http.ErrAbortHandler)
	case hold:
		<-r.Context().Done()
	case repeat:
		for piece := lastOf(body); r.Context().Err() == nil; {
			if _, err := w.Write(piece); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// lastOf returns the last event of a stream, or the last line of anything else.
func lastOf(body []byte) []byte {
	for _, between := range []string{"\n\n", "\n"} {
		trimmed := bytes.TrimSuffix(body, []byte(between))
		if len(trimmed) < len(body) {
			if i := bytes.LastIndex(trimmed, []byte(between)); i >= 0 {
				return body[i+len(between):]
			}
			return body
		}
	}
	return body
}

// recorded returns the answer of a file. Lines of the head end with a line feed there.
func recorded(protocol, name string) (status int, head http.Header, body []byte, err error) {
	raw, err := files.ReadFile(path.Join("testdata", protocol, name+".http"))
	if err != nil {
		return 0, nil, nil, err
	}
	first, body, ok := bytes.Cut(raw, []byte("\n\n"))
	if !ok {
		return 0, nil, nil, fmt.Errorf("%s: there is no empty line after the head", name)
	}
	first = append(bytes.ReplaceAll(first, []byte("\n"), []byte("\r\n")), "\r\n\r\n"...)
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(first)), nil)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return res.StatusCode, res.Header, body, res.Body.Close()
}
