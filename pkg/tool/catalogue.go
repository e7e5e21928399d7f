// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/canonical"
)

// namePattern matches the function names that every vendor accepts.
var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// ValidName reports whether every vendor accepts a name as that of a function.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Catalogue is the set of tools of one run, in the order in which they were given.
type Catalogue struct {
	tools   map[string]entry
	ordered []Definition
}

type entry struct {
	tool   Tool
	schema *schema
}

// NewCatalogue checks the tools' names and schemas.
func NewCatalogue(tools ...Tool) (*Catalogue, error) {
	c := &Catalogue{tools: map[string]entry{}}
	if err := c.Add(tools...); err != nil {
		return nil, err
	}
	return c, nil
}

// Add adds tools after those that are there. A tool may add others while it is called: a model is offered them with the next request.
func (c *Catalogue) Add(tools ...Tool) error {
	for _, t := range tools {
		d := t.Definition()
		if !ValidName(d.Name) {
			return fmt.Errorf("tool name %q: must be 1 to 64 letters, digits, - and _", d.Name)
		}
		if _, ok := c.tools[d.Name]; ok {
			return fmt.Errorf("two tools are named %s", d.Name)
		}
		s, err := compile(d.Parameters)
		if err != nil {
			return fmt.Errorf("parameters of tool %s: %w", d.Name, err)
		}
		if len(d.Parameters) == 0 {
			d.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		c.tools[d.Name] = entry{t, s}
		c.ordered = append(c.ordered, d)
	}
	return nil
}

// Definitions returns the tools for a model.
func (c *Catalogue) Definitions() []Definition { return slices.Clone(c.ordered) }

// Check parses arguments as a model wrote them. It returns the object with which Call would run
// the tool, or an *Error if Call would not run it.
func (c *Catalogue) Check(name, arguments string) (json.RawMessage, error) {
	e, ok := c.tools[name]
	if !ok {
		return nil, c.unknown(name)
	}
	raw, err := parseArguments(arguments)
	if err != nil {
		return nil, err
	}
	return raw, e.schema.check(raw)
}

// Definition returns the tool with the given name, and false if there is none.
func (c *Catalogue) Definition(name string) (Definition, bool) {
	for _, d := range c.ordered {
		if d.Name == name {
			return d, true
		}
	}
	return Definition{}, false
}

// Reserve has a tool keep the effect of a call for which people are to be asked, with the arguments that Check returned. It returns the name
// of the ToolEffect; empty for a tool that has none. The error is an *Error if the call cannot be made.
func (c *Catalogue) Reserve(ctx context.Context, name string, arguments json.RawMessage) (effect string, err error) {
	r, ok := c.tools[name].tool.(Reserver)
	if !ok {
		return "", nil
	}
	effect, err = r.Reserve(ctx, arguments)
	if _, known := errors.AsType[*Error](err); err == nil || known {
		return effect, err
	}
	if ctx.Err() != nil {
		return "", Errorf(TypeCancelled, "the run was stopped")
	}
	klog.FromContext(ctx).Error(err, "The effect of a call cannot be kept", "tool", name)
	return "", Errorf(TypeUnavailable, "%s cannot be called now", name)
}

// Call checks the arguments, as a model wrote them, and runs the tool. It always returns a
// result: errors are reported to the model.
func (c *Catalogue) Call(ctx context.Context, name, arguments string) Result {
	raw, err := c.Check(name, arguments)
	if err != nil {
		return Failure(err)
	}
	data, err := c.tools[name].tool.Call(ctx, raw)
	typed, known := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return success(data)
	case known && typed.Type == TypeOutcomeUnknown: // also if the run was stopped
		return Failure(err)
	case ctx.Err() != nil:
		return Failure(Errorf(TypeCancelled, "the run was stopped"))
	}
	if !known {
		klog.FromContext(ctx).Error(err, "Tool failed unexpectedly", "tool", name)
	}
	return Failure(err)
}

func (c *Catalogue) unknown(name string) *Error {
	names := make([]string, 0, len(c.ordered))
	for _, d := range c.ordered {
		names = append(names, d.Name)
	}
	return Errorf(TypeUnknownTool, "there is no tool %.64q", name).Suggest("available tools: %v", names)
}

// parseArguments accepts one JSON object that every reader understands alike. An empty text counts as an empty object, because
// models write nothing if a tool has no parameters.
func parseArguments(s string) (json.RawMessage, error) {
	raw := bytes.TrimSpace([]byte(s))
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	advice := "send the arguments as one complete JSON object"
	dec := json.NewDecoder(bytes.NewReader(raw))
	var object map[string]json.RawMessage
	err := dec.Decode(&object)
	switch {
	case err != nil:
		return nil, InvalidArguments("the arguments are not a JSON object: %v", err).Suggest("%s", advice)
	case object == nil:
		return nil, InvalidArguments("the arguments are null").Suggest("%s", advice)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, InvalidArguments("there is text after the arguments").Suggest("%s", advice)
	}
	if err := canonical.Check(raw); err != nil {
		// Policies, people and the tool itself could read such arguments differently, or not at all.
		return nil, InvalidArguments("the arguments cannot be read without doubt: %v", err).Suggest("%s", advice)
	}
	return raw, nil
}
