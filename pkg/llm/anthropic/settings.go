// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// Members that an answer can do without and that not all models take.
const (
	hintEffort = "effort"
	hintTopP   = "top_p"
	hintStrict = "strict"
)

// hints returns those that a request has.
func hints(req llm.Request) (all []string) {
	if req.Effort != "" {
		all = append(all, hintEffort)
	}
	if req.TopP != nil && req.Temperature == nil {
		all = append(all, hintTopP)
	}
	if slices.ContainsFunc(req.Tools, func(t tool.Definition) bool { return t.Strict }) {
		all = append(all, hintStrict)
	}
	return all
}

// refusesHint notes a hint that the server refused, and reports whether there was one. A server that does not know the member
// around the effort names that.
func (c *Client) refusesHint(req llm.Request, e *llm.Error, lacks map[string]bool) bool {
	if e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	for _, name := range hints(req) {
		named := strings.Contains(e.Message, name) || name == hintEffort && len(req.Format) == 0 && strings.Contains(e.Message, "output_config")
		if !lacks[name] && named {
			lacks[name] = true
			c.quirks.Lack(req.Model, name)
			return true
		}
	}
	return false
}

// SchemaOf returns the schema of a form of the answer that chat completions have; false if it has none, and this protocol
// therefore no equivalent.
func SchemaOf(format json.RawMessage) (json.RawMessage, bool) {
	var f struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(format, &f) != nil || f.Type != "json_schema" || len(f.JSONSchema.Schema) == 0 {
		return nil, false
	}
	return f.JSONSchema.Schema, true
}

// output returns the effort and the form of the answer; nil if the request has neither.
func output(req llm.Request, lacks map[string]bool) *outputConfig {
	var config outputConfig
	if !lacks[hintEffort] {
		config.Effort = req.Effort
	}
	if schema, ok := SchemaOf(req.Format); ok {
		config.Format = &outputFormat{"json_schema", schema}
	}
	if config == (outputConfig{}) {
		return nil
	}
	return &config
}

// choice says which tools may be called; nil if the model decides.
func choice(c llm.ToolChoice) *toolChoice {
	switch c.Mode {
	case llm.ChoiceNone:
		return &toolChoice{Type: "none"}
	case llm.ChoiceRequired:
		return &toolChoice{Type: "any", Single: c.Single}
	case llm.ChoiceNamed:
		return &toolChoice{Type: "tool", Name: c.Name, Single: c.Single}
	default:
		if c.Single {
			return &toolChoice{Type: "auto", Single: true}
		}
		return nil
	}
}

// user returns texts and images in the vendor's form.
func (w writer) user(m llm.Message) (blocks []sent) {
	for _, c := range m.Content {
		switch i := c.Image; {
		case i == nil && w.says(c.Text):
			blocks = append(blocks, newText(c.Text))
		case i == nil:
		case i.Data != "":
			blocks = append(blocks, &sentImage{Source: imageSource{Data: i.Data, MediaType: i.MediaType, Type: "base64"}, Type: "image"})
		default:
			blocks = append(blocks, &sentImage{Source: imageSource{URL: i.URL, Type: "url"}, Type: "image"})
		}
	}
	return blocks
}
