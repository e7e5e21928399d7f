// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
)

// DecoderToVersion returns a decoder whose errors name the field.
func (t textOnly) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return fieldNaming{t.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

// fieldNaming names the field in errors about values that do not fit, such as a quantity that cannot be parsed.
type fieldNaming struct{ runtime.Decoder }

// Decode decodes a request. A number out of range in a field that takes any JSON would be decoded, but the comparison of
// managed fields panics on it.
func (d fieldNaming) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if !utf8.Valid(data) { // bodies that are only text were looked at as they arrived; see intake
		return nil, nil, errors.New("the body must be UTF-8")
	}
	if err := canonical.Numbers(data); err != nil && json.Valid(data) { // in YAML such numbers are errors
		return nil, nil, err
	}
	obj, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil || into == nil || runtime.IsStrictDecodingError(err) {
		return obj, kind, err
	}
	if found := faulty(reflect.TypeOf(into), data, ""); found != nil {
		err = found
	}
	return obj, kind, err
}

// faulty returns an error about the first field in a JSON text that does not fit its type; nil if there is none.
func faulty(t reflect.Type, raw []byte, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	value := reflect.New(t).Interface()
	err := json.Unmarshal(raw, value)
	if err == nil || !json.Valid(raw) {
		return nil
	}
	if _, ok := value.(json.Unmarshaler); !ok {
		if found := inside(t, raw, path); found != nil {
			return found
		}
	}
	if path == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", strings.TrimPrefix(path, "."), misfit(t, raw, err))
}

// inside looks for the fault in the parts of a value.
func inside(t reflect.Type, raw []byte, path string) error {
	switch t.Kind() {
	case reflect.Struct:
		return member(t, parts[map[string]json.RawMessage](raw), path)
	case reflect.Slice, reflect.Array:
		for i, item := range parts[[]json.RawMessage](raw) {
			if found := faulty(t.Elem(), item, fmt.Sprintf("%s[%d]", path, i)); found != nil {
				return found
			}
		}
	case reflect.Map:
		for name, m := range parts[map[string]json.RawMessage](raw) {
			if found := faulty(t.Elem(), m, path+"["+name+"]"); found != nil {
				return found
			}
		}
	}
	return nil
}

// parts returns the parts of a JSON text; none if it has another form.
func parts[T any](raw []byte) T {
	var found, none T
	if json.Unmarshal(raw, &found) != nil {
		return none
	}
	return found
}

// member looks for the fault in the fields of a struct.
func member(t reflect.Type, members map[string]json.RawMessage, path string) error {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			if f.Type.Kind() == reflect.Struct {
				if found := member(f.Type, members, path); found != nil {
					return found
				}
			}
			continue
		}
		if raw, ok := members[name]; ok {
			if found := faulty(f.Type, raw, path+"."+name); found != nil {
				return found
			}
		}
	}
	return nil
}

// misfit says what is allowed, and what was sent if that is short.
func misfit(t reflect.Type, raw []byte, err error) string {
	const longest = 60 // bytes of a value that is repeated
	wanted := ""
	switch {
	case t == reflect.TypeFor[v1alpha1.Duration](), t == reflect.TypeFor[metav1.Duration]():
		wanted = "a duration such as 90s or 10m"
	case t == reflect.TypeFor[resource.Quantity]():
		wanted = "a quantity such as 500m or 2Gi"
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime]():
		wanted = "a time such as 2026-01-31T12:00:00Z"
	case t.Kind() == reflect.String:
		wanted = "a string"
	case t.Kind() == reflect.Bool:
		wanted = "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		wanted = "a whole number of at most " + strconv.Itoa(t.Bits()) + " bits"
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		wanted = "a list"
	case t.Kind() == reflect.Float64, t.Kind() == reflect.Float32:
		wanted = "a number"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct && errors.As(err, new(*json.UnmarshalTypeError)):
		wanted = "an object"
	default:
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	if raw = bytes.TrimSpace(raw); len(raw) <= longest {
		return "must be " + wanted + ", not " + string(raw)
	}
	return "must be " + wanted
}
