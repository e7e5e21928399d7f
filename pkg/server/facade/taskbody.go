// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// newTask is the native object that a REST body stands for.
type newTask struct {
	namespace string // that the body names, or ""
	object    map[string]any
}

// taskBody reads the three forms of a task (supplement D2 §2.1): flat fields, fields and spec, metadata and spec.
// What the fields may hold is checked natively, where unknown ones are refused.
func taskBody(body map[string]json.RawMessage) (newTask, error) {
	object := map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Task"}
	meta, spec := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if raw, ok := body["metadata"]; ok && json.Unmarshal(raw, &meta) != nil {
		return newTask{}, badRequest("metadata: must be an object")
	}
	_, nested := body["spec"]
	if nested && json.Unmarshal(body["spec"], &spec) != nil {
		return newTask{}, badRequest("spec: must be an object")
	}
	for name, raw := range body {
		switch name {
		case "metadata", "spec":
		case "apiVersion", "kind", "status": // of a whole manifest
			object[name] = raw
		case "name", "namespace", "labels", "annotations":
			if _, twice := meta[name]; twice && string(meta[name]) != string(raw) {
				return newTask{}, badRequest("%s: differs from metadata.%s", name, name)
			}
			meta[name] = raw
		default:
			if nested {
				return newTask{}, badRequest("%s: belongs in spec, as the body has one", name)
			}
			spec[name] = raw
		}
	}
	for _, f := range []string{"labels", "annotations"} {
		if err := refuseOwned(f, meta[f]); err != nil {
			return newTask{}, err
		}
	}
	t := newTask{object: object}
	if raw, ok := meta["namespace"]; ok && json.Unmarshal(raw, &t.namespace) != nil {
		return newTask{}, badRequest("namespace: must be text")
	}
	if !given(meta["name"]) && !given(meta["generateName"]) {
		return newTask{}, badRequest("name: is required")
	}
	if !given(spec["type"]) {
		return newTask{}, badRequest("type: is required")
	}
	object["metadata"], object["spec"] = meta, spec
	return t, nil
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

// refuseIdentity refuses, at any depth and in any case, the fields that tell on whose behalf a task runs: the server
// alone sets them (spec 2 §5). Labels and annotations are no fields.
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
