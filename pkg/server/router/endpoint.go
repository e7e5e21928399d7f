// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"strings"
)

// style is the kind of API that a path belongs to. It determines the accepted credentials and the form of errors.
type style int

const (
	chatCompletions style = iota
	messages
)

// endpoint is one operation that is forwarded.
type endpoint struct {
	style  style
	method string
	path   string // at the installation
}

// name returns the name of the endpoint in logs and metrics.
func (e endpoint) name() string {
	if e.path == "" {
		return "unknown"
	}
	return e.method + " " + e.path
}

const (
	chatCompletionsPrefix, chatCompletionsAlias = "/openai/v1", "/provider-a/v1"
	messagesPrefix, messagesAlias               = "/anthropic/v1", "/provider-b/v1"
)

// endpoints returns all forwarded operations, by method and path. Aliases are paths without a vendor's name.
func endpoints() map[string]endpoint {
	all := map[string]endpoint{}
	add := func(s style, prefix, alias, method, path string) {
		e := endpoint{style: s, method: method, path: prefix + path}
		all[method+" "+prefix+path] = e
		all[method+" "+alias+path] = e
	}
	add(chatCompletions, chatCompletionsPrefix, chatCompletionsAlias, http.MethodPost, "/chat/completions")
	add(chatCompletions, chatCompletionsPrefix, chatCompletionsAlias, http.MethodPost, "/responses")
	add(chatCompletions, chatCompletionsPrefix, chatCompletionsAlias, http.MethodGet, "/models")
	add(messages, messagesPrefix, messagesAlias, http.MethodPost, "/messages")
	add(messages, messagesPrefix, messagesAlias, http.MethodPost, "/messages/count_tokens")
	add(messages, messagesPrefix, messagesAlias, http.MethodGet, "/models")
	return all
}

// styleOf returns the style of any path, for the form of errors.
func styleOf(path string) style {
	for _, prefix := range []string{messagesPrefix, messagesAlias} {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return messages
		}
	}
	return chatCompletions
}

// knownMethod keeps methods that clients invent out of logs.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodOptions, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "other"
}
