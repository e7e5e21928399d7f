// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// effort reads how much a model thinks.
func effort(param, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if e := llm.Effort(name); e != "" {
		return e, nil
	}
	return "", untranslatable(param, "this value")
}

// picked is a choice of tools in the form of OpenAI's APIs, of which chat completions nest what responses have flat.
type picked struct {
	Type     string       `json:"type"`
	Name     string       `json:"name"`
	Function *pickedName  `json:"function"`
	Mode     string       `json:"mode"`
	Tools    []picked     `json:"tools"`
	Allowed  *pickedAmong `json:"allowed_tools"`
}

type (
	pickedName struct {
		Name string `json:"name"`
	}
	pickedAmong struct {
		Mode  string   `json:"mode"`
		Tools []picked `json:"tools"`
	}
)

// tool returns the name of the function that is picked; empty for another kind of tool.
func (p *picked) tool() string {
	switch {
	case p.Type != callFunction:
		return ""
	case p.Function != nil:
		return p.Function.Name
	}
	return p.Name
}

// callFunction is the type of tools that clients run.
const callFunction = "function"

// chooseAs reads the choice of tools of a chat completion or a response.
func (t *translated) chooseAs(choice json.RawMessage, parallel *bool) error {
	single := parallel != nil && !*parallel
	var mode string
	switch {
	case null(choice):
		return t.choose("auto", "", single)
	case json.Unmarshal(choice, &mode) == nil:
		return t.choose(mode, "", single)
	}
	var p picked
	if err := strict(choice, &p); err != nil {
		return untranslatable("tool_choice", "this form")
	}
	if p.Allowed != nil {
		p.Mode, p.Tools = p.Allowed.Mode, p.Allowed.Tools
	}
	switch p.Type {
	case callFunction:
		return t.choose("tool", p.tool(), single)
	case "allowed_tools":
		var names []string
		for i := range p.Tools {
			names = append(names, p.Tools[i].tool())
		}
		t.Tools = slices.DeleteFunc(t.Tools, func(d tool.Definition) bool { return !slices.Contains(names, d.Name) })
		return t.choose(p.Mode, "", single)
	}
	return untranslatable("tool_choice", "a tool of type "+p.Type)
}

// choose sets the choice of tools, whose modes have the names of all three APIs.
func (t *translated) choose(mode, name string, single bool) error {
	t.Choice.Single = single
	switch mode {
	case "auto":
	case "none":
		t.Choice = llm.ToolChoice{Mode: llm.ChoiceNone}
	case "required", "any":
		if t.Choice.Mode = llm.ChoiceRequired; len(t.Tools) == 0 {
			return untranslatable("tool_choice", "a call of a tool where none is left")
		}
	case "tool":
		t.Choice.Mode, t.Choice.Name = llm.ChoiceNamed, name
		if !slices.ContainsFunc(t.Tools, func(d tool.Definition) bool { return d.Name == name }) {
			return untranslatable("tool_choice", "a tool that is not among those that are carried")
		}
	default:
		return untranslatable("tool_choice", "this value")
	}
	return nil
}
