// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/server/cors"
)

// operation is what a request asks for.
type operation string

// Operations. The value is the path below the API's version, at the vendor, too.
const (
	opChat      operation = "chat/completions"
	opResponses operation = "responses"
	opMessages  operation = "messages"
	opCount     operation = "messages/count_tokens"
	opModels    operation = "models"
)

// conversation returns the member of a request that has the conversation.
func (op operation) conversation() string {
	if op == opResponses {
		return "input"
	}
	return "messages"
}

// format returns the member of a request that has the form of the answer.
func (op operation) format() string {
	switch op {
	case opResponses:
		return "text"
	case opMessages:
		return "output_config"
	case opChat, opCount, opModels:
	}
	return "response_format"
}

// route is one path.
type route struct {
	style    llm.Protocol
	op       operation
	resource string // of the group, for authorization
	model    string // the model that a path of opModels names; empty for the list
}

const (
	openAIPrefix, openAIAlias       = "/openai/v1/", "/provider-a/v1/"
	anthropicPrefix, anthropicAlias = "/anthropic/v1/", "/provider-b/v1/"
)

// tasksPrefix begins the paths of tasks, below which their workers have the same paths; see ofTask.
var tasksPrefix = "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/"

// ofTask returns the namespace and the name of the task whose models a path is below, and the rest of the path. Of another
// path it returns the path.
func ofTask(path string) (namespace, name, rest string) {
	after, ok := strings.CutPrefix(path, tasksPrefix)
	if !ok {
		return "", "", path
	}
	if namespace, after, ok = strings.Cut(after, "/tasks/"); ok {
		name, rest, ok = strings.Cut(after, "/"+runspec.ModelsSubresource+"/")
	}
	if !ok || namespace == "" || name == "" || strings.Contains(namespace, "/") || strings.Contains(name, "/") {
		return "", "", path
	}
	return namespace, name, "/" + rest
}

// split returns the protocol of a path and the operation that the rest of the path names.
func split(path string) (llm.Protocol, operation, bool) {
	_, _, path = ofTask(path)
	for _, prefix := range []string{openAIPrefix, openAIAlias} {
		if rest, ok := strings.CutPrefix(path+"/", prefix); ok {
			return llm.ProtocolOpenAI, operation(strings.TrimSuffix(rest, "/")), true
		}
	}
	for _, prefix := range []string{anthropicPrefix, anthropicAlias} {
		if rest, ok := strings.CutPrefix(path+"/", prefix); ok {
			return llm.ProtocolAnthropic, operation(strings.TrimSuffix(rest, "/")), true
		}
	}
	return "", "", false
}

// owns reports whether a path belongs to this package.
func owns(path string) bool {
	_, _, ok := split(path)
	return ok
}

// styleOf returns the protocol of a path, which determines the form of errors.
func styleOf(path string) llm.Protocol {
	style, _, _ := split(path)
	return style
}

// operations returns what a protocol has.
func operations(style llm.Protocol) []operation {
	if style == llm.ProtocolAnthropic {
		return []operation{opMessages, opCount, opModels}
	}
	return []operation{opChat, opResponses, opModels}
}

// find returns the route of a request.
func find(method, path string) (route, error) {
	style, op, _ := split(path)
	op, model := op.ofModel()
	if !slices.Contains(operations(style), op) {
		return route{}, problem{code: http.StatusNotFound, message: "unknown path; known are " + known(style)}
	}
	found := route{style: style, op: op, resource: "chats", model: model}
	allowed := []string{http.MethodPost}
	if op == opModels {
		found.resource, allowed = "providers", []string{http.MethodGet, http.MethodHead}
	}
	if !slices.Contains(allowed, method) {
		return route{}, problem{code: http.StatusMethodNotAllowed, message: "use " + strings.Join(allowed, " or ") + " here", allow: strings.Join(allowed, ", ")}
	}
	return found, nil
}

// ofModel returns opModels and the model that a path below it names, whose name may have slashes; other operations as they are.
func (op operation) ofModel() (of operation, model string) {
	if model, ok := strings.CutPrefix(string(op), string(opModels)+"/"); ok {
		return opModels, model
	}
	return op, ""
}

func known(style llm.Protocol) string {
	var names []string
	for _, op := range operations(style) {
		names = append(names, string(op))
	}
	return strings.Join(names, ", ")
}

// newCORS allows pages of the origins to send what the vendors' SDKs send from a browser, and transaction tokens.
func newCORS(origins, tokens []string) cors.Policy {
	return cors.New(origins, []string{http.MethodGet, http.MethodHead, http.MethodPost}, slices.Concat(cors.VendorHeaders(), tokens),
		[]string{"Request-Id", "Retry-After", headerRequestID, headerTools, headerLeft, headerPassed, headerEstimated})
}
