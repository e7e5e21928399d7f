// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

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

// output sets the effort and the form of the answer. The SDK's own type would decode the schema, and with it numbers.
func output(p *sdk.MessageNewParams, req llm.Request, lacks map[string]bool) {
	type format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	var config struct {
		Effort string  `json:"effort,omitempty"`
		Format *format `json:"format,omitempty"`
	}
	if !lacks[hintEffort] {
		config.Effort = req.Effort
	}
	if schema, ok := SchemaOf(req.Format); ok {
		config.Format = &format{"json_schema", schema}
	}
	if config.Effort != "" || config.Format != nil {
		p.OutputConfig = param.Override[sdk.OutputConfigParam](config)
	}
}

// choice says which tools may be called.
func choice(c llm.ToolChoice) (out sdk.ToolChoiceUnionParam) {
	single := param.Opt[bool]{}
	if c.Single {
		single = sdk.Bool(true)
	}
	switch c.Mode {
	case llm.ChoiceNone:
		out.OfNone = &sdk.ToolChoiceNoneParam{}
	case llm.ChoiceRequired:
		out.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: single}
	case llm.ChoiceNamed:
		out.OfTool = &sdk.ToolChoiceToolParam{Name: c.Name, DisableParallelToolUse: single}
	default:
		if c.Single {
			out.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}
		}
	}
	return out
}

// user returns texts and images in the vendor's form.
func (w writer) user(m llm.Message) (blocks []sdk.ContentBlockParamUnion) {
	for _, c := range m.Content {
		switch i := c.Image; {
		case i == nil && w.says(c.Text):
			blocks = append(blocks, sdk.NewTextBlock(c.Text))
		case i == nil:
		case i.Data != "":
			blocks = append(blocks, sdk.NewImageBlockBase64(i.MediaType, i.Data))
		default:
			blocks = append(blocks, sdk.NewImageBlock(sdk.URLImageSourceParam{URL: i.URL}))
		}
	}
	return blocks
}
