// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"maps"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// params turns a request into the SDK's.
func params(req llm.Request, w way) sdk.ChatCompletionNewParams {
	p := request{sdk.ChatCompletionNewParams{Model: req.Model}}
	p.converse(req.Messages, w)
	for _, t := range req.Tools {
		t.Strict = t.Strict && !w.lacks[hintStrict]
		p.Tools = append(p.Tools, toolParam(t))
	}
	if len(p.Tools) > 0 {
		p.choose(req.Choice, w)
	}
	if req.Temperature != nil {
		p.Temperature = sdk.Float(*req.Temperature)
	}
	if req.TopP != nil && !w.lacks[hintTopP] {
		p.TopP = sdk.Float(*req.TopP)
	}
	if req.Effort != "" && !w.lacks[hintEffort] {
		p.ReasoningEffort = shared.ReasoningEffort(req.Effort)
	}
	if req.MaxTokens > 0 {
		if w.newMaxTokens {
			p.MaxCompletionTokens = sdk.Int(req.MaxTokens)
		} else {
			p.MaxTokens = sdk.Int(req.MaxTokens)
		}
	}
	if len(req.Format) > 0 {
		p.ResponseFormat = param.Override[sdk.ChatCompletionNewParamsResponseFormatUnion](req.Format)
	}
	if len(req.Stop) > 0 {
		p.Stop.OfStringArray = req.Stop
	}
	if !w.noUsageOption && !w.whole {
		p.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	return p.ChatCompletionNewParams
}

// converse adds the conversation. Images of results, which cannot be part of these, are a message of the user after them.
func (p *request) converse(messages []llm.Message, w way) {
	turn := lastTurn(messages)
	var shown []llm.Content
	show := func() {
		if len(shown) > 0 {
			p.Messages = append(p.Messages, sdk.UserMessage(parts(shown)))
		}
		shown = nil
	}
	for i, m := range llm.DistinctIDs(messages, func(id string) string { return id }) {
		if m.Role != llm.RoleTool {
			show()
		}
		u := message(m)
		if i >= turn && u.OfAssistant != nil {
			if members := thinkingOf(m, w.thinkingOf); len(members) > 0 {
				maps.Copy(members, u.OfAssistant.ExtraFields())
				u.OfAssistant.SetExtraFields(members)
			}
		}
		p.Messages = append(p.Messages, u)
		if m.Role == llm.RoleTool {
			shown = append(shown, m.Images()...)
		}
	}
	show()
}

func message(m llm.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case llm.RoleSystem:
		return sdk.SystemMessage(m.Text)
	case llm.RoleTool:
		return sdk.ToolMessage(resultOf(m), m.ToolCallID)
	case llm.RoleAssistant:
		return assistant(m)
	case llm.RoleUser:
	}
	if len(m.Content) > 0 {
		return sdk.UserMessage(parts(m.Content))
	}
	return sdk.UserMessage(m.Text)
}

func assistant(m llm.Message) sdk.ChatCompletionMessageParamUnion {
	var out sdk.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.ToolCalls) == 0 {
		out.Content.OfString = sdk.String(m.Text)
	} else { // some servers require the member
		out.SetExtraFields(map[string]any{"content": nil})
	}
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: call.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: call.Name, Arguments: arguments(call.Arguments),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &out}
}

// arguments returns what the model wrote if it is JSON. Anything else is replaced, because many
// servers refuse a whole conversation for it, and the tool result already tells the model what
// was wrong.
func arguments(s string) string {
	if json.Valid([]byte(s)) {
		return s
	}
	return "{}"
}

// function is a definition whose schema is sent as it is. The SDK's own type would decode it, and with it numbers.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

func toolParam(t tool.Definition) sdk.ChatCompletionToolUnionParam {
	f := function{Name: t.Name, Description: t.Description, Strict: t.Strict}
	// The schema was checked when the tool was made; a missing one is left out.
	if raw := t.Typed(); bytes.HasPrefix(raw, []byte("{")) && json.Valid(raw) {
		f.Parameters = raw
	}
	return sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](f))
}
