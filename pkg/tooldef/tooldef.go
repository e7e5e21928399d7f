// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tooldef is what a model is told of a tool. Tools are made with it and
// models are asked with it; neither side needs the other for that.
package tooldef

import "encoding/json"

// Definition describes a tool to a model.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of root type object. Empty means no parameters.
	Parameters json.RawMessage
}
