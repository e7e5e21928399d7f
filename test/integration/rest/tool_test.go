// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestRESTTools: the list has the built-in tools without those of coordination, and then the Tools of the namespace; each
// page keeps its limit, and all pages together have each tool once. kubectl sees the same.
func TestRESTTools(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	tools := s.Core(t).Tools("default")
	var want []string
	for _, d := range builtin.Definitions() {
		want = append(want, d.Name)
	}
	for _, name := range []string{"alpha", "beta", "gamma", "remember"} { // a Tool named as a built-in tool is not used
		kit.Must[*v1alpha1.Tool](t)(tools.Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ToolSpec{
			Description: "The tool " + name, HTTP: &v1alpha1.ToolHTTP{URL: "https://example.com/" + name},
		}}, metav1.CreateOptions{}))
	}
	want = append(want, "alpha", "beta", "gamma")
	type page struct {
		Items    []map[string]any
		Metadata struct {
			Continue           string
			RemainingItemCount *int64
		}
	}
	c := s.REST(t, "default", "viewer", "view")
	for _, limit := range []int{1, 3, len(want) - 3, 100} {
		var got []string
		for query := fmt.Sprintf("?limit=%d", limit); query != ""; {
			p := host.Decode[page](t, c.Get("/api/v1/tools"+query).Want(t, 200))
			if len(p.Items) > limit {
				t.Errorf("limit %d: %d items", limit, len(p.Items))
			}
			for _, item := range p.Items {
				got = append(got, fmt.Sprint(item["name"]))
			}
			query = ""
			if next := p.Metadata.Continue; next != "" {
				query = fmt.Sprintf("?limit=%d&continue=%s", limit, url.QueryEscape(next))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	all := host.Decode[page](t, c.Get("/api/v1/tools").Want(t, 200)).Items
	first, last := all[0], all[len(all)-1]
	if first["name"] != "auto_merge_pull_request" || first["builtin"] != true || first["parameters"] == nil || first["namespace"] != nil || first["url"] != nil {
		t.Errorf("built-in: %v", first)
	}
	if last["namespace"] != "default" || last["builtin"] != false || last["available"] != false || last["url"] != "https://example.com/gamma" || last["description"] != "The tool gamma" {
		t.Errorf("custom: %v", last)
	}
	c.Get("/api/v1/tools/web_search").Want(t, 200, `"builtin":true`, `"parameters":{`)
	c.Get("/api/v1/tools/alpha").Want(t, 200, `"kind":"Tool"`, `"http":{`)
	c.Get("/api/v1/tools/delegate_task").Want(t, 404)
	c.Get("/api/v1/tools/none").Want(t, 404)
	c.Get("/api/v1/tools?continue=bm90aGluZw").Want(t, 400, "continue")
	c.Get("/api/v1/tools?limit=-1").Want(t, 400, "limit")
	c.Get("/api/v1/tools?limit=0").Problem(t, 400, "limit: must be a number and at least 1") // only lists of tasks have no limit
	c.Get("/api/v1/tools?namespace=other").Want(t, 403)
	catalogue := kit.Must[*v1alpha1.CatalogToolList](t)(s.Core(t).CatalogTools("default").List(t.Context(), metav1.ListOptions{}))
	var native []string
	for _, item := range catalogue.Items {
		native = append(native, item.Name)
	}
	if !slices.Equal(native, want) {
		t.Errorf("kubectl sees %s", strings.Join(native, " "))
	}
	raw, err := s.Core(t).RESTClient().Get().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/catalogtools").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	table := host.Decode[metav1.Table](t, host.Answer{Body: string(raw)})
	var headings []string
	for _, c := range table.ColumnDefinitions {
		headings = append(headings, c.Name)
	}
	if got := strings.Join(headings, " "); err != nil || got != "Name Builtin Available URL Description" || len(table.Rows) != len(want) || table.Rows[0].Cells[0] != "auto_merge_pull_request" {
		t.Errorf("table: %v, %s, %v", err, got, table.Rows)
	}
}
