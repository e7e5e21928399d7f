// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package script is a scripted stand-in for a model vendor: a real HTTP server
// that speaks the OpenAI chat completions protocol and the Anthropic Messages
// protocol, answers from a script and misbehaves on demand. The same script
// works with both protocols. It checks every request as strictly as the
// strictest vendor. A request that the script has no answer for is refused and
// logged. It is for tests and for the quick start; the product does not use it.
package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Script is what the model knows. Turns are tried in order; the first one that
// matches and is not used up answers.
type Script struct {
	// APIKey is the key that every request must carry. Empty accepts any key, but a key is required.
	APIKey string `json:"apiKey,omitempty"`
	// Models are the names that are served. Empty accepts any.
	Models []string `json:"models,omitempty"`
	Turns  []Turn   `json:"turns"`
}

// Turn is one answer and when it is given.
type Turn struct {
	// Name appears in the log.
	Name  string `json:"name,omitempty"`
	Match Match  `json:"match,omitempty"`
	// Times is how often the turn may be used. 0 means always.
	Times int   `json:"times,omitempty"`
	Reply Reply `json:"reply,omitempty"`
	// Fault makes the turn misbehave.
	Fault *Fault `json:"fault,omitempty"`
}

// Match selects the requests that a turn is for. All fields that are set must match.
type Match struct {
	// Turn is the number of this answer in the conversation, from 1: one more
	// than the assistant messages in the request.
	Turn int `json:"turn,omitempty"`
	// Step is the number of this answer since the last message of the user, from 1. Unlike Turn it does not count what
	// a session said before.
	Step int `json:"step,omitempty"`
	// LastRole is the role of the last message.
	LastRole string `json:"lastRole,omitempty"`
	// Contains must be part of the last message.
	Contains string `json:"contains,omitempty"`
	// Regexp must match the last message.
	Regexp string `json:"regexp,omitempty"`
	// System must be part of a system message.
	System string `json:"system,omitempty"`
	// Model is the requested model.
	Model string `json:"model,omitempty"`
	// Offered are tools that the request must offer.
	Offered []string `json:"offered,omitempty"`
	// NoTools matches when the request offers no tool at all.
	NoTools bool `json:"noTools,omitempty"`

	regexp *regexp.Regexp
}

// Reply is what the model answers. Text and string arguments are templates: see Data.
type Reply struct {
	Text      string     `json:"text,omitempty"`
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// Thinking is sent before the text, on the Anthropic protocol only. Requests that return it changed are refused.
	Thinking []Thinking `json:"thinking,omitempty"`
	// Stop is the finish reason in the words of OpenAI. Default tool_calls with calls, stop without.
	Stop string `json:"stop,omitempty"`
	// Usage is computed from the lengths of the texts when nil.
	Usage *Usage `json:"usage,omitempty"`
	// NoUsage leaves the usage out, as some compatible servers do.
	NoUsage bool `json:"noUsage,omitempty"`

	text *template.Template
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	// ID defaults to a name made of the turn's number and the call's index.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is the argument object.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// RawArguments is sent unchanged, so that it may be malformed on purpose. It takes precedence over Arguments.
	RawArguments string `json:"rawArguments,omitempty"`
}

// Thinking is a block of reasoning.
type Thinking struct {
	// Text and Signature are those of a readable block.
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	// Redacted is the content of an encrypted block. It replaces Text and Signature.
	Redacted string `json:"redacted,omitempty"`
}

// Usage is the token count to report. Input counts all input; each protocol reports it in its own way.
type Usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	// Cached and CacheWrite are the parts of Input that were read from and written to a cache.
	Cached *int64 `json:"cached,omitempty"`
	// CacheWrite is reported on the Anthropic protocol only.
	CacheWrite *int64 `json:"cacheWrite,omitempty"`
}

// Fault describes how a turn misbehaves.
type Fault struct {
	// Status answers with an HTTP error and nothing else.
	Status int `json:"status,omitempty"`
	// RetryAfter is sent as the header of that name.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Code, Type and Message fill the error object; Body replaces it.
	Code    string `json:"code,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
	Body    string `json:"body,omitempty"`
	// CutAfterBytes ends the stream after so many bytes of its body: cleanly,
	// as a proxy does, or with Reset by dropping the connection.
	CutAfterBytes *int `json:"cutAfterBytes,omitempty"`
	Reset         bool `json:"reset,omitempty"`
	// CutInToolCall ends the stream in the middle of the arguments of the first call.
	CutInToolCall bool `json:"cutInToolCall,omitempty"`
	// InBand sends the error object inside the stream after the first chunk.
	InBand bool `json:"inBand,omitempty"`
	// Garbage sends a chunk that is not JSON.
	Garbage bool `json:"garbage,omitempty"`
	// NotAStream answers 200 with an HTML page.
	NotAStream bool `json:"notAStream,omitempty"`
	// ChunkDelay is the pause before each chunk.
	ChunkDelay metav1.Duration `json:"chunkDelay,omitempty"`
	// Stall holds the stream open after the first chunk until the client leaves.
	Stall bool `json:"stall,omitempty"`
}

// Data is what templates of a reply see.
type Data struct {
	// Prompt is the last user message.
	Prompt string
	// LastWord is the last word of Prompt, such as an address to use.
	LastWord string
	// Results holds the last result of each tool by name: decoded when it is
	// JSON, text otherwise. Example: {{ .Results.code_exec.data.output }}
	Results map[string]any
	// All holds all results of each tool by name, in the order of the calls.
	All map[string][]any
}

// Load reads a script file, YAML or JSON.
func Load(path string) (*Script, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script, YAML or JSON. Unknown fields are errors.
func Parse(raw []byte) (*Script, error) {
	var s Script
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return nil, err
	}
	return &s, s.compile()
}

// compile checks the script and prepares its expressions.
func (s *Script) compile() error {
	if len(s.Turns) == 0 {
		return errors.New("the script has no turns")
	}
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("turn %d", i+1)
		}
		var err error
		if t.Match.regexp, err = regexp.Compile(t.Match.Regexp); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		t.Reply.text, err = template.New(t.Name).Option("missingkey=error").Parse(t.Reply.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		for _, c := range t.Reply.ToolCalls {
			if c.Name == "" {
				return fmt.Errorf("%s: a tool call without a name", t.Name)
			}
		}
	}
	return nil
}

// matches reports whether the turn is meant for the request.
func (m Match) matches(r *Request) bool {
	last := r.Messages[len(r.Messages)-1]
	switch {
	case m.Turn != 0 && m.Turn != r.Turn(),
		m.Step != 0 && m.Step != r.Step(),
		m.LastRole != "" && m.LastRole != last.Role,
		m.Contains != "" && !strings.Contains(last.Text(), m.Contains),
		m.regexp != nil && !m.regexp.MatchString(last.Text()),
		m.Model != "" && m.Model != r.Model,
		m.NoTools && len(r.Tools) > 0,
		m.System != "" && !strings.Contains(r.System(), m.System):
		return false
	}
	for _, name := range m.Offered {
		if !r.offers(name) {
			return false
		}
	}
	return true
}

// delay returns the pause before each chunk.
func (f *Fault) delay() time.Duration {
	if f == nil {
		return 0
	}
	return f.ChunkDelay.Duration
}
