// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	sdk "github.com/openai/openai-go/v3"

	"github.com/platform-ai/platform/pkg/llm"
)

// request is a request under construction.
type request struct{ sdk.ChatCompletionNewParams }

// What a model is told about results, which are texts here and nothing else.
const (
	failedNotice = "[platform notice] The call failed.\n"
	shownNotice  = "[platform notice] The images of the result follow."
)

// resultOf returns the text of a tool's result.
func resultOf(m llm.Message) string {
	text := m.Text
	if m.Failed {
		text = failedNotice + text
	}
	if len(m.Images()) > 0 {
		if text != "" {
			text += "\n"
		}
		text += shownNotice
	}
	return text
}

// parts returns texts and images in the vendor's form.
func parts(all []llm.Content) (out []sdk.ChatCompletionContentPartUnionParam) {
	for _, c := range all {
		if c.Image == nil {
			out = append(out, sdk.TextContentPart(c.Text))
			continue
		}
		url := c.Image.URL
		if c.Image.Data != "" {
			url = "data:" + c.Image.MediaType + ";base64," + c.Image.Data
		}
		out = append(out, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: url}))
	}
	return out
}

// choose says which tools may be called.
func (p *request) choose(c llm.ToolChoice, w way) {
	switch c.Mode {
	case llm.ChoiceNone, llm.ChoiceRequired:
		p.ToolChoice.OfAuto = sdk.String(string(c.Mode))
	case llm.ChoiceNamed:
		p.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: c.Name})
	}
	if c.Single && !w.lacks[hintParallel] {
		p.ParallelToolCalls = sdk.Bool(false)
	}
}
