// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/json"
)

// Definition describes a tool to a model.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of root type object. Empty means no parameters.
	Parameters json.RawMessage
	// Strict asks the vendor to make calls that fit Parameters in any case.
	Strict bool
}

// Typed returns the schema of the parameters with a type at its root: vendors refuse one without it, and object is the only one.
func (d *Definition) Typed() json.RawMessage {
	raw := bytes.TrimSpace(d.Parameters)
	var root map[string]json.RawMessage
	if !bytes.HasPrefix(raw, []byte("{")) || json.Unmarshal(raw, &root) != nil || root["type"] != nil {
		return raw
	}
	rest := bytes.TrimSpace(raw[1:])
	if len(root) > 0 {
		rest = append([]byte(","), rest...)
	}
	return append([]byte(`{"type":"object"`), rest...)
}
