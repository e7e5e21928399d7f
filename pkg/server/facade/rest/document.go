// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Parts holds the native answers of a request by name, which are valid JSON. A path in it begins with such a name, except for the
// answer without a name.
type Parts map[string]*node

// node is a JSON value whose members are decoded when they are needed.
type node struct {
	raw     json.RawMessage
	members map[string]*node
}

// partsOf returns the only answer.
func partsOf(raw json.RawMessage) Parts { return Parts{"": {raw: raw}} }

func (d Parts) add(name string, raw json.RawMessage) {
	if len(raw) > 0 {
		d[name] = &node{raw: raw}
	}
}

func (d Parts) has(name string) bool { return d[name] != nil }

// get returns the value at a path; nil if there is none or if it is null.
func (d Parts) get(path string) json.RawMessage {
	n := d[path]
	if n == nil {
		part, rest, below := strings.Cut(path, ".")
		if n = d[part]; n == nil {
			n, rest, below = d[""], path, true
		}
		for below && n != nil {
			part, rest, below = strings.Cut(rest, ".")
			n = n.member(part)
		}
	}
	if n == nil || string(n.raw) == "null" {
		return nil
	}
	return n.raw
}

func (n *node) member(name string) *node {
	if n.members == nil {
		n.members = map[string]*node{}
		if value := gjson.ParseBytes(n.raw); value.IsObject() {
			value.ForEach(func(name, member gjson.Result) bool {
				n.members[name.Str] = &node{raw: json.RawMessage(member.Raw)}
				return true
			})
		}
	}
	return n.members[name]
}

// Text returns the value at a path, as "spec.sessionType", as text, without quotes; empty if there is none.
func (d Parts) Text(path string) string {
	raw := d.get(path)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// extended makes an object of the members of an answer, as they are, and of further members.
func (d Parts) extended(of string, fields []Field) json.RawMessage {
	more := d.object(fields)
	base := bytes.TrimRight(d.get(of), " \t\r\n")
	switch {
	case of == "" || len(base) < 2:
		return more
	case string(more) == "{}":
		return base
	case string(base) == "{}":
		return more
	}
	return slices.Concat(base[:len(base)-1], []byte{','}, more[1:])
}

// object makes an object of members.
func (d Parts) object(fields []Field) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, f := range fields {
		value := d.value(f)
		if len(value) == 0 {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + f.Name + `":`)
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (d Parts) value(f Field) json.RawMessage {
	var raw json.RawMessage
	for _, path := range f.From {
		if raw = d.get(path); raw != nil {
			break
		}
	}
	if raw != nil && f.Each != nil {
		raw = each(raw, f.Each)
	}
	if raw != nil && f.Only != nil {
		raw = partsOf(raw).object(f.Only)
	}
	if raw != nil && f.As != nil {
		raw = f.As(raw)
	}
	if raw == nil {
		return json.RawMessage(f.Default)
	}
	return raw
}

// each makes an object of each item of a list.
func each(list json.RawMessage, fields []Field) json.RawMessage {
	items := gjson.ParseBytes(list)
	if !items.IsArray() {
		return nil
	}
	b := []byte{'['}
	items.ForEach(func(_, item gjson.Result) bool {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, partsOf(json.RawMessage(item.Raw)).object(fields)...)
		return true
	})
	return append(b, ']')
}
