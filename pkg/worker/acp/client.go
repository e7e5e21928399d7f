// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package acp is a client of the Agent Client Protocol, version 1: it drives a coding agent, a program that speaks newline-delimited
// JSON-RPC 2.0 over its standard input and output (https://agentclientprotocol.com). It knows neither tasks nor processes.
//
// Agents break the protocol in many ways, and the client survives those that leave the conversation intact. Output that is no message,
// unknown notifications and answers that nobody waits for are reported and left out; unknown requests are answered at once; updates
// that arrive after the end of a turn are delivered. What would leave both sides waiting ends the connection: see ErrBroken.
//
// Updates become Events, which do not depend on the version of the protocol. The decoder of version 1 is in decode.go.
//
// The client offers the agent the text files that its user serves, and nothing else: terminals are not offered, because the agent
// runs its programs where it runs itself. It signs in to an agent only in the way that its user names.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/clip"
)

// version is the version of the protocol. Versions of the published schema say nothing about it.
const version = 1

// Methods that occur in several places.
const (
	cancelRequest     = "$/cancel_request"
	requestPermission = "session/request_permission"
)

// Handler gets what the agent says and asks.
type Handler interface {
	// Event is called for each event, in order, also after the end of a turn. It must return soon.
	Event(e Event)
	// Permit is called for each request for a permission, in their order and that of the events. It must return soon. What it
	// returns decides; it is called on a goroutine of its own, for several calls at once. ctx ends when the turn does; what is
	// decided then is not used.
	Permit(r Request) func(ctx context.Context) Permission
	// ReadTextFile and WriteTextFile serve text files, on goroutines of their own. ctx ends with the connection. An error of
	// InvalidParams or NotFound reaches the agent as it is.
	ReadTextFile(ctx context.Context, path string) (string, error)
	WriteTextFile(ctx context.Context, path, text string) error
	// Odd is called with a description of something that the agent sent and that was left out. It must return soon.
	Odd(what string)
}

// Request is a request for a permission to make a tool call.
type Request struct {
	Call *Call
	// Once is set if the agent offers to have this call allowed and no other.
	Once bool
}

// Permission is the decision on a tool call.
type Permission struct {
	Allowed bool
	// Once allows this call and no other. If the agent does not offer that, the request is answered as cancelled.
	Once bool
	// Reason says why not.
	Reason string
}

// Options configure a Client.
type Options struct {
	// Name and Version of this program, for the agent.
	Name, Version string
	Handler       Handler
	Clock         clock.Clock
	// Grace is how long an agent may take to end a turn that is cancelled.
	Grace time.Duration
}

// Client is a connection with one agent.
type Client struct {
	*conn
	o Options
	// agent is what the agent said of itself.
	agent Agent
	v1    *decoder

	mu sync.Mutex
	// turning is set while a turn is going on that was not cancelled.
	turning bool
}

// Agent is what an agent says of itself.
type Agent struct {
	Name, Version string
	// signIn are the ways to sign in that it offers, by their ids.
	signIn []string
	close  bool
	delete bool
	// http is set if it uses MCP servers over HTTP.
	http bool
}

// Connect returns a client that receives from in and sends to out. It reads in to its end. The connection ends when in does; the caller
// closes both.
func Connect(ctx context.Context, in io.Reader, out io.Writer, o Options) *Client {
	c := &Client{o: o, v1: newDecoder()}
	c.conn = newConn(c)
	go c.write(out)
	go c.read(context.WithoutCancel(ctx), in)
	return c
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.ended }

// Initialize agrees with the agent on the version of the protocol.
func (c *Client) Initialize(ctx context.Context) (Agent, error) {
	type optional *struct{}
	var r struct {
		ProtocolVersion   int `json:"protocolVersion"`
		AgentCapabilities struct {
			MCPCapabilities struct {
				HTTP bool `json:"http"`
			} `json:"mcpCapabilities"`
			SessionCapabilities struct {
				Close  optional `json:"close"`
				Delete optional `json:"delete"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
		AuthMethods []struct {
			ID string `json:"id"`
		} `json:"authMethods"`
		AgentInfo struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"agentInfo"`
	}
	err := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": version, "clientInfo": map[string]any{"name": c.o.Name, "version": c.o.Version},
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true, "writeTextFile": true}, "terminal": false},
	}, &r)
	if err != nil {
		return Agent{}, err
	}
	if r.ProtocolVersion != version {
		return Agent{}, fmt.Errorf("%w: it wants version %d, and this client speaks version %d", ErrBroken, r.ProtocolVersion, version)
	}
	c.agent = Agent{
		Name: clip.Text(r.AgentInfo.Name, maxReported), Version: clip.Text(r.AgentInfo.Version, maxReported),
		close: r.AgentCapabilities.SessionCapabilities.Close != nil, delete: r.AgentCapabilities.SessionCapabilities.Delete != nil,
		http: r.AgentCapabilities.MCPCapabilities.HTTP,
	}
	for _, m := range r.AuthMethods {
		c.agent.signIn = append(c.agent.signIn, clip.Text(m.ID, maxReported))
	}
	return c.agent, nil
}

// SignIn signs in to the agent in one of the ways that it offers. If it does not offer that one, nothing is done: agents offer none when
// they have what they need.
func (c *Client) SignIn(ctx context.Context, method string) error {
	if !slices.Contains(c.agent.signIn, method) {
		return nil
	}
	return c.call(ctx, "authenticate", map[string]any{"methodId": method}, &struct{}{})
}

// ErrSignIn is in the chain of the error of an agent that wants to be signed in to.
var ErrSignIn = errors.New("the agent wants to be signed in to, which is not done")

// Session is one conversation with an agent.
type Session struct {
	c  *Client
	id string
	// Modes are the modes that the agent offers.
	Modes []string
}

// Server is a server of the Model Context Protocol whose tools an agent gets.
type Server struct {
	Name, URL string
	// Token is sent to it as a bearer token.
	Token string
}

// UsesServers reports whether the agent uses such servers.
func (a Agent) UsesServers() bool { return a.http }

// NewSession begins a conversation whose working folder is dir. The agent gets the tools of the servers, if it uses any, and of no others,
// whatever the user of this machine has.
func (c *Client) NewSession(ctx context.Context, dir string, servers ...Server) (*Session, error) {
	named := []any{}
	for _, s := range servers {
		if c.agent.http {
			named = append(named, map[string]any{
				"type": "http", "name": s.Name, "url": s.URL, "headers": []any{map[string]any{"name": "Authorization", "value": "Bearer " + s.Token}},
			})
		}
	}
	var r struct {
		SessionID string `json:"sessionId"`
		Modes     struct {
			AvailableModes []struct {
				ID string `json:"id"`
			} `json:"availableModes"`
		} `json:"modes"`
	}
	err := c.call(ctx, "session/new", map[string]any{"cwd": dir, "mcpServers": named}, &r)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == codeAuthRequired {
		return nil, fmt.Errorf("%w (%s): %w", ErrSignIn, strings.Join(c.agent.signIn, ", "), err)
	}
	if err != nil {
		return nil, err
	}
	c.v1.of(r.SessionID)
	s := &Session{c: c, id: r.SessionID}
	for _, m := range r.Modes.AvailableModes {
		s.Modes = append(s.Modes, m.ID)
	}
	return s, nil
}

// SetMode changes the mode of the session, which must be one of Modes.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	if !slices.Contains(s.Modes, mode) {
		return fmt.Errorf("the agent has no mode %q; it has %s", mode, strings.Join(s.Modes, ", "))
	}
	return s.c.call(ctx, "session/set_mode", map[string]any{"sessionId": s.id, "modeId": mode}, &struct{}{})
}

// End closes the session and deletes what the agent has stored of it, as far as the agent can do that.
func (s *Session) End(ctx context.Context) error {
	var errs []error
	for _, m := range []struct {
		method  string
		offered bool
	}{{"session/close", s.c.agent.close}, {"session/delete", s.c.agent.delete}} {
		if m.offered {
			errs = append(errs, s.c.call(ctx, m.method, map[string]any{"sessionId": s.id}, &struct{}{}))
		}
	}
	return errors.Join(errs...)
}

// StopReason says why an agent ended a turn.
type StopReason string

// Stop reasons of the protocol.
const (
	StopEndTurn   StopReason = "end_turn"
	StopMaxTokens StopReason = "max_tokens"
	StopMaxTurns  StopReason = "max_turn_requests"
	StopRefusal   StopReason = "refusal"
	StopCancelled StopReason = "cancelled"
)

// ErrSilent is the error of a turn that was cancelled and that the agent did not end in time.
var ErrSilent = errors.New("the agent did not end its turn after it was cancelled")

// Prompt sends the texts as one prompt and returns when the turn is over. When ctx ends, the turn is cancelled: the agent is asked to
// end it, pending permissions are answered as cancelled, and the session can be used again if the agent answers in time.
func (s *Session) Prompt(ctx context.Context, texts ...string) (StopReason, error) {
	var blocks []any
	for _, text := range texts {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
	}
	s.c.turn(true)
	defer s.c.turn(false)
	_, answer, err := s.c.begin("session/prompt", map[string]any{"sessionId": s.id, "prompt": blocks})
	if err != nil {
		return "", s.c.why(err)
	}
	var patience <-chan time.Time
	cancelled := ctx.Done()
	for {
		select {
		case m := <-answer:
			return stopOf(m)
		case <-s.c.ended:
			select {
			case m := <-answer:
				return stopOf(m)
			default:
				return "", s.c.err
			}
		case <-cancelled:
			cancelled = nil
			_ = s.c.notify("session/cancel", map[string]any{"sessionId": s.id}) // fails when the connection is over
			s.c.turn(false)
			timer := s.c.o.Clock.NewTimer(s.c.o.Grace)
			defer timer.Stop()
			patience = timer.C()
		case <-patience:
			return "", ErrSilent
		}
	}
}

// stopOf returns the stop reason in the answer to a prompt. That a request was cancelled is the end of a turn and no failure.
func stopOf(m message) (StopReason, error) {
	var r struct {
		StopReason StopReason `json:"stopReason"`
	}
	err := decode(m, "session/prompt", &r)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == codeCancelled {
		return StopCancelled, nil
	}
	known := []StopReason{StopEndTurn, StopMaxTokens, StopMaxTurns, StopRefusal, StopCancelled}
	if err == nil && !slices.Contains(known, r.StopReason) {
		err = fmt.Errorf("%w: it ended its turn with the unknown reason %q", ErrBroken, clip.Text(string(r.StopReason), maxReported))
	}
	return r.StopReason, err
}

// turn notes whether a turn is going on. When it ends, pending permissions end with it.
func (c *Client) turn(on bool) {
	c.mu.Lock()
	c.turning = on
	c.mu.Unlock()
	if !on {
		c.cancelAll(requestPermission)
	}
}

func (c *Client) inTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turning
}

func (c *Client) odd(what string) { c.o.Handler.Odd(what) }

func (c *Client) notified(method string, params json.RawMessage) {
	if strings.HasPrefix(method, "_") { // an extension
		return
	}
	if method != "session/update" {
		c.odd("an unknown notification: " + shown([]byte(method)))
		return
	}
	events, err := c.v1.update(params)
	if err != nil {
		c.odd(err.Error())
	}
	for _, e := range events {
		c.o.Handler.Event(e)
	}
}

// serve returns what answers a request of the agent.
func (c *Client) serve(method string, params json.RawMessage) func(context.Context) (any, error) {
	switch method {
	case requestPermission:
		return c.permission(params)
	case "fs/read_text_file":
		return func(ctx context.Context) (any, error) { return c.readFile(ctx, params) }
	case "fs/write_text_file":
		return func(ctx context.Context) (any, error) {
			var p struct{ Path, Content string }
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, InvalidParams(err.Error())
			}
			return struct{}{}, c.o.Handler.WriteTextFile(ctx, p.Path, p.Content)
		}
	}
	c.odd("an unknown request: " + shown([]byte(method)))
	return failing(&Error{Code: codeMethodNotFound, Message: "this client does not offer " + clip.Text(method, maxReported)})
}

func failing(err error) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return nil, err }
}

func (c *Client) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Path        string
		Line, Limit *int
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, InvalidParams(err.Error())
	}
	text, err := c.o.Handler.ReadTextFile(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	return map[string]any{"content": lines(text, p.Line, p.Limit)}, nil
}

// lines returns at most limit lines of a text from a line on, which counts from 1.
func lines(text string, line, limit *int) string {
	for n := 1; line != nil && n < *line; n++ {
		_, rest, more := strings.Cut(text, "\n")
		if text = rest; !more {
			return ""
		}
	}
	if limit == nil {
		return text
	}
	end := 0
	for range *limit {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end]
}

// permission decides on a request for a permission. One that comes outside of a turn is cancelled.
func (c *Client) permission(params json.RawMessage) func(context.Context) (any, error) {
	var p struct {
		ToolCall json.RawMessage `json:"toolCall"`
		Options  []option        `json:"options"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return failing(InvalidParams(err.Error()))
	}
	call, err := c.v1.asked(p.ToolCall)
	if err != nil {
		return failing(InvalidParams(err.Error()))
	}
	if !c.inTurn() {
		return func(context.Context) (any, error) { return outcome(nil, ""), nil }
	}
	decide := c.o.Handler.Permit(Request{Call: call, Once: chosen(p.Options, allowOnce) != nil})
	return func(ctx context.Context) (any, error) {
		d := decide(ctx)
		kinds := []string{"reject_once", "reject_always"}
		switch {
		case ctx.Err() != nil:
			kinds, d.Reason = nil, ""
		case d.Allowed && d.Once:
			kinds = []string{allowOnce}
		case d.Allowed:
			kinds = []string{allowOnce, "allow_always"} // the session ends with this process
		}
		return outcome(chosen(p.Options, kinds...), d.Reason), nil
	}
}

// option is an answer to a request for a permission that the agent offers.
type option struct {
	OptionID string `json:"optionId"`
	Kind     string `json:"kind"`
}

const allowOnce = "allow_once"

// chosen returns the first option of the first kind that is offered; nil if there is none.
func chosen(options []option, kinds ...string) *option {
	for _, kind := range kinds {
		for i := range options {
			if options[i].Kind == kind {
				return &options[i]
			}
		}
	}
	return nil
}

// outcome is the answer to a request for a permission. Without an option, the request is cancelled.
func outcome(o *option, reason string) any {
	answer := map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
	if o != nil {
		answer["outcome"] = map[string]any{"outcome": "selected", "optionId": o.OptionID}
	}
	if reason != "" {
		answer["_meta"] = map[string]any{"reason": reason}
	}
	return answer
}
