// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tooldef defines how a tool is described to a model. Packages that make tools and packages that
// call models both use it, so that neither depends on the other.
package tooldef

import "encoding/json"

// Definition describes a tool to a model.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of root type object. Empty means no parameters.
	Parameters json.RawMessage
}
