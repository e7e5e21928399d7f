// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/harness"
)

// route is what a path names.
type route struct {
	kind string // the path without names, such as prompts/lease
	// session, prompt and item are the names in the path.
	session, prompt, item string
	methods               []string
}

// parse returns the route of a path.
func parse(path string) (route, bool) {
	switch path {
	case harness.PathHealth, harness.PathCapabilities, harness.PathStatus:
		return route{kind: path, methods: []string{http.MethodGet}}, true
	case harness.PathDrain, harness.PathBootstrap:
		return route{kind: path, methods: []string{http.MethodPut}}, true
	}
	rest, ok := strings.CutPrefix(path, "/v2/runtime-sessions/")
	if !ok {
		return route{}, false
	}
	parts := strings.Split(rest, "/")
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	r := route{session: at(0)}
	switch {
	case len(parts) == 1:
		r.kind, r.methods = "session", []string{http.MethodGet, http.MethodPut, http.MethodDelete}
	case len(parts) == 2 && (at(1) == "workspace" || at(1) == "publication-finalization"):
		r.kind, r.methods = at(1), []string{http.MethodPut}
	case len(parts) == 3 && at(1) == "workspace-deltas":
		r.kind, r.item, r.methods = at(1), at(2), []string{http.MethodGet, http.MethodPut}
	case len(parts) == 3 && at(1) == "prompts":
		r.kind, r.prompt, r.methods = at(1), at(2), []string{http.MethodGet, http.MethodPut}
	case len(parts) == 4 && at(1) == "prompts" && (at(3) == "lease" || at(3) == "cancel"):
		r.kind, r.prompt, r.methods = at(3), at(2), []string{http.MethodPut}
	case len(parts) == 5 && at(1) == "prompts" && at(3) == "permissions":
		r.kind, r.prompt, r.item, r.methods = at(3), at(2), at(4), []string{http.MethodPut}
	default:
		return route{}, false
	}
	for _, name := range []string{r.session, r.prompt, r.item} {
		if name != "" && !harness.ValidName(name) {
			return route{}, false
		}
	}
	return r, r.session != ""
}

// ServeHTTP answers a request.
func (r *Runtime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := r.serve(w, req); err != nil {
		r.refuse(w, err)
	}
}

func (r *Runtime) refuse(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*harness.Error](err)
	if !ok {
		refused = harness.Refuse(harness.Unavailable, "the runtime cannot do that now") // the cause may name files of this machine
	}
	if r.broken("token-in-errors") && refused.Reason == harness.NotFound {
		refused.Message += ", said who has " + r.o.Token
	}
	if r.broken("plain-errors") && refused.Reason == harness.NotFound {
		http.Error(w, refused.Message, refused.Code)
		return
	}
	reply(w, refused.Code, map[string]any{"error": refused})
}

func reply(w http.ResponseWriter, code int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		code, raw = http.StatusInternalServerError, []byte("{}")
	}
	replyRaw(w, code, raw)
}

func replyRaw(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", harness.TypeJSON)
	w.WriteHeader(code)
	_, _ = w.Write(raw) // a client that is gone asks again
}

func (r *Runtime) serve(w http.ResponseWriter, req *http.Request) error {
	if err := r.admit(req); err != nil {
		return err
	}
	at, ok := parse(req.URL.Path)
	if !ok {
		return harness.Refuse(harness.NotFound, "there is no such route")
	}
	if !slices.Contains(at.methods, req.Method) {
		return harness.Refuse(harness.MethodNotAllowed, "the route has the methods %s", strings.Join(at.methods, ", "))
	}
	if req.Method != http.MethodGet {
		return r.change(w, req, at)
	}
	return r.look(w, req, at)
}

// admit checks the token.
func (r *Runtime) admit(req *http.Request) error {
	r.mu.Lock()
	want := r.token
	r.mu.Unlock()
	if want == "" { // without credentials yet
		if want = r.o.BootstrapToken; req.URL.Path != harness.PathBootstrap {
			return harness.Refuse(harness.Unavailable, "the runtime has no credentials yet")
		}
	}
	if r.broken("open-status") && req.URL.Path == harness.PathStatus {
		return nil
	}
	got, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	again := req.URL.Path == harness.PathBootstrap && r.o.BootstrapToken != "" && got == r.o.BootstrapToken
	if !ok || subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 && !again && !r.broken("any-token") {
		return harness.Refuse(harness.Unauthenticated, "the controller token is missing or wrong")
	}
	return nil
}

// look answers requests that change nothing.
func (r *Runtime) look(w http.ResponseWriter, req *http.Request, at route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch at.kind {
	case harness.PathHealth:
		reply(w, http.StatusOK, r.health())
		return nil
	case harness.PathCapabilities:
		reply(w, http.StatusOK, r.capabilities())
		return nil
	case harness.PathStatus:
		reply(w, http.StatusOK, r.status())
		return nil
	}
	scope := r.scopes[at.session]
	if scope == nil || scope.session == nil && scope.ghost == nil {
		return harness.Refuse(harness.NotFound, "there is no session %s", at.session)
	}
	s := scope.session
	if s == nil {
		s = scope.ghost
	}
	switch at.kind {
	case "prompts":
		if s.prompt == nil || s.prompt.id != at.prompt {
			return harness.Refuse(harness.NotFound, "there is no prompt %s", at.prompt)
		}
		return s.prompt.resume(w, req)
	case "workspace-deltas":
		d := s.deltas[at.item]
		if d == nil {
			return harness.Refuse(harness.NotFound, "there is no delta %s", at.item)
		}
		file := d.file
		if r.broken("delta-moves") {
			if moved, err := s.freeze(at.item); err == nil {
				file = moved.file
			}
		}
		w.Header().Set("Content-Type", harness.TypeWorkspace)
		_, _ = w.Write(file) // a client that is gone asks again
		return nil
	}
	reply(w, http.StatusOK, s.shown())
	return nil
}
