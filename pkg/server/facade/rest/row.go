// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"slices"
	"strings"
)

// Row is one REST endpoint: a documented path, the native requests that it maps to, and how parameters and bodies are
// converted. A row is data. Behaviour that needs a decision belongs to the native resource.
//
// Texts in braces are replaced: {name} by a parameter of the path, {label:name} by that parameter as a label value,
// and {part.path} by a member of an earlier native answer. {one | other} is replaced by the first of these that has a
// value.
type Row struct {
	// Method is the HTTP method.
	Method string
	// Path is the documented path. A segment that begins with ":" matches any value. The namespace is the segment
	// ":namespace" if there is one, otherwise the one that the body or the query names, otherwise the caller's own.
	Path string
	// Below is set if the row also serves all paths below Path.
	Below bool
	// Namespaces are the query parameters that may name the namespace; the first that is given counts, and of several
	// values separated by commas the first. Default: namespace.
	Namespaces []string
	// When names a query parameter. The row then serves the requests of its path that have this parameter, unless it
	// is false. The row of the same path without When serves the others.
	When string
	// Any are query parameters. The row then serves the requests of its path that have one of them. The row of the same path
	// without Any serves the others.
	Any []string
	// Accept is a media type. The row then serves the requests of its path whose header Accept is exactly that. The row
	// of the same path without Accept serves the others.
	Accept string
	// Auth is a type of authentication, as Options.External returns it. The row then serves the requests of its path whose
	// callers have it. The row of the same path without Auth serves the others.
	Auth string
	// Plain marks a path that belongs to Kubernetes' own API on the secure port. Unless Options.NoCore is set, only the
	// listener that serves nothing but REST paths has the row.
	Plain bool
	// Ignored are documented query parameters without an effect. All other parameters that the row does not use are refused.
	Ignored []string
	// Only restricts parameters of the path to one value each.
	Only map[string]Only
	// Reserved are names of objects that the row refuses with 409, whether the path or the body has them.
	Reserved *Reserved
	// Body describes how the request's body becomes the native one; nil if no body is read.
	Body *Body
	// Native are the requests to the API, in order. If one fails, its error is the answer.
	Native []Native
	// Answer describes how the native answers become the REST answer.
	Answer Answer
}

// Only is the only valid value of a parameter, and the message for any other.
type Only struct{ Value, Else string }

// Reserved says which names are reserved, and why. In Else, %q is replaced by the name.
type Reserved struct {
	Is   func(name string) bool
	Else string
}

// Native is one request to the API.
type Native struct {
	// Name identifies the answer in {part.path} and Field.From. A row with one request needs no name.
	Name string
	// Verb is get, list, create, patch or delete.
	Verb string
	// Path is relative to the namespace, as "tasks/:id/log"; with a leading slash it is the whole path. The segment
	// ":namespace" is the namespace of the request.
	Path string
	// Pass are the query parameters that have the same meaning natively. A labelSelector is checked.
	Pass []string
	// Set are additional parameters; one that is also in Pass is a default.
	Set map[string]string
	// Page passes limit and continue, by the rules of REST lists: 100 by default, at most 500.
	Page bool
	// Unlimited accepts a limit of 0, which means no limit.
	Unlimited bool
	// All reads all pages of a list and joins them.
	All bool
	// Keep reduces each item of a list with All to these members as soon as its page is read.
	Keep []Field
	// Text marks an answer that is text rather than JSON.
	Text bool
	// Unless omits the request if the earlier answer of that name is not empty.
	Unless string
	// Optional leaves the answer out if there is none, or if the caller may not read it.
	Optional bool
	// Missing is the message if there is nothing at the path, and Empty makes an empty text an error with that message;
	// %q is replaced by the parameter id.
	Missing, Empty string
	// Accept is the media type that is asked for. Default: JSON.
	Accept string
	// Hide is a member and its value, as "spec.sessionType=gateway", of objects that are treated as not found. With "!="
	// all objects with another value are.
	Hide string
	// Send is the native body of a request without one.
	Send string
	// Ask is the kind of a native object whose spec consists of query parameters; AskFor lists them as "name", "name:
	// parameter | other parameter", with "[]" after the name of a list whose elements are separated by commas, "#" after
	// that of a number, "?" after that of a boolean and "!" after that of a text that is required. "#0" is a
	// number that may be 0, a parameter that begins with ":" is one of the path, and "name = value" is always the same.
	Ask    string
	AskFor []string
	// Same is the name of an earlier answer. A delete then deletes only that same object, not a later one of its
	// name. If that answer was Optional and is missing, the delete decides alone.
	Same string
}

// Body describes how a REST body becomes the body of the last native request.
type Body struct {
	// Max is the maximum length of the body, in bytes.
	Max int64
	// AnyValues permits more values than an object of the API has.
	AnyValues bool
	// Raw passes the bytes on unchanged. All other fields are for JSON objects.
	Raw bool
	// Kind is the native kind.
	Kind string
	// Under is the member of the native object that the REST object becomes; empty if it becomes the object itself.
	Under string
	// Flat accepts an object with metadata and spec, one whose spec has no metadata around it, or one whose members are
	// those of the spec. Labels and annotations that only the platform writes are refused. Required are members of the
	// spec.
	Flat bool
	// Replace is the name of the earlier answer with the stored object. The native request then replaces its spec and, if
	// the body has them, its labels and annotations. A resourceVersion in the body must be the present one.
	Replace string
	// Unset are members, in lower case, that only the server sets. They are refused at any depth and in any letter case.
	Unset []string
	// Fixed are members that the row cannot set: they must be absent, or be as they are stored.
	Fixed []Fixed
	// Merge leaves out members that are empty, and makes the native request a JSON merge patch.
	Merge bool
	// Same are members that the body may repeat from the path; other values are refused.
	Same []string
	// Params are members that name objects. They become parameters of the path instead of members of the native object.
	Params []string
	// Optional accepts an empty body as an empty object.
	Optional bool
	// Members is a struct with all members that the object may have; if it is nil, the native side checks them.
	Members any
	// Required are members that must not be empty.
	Required []string
	// Rename maps members of the REST object to those of the native one; other members keep their names.
	Rename map[string]string
	// Headers maps request headers to members. These members cannot be given in the body.
	Headers map[string]string
	// Set are members that the row sets.
	Set map[string]string
}

// Fixed is a member of the native object that a row cannot set.
type Fixed struct {
	// Path is the member, as "spec.baseURL".
	Path string
	// Part limits the rule to a part of the value; nil means all of it. It returns what it finds, or nil.
	Part func(json.RawMessage) json.RawMessage
	// Else says why.
	Else string
}

// Answer describes how native answers become the REST answer. The zero value passes on the last one.
type Answer struct {
	// Code replaces the status code of success. 204 has no body.
	Code int
	// OKIf is a member of the answer. If it is true, the status code is 200.
	OKIf string
	// AcceptedIf is a member of the answer and its value, as "status.outcome=Running", with which the status code is 202.
	AcceptedIf string
	// Drop are members of the last answer that are left out.
	Drop []string
	// Fields make a JSON object from the native answers.
	Fields []Field
	// Bare answers with the value of the only field instead of an object.
	Bare bool
	// Of is the name of a native answer whose members come before Fields.
	Of string
	// Media is the media type of an answer that is passed on and is not JSON, for the description of the row.
	Media string
	// Passes is the status code of an answer that is passed on and has no body, for the description of the row.
	Passes int
	// Over is set if the row answers 204 to a client that reconnects to a stream that has ended, for the description of
	// the row.
	Over bool
	// Errors are status codes that only errors of this row have, for the description of the row.
	Errors []int
	// Document makes Options.Document the answer, once the native requests have succeeded.
	Document bool
	// Unsupported makes 501 the answer, with this message, once the native requests have succeeded.
	Unsupported string
}

// Field is a member of an answer.
type Field struct {
	// Name is the name of the member.
	Name string
	// From are paths in the native answers; the first that has a value counts.
	From []string
	// Default is the JSON value if there is none; without a default, the member is left out.
	Default string
	// Each makes an object of each item of a list, and Only one of an object.
	Each, Only []Field
	// As changes the value.
	As func(json.RawMessage) json.RawMessage
	// Type is the type of a value that is not that of the native member: boolean, string, array, object or date-time. Several are
	// separated by |. It is for the description of the row.
	Type string
}

// Fields parses members, each written as "name: path", "name: path | other path" or "name: path = default".
func Fields(members ...string) []Field {
	out := make([]Field, len(members))
	for i, m := range members {
		name, from, _ := strings.Cut(m, ":")
		from, otherwise, _ := strings.Cut(from, "=")
		f := Field{Name: name, Default: strings.TrimSpace(otherwise)}
		for path := range strings.SplitSeq(from, "|") {
			if path = strings.TrimSpace(path); path != "" {
				f.From = append(f.From, path)
			}
		}
		out[i] = f
	}
	return out
}

// Targets returns the verbs and resources that a row uses, such as "create tasks/fork". A caller needs permission for
// these.
func (r Row) Targets() []string {
	out := make([]string, len(r.Native))
	for i, n := range r.Native {
		out[i] = n.Verb + " " + n.Resource()
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Resource returns the resource of a native request, with its subresource, as "tasks/fork".
func (n Native) Resource() string {
	s := strings.Split(n.Path, "/")
	switch {
	case s[0] == "":
		s = s[len(s)-1:]
	case len(s) > 2:
		s = []string{s[0], s[2]}
	default:
		s = s[:1]
	}
	return strings.Join(s, "/")
}
