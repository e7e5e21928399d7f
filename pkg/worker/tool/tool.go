// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool defines what a model can call: the Tool interface, the Catalogue, which checks
// arguments against a tool's JSON Schema before the tool runs, and the structured result that
// the model reads. Tools return values and errors; only this package turns them into the text
// of a result.
package tool

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tooldef"
)

// Definition describes a tool to a model.
type Definition = tooldef.Definition

// Tool is one thing that a model can do.
type Tool interface {
	// Definition returns the same value on every call.
	Definition() Definition
	// Call runs the tool. The arguments satisfy the tool's schema. The value becomes the result's
	// data and must be encodable as JSON. An *Error is shown to the model as it is; any other
	// error is shown as an internal error.
	Call(ctx context.Context, arguments json.RawMessage) (any, error)
}

// New makes a tool from a func. The schema comes from the argument struct; see SchemaOf.
func New[A any](name, description string, call func(ctx context.Context, arguments A) (any, error), choices ...Choice) Tool {
	return &funcTool[A]{
		definition: Definition{Name: name, Description: description, Parameters: SchemaOf[A](choices...)},
		call:       call,
	}
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

// traceparent matches the header of W3C Trace Context, version 00.
var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Traceparent returns the W3C trace context of a task, which requests of its tools carry; empty if there is no valid one.
func Traceparent(t *v1alpha1.Task) string {
	s := t.Annotations[v1alpha1.AnnotationTraceparent]
	if !traceparent.MatchString(s) {
		return ""
	}
	return s
}

type approvalKey struct{}

// WithApproval returns a context with the id of the approval of the call.
func WithApproval(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, approvalKey{}, id)
}

// ApprovalOf returns the id of the approval of the call in ctx; empty for a call that needed
// none. An approval is used for one call only, so a server can recognise a repeated request by
// the id.
func ApprovalOf(ctx context.Context) string {
	id, _ := ctx.Value(approvalKey{}).(string)
	return id
}
