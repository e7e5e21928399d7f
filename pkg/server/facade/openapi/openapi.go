// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi describes the rows of the REST facade as an OpenAPI 3.1 document. Paths, parameters, permissions and
// status codes follow from the rows; schemas follow from the types of the native answers, whose fields the rows select. So a
// row that names a member which its kind lacks fails a test. The server answers with the document at /api/v1/openapi.json, and
// artifacts/reference/rest.md is made of it. The client of the REST tests (test/kit/standalone) compares every answer with the
// document: an undocumented status code, media type or member fails whichever test got it.
//
//	openapi.go   the document and its operations
//	answer.go    schemas of answers
//	field.go     schemas of members that rows select
//	code.go      status codes
//	parts.go     what operations share
//	build.go     schemas of values
//	request.go   parameters and bodies
//	schema.go    the schemas of the native types
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/common"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// Version is the version of OpenAPI that documents follow.
const Version = "3.1.0"

// Source is what a document is made of.
type Source struct {
	Rows []rest.Row
	// Kinds are the kinds of native answers by verb and resource, as "get tasks/plan", or by resource alone.
	Kinds map[string]string
	// Parameters describe the query parameters that rows pass on, by name.
	Parameters  map[string]rest.Parameter
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
				"so x-permissions of an operation lists what its caller needs. Unknown query parameters and unknown members of bodies are refused.",
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
		op["parameters"] = b.pathParameters(r)
		return op, nil
	}
	if r.Plain {
		op["description"] = "Without a cluster, this path is one of Kubernetes' own on the secure port, and the listener of REST serves it."
	}
	params, err := b.parameters(r)
	if err != nil {
		return nil, err
	}
	op["parameters"] = params
	if r.Body != nil {
		body, err := b.body(r)
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
