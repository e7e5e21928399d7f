// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent is a coding agent for tests. It speaks the Agent Client Protocol, is strict about what it gets, and does what the last
// text of its prompt says: each line "do: NAME ARGUMENTS" is a step, see steps. A prompt without steps is answered with "done".
//
// It ends with exit code 70 and a message on its standard error if the client sends something that the official schema does not allow,
// or in an order that the protocol does not allow.
package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/platform-ai/platform/test/acpschema"
)

// ExitStrict is the exit code after a client broke the protocol.
const ExitStrict = 70

// message is any message of JSON-RPC 2.0.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// agent is one process.
type agent struct {
	// servers are the MCP servers that the client names.
	servers  []server
	in       *bufio.Reader
	out, err io.Writer
	talk     *acpschema.Conversation

	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	// dir is the working folder of the session; empty before there is one.
	dir string
	// cancelled is closed when the turn is cancelled; nil outside of a turn.
	cancelled chan struct{}
	ready     bool
	// unsupported are methods that are answered as if this agent did not know them.
	unsupported map[string]bool

	// ending are turns that were answered and go on nevertheless. They are waited for when the client has closed the input.
	ending sync.WaitGroup
	exit   chan int
}

// Run serves a client until it closes the input, and returns the exit code.
func Run(in io.Reader, out, err io.Writer) int {
	a := &agent{in: bufio.NewReader(in), out: out, err: err, talk: acpschema.NewConversation(), waiting: map[string]chan message{}, unsupported: map[string]bool{}, exit: make(chan int, 1)}
	go a.read()
	return <-a.exit
}

// stop ends the process.
func (a *agent) stop(code int, format string, args ...any) {
	if format != "" {
		_, _ = fmt.Fprintf(a.err, "scriptedagent: "+format+"\n", args...)
	}
	select {
	case a.exit <- code:
	default:
	}
}

func (a *agent) read() {
	for {
		line, err := a.in.ReadBytes('\n')
		if err != nil {
			a.ending.Wait()
			a.stop(0, "")
			return
		}
		if err := a.talk.Check(acpschema.Client, line); err != nil {
			a.stop(ExitStrict, "the client broke the protocol: %v", err)
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue // checked above
		}
		if m.Method == "" {
			a.mu.Lock()
			waits := a.waiting[string(m.ID)]
			a.mu.Unlock()
			if waits != nil {
				waits <- m
			}
			continue
		}
		if err := a.serve(m); err != nil {
			a.stop(ExitStrict, "%v", err)
			return
		}
	}
}

// raw writes bytes as they are.
func (a *agent) raw(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(b)
}

// send writes a message, which must be allowed by the schema.
func (a *agent) send(m message) {
	line := encode(m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.talk.Check(acpschema.Agent, line); err != nil {
		a.stop(ExitStrict, "this agent broke the protocol: %v", err)
		runtime.Goexit()
	}
	_, _ = a.out.Write(line)
}

func encode(m message) []byte {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err) // the values are ours
	}
	return append(line, '\n')
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are ours
	}
	return raw
}

func (a *agent) answer(id json.RawMessage, result any) {
	a.send(message{ID: id, Result: encoded(result)})
}

func (a *agent) update(update map[string]any) {
	a.send(message{Method: "session/update", Params: encoded(map[string]any{"sessionId": session, "update": update})})
}

// ask sends a request and returns what waits for its answer.
func (a *agent) ask(method string, params any) <-chan message {
	a.mu.Lock()
	a.next++
	id := json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("a%d", a.next)))
	waits := make(chan message, 1)
	a.waiting[string(id)] = waits
	a.mu.Unlock()
	a.send(message{ID: id, Method: method, Params: encoded(params)})
	return waits
}

const session = "s1"

func (a *agent) serve(m message) error {
	if m.Method != "initialize" && !a.ready {
		return fmt.Errorf("%s came before initialize", m.Method)
	}
	a.mu.Lock()
	unsupported := a.unsupported[m.Method]
	a.mu.Unlock()
	if unsupported {
		a.send(message{ID: m.ID, Error: &failure{-32601, "not offered"}})
		return nil
	}
	switch m.Method {
	case "initialize":
		if a.ready {
			return errors.New("initialize came twice")
		}
		a.ready = true
		a.answer(m.ID, map[string]any{
			"protocolVersion": 1, "agentInfo": map[string]any{"name": "scriptedagent", "version": "1"},
			"agentCapabilities": map[string]any{"mcpCapabilities": map[string]any{"http": true}, "sessionCapabilities": map[string]any{"close": map[string]any{}}},
		})
	case "session/new":
		var p struct {
			Cwd        string
			MCPServers []server
		}
		if err := json.Unmarshal(m.Params, &p); err != nil || !strings.HasPrefix(p.Cwd, "/") {
			return fmt.Errorf("session/new: cwd must be absolute: %s", m.Params)
		}
		a.dir, a.servers = p.Cwd, p.MCPServers
		a.answer(m.ID, map[string]any{"sessionId": session, "modes": map[string]any{
			"currentModeId": "code", "availableModes": []any{map[string]any{"id": "code", "name": "Code"}, map[string]any{"id": "ask", "name": "Ask"}},
		}})
	case "session/prompt":
		return a.prompt(m)
	case "session/cancel":
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.cancelled != nil {
			close(a.cancelled)
			a.cancelled = nil
		}
	case "session/close", "session/set_mode":
		a.answer(m.ID, map[string]any{})
	case "$/cancel_request":
	default:
		a.send(message{ID: m.ID, Error: &failure{-32601, "not offered"}})
	}
	return nil
}

// turn is the answer to one prompt.
type turn struct {
	*agent
	id        json.RawMessage
	cancelled chan struct{}
	// texts are the blocks of the prompt.
	texts []string
	// stopped is set once the prompt was answered.
	stopped bool
	calls   int
}

func (a *agent) prompt(m message) error {
	var p struct {
		SessionID string
		Prompt    []struct{ Text string }
	}
	if err := json.Unmarshal(m.Params, &p); err != nil || p.SessionID != session || a.dir == "" || len(p.Prompt) == 0 {
		return fmt.Errorf("session/prompt: no prompt for the session: %.200s", m.Params)
	}
	t := &turn{agent: a, id: m.ID, cancelled: make(chan struct{})}
	for _, b := range p.Prompt {
		t.texts = append(t.texts, b.Text)
	}
	a.mu.Lock()
	busy := a.cancelled != nil
	a.cancelled = t.cancelled
	a.mu.Unlock()
	if busy {
		return errors.New("session/prompt: a turn is going on")
	}
	go t.run()
	return nil
}

// run does what the prompt says, and ends the turn.
func (t *turn) run() {
	defer func() {
		if t.stopped {
			t.ending.Done()
		}
	}()
	none := true
	for line := range strings.Lines(t.texts[len(t.texts)-1]) {
		do, ok := strings.CutPrefix(strings.TrimSpace(line), "do: ")
		if !ok {
			continue
		}
		none = false
		name, args, _ := strings.Cut(do, " ")
		step, ok := steps()[name]
		if !ok {
			t.stop(ExitStrict, "no step %q", name)
			runtime.Goexit()
		}
		step(t, strings.ReplaceAll(args, "\\n", "\n"))
	}
	if none {
		t.say("done")
	}
	select {
	case <-t.cancelled:
		t.end("cancelled")
	default:
		t.end("end_turn")
	}
}

// end answers the prompt, unless that was done.
func (t *turn) end(reason string) {
	if t.stopped {
		return
	}
	t.over()
	t.answer(t.id, map[string]any{"stopReason": reason})
}

// over notes that the prompt is about to be answered.
func (t *turn) over() {
	t.stopped = true
	t.ending.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agent.cancelled = nil
}

func (t *turn) say(text string) {
	t.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}})
}

// call reports a tool call that is to begin, and returns its id.
func (t *turn) call(kind, title string, input any) string {
	t.calls++
	id := fmt.Sprintf("c%d", t.calls)
	update := map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending"}
	if input != nil {
		update["rawInput"] = input
	}
	t.update(update)
	return id
}

func (t *turn) callEnded(id string, failed bool, output string) {
	status := "completed"
	if failed {
		status = "failed"
	}
	t.update(map[string]any{
		"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
		"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": output}}},
	})
}

// permitted asks for a permission, and returns what was decided.
func (t *turn) permitted(id, kind, title string, input any) string {
	return decision(<-t.asks(id, kind, title, input, "allow_always", "allow_once", "reject_once"))
}

// names are those of the options of permissions.
var names = map[string]string{"allow_always": "always", "allow_once": "yes", "reject_once": "no"}

// asks asks for a permission with options of some kinds.
func (t *turn) asks(id, kind, title string, input any, options ...string) <-chan message {
	call := map[string]any{"toolCallId": id, "title": title, "kind": kind}
	if input != nil {
		call["rawInput"] = input
	}
	offered := []any{}
	for _, kind := range options {
		offered = append(offered, map[string]any{"optionId": names[kind], "name": names[kind], "kind": kind})
	}
	return t.ask("session/request_permission", map[string]any{"sessionId": session, "toolCall": call, "options": offered})
}

func decision(answer message) string {
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if answer.Error != nil || json.Unmarshal(answer.Result, &r) != nil {
		return "error"
	}
	if r.Outcome.Outcome == "cancelled" {
		return "cancelled"
	}
	return r.Outcome.OptionID
}

// said returns the text that a step says about an answer.
func said(m message) string {
	if m.Error != nil {
		return fmt.Sprintf("error %d", m.Error.Code)
	}
	return string(bytes.TrimSpace(m.Result))
}

// sorted joins words in their order.
func sorted(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}
