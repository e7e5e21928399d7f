// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/llm"
)

// Error refuses a request for one of its members.
type Error struct {
	// Path is the member, as the table writes it, and What is what is wrong with it; empty if it cannot be carried.
	Path, What string
}

// Error returns the path and what is wrong with it.
func (e *Error) Error() string { return strings.TrimSuffix(e.Path+": "+e.What, ": ") }

// Member returns the member of the request itself that the path begins with.
func (e *Error) Member() string {
	if i := strings.IndexAny(e.Path, ".["); i >= 0 {
		return e.Path[:i]
	}
	return e.Path
}

// Reduced is a request with nothing but members that are carried.
type Reduced struct {
	Body []byte
	// Left are the members that were left out, as the table writes them.
	Left []string
}

// Reduce returns what of a request is carried to a Provider of a protocol. The error is an *Error if a member is refused.
func Reduce(a API, body []byte, to llm.Protocol) (Reduced, error) {
	root := trees()[a]
	w := walk{to: to, anywhere: root.anywhere}
	raw, err := w.value(root, "", body)
	return Reduced{Body: raw, Left: slices.Compact(slices.Sorted(slices.Values(w.left)))}, err
}

// node is a member, or an element of a list, with what is in it.
type node struct {
	row     Row // of members that have one; others only contain some
	known   bool
	members map[string]*node
	// elements are those of a list by their type: "" for no type, "*" for any other one. Nil if elements have no types.
	elements map[string]*node
	list     *node // each element, if they have no types
	// anywhere are, of a request, members of any object in it.
	anywhere map[string]*node
}

// trees returns the tables in the form that walk needs.
var trees = sync.OnceValue(func() map[API]*node {
	all := map[API]*node{}
	for _, a := range APIs() {
		root := &node{anywhere: map[string]*node{}}
		for _, r := range Table(a) {
			if name, ok := strings.CutPrefix(r.Path, anywhere); ok {
				root.anywhere[name] = &node{row: r, known: true}
				continue
			}
			for _, n := range root.find(r.Path) {
				n.row, n.known = r, true
			}
		}
		all[a] = root
	}
	return all
})

// anywhere begins the path of a member of any object.
const anywhere = "**."

// segment matches a part of a path: a name, and the types of elements if it is a list.
var segment = regexp.MustCompile(`^([a-z_]+)(?:\[([^\]]*)\])?\.?`)

// find returns the nodes of a path, of which there may be several because elements of several types can share one.
func (n *node) find(path string) []*node {
	if path == "" {
		return []*node{n}
	}
	part := segment.FindStringSubmatch(path)
	rest := path[len(part[0]):]
	if n.members == nil {
		n.members = map[string]*node{}
	}
	in := child(n.members, part[1])
	switch {
	case !strings.Contains(part[0], "["):
		return in.find(rest)
	case part[2] == "":
		if in.list == nil {
			in.list = &node{}
		}
		return in.list.find(rest)
	}
	if in.elements == nil {
		in.elements = map[string]*node{}
	}
	var all []*node
	for kind := range strings.SplitSeq(part[2], "|") {
		of := child(in.elements, kind)
		if rest != "" {
			of.find("type")
		}
		all = append(all, of.find(rest)...)
	}
	return all
}

func child(of map[string]*node, name string) *node {
	if of[name] == nil {
		of[name] = &node{}
	}
	return of[name]
}

// walk reduces one request.
type walk struct {
	to       llm.Protocol
	anywhere map[string]*node
	left     []string
}

// open returns the members of an object; false for another value.
func open(path string, raw json.RawMessage) (all map[string]json.RawMessage, is bool, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, false, nil
	}
	wrong, err := kjson.UnmarshalStrict(raw, &all)
	if err != nil {
		return nil, false, fmt.Errorf("the body cannot be read: %w", err)
	}
	if len(wrong) > 0 {
		return nil, false, &Error{path, "a member that occurs twice"}
	}
	return all, true, nil
}

// value reduces a value that should be an object. Another value stays as it is, because the reader of the request names what it must be.
func (w *walk) value(n *node, path string, raw json.RawMessage) (json.RawMessage, error) {
	all, is, err := open(path, raw)
	if err != nil || !is {
		return raw, err
	}
	return w.object(n, path, all)
}

func (w *walk) object(n *node, path string, all map[string]json.RawMessage) (json.RawMessage, error) {
	out := []byte("{")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		in := n.members[name]
		if in == nil {
			in = w.anywhere[name]
		}
		value, kept, err := w.member(in, under(path, name), all[name])
		if err != nil {
			return nil, err
		}
		if kept {
			key, err := json.Marshal(name)
			if err != nil {
				return nil, fmt.Errorf("the body cannot be read: %w", err)
			}
			out = append(append(append(append(out, key...), ':'), value...), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}'), nil
}

func under(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// member reduces a member, and reports whether anything of it is carried.
func (w *walk) member(n *node, path string, raw json.RawMessage) (json.RawMessage, bool, error) {
	switch {
	case string(raw) == "null":
		return nil, false, nil
	case n == nil:
		return nil, false, &Error{path, ""}
	case n.row.Default != "" && same(raw, n.row.Default):
		return nil, false, nil
	case n.known && n.row.at(w.to) != Carried:
		if empty(raw) {
			return nil, false, nil
		}
		return nil, false, w.fate(n, path)
	}
	return w.into(n, path, raw)
}

// fate notes what is left out, and refuses what is refused.
func (w *walk) fate(n *node, path string) error {
	if n.row.at(w.to) == Dropped {
		w.left = append(w.left, path)
		return nil
	}
	return &Error{path, ""}
}

// into reduces what is in a value that is carried.
func (w *walk) into(n *node, path string, raw json.RawMessage) (out json.RawMessage, kept bool, err error) {
	switch {
	case n.elements != nil || n.list != nil:
		out, err = w.elements(n, path, raw)
	case n.members != nil:
		out, err = w.value(n, path, raw)
	default:
		out = raw
	}
	return out, true, err
}

// elements reduces a value that should be a list. Another value stays as it is: the content of a message, for example, may be a text.
func (w *walk) elements(n *node, path string, raw json.RawMessage) (json.RawMessage, error) {
	var all []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return raw, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("the body cannot be read: %w", err)
	}
	out := []byte("[")
	for _, one := range all {
		one, kept, err := w.element(n, path, one)
		if err != nil {
			return nil, err
		}
		if kept {
			out = append(append(out, one...), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte(",")), ']'), nil
}

// element reduces an element of a list, and reports whether it is carried.
func (w *walk) element(n *node, path string, raw json.RawMessage) (json.RawMessage, bool, error) {
	if string(raw) == "null" { // unlike a member, an element is there
		return nil, false, &Error{path + "[]", "an element that is null"}
	}
	all, is, err := open(path+"[]", raw)
	if err != nil || !is {
		return raw, true, err
	}
	of, at := n.list, path+"[]"
	if of == nil {
		var kind string
		of, kind = n.kind(all["type"])
		at = path + "[" + kind + "]"
	}
	switch {
	case of == nil:
		return nil, false, &Error{at, ""}
	case of.known && of.row.at(w.to) != Carried:
		return nil, false, w.fate(of, at)
	}
	raw, err = w.object(of, at, all)
	return raw, true, err
}

// readable matches a type that may be shown.
var readable = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// kind returns the node for elements of a type, and the type for people. It is nil if there is none.
func (n *node) kind(raw json.RawMessage) (*node, string) {
	var kind string
	if err := json.Unmarshal(raw, &kind); err != nil && len(raw) > 0 {
		return nil, "*"
	}
	shown := kind
	if kind != "" && !readable.MatchString(kind) {
		shown = "*"
	}
	if of := n.elements[kind]; of != nil {
		return of, shown
	}
	return n.elements["*"], shown
}

// empty reports whether a value says nothing.
func empty(raw json.RawMessage) bool {
	var out bytes.Buffer
	return json.Compact(&out, raw) == nil && slices.Contains([]string{"[]", `""`}, out.String())
}

// same reports whether a value is the default.
func same(raw json.RawMessage, neutral string) bool { return canonical.Equal(raw, []byte(neutral)) }

// IsRefused returns the refusal that an error is.
func IsRefused(err error) (*Error, bool) { return errors.AsType[*Error](err) }
