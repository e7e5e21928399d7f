// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// object is a JSON object. Its members are replaced in place, so that every other byte stays as the client wrote it.
type object struct {
	data    []byte
	members []member
	open    int // after the opening brace
	edits   []edit
}

// member is a member of an object: its name, and where it and its value are in the data.
type member struct {
	name              string
	begin, start, end int
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	with       []byte
}

var errNoObject = errors.New("the body must be a JSON object")

// parse finds the members of an object. Nothing may follow it. A name may occur once, because this server and the
// vendor could otherwise read different values.
func parse(data []byte) (*object, error) {
	o, err := scan(data)
	if err != nil {
		return nil, err
	}
	if name, twice := o.twice(); twice {
		return nil, fmt.Errorf("the member %q occurs twice", name)
	}
	return o, nil
}

// few is up to how many members are compared with each other.
const few = 24

// twice returns a name that occurs twice.
func (o *object) twice() (string, bool) {
	if len(o.members) <= few {
		for i, m := range o.members {
			if o.index(m.name) < i {
				return m.name, true
			}
		}
		return "", false
	}
	seen := make(map[string]bool, len(o.members))
	for _, m := range o.members {
		if seen[m.name] {
			return m.name, true
		}
		seen[m.name] = true
	}
	return "", false
}

func (o *object) index(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

// get returns the value of a member as it was written; nil if there is none or it is null.
func (o *object) get(name string) json.RawMessage {
	i := o.index(name)
	if i < 0 {
		return nil
	}
	value := o.data[o.members[i].start:o.members[i].end]
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	return value
}

// set gives a member another value, or adds the member.
func (o *object) set(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	if i := o.index(name); i >= 0 {
		o.edits = append(o.edits, edit{o.members[i].start, o.members[i].end, data})
		return nil
	}
	added := fmt.Appendf(nil, "%q:%s", name, data)
	if len(o.members) > 0 {
		added = append(added, ',')
	}
	o.edits = append(o.edits, edit{o.open, o.open, added})
	return nil
}

// remove removes a member with one of the commas beside it.
func (o *object) remove(name string) {
	i := o.index(name)
	switch {
	case i < 0:
	case i > 0: // with the comma before it
		o.edits = append(o.edits, edit{o.members[i-1].end, o.members[i].end, nil})
	case len(o.members) > 1:
		o.edits = append(o.edits, edit{o.open, o.members[1].begin + bytes.IndexByte(o.data[o.members[1].begin:], '"'), nil})
	default:
		o.edits = append(o.edits, edit{o.open, o.members[i].end, nil})
	}
}

// bytes returns the object with its changes.
func (o *object) bytes() []byte {
	if len(o.edits) == 0 {
		return o.data
	}
	slices.SortStableFunc(o.edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range o.edits {
		out = append(append(out, o.data[at:e.start]...), e.with...)
		at = e.end
	}
	return append(out, o.data[at:]...)
}
