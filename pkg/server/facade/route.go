// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// row is one REST endpoint.
type row struct {
	method string
	// pattern is the path as the contract writes it: a segment that begins with ":" takes any value.
	pattern string
	// body is how long the request's body may be, in bytes; 0 where the row reads none.
	body int64
	// native are the verbs and resources that the row uses, such as "create tasks/fork".
	native []string
	serve  func(c *call) error
}

// Row tells of one REST endpoint.
type Row struct {
	// Method is the HTTP method.
	Method string
	// Path is the path, with parameters written as ":name".
	Path string
	// Native are the verbs and resources behind it, such as "create tasks/fork": what the caller needs permission for.
	Native []string
}

// Rows lists the endpoints in the order of the table.
func Rows() []Row {
	rows := table()
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{Method: r.method, Path: r.pattern, Native: slices.Clone(r.native)}
	}
	return out
}

func (r row) segments() []string { return strings.Split(r.pattern[1:], "/") }

// match gives the values of the pattern's parameters.
func (r row) match(segments []string) (map[string]string, bool) {
	pattern := r.segments()
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

// find gives the row of a request, or says why there is none.
func (f *Facade) find(r *http.Request) (row, map[string]string, error) {
	segments, ok := split(r.URL.EscapedPath())
	if !ok {
		return row{}, nil, restError{code: http.StatusBadRequest, message: "the path is not properly escaped"}
	}
	var allowed []string
	var near row
	for _, candidate := range f.rows {
		params, ok := candidate.match(segments)
		if !ok {
			continue
		}
		if candidate.method == r.Method {
			return candidate, params, oneSegmentEach(params)
		}
		near = candidate
		allowed = append(allowed, candidate.method)
	}
	if len(allowed) == 0 {
		return row{}, nil, restError{code: http.StatusNotFound, message: fmt.Sprintf("there is nothing at %s", r.URL.Path)}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return row{pattern: near.pattern}, nil, restError{
		code: http.StatusMethodNotAllowed, message: "the method is not allowed here; allowed: " + allow, allow: allow,
	}
}

// oneSegmentEach refuses values that would address something else once they stand in a native path.
func oneSegmentEach(params map[string]string) error {
	for name, v := range params {
		if v == "." || v == ".." || strings.Contains(v, "/") {
			return restError{code: http.StatusBadRequest, message: fmt.Sprintf("%s: must be one path element", name)}
		}
	}
	return nil
}

// split takes a path apart; a slash at its end means nothing.
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

// family is the part of a path that says whose it is.
func family(segments []string) string {
	switch {
	case len(segments) >= 3 && segments[0] == "api":
		return strings.Join(segments[:3], "/")
	case len(segments) >= 2:
		return strings.Join(segments[:2], "/")
	}
	return ""
}
