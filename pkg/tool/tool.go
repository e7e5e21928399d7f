// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool defines what a model can call: how a tool is described to a model, the Tool interface, the Catalogue, which
// checks arguments against a tool's JSON Schema before the tool runs, and the structured result that the model reads. Tools
// return values and errors; only this package turns them into the text of a result. Workers and the server make tools, and
// models are called with their definitions, so this package depends on none of them.
package tool

import (
	"context"
	"encoding/json"
)

// Tool is one thing that a model can do.
type Tool interface {
	// Definition returns the same value on every call.
	Definition() Definition
	// Call runs the tool. The arguments satisfy the tool's schema. The value becomes the result's
	// data and must be encodable as JSON. An *Error is shown to the model as it is; any other
	// error is shown as an internal error.
	Call(ctx context.Context, arguments json.RawMessage) (any, error)
}

// New makes a tool from a func, whose argument struct has the fields that the parameters of the definition describe.
func New[A any](d Definition, call func(ctx context.Context, arguments A) (any, error)) Tool {
	return &funcTool[A]{definition: d, call: call}
}

type funcTool[A any] struct {
	definition Definition
	call       func(context.Context, A) (any, error)
}

func (t *funcTool[A]) Definition() Definition { return t.definition }

func (t *funcTool[A]) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	var a A
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, InvalidArguments("%v", err)
	}
	return t.call(ctx, a)
}
