// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/redact"
)

// fixed refuses members that a row cannot set. stored is the path of the stored object; empty if there is none. A body that
// replaces an object must repeat such members as they are stored. To leave one out would change it: without the address of a
// Provider, for example, its key would be sent to the vendor's default address.
func fixed(rules []Fixed, object, parts Parts, stored string) error {
	for _, f := range rules {
		var now json.RawMessage
		if stored != "" {
			now = parts.get(stored + "." + f.Path)
		}
		value := object.get(f.Path)
		if f.Part != nil {
			now, value = f.Part(now), f.Part(value)
		}
		switch {
		case same(value, now):
		case stored == "":
			return badRequest("%s: %s", f.Path, f.Else)
		default:
			return badRequest("%s: must stay as it is stored: %s", f.Path, f.Else)
		}
	}
	return nil
}

// same reports whether two JSON values are equal. A value that is absent equals null and an empty text.
func same(a, b json.RawMessage) bool {
	if !given(a) || !given(b) {
		return given(a) == given(b)
	}
	return canonical.Equal(a, b)
}

// SecretMembers returns the members of an object whose names are those of credentials. It is for use as Fixed.Part.
func SecretMembers(value json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(value, &all) // the native side refuses what is not an object
	found := map[string]json.RawMessage{}
	for name, v := range all {
		if redact.NamesSecret(name) {
			found[name] = v
		}
	}
	return marshalled(found, len(found))
}

// SecretsOfURL returns a URL, as JSON text, that has user info or a parameter whose name is that of a credential. It
// is for use as Fixed.Part.
func SecretsOfURL(value json.RawMessage) json.RawMessage {
	var text string
	_ = json.Unmarshal(value, &text) // the native side refuses what is not a text
	u, err := url.Parse(text)
	if err != nil {
		return nil // so does it refuse this
	}
	q, err := url.ParseQuery(u.RawQuery)
	if u.User == nil && err == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(q)), redact.NamesSecret) {
		return nil
	}
	return value
}

// marshalled returns a value as JSON, or nothing if it has no members.
func marshalled(v any, members int) json.RawMessage {
	if members == 0 {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil // it consists of JSON
	}
	return data
}
