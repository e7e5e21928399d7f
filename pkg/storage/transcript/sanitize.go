// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// checkID refuses ids that cannot be stored unchanged. An id that redaction would change is refused,
// because two ids could become one.
func checkID(id string) error {
	if owned.Bad(id) {
		return fmt.Errorf("append: %w", ErrName)
	}
	if _, secret := redact.Text(id); secret {
		return fmt.Errorf("append: %w", ErrSecretID)
	}
	return nil
}

// sanitize makes every text of m valid UTF-8 and removes secrets. The same message always gives the same
// result.
func sanitize(m *v1alpha1.SessionMessage) {
	for _, s := range []*string{&m.Content, &m.Name, &m.ToolCallID, &m.SourceType, &m.SourceRef} {
		*s = text(*s)
	}
	m.Input = value(m.Input)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		c.ID, c.Name, c.Arguments = text(c.ID), text(c.Name), arguments(c.Arguments)
	}
	m.Metadata = members(m.Metadata)
}

func text(s string) string {
	s, _ = redact.Text(strings.ToValidUTF8(s, string(utf8.RuneError)))
	return s
}

// value removes secrets from JSON and makes it compact. It returns nil if v is not JSON.
func value(v *apiextensionsv1.JSON) *apiextensionsv1.JSON {
	if v == nil {
		return nil
	}
	clean, _, err := redact.JSON(bytes.ToValidUTF8(v.Raw, []byte(string(utf8.RuneError))))
	var out bytes.Buffer
	if err != nil || json.Compact(&out, clean) != nil || out.String() == "null" {
		return nil
	}
	return &apiextensionsv1.JSON{Raw: out.Bytes()}
}

// arguments removes secrets from arguments as a model wrote them, which may not be valid JSON.
func arguments(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if clean, _, err := redact.JSON([]byte(s)); err == nil {
		return string(clean)
	}
	return text(s)
}

// members removes secrets from a map as from a JSON object, in which a key can indicate that its value is a
// secret.
func members(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		pair, err := json.Marshal(map[string]string{k: v})
		if err != nil { // two strings always marshal
			continue
		}
		clean, _, err := redact.JSON(pair)
		if err != nil {
			continue
		}
		var one map[string]string
		if json.Unmarshal(clean, &one) != nil {
			continue
		}
		for k, v := range one {
			out[text(k)] = text(v)
		}
	}
	return out
}
