// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"slices"
	"strings"
)

// objectOf describes an object with the members.
func objectOf(members object, required []string) object {
	o := object{"type": "object", "properties": members}
	if len(required) > 0 {
		slices.Sort(required)
		o["required"] = slices.Compact(required)
	}
	return o
}

// typed returns the schema of Field.Type.
func typed(t string) object {
	if t == "date-time" {
		return object{"type": "string", "format": t}
	}
	return object{"type": strings.Split(t, "|")}
}

// ofValue returns the schema of a constant.
func ofValue(text string) object {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // rows have valid JSON
	switch v := v.(type) {
	case bool:
		return object{"type": "boolean", "const": v}
	case object:
		return object{"type": "object"}
	default:
		return object{}
	}
}
