// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// manifest is an object as somebody writes it, for any group.
type manifest struct {
	kind, resource, name string
	content              node
	// added are the paths of the members that the generator added.
	added [][]string
	// optional is the path of a member without which the manifest is valid; nil if there is none.
	optional []string
}

// path is the end of the object's path.
func (m manifest) path() string { return m.resource + "/" + m.name }

// members returns the paths of members that may be left out: those that were added, the last first, and those of the spec.
func (m manifest) members() [][]string {
	paths := slices.Clone(m.added)
	slices.Reverse(paths)
	spec, _ := m.content["spec"].(node)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		paths = append(paths, []string{"spec", name})
	}
	return paths
}

// as returns the object under a name, in a namespace and a group. A custom resource has no null, which it refuses and which the platform
// takes for absence.
func (m manifest) as(group, namespace, name string) node {
	out := copyOf(m.content)
	if group == crdGroup {
		spec, _ := withoutNulls(out["spec"], openAPI().kind(m.kind)["properties"].(node)["spec"].(node))
		out["spec"] = spec
	}
	out["apiVersion"], out["kind"] = group+"/"+v1alpha1.SchemeGroupVersion.Version, m.kind
	meta, _ := out["metadata"].(node)
	meta["name"], meta["namespace"] = name, namespace
	return out
}

// says reports whether a member has a value that is neither null nor zero.
func (m manifest) says(path []string) bool {
	in := any(m.content)
	for _, name := range path {
		in = in.(node)[name]
	}
	return in != nil && !zero(strings.TrimSpace(plain(in)))
}

// null reports whether a member of the manifest is null, or has members that all are; path is the one that managed fields have.
func (m manifest) null(path string) bool {
	found := false
	var look func(v any, steps []string)
	look = func(v any, steps []string) {
		switch v := v.(type) {
		case nil:
			found = found || len(steps) == 0
		case node:
			if len(steps) == 0 {
				found = found || len(v) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return inner != nil })
			} else if inner, ok := v[steps[0]]; ok {
				look(inner, steps[1:])
			}
		case []any: // any element, as the path names it by its content
			for _, inner := range v {
				look(inner, steps)
			}
		}
	}
	look(m.content, strings.Split(strings.TrimPrefix(elements.ReplaceAllString(path, ""), "."), "."))
	return found
}

var elements = regexp.MustCompile(`\[[^\]]*\]`)

// with returns the manifest with a value in place of a member; without the member if there is no value.
func (m manifest) with(path []string, value ...any) manifest {
	m.content = copyOf(m.content)
	in := m.content
	for _, step := range path[:len(path)-1] {
		in = in[step].(node)
	}
	delete(in, path[len(path)-1])
	if len(value) > 0 {
		in[path[len(path)-1]] = value[0]
	}
	return m
}

// withoutNulls returns a value without the nulls that a schema's members have; data of any shape stays as it is.
func withoutNulls(v any, s node) (any, bool) {
	each, _ := s["additionalProperties"].(node)
	properties, _ := s["properties"].(node)
	items, _ := s["items"].(node)
	switch v := v.(type) {
	case nil:
		return nil, false
	case node:
		if each == nil && properties == nil {
			return v, true
		}
		out := node{}
		for name, inner := range v {
			of, _ := properties[name].(node)
			if of == nil {
				of = each
			}
			if kept, ok := withoutNulls(inner, of); ok {
				out[name] = kept
			}
		}
		return out, true
	case []any:
		out := []any{}
		for _, inner := range v {
			if kept, ok := withoutNulls(inner, items); ok {
				out = append(out, kept)
			}
		}
		return out, true
	}
	return v, true
}

func copyOf(v node) node {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return parsed(data)
}

func parsed(data []byte) (out node) {
	if err := utiljson.Unmarshal(data, &out); err != nil { // whole numbers as int64
		panic(err) // of the test's own
	}
	return out
}

// written returns the manifests of the repository for the resources, by kind: those of artifacts and manifests.
func written(t *testing.T, resources []metav1.APIResource) map[string][]manifest {
	t.Helper()
	all := map[string][]manifest{}
	resourceOf := map[string]string{}
	for _, r := range resources {
		resourceOf[r.Kind] = r.Name
	}
	// What hack/demo.sh fills in.
	filled := strings.NewReplacer("${MODEL_TYPE}", "openai", "${MODEL_URL}", "https://models.example.com/v1", "${MODEL_NAME}", "m", "${REPOSITORY_URL}", "https://git.example.com/greeting.git")
	for _, folder := range []string{"artifacts", "manifests"} {
		for _, u := range host.Manifests(t, filepath.Join("..", "..", folder), "templates", "create", "reference") { // a chart's templates are no YAML
			if gv := u.GroupVersionKind().GroupVersion(); gv != v1alpha1.SchemeGroupVersion || resourceOf[u.GetKind()] == "" {
				continue
			}
			content := parsed([]byte(filled.Replace(string(kit.Must[[]byte](t)(u.MarshalJSON())))))
			all[u.GetKind()] = append(all[u.GetKind()], manifest{
				kind: u.GetKind(), resource: resourceOf[u.GetKind()], name: fmt.Sprintf("written-%d", len(all[u.GetKind()])), content: content,
			})
		}
	}
	for kind := range resourceOf {
		if len(all[kind]) == 0 {
			t.Errorf("no manifest of the repository is a %s", kind)
		}
	}
	return all
}

// generator makes manifests from the schemas of kinds.
type generator struct {
	*rand.Rand
	// accepted reports whether a manifest is valid, which only the server knows.
	accepted func(manifest) bool
}

// additions is how many members the generator tries to add to a manifest.
const additions = 12

// grown adds members to a manifest that the schema has and the manifest lacks, each with a value that the server accepts.
func (g generator) grown(m manifest, s node) manifest {
	for range additions {
		missing := absent(m.content, s, nil)
		if len(missing) == 0 {
			break
		}
		path := missing[g.IntN(len(missing))]
		for range 8 {
			value := g.value(schemaAt(s, path), 0)
			if g.IntN(8) == 0 {
				value = nil
			}
			next := m.with(path, value)
			if g.accepted(next) {
				next.added = append(slices.Clone(m.added), path)
				m = next
				break
			}
		}
	}
	return m
}

// absent returns the paths of members that an object could have, in a fixed order.
func absent(content, s node, path []string) (paths [][]string) {
	properties, _ := s["properties"].(node)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(path) == 0 && name == "status" { // not written by people
			continue
		}
		here := append(slices.Clip(path), name)
		switch inner, given := content[name]; inner := inner.(type) {
		case node:
			paths = append(paths, absent(inner, properties[name].(node), here)...)
		default:
			if !given {
				paths = append(paths, here)
			}
		}
	}
	return paths
}

func schemaAt(s node, path []string) node {
	for _, name := range path {
		s = s["properties"].(node)[name].(node)
	}
	return s
}

// phrases are texts for any member: empty, short, and with what JSON and YAML can write in several ways; then texts for the members that
// admit only some.
var phrases = []string{
	"", "", "a", "a < b && c > d/e", "naïve 日本 \U0001f600", "line\nline\t\"quoted\" \\", "null", "1", "true", "0.5", "10m", "1h30m", "90s",
	"https://example.com/a?b=<c>&d=e", "UTC", "Europe/Berlin", "0 3 * * *", "2026-01-31", "main", "src/a.md",
	"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "2026-01-31T00:00:00Z", "web_fetch",
}

// quantities are amounts as people write them, most of them not in the form in which Kubernetes stores them.
var quantities = []any{"0.5", "1024Mi", "1.0", "1e3", "100m", "0", int64(1), 0.5, "1Gi", "2000m"}

// jsons are values of members of any shape.
var jsons = []string{
	`{}`, `{"type":"object"}`, `{"type":"object","properties":{"id":{"type":"integer","maximum":1972435959496572929,"multipleOf":1.5}},"additionalProperties":false}`,
	`{"type":"object","properties":{"<a>&":{"description":"a < b","default":null,"enum":[1,"1",true,null,1e3,0.1]}},"required":[]}`,
	`{"z":1,"a":[{},[],"",0,false],"é":"\n"}`,
}

// value returns a random value of a schema.
func (g generator) value(s node, depth int) any {
	if d, ok := s["default"]; ok && g.IntN(4) == 0 {
		return d
	}
	switch s["type"] {
	case "boolean":
		return g.IntN(2) == 0
	case "integer":
		all := []any{int64(0), int64(0), int64(1), int64(2), int64(7), int64(100), int64(1<<31 - 1)}
		if s["format"] == "int64" {
			all = append(all, int64(1972435959496572929), int64(1<<53+1))
		}
		return all[g.IntN(len(all))]
	case "number":
		return []any{int64(0), int64(1), int64(2), 0.5, 1.25}[g.IntN(5)]
	case "string":
		return phrases[g.IntN(len(phrases))]
	case "array":
		list := []any{}
		for range []int{0, 1, 1, 2}[g.IntN(4)] {
			list = append(list, g.value(s["items"].(node), depth+1))
		}
		return list
	case "object":
		return g.object(s, depth)
	}
	if s["format"] == "quantity" {
		return quantities[g.IntN(len(quantities))]
	}
	return parsed([]byte(jsons[g.IntN(len(jsons))]))
}

// object returns an object with the required members, and some of the others, of which some are null.
func (g generator) object(s node, depth int) node {
	out := node{}
	if each, ok := s["additionalProperties"].(node); ok {
		for _, key := range []string{"cpu", "memory", "a/b", "x.y"}[:g.IntN(4)] {
			out[key] = g.value(each, depth+1)
		}
		return out
	}
	properties, _ := s["properties"].(node)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < 3 && g.IntN(3) == 0 {
			out[name] = g.value(properties[name].(node), depth+1)
		} else if depth < 3 && g.IntN(6) == 0 {
			out[name] = nil
		}
	}
	return out
}

// plain writes JSON as most programs do: without escapes that are not needed.
func plain(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // it was read from JSON
	}
	return out.String()
}

// style is a way to write JSON otherwise.
type style struct {
	*rand.Rand
	// loose adds white space and escapes, and changes the order of keys.
	loose bool
	// fractions writes each whole number with a fraction of zero.
	fractions bool
	// yaml leaves out what is not YAML as well.
	yaml bool
}

// write returns JSON text of a value.
func (w style) write(v any) string {
	var out strings.Builder
	w.value(&out, v)
	return out.String()
}

func (w style) space(out *strings.Builder) {
	if w.loose {
		out.WriteString([]string{"", "", " ", "\n  "}[w.IntN(4)])
	}
}

func (w style) value(out *strings.Builder, v any) {
	w.space(out)
	switch v := v.(type) {
	case node:
		keys := slices.Sorted(maps.Keys(v))
		if w.loose {
			w.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			w.space(out)
			w.text(out, key)
			if !w.yaml {
				w.space(out)
			}
			out.WriteByte(':')
			w.value(out, v[key])
		}
		w.space(out)
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			w.value(out, e)
		}
		w.space(out)
		out.WriteByte(']')
	case string:
		w.text(out, v)
	case int64:
		out.WriteString(strconv.FormatInt(v, 10))
		if w.fractions && v < 1<<53 {
			out.WriteString(".0")
		}
	default:
		out.WriteString(strings.TrimSpace(plain(v)))
	}
	w.space(out)
}

func (w style) text(out *strings.Builder, text string) {
	for _, r := range strings.TrimSpace(plain(text)) {
		switch {
		case w.loose && !w.yaml && r == '/':
			out.WriteString(`\/`)
		case w.loose && (r == '<' || r == '&' || r > 0x7f && r < 0xd800) && w.IntN(2) == 0:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
}
