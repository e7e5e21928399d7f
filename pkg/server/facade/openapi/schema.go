// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// types are the definitions of native types, and which of them a document refers to.
type types struct {
	all  map[string]common.OpenAPIDefinition
	used map[string]bool
}

const schemas = "#/components/schemas/"

func newTypes(get common.GetOpenAPIDefinitions) types {
	return types{all: get(func(name string) spec.Ref { return spec.MustCreateRef(schemas + name) }), used: map[string]bool{}}
}

// special are types whose definitions are for versions of OpenAPI that could not express them.
func special() map[string]object {
	return map[string]object{
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": []string{"integer", "string"}},
		"io.k8s.apimachinery.pkg.api.resource.Quantity":   {"type": []string{"number", "string"}},
		"io.k8s.apimachinery.pkg.apis.meta.v1.Time":       {"type": []string{"string", "null"}, "format": "date-time"},
		"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":  {"type": []string{"string", "null"}, "format": "date-time"},
		"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":   {"type": "object"},
	}
}

// kind returns the name of the definition of a kind.
func (t types) kind(kind string) (string, error) {
	if name := "ai." + strings.TrimSuffix(v1alpha1.GroupName, ".platform.ai"); kind != "" {
		for _, prefix := range []string{"ai.platform.core.v1alpha1.", "io.k8s.api.authentication.v1.", "io.k8s.api.core.v1.", name} {
			if _, ok := t.all[prefix+kind]; ok {
				return prefix + kind, nil
			}
		}
	}
	return "", fmt.Errorf("kind %q has no definition", kind)
}

// refer returns a reference to a definition.
func (t types) refer(name string) object {
	t.used[name] = true
	return object{"$ref": schemas + name}
}

// properties returns the members of a definition, and those that are required.
func (t types) properties(name string) (members object, required []string, err error) {
	members = object{}
	s := t.all[name].Schema
	for member, p := range s.Properties {
		if members[member], err = t.convert(p); err != nil {
			return nil, nil, err
		}
	}
	return members, s.Required, nil
}

// at returns the schema of a member of a definition.
func (t types) at(name, path string) (spec.Schema, error) {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(schemas + name)}}
	if path == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(path, ".") {
		s = t.resolve(s)
		next, ok := s.Properties[part]
		if !ok {
			return s, fmt.Errorf("%s has no member %s", name, path)
		}
		s = next
	}
	return s, nil
}

// resolve follows a reference.
func (t types) resolve(s spec.Schema) spec.Schema {
	if name, ok := strings.CutPrefix(s.Ref.String(), schemas); ok {
		return t.all[name].Schema
	}
	return s
}

// name returns the name of the definition that a schema refers to.
func name(s spec.Schema) string {
	n, _ := strings.CutPrefix(s.Ref.String(), schemas)
	return n
}

// convert makes a schema of a native one, without what only Kubernetes reads.
func (t types) convert(s spec.Schema) (object, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a schema: %w", err)
	}
	var out object
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode a schema: %w", err)
	}
	t.clean(out)
	return out, nil
}

// clean removes extensions and defaults from a schema, and notes the definitions that it refers to.
func (t types) clean(s object) {
	if r, ok := s["$ref"].(string); ok {
		t.used[strings.TrimPrefix(r, schemas)] = true
	}
	for key, value := range s {
		switch {
		case strings.HasPrefix(key, "x-kubernetes-"), key == "default", key == "nullable":
			delete(s, key)
		case key == "enum":
		case key == "properties":
			members, _ := value.(object)
			for _, m := range members {
				if m, ok := m.(object); ok {
					t.clean(m)
				}
			}
		default:
			t.cleanAll(value)
		}
	}
}

func (t types) cleanAll(value any) {
	switch v := value.(type) {
	case object:
		t.clean(v)
	case []any:
		for _, one := range v {
			t.cleanAll(one)
		}
	}
}

// reachable returns the schemas that the document uses.
func (t types) reachable() (object, error) {
	out, fixed := object{}, special()
	for len(out) < len(t.used) {
		for name := range maps.Clone(t.used) {
			if out[name] != nil {
				continue
			}
			if s, ok := fixed[name]; ok {
				out[name] = s
				continue
			}
			d, ok := t.all[name]
			if !ok {
				return nil, fmt.Errorf("no definition of %s", name)
			}
			s, err := t.convert(d.Schema)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(name, "ai.platform.core.v1alpha1.Usage") {
				unknown(s)
			}
			out[name] = s
		}
	}
	return out, nil
}

// unknown lets the members of a usage report be null, which means that nobody reported a value.
func unknown(s object) {
	members, _ := s["properties"].(object)
	for name, m := range members {
		members[name] = object{"anyOf": []any{m, object{"type": "null"}}}
	}
}
