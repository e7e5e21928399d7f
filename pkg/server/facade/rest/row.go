// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Row is one REST endpoint: a documented path, the native requests that it maps to, and how parameters and bodies are
// converted. What a row decides belongs to the native resource; what it must do besides is plain Go: see Handler.
type Row struct {
	// Method is the HTTP method.
	Method string
	// Path is the documented path. A segment that begins with ":" matches any value. The namespace is the segment
	// ":namespace" if there is one, otherwise the one that the body or the query names, otherwise the caller's own.
	Path string
	// Below is set if the row also serves all paths below Path.
	Below bool
	// Namespace returns the namespace that a query names, or "". Default: the parameter namespace.
	Namespace func(url.Values) string
	// When, if set, reports whether the row serves a request of its path; authType is the type of its credential, as
	// Options.External returns it. The row of the same path without When comes later and serves the others.
	When func(r *http.Request, authType string) bool
	// Plain marks a path that belongs to Kubernetes' own API on the secure port. Unless Options.NoCore is set, only the
	// listener that serves nothing but REST paths has the row.
	Plain bool
	// Ignored are documented query parameters without an effect. All other parameters that the row does not use are refused.
	Ignored []string
	// Names, if set, refuses values of parameters of the path, before the body is read, and the name that a Flat body has,
	// whose parameter is name.
	Names func(param, value string) error
	// Body describes how the request's body becomes the native one; nil if no body is read.
	Body *Body
	// Native are the requests to the API, in order. If one fails, its error is the answer.
	Native []Native
	// Handler, if set, makes the requests of Native in its own way. They are listed all the same, because the permissions of callers and
	// the description of the row follow from them.
	Handler func(*Call) error
	// Answer describes how the native answers become the REST answer.
	Answer Answer
}

// Native is one request to the API.
type Native struct {
	// Name identifies the answer in Field.From and Call. A row with one request needs no name.
	Name string
	// Verb is get, list, create, patch or delete.
	Verb string
	// Path is relative to the namespace, as "tasks/:id/log"; with a leading slash it is the whole path. The segment
	// ":namespace" is the namespace of the request.
	Path string
	// Pass are the query parameters that have the same meaning natively. A labelSelector is checked.
	Pass []string
	// Set are additional parameters. With adds those that depend on the request.
	Set  map[string]string
	With func(*Call, url.Values)
	// Page passes limit and continue, by the rules of REST lists: 100 by default, at most 500.
	Page bool
	// Unlimited accepts a limit of 0, which means no limit.
	Unlimited bool
	// All reads all pages of a list and joins them.
	All bool
	// Keep reduces each item of a list with All to these members as soon as its page is read.
	Keep []Field
	// Text marks an answer that is text rather than JSON. Without a text there is no answer.
	Text bool
	// Unless omits the request if the earlier answer of that name is not empty.
	Unless string
	// Optional leaves the answer out if there is none, or if the caller may not read it.
	Optional bool
	// Accept is the media type that is asked for. Default: JSON.
	Accept string
	// Hide reports which objects are treated as not found.
	Hide func(object Parts) bool
	// Send is the native body of a request without one.
	Send string
	// Ask is the kind of a native object whose spec consists of query parameters, as Spec reads them. Without a kind, the request is a list,
	// and what Spec reads are the fields of its selector.
	Ask  string
	Spec func(*Query)
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
	// Keys, if set, refuses keys of the body at any depth. path holds the names of the members around a key.
	Keys func(path []string, key string) error
	// Fixed are members that the row cannot set: they must be absent, or be as they are stored.
	Fixed []Fixed
	// Same are members that the body may repeat from the path; other values are refused.
	Same []string
	// Optional accepts an empty body as an empty object.
	Optional bool
	// Members is a struct with all members that the object may have; if it is nil, the native side checks them.
	Members any
	// Required are members that must not be empty.
	Required []string
	// Rename maps members of the REST object to those of the native one; other members keep their names.
	Rename map[string]string
	// Edit, if set, makes the native members of the checked REST object. It may set parameters of the path.
	Edit func(params map[string]string, object map[string]json.RawMessage) error
	// Also are texts that Edit reads and the native object lacks, for the description of the row.
	Also []string
	// Headers maps request headers to members. These members cannot be given in the body.
	Headers map[string]string
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
	// Also are further status codes that the row's Handler may choose, for the description of the row, with what that says of
	// each.
	Also map[int]string
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

// Merges reports whether the native request of a row is a JSON merge patch. Empty members of its body are left out.
func (r Row) Merges() bool {
	return r.Body != nil && r.Body.Replace == "" && r.Native[len(r.Native)-1].Verb == "patch"
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
	if s[0] == "" { // a whole path: /apis/GROUP/VERSION/…, or /api/VERSION/… of the core group
		if s = s[3:]; !strings.HasPrefix(n.Path, "/api/") {
			s = s[1:]
		}
		if s[0] == "namespaces" && len(s) > 2 {
			s = s[2:]
		}
	}
	if len(s) > 2 {
		return s[0] + "/" + s[2]
	}
	return s[0]
}
