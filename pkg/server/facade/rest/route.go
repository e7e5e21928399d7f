// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/server/wellformed"
)

func (r Row) segments() []string { return strings.Split(r.Path[1:], "/") }

// match returns the values of the pattern's parameters.
func (r Row) match(segments []string) (map[string]string, bool) {
	pattern := r.segments()
	if r.Below && len(segments) > len(pattern) {
		segments = segments[:len(pattern)]
	}
	if len(pattern) != len(segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, p := range pattern {
		name, param := strings.CutPrefix(p, ":")
		switch {
		case param && segments[i] != "":
			params[name] = segments[i]
		case param || p != segments[i]:
			return nil, false
		}
	}
	return params, true
}

// wants reports whether a row serves a request of its path.
func (f *Facade) wants(row Row, r *http.Request) bool {
	if row.When == nil {
		return true
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return true // whichever row it is, the request is refused
	}
	authType, _ := f.external(r)
	return row.When(r, authType)
}

// Given is for rows that serve requests with one of the query parameters. An empty value asks for nothing.
func Given(names ...string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool {
		q := wellformed.Query(r)
		return slices.ContainsFunc(names, func(name string) bool { return q.Get(name) != "" })
	}
}

// On is for rows that serve requests whose query parameter is not false. A value that is not a boolean selects the row, so that the
// native side refuses it.
func On(name string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool {
		value := wellformed.Query(r).Get(name)
		on, err := strconv.ParseBool(value)
		return on || err != nil && value != ""
	}
}

// find returns the row of a request, or an error if there is none.
func (f *Facade) find(r *http.Request) (Row, map[string]string, error) {
	segments, ok := split(r.URL.EscapedPath())
	if !ok {
		return Row{}, nil, restError{code: http.StatusBadRequest, message: "the path is not properly escaped"}
	}
	var allowed []string
	var near Row
	for _, candidate := range f.rows {
		params, ok := candidate.match(segments)
		if !ok {
			continue
		}
		if candidate.Method == r.Method && f.wants(candidate, r) {
			return candidate, params, oneSegmentEach(params)
		}
		near = candidate
		if candidate.When == nil {
			allowed = append(allowed, candidate.Method)
		}
	}
	if len(allowed) == 0 {
		return Row{}, nil, restError{code: http.StatusNotFound, message: fmt.Sprintf("there is nothing at %s", r.URL.Path)}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return Row{Path: near.Path}, nil, restError{
		code: http.StatusMethodNotAllowed, message: "the method is not allowed here; allowed: " + allow, allow: allow,
	}
}

// oneSegmentEach refuses values that would address something else in a native path.
func oneSegmentEach(params map[string]string) error {
	for name, v := range params {
		if v == "." || v == ".." || strings.Contains(v, "/") {
			return restError{code: http.StatusBadRequest, message: fmt.Sprintf("%s: must be one path element", name)}
		}
	}
	return nil
}

// split splits a path into segments; it ignores a slash at the end.
func split(escaped string) ([]string, bool) {
	path, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, false
	}
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i, s := range segments {
		v, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = v
	}
	return segments, true
}

// family returns the part of a path that identifies the API it belongs to.
func family(segments []string) string {
	switch {
	case len(segments) >= 3 && segments[0] == "api":
		return strings.Join(segments[:3], "/")
	case len(segments) >= 2:
		return strings.Join(segments[:2], "/")
	}
	return ""
}
