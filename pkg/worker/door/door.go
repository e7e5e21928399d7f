// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package door gives the coding agent of a run its models, and the platform's tools: an HTTP listener on the loopback interface with the APIs of both vendors,
// which passes each request on to the API server, as the run. The server chooses the model, has the vendor's key, applies limits and
// budgets, and records what is used (package server/compat), so that neither the agent nor this process knows a key, and what an agent
// uses does not depend on what it says.
//
// Programs of other runs share the loopback interface, so the door demands a key of its own, which only the agent's environment has. It
// opens nothing but this run's models and tools, while the run lasts.
//
// While the server is away, or a rate limit applies, a request waits, because agents give up after a few attempts of their own. One
// that may have reached a vendor is not sent again: that is the agent's to decide, and both are counted. The run is told of a refusal
// that no waiting changes, such as a budget that is spent.
package door

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/loopback"
)

const (
	// maxBody is the maximum size of a request, in bytes. It is that of the server.
	maxBody = 15 << 20
	// maxHeld is how many requests are held at a time until the server has them. Others wait.
	maxHeld = 16
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 5 * time.Minute
)

// ToolsPath is the path of the platform's tools.
const ToolsPath = "/mcp"

// Options are what a door needs. All fields but Tools are required.
type Options struct {
	API  *client.API
	Task *v1alpha1.Task
	// MaxRequests is how many requests may be answered; 0 for any number.
	MaxRequests int
	// Ended is called when no model will answer the agent any more, with the reason of the run's end. It is called at most once.
	Ended func(reason, message string)
	// Tools serves the platform's tools to the agent; nil if it has none.
	Tools http.Handler
}

// Door is an open door. Its methods may be called concurrently.
type Door struct {
	*loopback.Server
	o    Options
	key  string
	held chan struct{}
	// asked counts the requests that were answered, or may be.
	asked atomic.Int64
	over  sync.Once
}

// Open opens a door.
func Open(o Options) (*Door, error) {
	d := &Door{o: o, key: "sk-run-" + rand.Text(), held: make(chan struct{}, maxHeld)} // a form that package redact knows
	mux := http.NewServeMux()
	mux.HandleFunc("/openai/v1/", d.models)
	mux.HandleFunc("/anthropic/v1/", d.models)
	if o.Tools != nil {
		mux.Handle(ToolsPath, o.Tools)
	}
	var err error
	if d.Server, err = loopback.Serve(d.guarded(mux), idleTimeout); err != nil {
		return nil, fmt.Errorf("the door of the run: %w", err)
	}
	return d, nil
}

// Key returns what opens the door.
func (d *Door) Key() string { return d.key }

// URL returns the address of a path.
func (d *Door) URL(path string) string {
	return "http://127.0.0.1:" + strconv.Itoa(int(d.Port())) + path
}

// guarded refuses requests without the key, and those that a page in a browser could send.
func (d *Door) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("X-Api-Key")
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			given = bearer
		}
		if subtle.ConstantTimeCompare([]byte(given), []byte(d.key)) != 1 || r.Header.Get("Origin") != "" {
			refuse(w, r, http.StatusUnauthorized, "authentication_error", "this door is for the coding agent of one run, whose environment has its key")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// models passes a request on.
func (d *Door) models(w http.ResponseWriter, r *http.Request) {
	if path.Clean(r.URL.Path) != r.URL.Path { // what is between here and the server could make another path of it
		refuse(w, r, http.StatusNotFound, "not_found_error", "unknown path")
		return
	}
	counts := r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/count_tokens")
	if counts && !d.turn(w, r) {
		return
	}
	answer := d.passOn(w, r)
	if counts && (answer == nil || !wire.IsSuccess(answer.StatusCode)) {
		d.asked.Add(-1)
	}
	if answer == nil {
		return
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or is of no use
	if reason := answer.Header.Get(runspec.HeaderReason); answer.StatusCode == http.StatusForbidden && reason != "" {
		d.refused(w, answer, reason)
		return
	}
	head(w, answer)
	flush := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			if _, gone := w.Write(buf[:n]); gone != nil || flush.Flush() != nil {
				return // the agent has left; the server learns it by the end of this request
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the agent must see that the answer broke off
		}
	}
}

// turn counts a request that a model may answer. If that would be one too many, it refuses it, and ends the run.
func (d *Door) turn(w http.ResponseWriter, r *http.Request) bool {
	most := int64(d.o.MaxRequests)
	if n := d.asked.Add(1); most == 0 || n <= most {
		return true
	}
	d.asked.Add(-1)
	message := fmt.Sprintf("the coding agent asked its model %d times, which is as often as it may (maxTurns)", most)
	d.end(v1alpha1.ReasonAgentLimitReached, message)
	refuse(w, r, http.StatusForbidden, "permission_error", message)
	return false
}

// passOn reads a request and sends it. If there is no answer, it has told the agent so.
func (d *Door) passOn(w http.ResponseWriter, r *http.Request) *http.Response {
	select {
	case d.held <- struct{}{}:
	case <-r.Context().Done():
		return nil
	}
	defer func() { <-d.held }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		code := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			code = http.StatusRequestEntityTooLarge
		}
		refuse(w, r, code, "invalid_request_error", fmt.Sprintf("the body could not be read: %v", err))
		return nil
	}
	answer, err := d.send(r, body)
	if err != nil {
		refuse(w, r, http.StatusBadGateway, "api_error", "the model request could not be passed on: "+err.Error())
		return nil
	}
	return answer
}

// refused passes on a refusal that no waiting changes.
func (d *Door) refused(w http.ResponseWriter, answer *http.Response, reason string) {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, wire.MaxErrorBody)) // what there is of it
	d.end(reason, messageOf(answer.StatusCode, text))
	answer.Header.Del("Content-Length")
	head(w, answer)
	_, _ = w.Write(text) // the agent may be gone
}

func (d *Door) end(reason, message string) {
	d.over.Do(func() { d.o.Ended(reason, message) })
}

// head sends the begin of an answer.
func head(w http.ResponseWriter, answer *http.Response) {
	for name, values := range answer.Header {
		switch name {
		case "Connection", "Transfer-Encoding", "Date", "Audit-Id": // of the connection to the server
		default:
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
}

// passed are the members of a header that are the vendor's business.
var passed = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Idempotency-Key"}

// send sends a request until the server has it, and no rate limit applies.
func (d *Door) send(r *http.Request, body []byte) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.Header = http.Header{}
	for _, name := range passed {
		if v := r.Header[name]; len(v) > 0 {
			sent.Header[name] = v
		}
	}
	return d.o.API.Relay(r.Context(), d.o.Task, sent, body, func(answer *http.Response, err error) bool {
		switch {
		case err != nil:
			return wire.Unsent(err)
		case answer.StatusCode == http.StatusUnauthorized: // the server does not know the worker's token yet
			return true
		}
		return answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get(runspec.HeaderReason) == v1alpha1.ReasonRateLimited
	})
}

// Models returns the names of the run's models, first the one that is asked first. The error says why there is none.
func (d *Door) Models(ctx context.Context) ([]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/openai/v1/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := d.send(r, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxList))
	if err != nil {
		return nil, err
	}
	if !wire.IsSuccess(answer.StatusCode) {
		return nil, errors.New(messageOf(answer.StatusCode, text))
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the list of models: %w", err)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// messageOf returns what an error says, in the form of either vendor.
func messageOf(code int, text []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &e) != nil || e.Error.Message == "" {
		return fmt.Sprintf("the server answered %d %s", code, http.StatusText(code))
	}
	return e.Error.Message
}

// maxList bounds a list of models, in bytes.
const maxList = 1 << 20

// failure is an error in the form of either vendor.
type failure struct {
	Type  string `json:"type,omitempty"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// refuse answers with an error in the form of the vendor whose path was called.
func refuse(w http.ResponseWriter, r *http.Request, code int, kind, message string) {
	var body failure
	body.Error.Type, body.Error.Message = kind, message
	if strings.HasPrefix(r.URL.Path, "/anthropic/") {
		body.Type = "error"
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte("{}") // texts can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the agent may be gone
}
