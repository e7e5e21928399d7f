// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replace makes a native request that replaces the spec of a stored object and, if the body has them, its labels and
// annotations. A patch rather than an update is sent, because controllers may write the object's status at the same
// time. The resourceVersion and UID of the body, if it has them, must be the present ones.
func replace(n *native, b *Body, object, parts Parts) error {
	for member, want := range map[string]string{"kind": b.Kind, "apiVersion": v1alpha1.SchemeGroupVersion.String()} {
		if got := object.Text(member); got != want {
			return badRequest("%s: %q: must be %s", member, got, want)
		}
	}
	stored := b.Replace + ".metadata."
	patch := []operation{{"replace", "/spec", object.get("spec")}}
	for _, field := range []string{"labels", "annotations"} {
		raw := object.get("metadata." + field)
		if raw == nil {
			continue
		}
		values, err := owned(field, raw, parts.get(stored+field))
		if err != nil {
			return err
		}
		patch = append(patch, operation{"add", "/metadata/" + field, values})
	}
	for _, field := range []string{"resourceVersion", "uid"} {
		if raw := object.get("metadata." + field); given(raw) {
			patch = append(patch, operation{"replace", "/metadata/" + field, raw})
		}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	n.body, n.contentType = bytes.NewReader(data), string(types.JSONPatchType)
	return nil
}
