// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// toNative reads the request's body and returns the native object. namespace is the one that the body names, or "".
func (c *call) toNative(b *Body) (native map[string]any, namespace string, err error) {
	object, err := c.object(b.Optional, b.Keys)
	if err == nil {
		namespace, err = members(c, b, object)
	}
	if err != nil {
		return nil, "", err
	}
	native = map[string]any{}
	fields := native
	switch {
	case b.Flat:
		if native, namespace, err = flat(c, b, object); err != nil {
			return nil, "", err
		}
	case b.Under != "":
		fields = map[string]any{}
		native[b.Under] = fields
		fallthrough
	default:
		for name, raw := range object {
			fields[cmp.Or(b.Rename[name], name)] = raw
		}
	}
	for header, member := range b.Headers {
		if value := c.r.Header.Get(header); value != "" {
			fields[member] = value
		}
	}
	if _, whole := native["kind"]; !whole || !b.Flat {
		native["kind"] = b.Kind
	}
	if _, whole := native["apiVersion"]; !whole || !b.Flat {
		native["apiVersion"] = v1alpha1.SchemeGroupVersion.String()
	}
	return native, namespace, nil
}

// members checks the members of a body by its row, and removes those that the native object does not have. It returns the
// namespace that the body names.
func members(c *call, b *Body, object map[string]json.RawMessage) (namespace string, err error) {
	for header, member := range b.Headers {
		if _, has := object[member]; has {
			return "", badRequest("%s: is given in the header %s", member, header)
		}
	}
	if b.Members != nil {
		if err := strictly(object, reflect.New(reflect.TypeOf(b.Members)).Interface()); err != nil {
			return "", err
		}
	}
	for _, member := range b.Same {
		if err := c.repeats(object, member); err != nil {
			return "", err
		}
		if raw, ok := object[member]; ok && member == "namespace" {
			_ = json.Unmarshal(raw, &namespace) // repeats has read it
		}
		delete(object, member)
	}
	for member, raw := range object {
		if c.row.Merges() && !given(raw) {
			delete(object, member)
		}
	}
	for _, member := range b.Required {
		if !b.Flat && !given(object[member]) {
			return "", badRequest("%s: is required", member)
		}
	}
	if b.Edit != nil {
		err = b.Edit(c.params, object)
	}
	return namespace, err
}

// AsParam is for use as Body.Edit: a member becomes a parameter of the path. It must be the name of an object, which has no slashes.
func AsParam(member string) func(params map[string]string, object map[string]json.RawMessage) error {
	return func(params map[string]string, object map[string]json.RawMessage) error {
		var name string
		if raw := object[member]; raw != nil && json.Unmarshal(raw, &name) != nil {
			return badRequest("%s: must be text", member)
		}
		if name == "" {
			return badRequest("%s: is required", member)
		}
		if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
			return badRequest("%s: %s", member, strings.Join(msgs, "; "))
		}
		params[member] = name
		delete(object, member)
		return nil
	}
}

// repeats refuses a member of the body that differs from the parameter of the path with its name.
func (c *call) repeats(object map[string]json.RawMessage, member string) error {
	raw, has := object[member]
	if !has {
		return nil
	}
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return badRequest("%s: must be text", member)
	}
	if want, inPath := c.params[member]; inPath && value != "" && value != want {
		return badRequest("%s: %q differs from %q in the path", member, value, want)
	}
	return nil
}

func given(raw json.RawMessage) bool {
	s := strings.TrimSpace(string(raw))
	return s != "" && s != "null" && s != `""`
}

// strictly decodes an object into a struct. Members that the struct lacks are errors.
func strictly(object map[string]json.RawMessage, into any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return badRequest("the body is not JSON: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest("the body is not valid for this request: %v", err)
	}
	return nil
}
