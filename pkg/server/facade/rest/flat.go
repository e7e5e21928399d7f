// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// flat reads the three forms of an object: flat fields, fields and spec, or metadata and spec. The native side
// validates the fields and refuses unknown ones.
func flat(c *call, b *Body, body map[string]json.RawMessage) (object map[string]any, namespace string, err error) {
	object = map[string]any{}
	meta, spec, err := halves(body)
	if err != nil {
		return nil, "", err
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
			if body["spec"] != nil {
				return nil, "", badRequest("%s: belongs in spec, as the body has one", name)
			}
			spec[name] = raw
		}
	}
	if err := named(c, b, meta); err != nil {
		return nil, "", err
	}
	if raw, ok := meta["namespace"]; ok && json.Unmarshal(raw, &namespace) != nil {
		return nil, "", badRequest("namespace: must be text")
	}
	for _, member := range b.Required {
		if !given(spec[member]) {
			return nil, "", badRequest("%s: is required", member)
		}
	}
	if len(spec) == 0 {
		return nil, "", badRequest("spec: is required")
	}
	object["metadata"], object["spec"] = meta, spec
	return object, namespace, nil
}

// halves returns metadata and spec of a body, which may lack both.
func halves(body map[string]json.RawMessage) (meta, spec map[string]json.RawMessage, err error) {
	meta, spec = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if raw, ok := body["metadata"]; ok && json.Unmarshal(raw, &meta) != nil {
		return nil, nil, badRequest("metadata: must be an object")
	}
	if raw, ok := body["spec"]; ok && json.Unmarshal(raw, &spec) != nil {
		return nil, nil, badRequest("spec: must be an object")
	}
	if meta == nil { // JSON null
		meta = map[string]json.RawMessage{}
	}
	if spec == nil {
		spec = map[string]json.RawMessage{}
	}
	return meta, spec, nil
}

// named checks the name of an object, and its labels and annotations unless the object is stored already.
func named(c *call, b *Body, meta map[string]json.RawMessage) error {
	if b.Replace != "" {
		var name string
		if raw := meta["name"]; raw != nil && (json.Unmarshal(raw, &name) != nil || name != c.params["name"]) {
			return badRequest("name: must be %q, as in the path", c.params["name"])
		}
		return nil
	}
	if !given(meta["name"]) && !given(meta["generateName"]) {
		return badRequest("name: is required")
	}
	var name string
	if json.Unmarshal(meta["name"], &name) == nil && c.row.Names != nil {
		if err := c.row.Names("name", name); err != nil {
			return err
		}
	}
	for _, f := range []string{"labels", "annotations"} {
		if _, err := owned(f, meta[f], nil); err != nil {
			return err
		}
	}
	return nil
}

// owned refuses labels and annotations that only the platform writes, unless they are as they are stored. It returns
// those of the body together with the stored ones of the platform.
func owned(field string, raw, stored json.RawMessage) (map[string]json.RawMessage, error) {
	var values, now map[string]json.RawMessage
	if raw != nil && json.Unmarshal(raw, &values) != nil {
		return nil, badRequest("%s: must be an object", field)
	}
	_ = json.Unmarshal(stored, &now) // the server's own
	all := map[string]json.RawMessage{}
	for key, value := range values {
		if reservedKey(field, key) && !same(value, now[key]) {
			return nil, badRequest("%s: %q: names that begin with %s are reserved", field, key, v1alpha1.LabelPrefix)
		}
		all[key] = value
	}
	for key, value := range now {
		if reservedKey(field, key) {
			all[key] = value
		}
	}
	return all, nil
}

// reservedKey reports whether only the platform writes a label or annotation. One annotation is a setting of the client's.
func reservedKey(field, key string) bool {
	return ours(key) && (field != "annotations" || key != v1alpha1.AnnotationDisableCoordination)
}

// ours reports whether a label or annotation has the platform's prefix.
func ours(key string) bool {
	prefix, _, _ := strings.Cut(strings.ToLower(key), "/")
	brand := strings.TrimSuffix(v1alpha1.LabelPrefix, "/")
	return strings.Contains(key, "/") && (prefix == brand || strings.HasSuffix(prefix, "."+brand))
}

// NotGiven is for use as Body.Keys: it refuses members, in lower case, at any depth and in any letter case, because only the server
// sets them. Labels and annotations do not count as members.
func NotGiven(members ...string) func(path []string, key string) error {
	return func(path []string, key string) error {
		if n := len(path); n > 0 && (path[n-1] == "labels" || path[n-1] == "annotations") || !slices.Contains(members, strings.ToLower(key)) {
			return nil
		}
		return badRequest("%s: is set by the server and cannot be given", join(path, key))
	}
}
