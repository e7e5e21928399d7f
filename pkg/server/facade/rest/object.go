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
	var look check
	if b.Flat {
		look = refuseIdentity
	}
	object, err := c.object(b.Optional, look)
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
		if native, namespace, err = flat(object); err != nil {
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
	for member, value := range b.Set {
		fields[member] = c.expand(value, nil)
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
		if b.Merge && !given(raw) {
			delete(object, member)
		}
	}
	for _, member := range b.Required {
		if !given(object[member]) {
			return "", badRequest("%s: is required", member)
		}
	}
	for _, member := range b.Params {
		if err := param(c, object, member); err != nil {
			return "", err
		}
	}
	return namespace, nil
}

// param makes a member of the body a parameter of the path. It must be the name of an object, which has no slashes.
func param(c *call, object map[string]json.RawMessage, member string) error {
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
	c.params[member] = name
	delete(object, member)
	return nil
}

// flat reads the three forms of an object: flat fields, fields and spec, or metadata and spec. The native side
// validates the fields and refuses unknown ones.
func flat(body map[string]json.RawMessage) (object map[string]any, namespace string, err error) {
	object = map[string]any{}
	meta, spec := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if raw, ok := body["metadata"]; ok && json.Unmarshal(raw, &meta) != nil {
		return nil, "", badRequest("metadata: must be an object")
	}
	_, nested := body["spec"]
	if nested && json.Unmarshal(body["spec"], &spec) != nil {
		return nil, "", badRequest("spec: must be an object")
	}
	if meta == nil { // JSON null
		meta = map[string]json.RawMessage{}
	}
	if spec == nil {
		spec = map[string]json.RawMessage{}
	}
	for name, raw := range body {
		switch name {
		case "metadata", "spec":
		case "apiVersion", "kind", "status": // of a whole manifest
			object[name] = raw
		case "name", "namespace", "labels", "annotations":
			if _, twice := meta[name]; twice && string(meta[name]) != string(raw) {
				return nil, "", badRequest("%s: differs from metadata.%s", name, name)
			}
			meta[name] = raw
		default:
			if nested {
				return nil, "", badRequest("%s: belongs in spec, as the body has one", name)
			}
			spec[name] = raw
		}
	}
	for _, f := range []string{"labels", "annotations"} {
		if err := refuseOwned(f, meta[f]); err != nil {
			return nil, "", err
		}
	}
	if raw, ok := meta["namespace"]; ok && json.Unmarshal(raw, &namespace) != nil {
		return nil, "", badRequest("namespace: must be text")
	}
	if !given(meta["name"]) && !given(meta["generateName"]) {
		return nil, "", badRequest("name: is required")
	}
	if !given(spec["type"]) {
		return nil, "", badRequest("type: is required")
	}
	object["metadata"], object["spec"] = meta, spec
	return object, namespace, nil
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

// refuseOwned refuses labels and annotations that only the platform writes.
func refuseOwned(field string, raw json.RawMessage) error {
	var values map[string]json.RawMessage
	if raw != nil && json.Unmarshal(raw, &values) != nil {
		return badRequest("%s: must be an object", field)
	}
	for key := range values {
		prefix, _, _ := strings.Cut(strings.ToLower(key), "/")
		brand := strings.TrimSuffix(v1alpha1.LabelPrefix, "/")
		if strings.Contains(key, "/") && (prefix == brand || strings.HasSuffix(prefix, "."+brand)) {
			return badRequest("%s: %q: names that begin with %s are reserved", field, key, v1alpha1.LabelPrefix)
		}
	}
	return nil
}

// refuseIdentity refuses, at any depth and in any letter case, the fields that say on whose behalf a task runs,
// because only the server sets them. Labels and annotations do not count as fields.
func refuseIdentity(path []string, key string) error {
	if n := len(path); n > 0 && (path[n-1] == "labels" || path[n-1] == "annotations") {
		return nil
	}
	switch strings.ToLower(key) {
	case "requestedby", "transaction":
		return badRequest("%s: is set by the server and cannot be given", join(path, key))
	}
	return nil
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
