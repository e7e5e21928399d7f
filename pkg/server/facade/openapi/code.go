// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// failures returns the status codes of a row's errors.
func failures(r rest.Row) []int {
	codes := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if named(r) || strings.Contains(r.Path, ":") {
		codes = append(codes, http.StatusNotFound)
	}
	writes := false
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
