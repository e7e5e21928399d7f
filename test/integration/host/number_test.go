// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestNumbersOutOfRange: a number that no double holds is refused with 400 and its place, wherever JSON of any form is taken and
// however it is sent. Managed fields are computed of what is decoded, which panics on such a number; Start fails on that.
func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	const group = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	tool := func(name, maximum string) string {
		return fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Tool","metadata":{"name":%q},"spec":{"description":"d","http":{"url":"https://example.test/x"},
			"parameters":{"type":"object","properties":{"k":{"type":"number","maximum":%s}}}}}`, name, maximum)
	}
	ask := func(method, path, contentType, body string) (int, string) {
		a := s.Ask(t, s.Admin, method, group+path, body, "Content-Type", contentType)
		return a.Code, a.Body
	}
	if code, body := ask(http.MethodPost, "tools", "application/json", tool("good", "1e308")); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	call := `{"kind":"ToolCall","apiVersion":"core.platform.ai/v1alpha1","spec":{"taskName":"t","toolName":"code_exec","arguments":{"timeout":%s}}}`
	for _, n := range []string{"1e400", "-2E308", strings.Repeat("9", 400)} {
		for _, c := range []struct{ method, path, contentType, body string }{
			{"POST", "tools", "application/json", tool("bad", n)},
			{"POST", "tools", "application/yaml", tool("bad", n)},
			{"PUT", "tools/good", "application/json", tool("good", n)},
			{"PATCH", "tools/good", "application/merge-patch+json", `{"spec":{"parameters":{"maximum":` + n + `}}}`},
			{"PATCH", "tools/good", "application/strategic-merge-patch+json", `{"spec":{"parameters":{"maximum":` + n + `}}}`},
			{"PATCH", "tools/good", "application/json-patch+json", `[{"op":"add","path":"/spec/parameters/maximum","value":` + n + `}]`},
			{"PATCH", "tools/good?fieldManager=x&force=true", "application/apply-patch+yaml", tool("good", n)},
			{"POST", "toolcalls", "application/json", fmt.Sprintf(call, n)},
			{"POST", "tasks", "application/json", `{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"t"},"spec":{"type":"container","command":["true"],"transaction":{"context":{"k":` + n + `}}}}`},
		} {
			code, body := ask(c.method, c.path, c.contentType, c.body)
			if code != http.StatusBadRequest && code != http.StatusUnprocessableEntity {
				t.Errorf("%s %s (%s) of %.12s: %d %.300s", c.method, c.path, c.contentType, n, code, body)
			}
		}
	}
	s.Ask(t, s.Admin, http.MethodPost, group+"toolcalls", fmt.Sprintf(call, "1e400"), "Content-Type", "application/json").
		Want(t, http.StatusBadRequest, "spec.arguments.timeout: the number 1e400 is out of range")
	s.Ask(t, s.Admin, http.MethodPost, "/api/v1/tools", tool("bad", "1e400"), "Content-Type", "application/json").
		Problem(t, http.StatusBadRequest)
}

// numbers calls f with each number and length of time of a struct, and with its largest and smallest values. It goes into all structs of
// the platform, which it adds where the content lacks them, and into the first elements of lists that the content has.
func numbers(of reflect.Type, content map[string]any, path string, f func(path string, in map[string]any, name string, value any)) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		typ := field.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		for _, value := range extremesOf(typ) {
			was, given := content[name]
			content[name] = value
			f(path+"."+name, content, name, value)
			if content[name] = was; !given {
				delete(content, name)
			}
		}
		ours := func(t reflect.Type) bool {
			return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[v1alpha1.Task]().PkgPath()
		}
		switch inner := content[name].(type) {
		case map[string]any:
			if ours(typ) {
				numbers(typ, inner, path+"."+name, f)
			}
		case []any:
			if element, ok := inner[0].(map[string]any); ok && typ.Kind() == reflect.Slice && ours(typ.Elem()) {
				numbers(typ.Elem(), element, path+"."+name, f)
			}
		case nil:
			if added := map[string]any{}; ours(typ) {
				content[name] = added
				numbers(typ, added, path+"."+name, f)
				delete(content, name)
			}
		}
	}
}

func extremesOf(t reflect.Type) []any {
	switch {
	case t == reflect.TypeFor[v1alpha1.Duration]():
		return []any{"2562047h47m16.854775807s", "-2562047h47m16.854775808s", "1ns", "0s", "999999999999h"}
	case t.Kind() == reflect.Int64:
		return []any{int64(math.MaxInt64), int64(math.MinInt64), int64(0), int64(-1)}
	case t.Kind() == reflect.Int32:
		return []any{int64(math.MaxInt32), int64(math.MinInt32), int64(math.MaxInt32) + 1, int64(math.MaxInt64), int64(0), int64(-1)}
	case t.Kind() == reflect.Float64:
		return []any{math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0., -1.}
	}
	return nil
}

// TestExtremeNumbersEverywhere: in every number and length of time of every kind, stored or only answered, the largest and the smallest
// values are either taken exactly as they are or refused as the client's fault; afterwards everything can be read. What controllers do
// with them is shown where these are.
func TestExtremeNumbersEverywhere(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	taken, seen := 0, map[string]bool{}
	try := func(u *unstructured.Unstructured, kept bool) {
		of, ok := known.AllKnownTypes()[u.GroupVersionKind()]
		if !ok {
			return
		}
		c := resourceOf(s, t, u)
		spec, _ := of.FieldByName("Spec")
		content, _, _ := unstructured.NestedMap(u.Object, "spec")
		numbers(spec.Type, content, u.GetKind()+".spec", func(path string, in map[string]any, name string, value any) {
			what := fmt.Sprintf("%s=%v", path, value)
			if seen[what] {
				return
			}
			seen[what] = true
			x := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
			x.Object["spec"] = content
			if kept {
				x.SetName(fmt.Sprintf("n%d", len(seen)))
			}
			got, err := c.Create(t.Context(), x, metav1.CreateOptions{FieldValidation: "Strict"})
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				if code := status.Status().Code; code < 400 || code > 499 {
					t.Errorf("%s: %d %v", what, code, err)
				}
				return
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			taken++
			answer, _ := json.Marshal(got.Object["spec"])
			if sent, _ := json.Marshal(value); kept && !bytes.Contains(answer, append([]byte(`"`+name+`":`), sent...)) && value != int64(0) {
				t.Errorf("%s is answered as %s", what, answer)
			}
		})
	}
	for _, u := range examples(t) {
		try(u, true)
	}
	for _, kind := range []string{"TaskQuery", "MemorySearch", "MemoryProposalSearch", "TranscriptSearch", "UsageReport", "UsageMeasurement", "UsageLink", "ToolCall"} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"query": "x"}}}
		if kind != "MemorySearch" && kind != "MemoryProposalSearch" && kind != "TranscriptSearch" {
			u.Object["spec"] = map[string]any{}
		}
		u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
		try(u, false)
	}
	t.Logf("%d of %d values are taken", taken, len(seen))
	if taken < 50 {
		t.Errorf("%d values were taken, too few to show anything", taken)
	}
	read := 0
	for _, r := range kit.Must[*metav1.APIResourceList](t)(s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())).APIResources {
		if !slices.Contains(r.Verbs, "deletecollection") {
			continue // nothing of it is stored
		}
		read++
		s.Ask(t, s.Admin, http.MethodGet, "/apis/core.platform.ai/v1alpha1/"+r.Name, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
			Want(t, http.StatusOK, `"kind":"Table"`)
	}
	if read < 10 {
		t.Errorf("%d kinds are stored", read)
	}
}
