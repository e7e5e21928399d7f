// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/sse"
)

// merge adds what another row of the same method and path accepts and answers.
func merge(first, second object) {
	have, _ := first["parameters"].([]object)
	more, _ := second["parameters"].([]object)
	for _, p := range more {
		if !slices.ContainsFunc(have, func(q object) bool { return q["name"] == p["name"] && q["in"] == p["in"] }) {
			have = append(have, p)
		}
	}
	first["parameters"] = have
	to, _ := first["responses"].(object)
	from, _ := second["responses"].(object)
	for code, response := range from {
		if _, has := to[code]; !has {
			to[code] = response
			continue
		}
		if one, ok := to[code].(object)["content"].(object); ok {
			if other, ok := response.(object)["content"].(object); ok {
				join(one, other)
			}
		}
	}
}

// join adds the media types of another row's answer. If both rows answer with one, its schema is either.
func join(first, second object) {
	for media, answer := range second {
		have, ok := first[media].(object)
		if more, both := answer.(object); ok && both && !reflect.DeepEqual(have, more) {
			answer = object{"schema": object{"anyOf": []any{have["schema"], more["schema"]}}}
		}
		first[media] = answer
	}
}

// probe describes a health check, which needs no credentials.
func probe(text string, codes ...int) object {
	out := object{}
	for _, code := range codes {
		out[strconv.Itoa(code)] = object{"description": http.StatusText(code), "content": content("application/json", ref("Health"))}
	}
	path := strings.Fields(text)[2]
	return object{"operationId": "probe" + strings.ToUpper(path[:1]) + path[1:], "description": text + " The secure port answers so to Accept: application/json, and with a text otherwise.", "security": []object{}, "responses": out, "tags": []string{"health"}}
}

func errorSchema() object {
	return object{
		"type": "object", "description": "Error is the body of every error.", "required": []string{"error"},
		"properties": object{"error": object{
			"type": "object", "required": []string{"code", "message"},
			"properties": object{
				"code":    object{"type": "integer", "description": "code is the HTTP status."},
				"message": object{"type": "string", "description": "message names the field and the rule."},
			},
		}},
	}
}

func healthSchema() object {
	return object{
		"type": "object", "required": []string{"status"},
		"properties": object{
			"status": object{"type": "string", "enum": []string{"ok", "not ready"}},
			"checks": object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "checks are ok, or say what is wrong."},
		},
	}
}

// stream describes server-sent events.
func stream() object {
	return content(sse.ContentType, object{"type": "string", "description": "Server-sent events. The connection stays open until the stream ends."})
}
