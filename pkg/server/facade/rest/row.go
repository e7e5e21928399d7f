// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"slices"
	"strings"
)

// Row is one REST endpoint: a documented path, the native requests that it stands for, and how parameters and bodies
// become those of the other side. A row is data. Whatever needs a decision belongs to the native resource.
//
// Texts in braces are replaced: {name} by a parameter of the path, {label:name} by that parameter as the value of a
// label, {part.path} by a member of an earlier native answer.
type Row struct {
	// Method is the HTTP method.
	Method string
	// Path is the path as the contract writes it: a segment that begins with ":" takes any value. The namespace is the
	// segment ":namespace" where there is one, else what the body or the query names, else the caller's own.
	Path string
	// When names a parameter of the query. The row then serves the requests of its path that have it, unless it is
	// false, and the row of the same path without When the others.
	When string
	// Only holds parameters of the path to one value.
	Only map[string]Only
	// Body says how the request's body becomes the native one; nil where none is read.
	Body *Body
	// Native are the requests to the API, in order. An error of one is the answer.
	Native []Native
	// Answer says how the native answers become the one of REST.
	Answer Answer
}

// Only is the one value that a parameter may have, and what is said of any other.
type Only struct{ Value, Else string }

// Native is one request to the API.
type Native struct {
	// Name is the part of {part.path} and Field.From that the answer is; a row with one request needs none.
	Name string
	// Verb is get, list, create or delete.
	Verb string
	// Path is below the namespace, as "tasks/:id/log"; with a leading slash it is the whole path.
	Path string
	// Pass are the parameters of the query that mean the same natively. A labelSelector is checked.
	Pass []string
	// Set are further parameters; one that is also in Pass is its default.
	Set map[string]string
	// Page passes limit and continue in the rules of REST lists: 100 by default, at most 500, 0 is everything.
	Page bool
	// All reads every page of a list as one.
	All bool
	// Text marks an answer that is text rather than JSON.
	Text bool
	// Unless leaves out the request if the earlier answer of that name is not empty.
	Unless string
	// Missing is the message if there is no such object; %q is the parameter id.
	Missing string
	// Hide is a member and its value, as "spec.sessionType=gateway", of objects that are not to be found here.
	Hide string
	// Send is the native body where the request has none.
	Send string
	// Same is the name of an earlier answer: a delete is of that very object.
	Same string
}

// Body says how a REST body becomes the body of the last native request.
type Body struct {
	// Max is how long it may be, in bytes.
	Max int64
	// Raw sends the bytes on as they are. All other fields are for JSON objects.
	Raw bool
	// Kind is the native kind.
	Kind string
	// Under is the member of the native object that the REST object becomes; empty for the object itself.
	Under string
	// Flat accepts metadata and spec also as members of the object itself, and refuses what only the platform sets.
	Flat bool
	// Optional takes no body for an empty object.
	Optional bool
	// Members is a struct with all members that the object may have; nil leaves that to the native side.
	Members any
	// Required are members that must not be empty.
	Required []string
	// Headers are headers that become members. These members cannot be given in the body.
	Headers map[string]string
	// Set are members that the row sets.
	Set map[string]string
}

// Answer says how native answers become one of REST. The zero value sends on the last one.
type Answer struct {
	// Code replaces the status of success. 204 has no body.
	Code int
	// OKIf is a member of the answer which, if true, makes the status 200.
	OKIf string
	// Fail, where set, is the answer to every caller for whom the native requests succeed; Code is its status.
	Fail string
	// Drop are members of the last answer that are left out.
	Drop []string
	// Fields make a JSON object from the native answers.
	Fields []Field
}

// Field is a member of an answer.
type Field struct {
	// Name is its name.
	Name string
	// From are paths in the native answers, the first that has a value counts.
	From []string
	// Default is its JSON where there is no value; without one the member is left out.
	Default string
	// Each makes an object of each item of a list.
	Each []Field
	// As changes the value.
	As func(json.RawMessage) json.RawMessage
}

// Fields reads members, each as "name: path", "name: path | other path" or "name: path = default".
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

// Targets are the verbs and resources behind a row, such as "create tasks/fork": what a caller needs permission for.
func (r Row) Targets() []string {
	out := make([]string, len(r.Native))
	for i, n := range r.Native {
		s := strings.Split(n.Path, "/")
		switch {
		case s[0] == "":
			s = s[len(s)-1:]
		case len(s) > 2:
			s = []string{s[0], s[2]}
		default:
			s = s[:1]
		}
		out[i] = n.Verb + " " + strings.Join(s, "/")
	}
	slices.Sort(out)
	return slices.Compact(out)
}
