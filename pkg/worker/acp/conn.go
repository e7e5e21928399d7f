// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

const (
	// maxLine is how long a message may be, in bytes. The id of a longer one is not known, so the connection ends.
	maxLine = 16 << 20
	// maxNoise is how many bytes an agent may write that are no messages, until the connection ends.
	maxNoise = 1 << 20
	// maxServed is how many requests of the agent may be unanswered at once.
	maxServed = 1024
	// maxQueued is how many bytes may wait for an agent that does not read.
	maxQueued = 64 << 20
	// maxReported is how much of what is reported is shown, in bytes.
	maxReported = 200
)

// Codes of errors, as JSON-RPC 2.0 and the protocol define them.
const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeCancelled      = -32800
	codeAuthRequired   = -32000
	codeNotFound       = -32002
)

// Error is the error with which one side answers a request.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// InvalidParams returns the error for a request whose parameters are not allowed.
func InvalidParams(message string) error { return &Error{Code: codeInvalidParams, Message: message} }

// NotFound returns the error for a request for something that does not exist.
func NotFound(message string) error { return &Error{Code: codeNotFound, Message: message} }

// Why a connection ended.
var (
	// ErrEnded: the agent closed its output.
	ErrEnded = errors.New("the agent ended without an answer")
	// ErrBroken: the agent did not keep to the protocol, so that the conversation could not go on.
	ErrBroken = errors.New("the agent does not speak the protocol")
)

// message is any message of JSON-RPC 2.0.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// side is what a connection does with what it receives.
type side interface {
	// serve is called for each request, in the order of requests and notifications. What it returns makes the answer; it is called
	// on a goroutine of its own.
	serve(method string, params json.RawMessage) func(context.Context) (any, error)
	// notified is called for each notification, in order, and before the answers that follow it are delivered.
	notified(method string, params json.RawMessage)
	// odd is called with a description of something that is left out.
	odd(what string)
}

// conn is one end of a connection with newline-delimited JSON-RPC 2.0. Sending never blocks: what an agent does not read waits, up to
// a bound, so that an agent that does not read cannot keep this side from reading or from giving up.
type conn struct {
	side side
	// ended is closed when nothing more is received or answered; err is then set.
	ended chan struct{}
	err   error

	mu sync.Mutex
	// wake says that there is something to write, or that the connection is over.
	wake   *sync.Cond
	queue  [][]byte
	queued int
	over   bool
	next   int
	calls  map[string]chan message
	served map[string]served
	// serving are the goroutines that answer them.
	serving sync.WaitGroup
}

// served is a request of the agent that is being answered.
type served struct {
	method string
	cancel context.CancelFunc
}

func newConn(s side) *conn {
	c := &conn{side: s, ended: make(chan struct{}), calls: map[string]chan message{}, served: map[string]served{}}
	c.wake = sync.NewCond(&c.mu)
	return c
}

// write sends what is queued until the connection is over.
func (c *conn) write(out io.Writer) {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.over {
			c.wake.Wait()
		}
		if c.over {
			c.mu.Unlock()
			return
		}
		line := c.queue[0]
		c.queue, c.queued = c.queue[1:], c.queued-len(line)
		c.mu.Unlock()
		if _, err := out.Write(line); err != nil {
			return // the agent is gone, which its output shows as well
		}
	}
}

// send queues a message.
func (c *conn) send(m message) error {
	m.JSONRPC = "2.0"
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return ErrEnded
	}
	if c.queued += line.Len(); c.queued > maxQueued {
		return fmt.Errorf("%w: it does not read what it is sent", ErrBroken)
	}
	c.queue = append(c.queue, line.Bytes())
	c.wake.Signal()
	return nil
}

// read receives messages until the agent closes its output or breaks the protocol.
func (c *conn) read(ctx context.Context, in io.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := c.receive(ctx, in)
	c.mu.Lock()
	c.err, c.over = err, true
	c.wake.Signal()
	c.mu.Unlock()
	cancel()
	c.serving.Wait()
	close(c.ended)
	_, _ = io.Copy(io.Discard, in) // a program that writes on must not block
}

func (c *conn) receive(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	noise := 0
	for {
		line, err := readLine(r)
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return fmt.Errorf("%w: it sent a message of more than %d bytes", ErrBroken, maxLine)
		case len(bytes.TrimSpace(line)) == 0:
		case !c.take(ctx, line):
			if noise += len(line); noise > maxNoise {
				return fmt.Errorf("%w: it wrote more than %d bytes to its output that are no messages", ErrBroken, maxNoise)
			}
			c.side.odd("no message of the protocol: " + shown(line))
		}
		if err != nil {
			return ErrEnded
		}
		if c.crowded() {
			return fmt.Errorf("%w: it sent more than %d requests at once", ErrBroken, maxServed)
		}
	}
}

func (c *conn) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.served) > maxServed
}

// readLine returns the next line without its end. At the end of the input the rest is returned with the error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, bufio.ErrTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take handles a line. It reports false for one that is no message.
func (c *conn) take(ctx context.Context, line []byte) bool {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return false
	}
	switch {
	case m.Method != "" && m.ID != nil:
		c.request(ctx, m)
	case m.Method == cancelRequest:
		c.cancelled(m.Params)
	case m.Method != "":
		c.side.notified(m.Method, m.Params)
	case m.ID != nil && (m.Result != nil || m.Error != nil || c.waits(m.ID)):
		if m.Result == nil { // a void result in JavaScript, which nobody would wait out
			m.Result = json.RawMessage("null")
		}
		c.answer(m)
	default:
		return false
	}
	return true
}

// waits reports whether a call waits for an answer with this id.
func (c *conn) waits(id json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.calls[string(id)]
	return ok
}

// answer delivers the answer of a call. A second answer, and one that nobody waits for any more, is left out.
func (c *conn) answer(m message) {
	key := string(m.ID)
	c.mu.Lock()
	waits, ok := c.calls[key]
	delete(c.calls, key)
	c.mu.Unlock()
	if !ok {
		c.side.odd("an answer that nothing waits for, to request " + shown(m.ID))
		return
	}
	waits <- m
}

// request has a request of the agent answered.
func (c *conn) request(ctx context.Context, m message) {
	ctx, cancel := context.WithCancel(ctx)
	key := string(m.ID)
	c.mu.Lock()
	_, twice := c.served[key]
	if !twice {
		c.served[key] = served{m.Method, cancel}
	}
	c.mu.Unlock()
	if twice {
		cancel()
		c.reply(m.ID, nil, &Error{Code: codeInvalidRequest, Message: "a request with this id is being answered"})
		return
	}
	answer := c.side.serve(m.Method, m.Params)
	c.serving.Go(func() {
		result, err := answer(ctx)
		if ctx.Err() != nil && err != nil {
			err = &Error{Code: codeCancelled, Message: "the request was cancelled"}
		}
		c.mu.Lock()
		delete(c.served, key)
		c.mu.Unlock()
		cancel()
		c.reply(m.ID, result, err)
	})
}

// reply answers a request.
func (c *conn) reply(id json.RawMessage, result any, err error) {
	m := message{ID: id}
	if err == nil {
		m.Result, err = json.Marshal(result)
	}
	if err != nil {
		var known *Error
		if !errors.As(err, &known) {
			known = &Error{Code: codeInternal, Message: err.Error()}
		}
		m.Error, m.Result = known, nil
	}
	_ = c.send(m) // fails when the connection is over
}

// cancelled ends a request of the agent that the agent no longer wants.
func (c *conn) cancelled(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.served[string(p.RequestID)]; ok {
		s.cancel()
	}
}

// cancelAll ends all requests of the agent for a method.
func (c *conn) cancelAll(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.served {
		if s.method == method {
			s.cancel()
		}
	}
}

// begin sends a request. The answer arrives in the channel.
func (c *conn) begin(method string, params any) (id json.RawMessage, answer chan message, err error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	answer = make(chan message, 1)
	c.mu.Lock()
	c.next++
	id = json.RawMessage(strconv.Itoa(c.next))
	c.calls[string(id)] = answer
	c.mu.Unlock()
	return id, answer, c.send(message{ID: id, Method: method, Params: raw})
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.send(message{Method: method, Params: raw})
}

// call sends a request and decodes its answer. If ctx ends before, the agent is told so.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	id, answer, err := c.begin(method, params)
	if err != nil {
		return c.why(err)
	}
	select {
	case m := <-answer:
		return decode(m, method, result)
	case <-c.ended:
		select {
		case m := <-answer:
			return decode(m, method, result)
		default:
			return c.err
		}
	case <-ctx.Done():
		_ = c.notify(cancelRequest, map[string]any{"requestId": id})
		return ctx.Err()
	}
}

// why returns the reason for which the connection ended, if it did, instead of the error of sending.
func (c *conn) why(err error) error {
	select {
	case <-c.ended:
		return c.err
	default:
		return err
	}
}

func decode(m message, method string, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%w: the answer to %s: %w", ErrBroken, method, err)
	}
	return nil
}
