// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package acpschema checks messages of the Agent Client Protocol against the official JSON schema of version 1. schema.json is
// schema/v1/schema.json of https://github.com/agentclientprotocol/agent-client-protocol at commit
// b7f0005493b98de32fabee3e9540e2b64da68535, unchanged, under the licence in LICENSE.
//
// The schema's own root accepts any method with any parameters, because of extensions. Here the type of a message is looked up by its
// method, so that what is checked is what the method asks for.
package acpschema

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed schema.json
var document []byte

// Side is one end of a conversation.
type Side string

// Sides. The schema says for each method which side serves it.
const (
	Agent  Side = "agent"
	Client Side = "client"
)

func (s Side) other() Side {
	if s == Agent {
		return Client
	}
	return Agent
}

// types are the schemas of the protocol's messages.
type types struct {
	// params and results are by the side that serves the method, and the method.
	params, results map[Side]map[string]*jsonschema.Schema
	failure         *jsonschema.Schema
}

var compiled = sync.OnceValues(func() (*types, error) {
	var all struct {
		Defs map[string]struct {
			Side   Side   `json:"x-side"`
			Method string `json:"x-method"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(document, &all); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("acp.json", doc); err != nil {
		return nil, err
	}
	t := &types{params: map[Side]map[string]*jsonschema.Schema{Agent: {}, Client: {}}, results: map[Side]map[string]*jsonschema.Schema{Agent: {}, Client: {}}}
	for name, d := range all.Defs {
		if name != "Error" && d.Method == "" {
			continue
		}
		s, err := c.Compile("acp.json#/$defs/" + name)
		if err != nil {
			return nil, err
		}
		sides := []Side{d.Side}
		if d.Side == "protocol" {
			sides = []Side{Agent, Client}
		}
		for _, side := range sides {
			switch {
			case name == "Error":
				t.failure = s
			case strings.HasSuffix(name, "Response"):
				t.results[side][d.Method] = s
			default:
				t.params[side][d.Method] = s
			}
		}
	}
	t.failure, err = c.Compile("acp.json#/$defs/Error")
	return t, err
})

// Conversation checks the messages of both sides, in the order in which they are sent.
type Conversation struct {
	mu sync.Mutex
	// asked are the methods of the requests without an answer, by the side that answers, and the id.
	asked map[Side]map[string]string
}

// NewConversation returns a conversation that has not begun.
func NewConversation() *Conversation {
	return &Conversation{asked: map[Side]map[string]string{Agent: {}, Client: {}}}
}

// Extension notes that a side is sent a request for a method that the schema does not know.
func (c *Conversation) Extension(to Side, id, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[to][id] = method
}

// Check returns what is wrong with a line that a side sends.
func (c *Conversation) Check(from Side, line []byte) error {
	t, err := compiled()
	if err != nil {
		return err
	}
	var m struct {
		JSONRPC               string
		ID                    json.RawMessage
		Method                string
		Params, Result, Error json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("no message: %w: %.200s", err, line)
	}
	if m.JSONRPC != "2.0" {
		return fmt.Errorf("jsonrpc is %q: %.200s", m.JSONRPC, line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Method != "" {
		to := from.other()
		s, ok := t.params[to][m.Method]
		if !ok {
			return fmt.Errorf("the %s serves no method %q", to, m.Method)
		}
		if m.ID != nil {
			c.asked[to][string(m.ID)] = m.Method
		}
		if (t.results[to][m.Method] != nil) != (m.ID != nil) {
			return fmt.Errorf("%s: only requests have an id, and this has %q", m.Method, m.ID)
		}
		return check(s, m.Params, m.Method)
	}
	method, ok := c.asked[from][string(m.ID)]
	if !ok {
		return fmt.Errorf("an answer of the %s to a request that was not sent: %.200s", from, line)
	}
	delete(c.asked[from], string(m.ID))
	if (m.Error == nil) == (m.Result == nil) {
		return fmt.Errorf("the answer to %s has not exactly one of error and result", method)
	}
	if m.Error != nil {
		return check(t.failure, m.Error, "error")
	}
	s, ok := t.results[from][method]
	if !ok {
		return fmt.Errorf("the %s serves no method %q", from, method)
	}
	return check(s, m.Result, "the answer to "+method)
}

func check(s *jsonschema.Schema, raw json.RawMessage, what string) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %.300s", what, err, raw)
	}
	return nil
}
