// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi describes the rows of the REST facade as an OpenAPI 3.1 document. Paths, parameters, permissions and
// status codes follow from the rows; schemas follow from the types of the native answers, whose fields the rows select.
//
//	openapi.go   the document and its operations
//	answer.go    schemas of answers
//	request.go   parameters and bodies
//	schema.go    the schemas of the native types
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/common"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/sse"
)

// Version is the version of OpenAPI that documents follow.
const Version = "3.1.0"

// Source is what a document is made of.
type Source struct {
	Rows []rest.Row
	// Kinds are the kinds of native answers by verb and resource, as "get tasks/plan", or by resource alone.
	Kinds map[string]string
	// Parameters describe the query parameters that rows pass on, by name.
	Parameters  map[string]Parameter
	Definitions common.GetOpenAPIDefinitions
	// Version is the version of the server.
	Version string
}

// object is a JSON object.
type object = map[string]any

// builder builds one document.
type builder struct {
	Source
	types types
}

// Document returns the document as JSON. It fails if a row selects a field that its native type lacks.
func Document(s Source) ([]byte, error) {
	b := &builder{Source: s, types: newTypes(s.Definitions)}
	paths := object{
		"/healthz": object{"get": probe("Reports that the process is alive.", http.StatusOK)},
		"/readyz":  object{"get": probe("Reports whether requests can be served.", http.StatusOK, http.StatusServiceUnavailable)},
	}
	for _, r := range s.Rows {
		if err := b.add(paths, r); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
	}
	schemas, err := b.types.reachable()
	if err != nil {
		return nil, err
	}
	schemas["Error"], schemas["Health"] = errorSchema(), healthSchema()
	data, err := json.Marshal(object{
		"openapi": Version,
		"info": object{
			"title": "Platform REST API", "version": s.Version,
			"description": "The REST paths beside the Kubernetes API. A request is answered by native requests with the caller's own credentials, " +
				"so x-permissions of an operation lists what its caller needs. Unknown query parameters are ignored; unknown members of bodies are refused.",
		},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}, {"apiKey": []string{}}, {"clientCertificate": []string{}}},
		"components": object{
			"schemas": schemas,
			"securitySchemes": object{
				"bearer":            object{"type": "http", "scheme": "bearer"},
				"apiKey":            object{"type": "apiKey", "in": "header", "name": "x-api-key", "description": "A bearer token. It counts only without the header Authorization."},
				"clientCertificate": object{"type": "mutualTLS"},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return data, nil
}

// add adds the operation of a row, or what the row adds to the operation of another row of its method and path.
func (b *builder) add(paths object, r rest.Row) error {
	template := template(r.Path)
	item, ok := paths[template].(object)
	if !ok {
		item = object{}
		paths[template] = item
	}
	op, err := b.operation(r)
	if err != nil {
		return err
	}
	method := strings.ToLower(r.Method)
	if first, ok := item[method].(object); ok {
		merge(first, op)
		return nil
	}
	item[method] = op
	return nil
}

// template returns a path as OpenAPI writes it.
func template(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

func (b *builder) operation(r rest.Row) (object, error) {
	op := object{"operationId": id(r), "tags": []string{tag(r.Path)}, "x-permissions": r.Targets()}
	if r.Answer.Unsupported != "" {
		op["description"] = r.Answer.Unsupported
		op["deprecated"] = false
		op["responses"] = responses(http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusNotImplemented)
		op["parameters"] = pathParameters(r)
		return op, nil
	}
	if r.Plain {
		op["description"] = "Only the listener of REST serves this path."
	}
	params, err := b.parameters(r)
	if err != nil {
		return nil, err
	}
	op["parameters"] = params
	if r.Body != nil {
		body, err := b.body(r.Body)
		if err != nil {
			return nil, err
		}
		op["requestBody"] = body
	}
	all := responses(failures(r)...)
	success, err := b.success(r)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, success)
	op["responses"] = all
	return op, nil
}

// failures returns the status codes of a row's errors.
func failures(r rest.Row) []int {
	codes := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if named(r) || strings.Contains(r.Path, ":") {
		codes = append(codes, http.StatusNotFound)
	}
	writes := r.Reserved != nil
	for _, n := range r.Native {
		writes = writes || n.Verb == "delete" || n.Verb == "patch" || n.Verb == "create" && n.Ask == "" && named(r)
		if n.Page || n.All || slices.Contains(n.Pass, "continue") {
			codes = append(codes, http.StatusGone)
		}
	}
	if writes {
		codes = append(codes, http.StatusConflict, http.StatusGone, http.StatusInsufficientStorage)
	}
	codes = append(codes, r.Answer.Errors...)
	if r.Body != nil {
		codes = append(codes, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge)
	}
	return codes
}

// named reports whether a row works in a namespace.
func named(r rest.Row) bool {
	return slices.ContainsFunc(r.Native, func(n rest.Native) bool {
		return !strings.HasPrefix(n.Path, "/") || strings.Contains(n.Path, ":namespace")
	})
}

// responses describes errors.
func responses(codes ...int) object {
	out := object{}
	for _, code := range codes {
		out[strconv.Itoa(code)] = object{"description": http.StatusText(code), "content": content("application/json", ref("Error"))}
	}
	return out
}

func content(media string, schema any) object { return object{media: object{"schema": schema}} }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// id returns a name of an operation that is unique and stable.
func id(r rest.Row) string {
	var s strings.Builder
	s.WriteString(strings.ToLower(r.Method))
	for _, word := range strings.FieldsFunc(r.Path, func(c rune) bool { return strings.ContainsRune("/:-.", c) }) {
		s.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return s.String()
}

func tag(path string) string {
	segments := strings.Split(path, "/")
	if len(segments) > 3 && (segments[1] == "api" || segments[1] == "internal") {
		return segments[1] + "/" + segments[3]
	}
	return segments[1]
}

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
				maps.Copy(one, other)
			}
		}
	}
}

// probe describes a health check, which needs no credentials.
func probe(text string, codes ...int) object {
	out := object{}
	for _, code := range codes {
		out[strconv.Itoa(code)] = object{"description": http.StatusText(code), "content": content("application/json", ref("Health"))}
	}
	path := strings.Fields(text)[2]
	return object{"operationId": "probe" + strings.ToUpper(path[:1]) + path[1:], "description": text + " The listener of REST answers it.", "security": []object{}, "responses": out, "tags": []string{"health"}}
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
