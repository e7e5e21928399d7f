// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realvendor is a stand-in for model vendors that real clients are tried with: it speaks the protocols of both, is as strict as
// they are, and plays what a test tells it. Package script is what answers.
package realvendor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// Play is what the model does after a message of the user that contains a phrase: calls, one a request, each followed by its
// result, and a text.
type Play struct {
	Calls []script.ToolCall
	// Result must match the result of the first call, otherwise the model complains.
	Result string
	// Recalls must match parts of the conversation before the message, otherwise the model complains.
	Recalls []string
	Text    string
	// Form is what the model answers where the request has a form for the answer: as a text, or as the arguments of the tool whose
	// schema has a member "degrees".
	Form string
}

// Vendor is a vendor's API, as strict as the real one: it refuses what the vendor's documentation does not have and
// conversations in a wrong order. What it answers is decided by the plays.
type Vendor struct {
	*httptest.Server

	// Secret is what must not reach a vendor; empty for nothing.
	Secret string

	mu      sync.Mutex
	plays   map[string]Play
	refused []string // why requests were refused, since Begin
	marked  bool
	number  int
	beside  []string
	used    int
}

// Key is the key that every request must have.
const Key = "sk-key-of-the-vendor-0123456789"

// Tokens that each answer reports.
const (
	Input  = 1000
	Output = 20
)

// New starts a vendor that answers both protocols.
func New(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", v.handle(readChat, `{"model":%q,"stream":%v%s,"messages":[{"role":"user","content":"x"}]}`))
	mux.HandleFunc("POST /v1/responses", v.handle(readResponse, `{"model":%q,"stream":%v%s,"store":false,"input":"x"}`))
	mux.HandleFunc("POST /v1/messages", v.handle(readMessages, `{"model":%q,"stream":%v%s,"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		v.refuse(w, r, errors.New("no such path: "+r.Method+" "+r.URL.Path))
	})
	v.Server = httptest.NewServer(mux)
	t.Cleanup(v.Close)
	return v
}

// Begin has the vendor forget what it saw and play something else.
func (v *Vendor) Begin(plays map[string]Play) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plays, v.refused, v.marked, v.beside, v.used = plays, nil, false, nil, 0
}

// Refusals returns why requests were refused since Begin.
func (v *Vendor) Refusals() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.refused)
}

// Marked reports whether a request since Begin had a mark of the cache.
func (v *Vendor) Marked() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.marked
}

// Beside returns the tools of the last request that lacked those of its play.
func (v *Vendor) Beside() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.beside)
}

// Answered returns how many requests were answered since Begin.
func (v *Vendor) Answered() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.used
}

// heard is a request in a form that all protocols have in common.
type heard struct {
	model          string
	stream, usage  bool
	said           []line
	tools          map[string]string // their schemas, by name
	form, thinking bool
}

// line is one part of a conversation: of the roles system, user, assistant, call and result.
type line struct{ role, text, id string }

func (v *Vendor) handle(read func(object, *http.Request) (*heard, error), plain string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		var o object
		if err := json.Unmarshal(body, &o); err != nil {
			v.refuse(w, r, err)
			return
		}
		if key := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization"); !strings.Contains(key, Key) {
			v.refuse(w, r, errors.New("invalid API key"))
			return
		}
		if sent := fmt.Sprint(r.Header, string(body)); v.Secret != "" && strings.Contains(sent, v.Secret) {
			v.refuse(w, r, errors.New("the client's token reached the vendor"))
			return
		}
		h, err := read(o, r)
		if err == nil {
			err = h.order()
		}
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		reply := v.reply(h, strings.Contains(string(body), `"cache_control"`))
		raw, err := json.Marshal(&script.Script{Turns: []script.Turn{{Reply: reply}}})
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		s, err := script.Parse(raw)
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		options := ""
		if h.usage {
			options = `,"stream_options":{"include_usage":true}`
		}
		r.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(plain, h.model, h.stream, options)))
		answer := httptest.NewRecorder()
		script.New(s, io.Discard).ServeHTTP(answer, r)
		for name := range answer.Header() {
			w.Header().Set(name, answer.Header().Get(name))
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(v.renamed(answer.Body.Bytes())) // the client has gone
	}
}

// errThread is what a vendor without threads says.
var errThread = errors.New("message threads are not available for this request")

// refuse answers with an error in the form of the API.
func (v *Vendor) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v.mu.Lock()
	v.refused = append(v.refused, err.Error())
	v.mu.Unlock()
	body := object{"error": object{"message": err.Error(), "type": "invalid_request_error", "param": nil, "code": nil}}
	if strings.HasPrefix(r.URL.Path, "/v1/messages") {
		body = object{"type": "error", "error": object{"type": "invalid_request_error", "message": err.Error()}, "request_id": "req_1"}
	}
	if errors.Is(err, errThread) {
		body["error"].(object)["details"] = object{"error_code": "thread_unsupported_request", "unsupported": []string{}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // texts, and the client may have gone
}

// renamed gives an answer and its parts names of their own: clients tell answers apart by them.
func (v *Vendor) renamed(answer []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.number++
	for _, name := range []string{"chatcmpl-scripted", "msg_scripted", "resp_scripted", `"msg_0`, `"fc_0`} {
		answer = bytes.ReplaceAll(answer, []byte(name), fmt.Appendf(nil, "%s%d", name, v.number))
	}
	return answer
}

// reply is what the model says.
func (v *Vendor) reply(h *heard, marked bool) script.Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.marked = v.marked || marked
	v.used++
	cached := int64(800)
	reply := script.Reply{Text: "A title.", Usage: &script.Usage{Input: Input, Output: Output, Cached: &cached}}
	p, at := v.playing(h)
	if p == nil {
		return reply
	}
	for _, text := range p.Recalls {
		if !slices.ContainsFunc(h.said[:at], func(l line) bool { return regexp.MustCompile(text).MatchString(l.text) }) {
			reply.Text = fmt.Sprintf("The conversation lacks %q.", text)
			return reply
		}
	}
	var results []string
	for _, l := range h.said[at:] {
		if l.role == "result" {
			results = append(results, l.text)
		}
	}
	step := len(results)
	if p.Form != "" {
		return v.formed(h, p, reply, step)
	}
	if step > 0 && !regexp.MustCompile(p.Result).MatchString(results[0]) {
		reply.Text = fmt.Sprintf("The result of the first call is %q.", results[0])
		return reply
	}
	if step >= len(p.Calls) {
		reply.Text = p.Text
		return reply
	}
	call := p.Calls[step]
	if h.tools[call.Name] == "" {
		v.beside = slices.Sorted(maps.Keys(h.tools))
		return reply // a request beside the conversation, such as for its title
	}
	reply.Text = "I try."
	v.call(h, &reply, call)
	return reply
}

// playing returns the play for the last message of the user that has one, and where that is in the conversation.
func (v *Vendor) playing(h *heard) (*Play, int) {
	for i, l := range slices.Backward(h.said) {
		for phrase, p := range v.plays {
			if l.role == "user" && strings.Contains(l.text, phrase) {
				return &p, i
			}
		}
	}
	return nil, 0
}

// formed answers in the form that the request asks for.
func (v *Vendor) formed(h *heard, p *Play, reply script.Reply, step int) script.Reply {
	for name, schema := range h.tools {
		if strings.Contains(schema, `"degrees"`) && step == 0 {
			reply.Text = ""
			v.call(h, &reply, script.ToolCall{Name: name, Arguments: json.RawMessage(p.Form)})
			return reply
		}
	}
	reply.Text = "The request has no form for the answer."
	if h.form {
		reply.Text = p.Form
	}
	if step > 0 {
		reply.Text = p.Text
	}
	return reply
}

// call adds a call to a reply. A model that thinks does so before it.
func (v *Vendor) call(h *heard, reply *script.Reply, call script.ToolCall) {
	v.number++
	call.ID = fmt.Sprintf("call_%d", v.number)
	reply.ToolCalls = []script.ToolCall{call}
	if h.thinking {
		reply.Thinking = []script.Thinking{thought}
	}
}

// thought is what the model thinks.
var thought = script.Thinking{Text: "I think.", Signature: "c2lnbmF0dXJl"}

// order checks that each call has one result, which follows it.
func (h *heard) order() error {
	open, known := map[string]bool{}, map[string]bool{}
	calling := false
	for i, l := range h.said {
		switch l.role {
		case "call":
			if known[l.id] || l.id == "" {
				return fmt.Errorf("call %q is there twice or has no id", l.id)
			}
			if len(open) > 0 && !calling {
				return fmt.Errorf("before part %d, %d calls have no result", i, len(open))
			}
			open[l.id], known[l.id], calling = true, true, true
		case "result":
			if !open[l.id] {
				return fmt.Errorf("result %q answers no open call", l.id)
			}
			delete(open, l.id)
			calling = false
		default:
			if len(open) > 0 {
				return fmt.Errorf("before part %d, %d calls have no result", i, len(open))
			}
			if l.text == "" && l.role != "assistant" {
				return fmt.Errorf("part %d, of the role %s, is empty", i, l.role)
			}
			calling = false
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("at the end, %d calls have no result", len(open))
	}
	if len(h.said) == 0 {
		return errors.New("the conversation is empty")
	}
	return nil
}
