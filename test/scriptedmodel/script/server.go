// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/clock"
)

// maxBody bounds a request, as vendors do.
const maxBody = 16 << 20

// Server answers from a script. Its zero value is not usable; see New.
type Server struct {
	script *Script
	log    io.Writer
	clock  clock.Clock
	mux    *http.ServeMux

	// mu guards the fields below, and keeps log lines whole.
	mu       sync.Mutex
	used     []int
	requests []Exchange
	// issued are the thinking blocks that were sent.
	issued map[Thinking]bool
}

// Exchange is a request that arrived and its outcome.
type Exchange struct {
	Request Request
	// Turn is the name of the turn that answered, empty when refused.
	Turn string
	// Refused is why no turn answered.
	Refused string
}

// New returns a server for a script. Each request is logged to log as one line.
func New(s *Script, log io.Writer) *Server {
	srv := &Server{script: s, log: log, clock: clock.RealClock{}, mux: http.NewServeMux(), used: make([]int, len(s.Turns)), issued: map[Thinking]bool{}}
	srv.mux.HandleFunc("POST /v1/chat/completions", srv.complete(openAI{}, parseRequest))
	srv.mux.HandleFunc("POST /openai/deployments/{deployment}/chat/completions", srv.complete(openAI{}, parseRequest))
	srv.mux.HandleFunc("POST /v1/messages", srv.complete(anthropic{}, srv.parseMessages))
	srv.mux.HandleFunc("POST /v1/messages/count_tokens", srv.count)
	srv.mux.HandleFunc("POST /v1/responses", srv.complete(responses{}, parseResponses))
	srv.mux.HandleFunc("GET /v1/models", srv.models)
	srv.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		srv.refuse(w, Request{}, http.StatusNotFound, "not_found", "no such route: "+r.Method+" "+r.URL.Path)
	})
	return srv
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Exchanges returns the requests so far, in order.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Refused returns the reasons of all requests that the script did not foresee
// or that broke the protocol. A test that ends should find none.
func (s *Server) Refused() []string {
	var out []string
	for _, e := range s.Exchanges() {
		if e.Refused != "" {
			out = append(out, e.Refused)
		}
	}
	return out
}

// complete returns the handler of a protocol, whose requests parse decodes and checks.
func (s *Server) complete(p protocol, parse func(*http.Request, []byte) (*Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.authorized(r) {
			s.refuse(w, Request{protocol: p}, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+presented(r))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			s.refuse(w, Request{protocol: p}, http.StatusRequestEntityTooLarge, "too_large", err.Error())
			return
		}
		req, err := parse(r, body)
		if err != nil {
			s.refuse(w, Request{protocol: p, Body: body}, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		req.protocol, req.Body = p, body
		if len(s.script.Models) > 0 && !slices.Contains(s.script.Models, req.Model) {
			s.refuse(w, *req, http.StatusNotFound, "model_not_found", fmt.Sprintf("the model %q does not exist", req.Model))
			return
		}
		turn := s.choose(req)
		if turn == nil {
			last := req.Messages[len(req.Messages)-1]
			s.refuse(w, *req, http.StatusInternalServerError, "not_scripted", fmt.Sprintf(
				"the script has no answer number %d for a %s message: %.200q", req.Turn(), last.Role, last.Text()))
			return
		}
		s.answer(w, r, req, turn)
	}
}

// choose finds the turn for a request, uses it up and logs it.
func (s *Server) choose(r *Request) *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.script.Turns {
		t := &s.script.Turns[i]
		if t.Times > 0 && s.used[i] >= t.Times || !t.Match.matches(r) {
			continue
		}
		s.used[i]++
		s.requests = append(s.requests, Exchange{Request: *r, Turn: t.Name})
		_, _ = fmt.Fprintf(s.log, "request %d: model %s, %d messages, %d tools -> %s\n",
			len(s.requests), r.Model, len(r.Messages), len(r.Tools), t.Name)
		return t
	}
	return nil
}

func (s *Server) refuse(w http.ResponseWriter, r Request, status int, code, message string) {
	s.mu.Lock()
	s.requests = append(s.requests, Exchange{Request: r, Refused: message})
	_, _ = fmt.Fprintf(s.log, "request %d: REFUSED with %d: %s\n", len(s.requests), status, message)
	s.mu.Unlock()
	p := r.protocol
	if p == nil {
		p = openAI{}
	}
	writeError(w, &Fault{Status: status, Code: code, Message: message}, p)
}

func (s *Server) authorized(r *http.Request) bool {
	key := presented(r)
	return key != "" && (s.script.APIKey == "" || key == s.script.APIKey)
}

func presented(r *http.Request) string {
	switch {
	case strings.HasPrefix(r.URL.Path, "/openai/deployments/"):
		return r.Header.Get("Api-Key")
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		return r.Header.Get("X-Api-Key")
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

// count says how many tokens a request of the Messages protocol has: one for each four bytes.
func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		s.refuse(w, Request{protocol: anthropic{}}, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || !json.Valid(body) {
		s.refuse(w, Request{protocol: anthropic{}, Body: body}, http.StatusBadRequest, "invalid_request_error", "the body must be JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"input_tokens":%d}`, len(body)/4)
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		s.refuse(w, Request{}, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+presented(r))
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, name := range s.script.Models {
		list.Data = append(list.Data, model{ID: name, Object: "model", OwnedBy: "scripted"})
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(list))
}

func writeError(w http.ResponseWriter, f *Fault, p protocol) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(p.errorBody(f))
}
