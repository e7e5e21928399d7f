// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/discovery"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func note(name, text string) *Note {
	return &Note{ObjectMeta: metav1.ObjectMeta{Name: name}, Text: text}
}

// shaped returns a Definition of notes under another resource name.
func shaped(name string, shape resource.Shape[*Note], subs ...resource.Subresource[*Note]) *resource.Definition[*Note] {
	return &resource.Definition[*Note]{
		Unguarded: true,
		Resource:  widgetGV.WithResource(name), Kind: "Note", Singular: strings.TrimSuffix(name, "s"),
		Shape: shape, Subresources: subs,
		Columns: []resource.Column[*Note]{{Name: "Text", Value: func(n *Note) any { return n.Text }}},
	}
}

func getNote(_ context.Context, name string) (*Note, error) {
	if name == "absent" {
		return nil, apierrors.NewNotFound(widgetGV.WithResource("x").GroupResource(), name)
	}
	return note(name, "of "+name), nil
}

func listNotes(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &NoteList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []Note{*note("one", "first"), *note("two", "second")}}, nil
}

func watchNotes(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(1, false)
	w.Add(note("one", "first"))
	return w, nil
}

func allShapes() []resource.Resource {
	widget := widgetDefinition()
	widget.Subresources = []resource.Subresource[*Widget]{
		{
			Name: "text", New: func() runtime.Object { return &Note{} },
			Get: func(_ context.Context, p resource.Parent[*Widget]) (runtime.Object, error) {
				return note(p.Object.Name, p.Object.Spec.Colour), nil
			},
		},
		{
			Name: "paint", New: func() runtime.Object { return &Note{} },
			Prepare: func(_ context.Context, p resource.Parent[*Widget], obj runtime.Object) error {
				switch n := obj.(*Note); n.Text {
				case "mine":
					n.Text = "of " + p.Object.Name
				case "bad":
					return apierrors.NewBadRequest("bad paint")
				}
				return nil
			},
			Create: func(ctx context.Context, p resource.Parent[*Widget], obj runtime.Object) (runtime.Object, error) {
				if p.DryRun {
					return p.Object, nil
				}
				return p.Update(ctx, func(w *Widget) error {
					w.Status.Phase = obj.(*Note).Text
					w.Spec.Colour = "not by a status update"
					return nil
				})
			},
		},
		{
			Name: "raw", Methods: []string{"GET", "POST"}, Subpath: true,
			Connect: func(_ context.Context, p resource.Parent[*Widget], respond registryrest.Responder) (http.Handler, error) {
				if p.Path == "refused" {
					return nil, context.DeadlineExceeded
				}
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || string(body) == "bad" {
						respond.Error(apierrors.NewBadRequest("bad body"))
						return
					}
					fmt.Fprintf(w, "%s %s %q %q", r.Method, p.Object.Name, p.Path, body)
				}), nil
			},
		},
	}
	return []resource.Resource{
		widget, noteDefinition(),
		shaped("entries", resource.Ledger[*Note]{
			Create: func(ctx context.Context, n *Note) (*Note, error) {
				if n.Text == "fail" {
					return nil, errors.New("the disk is on fire")
				}
				n.Name, n.Namespace = "entry", request.NamespaceValue(ctx)
				return n, nil
			},
			Get: getNote, List: listNotes, Watch: watchNotes,
		}),
		shaped("sights", resource.View[*Note]{Get: getNote, List: listNotes}),
		shaped("streams", resource.View[*Note]{Get: getNote, List: listNotes, Watch: watchNotes}),
		shaped("asks", resource.Action[*Note]{Create: func(_ context.Context, n *Note) (*Note, error) {
			n.Text = "answer to " + n.Text
			return n, nil
		}}),
	}
}

func TestDiscoveryListsOnlyServedVerbs(t *testing.T) {
	cfg := serve(t, allShapes()...)
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion("kit.test/v1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list.APIResources {
		got[r.Name] = strings.Join(r.Verbs, " ")
		if r.Name == "widgets" && (r.SingularName != "widget" || strings.Join(r.ShortNames, "") != "wd" || strings.Join(r.Categories, "") != "kit" || !r.Namespaced) {
			t.Errorf("widgets: %+v", r)
		}
		if r.Name == "notes" && r.Namespaced {
			t.Errorf("notes: %+v", r)
		}
	}
	all := "create delete deletecollection get list patch update watch"
	want := map[string]string{
		"widgets": all, "notes": all, "widgets/status": "get patch update",
		"widgets/text": "get", "widgets/paint": "create", "widgets/raw": "create get",
		"entries": "create get list watch", "sights": "get list", "streams": "get list watch", "asks": "create",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
}

func TestSubresources(t *testing.T) {
	cfg := serve(t, allShapes()...)
	ctx, c := t.Context(), client(t, cfg, widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	ok(c.Create(ctx, newObject("Widget", "a", map[string]any{"spec": map[string]any{"colour": "red"}}), metav1.CreateOptions{}))
	if got := str(ok(c.Get(ctx, "a", metav1.GetOptions{}, "text")), "text"); got != "red" {
		t.Errorf("widgets/text: %q", got)
	}
	if _, err := c.Get(ctx, "absent", metav1.GetOptions{}, "text"); !apierrors.IsNotFound(err) {
		t.Errorf("subresource of an absent object: %v", err)
	}
	paint := func(o metav1.CreateOptions) *unstructured.Unstructured {
		return ok(c.Create(ctx, newObject("Note", "a", map[string]any{"text": "Painted"}), o, "paint"))
	}
	if w := paint(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); str(w, "status", "phase") != "" {
		t.Errorf("dry run painted: %v", w.Object)
	}
	if w := paint(metav1.CreateOptions{}); str(w, "status", "phase") != "Painted" || str(w, "spec", "colour") != "red" {
		t.Errorf("painted: %v", w.Object)
	}
	if w := ok(c.Create(ctx, newObject("Note", "a", map[string]any{"text": "mine"}), metav1.CreateOptions{}, "paint")); str(w, "status", "phase") != "of a" {
		t.Errorf("prepared: %v", w.Object)
	}
	if _, err := c.Create(ctx, newObject("Note", "a", map[string]any{"text": "bad"}), metav1.CreateOptions{}, "paint"); !apierrors.IsBadRequest(err) {
		t.Errorf("refused while it was prepared: %v", err)
	}
	url := cfg.Host + "/apis/kit.test/v1/namespaces/default/widgets/"
	for _, tc := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "a/raw", "", 200, `GET a "" ""`},
		{"POST", "a/raw/some/file.txt", "content", 200, `POST a "some/file.txt" "content"`},
		{"POST", "a/raw", "bad", 400, "bad body"},
		{"GET", "a/raw/refused", "", 504, "deadline exceeded"},
		{"GET", "absent/raw", "", 404, `widgets.kit.test \"absent\" not found`},
		{"PUT", "a/raw", "", 405, ""},
	} {
		code, body := do(t, tc.method, url+tc.path, tc.body, "")
		if code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s: %d %s, want %d %s", tc.method, tc.path, code, body, tc.code, tc.want)
		}
	}
}

func do(t *testing.T, method, url, body, accept string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestLedgerViewAndAction(t *testing.T) {
	cfg := serve(t, allShapes()...)
	base := cfg.Host + "/apis/kit.test/v1/namespaces/default/"
	body := func(text string) string {
		return fmt.Sprintf(`{"apiVersion":"kit.test/v1","kind":"Note","metadata":{"name":"n"},"text":%q}`, text)
	}
	for _, tc := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "entries", body("x"), 201, `"name":"entry"`},
		{"POST", "entries?dryRun=All", body("x"), 201, `"name":"n"`},
		{"POST", "entries", body("fail"), 500, "the disk is on fire"},
		{"GET", "entries/absent", "", 404, `"reason":"NotFound"`},
		{"DELETE", "entries/entry", "", 405, ""},
		{"GET", "sights/one", "", 200, "of one"},
		{"GET", "sights?fieldSelector=text%3Dx", "", 400, "not a known field selector"},
		{"POST", "asks", body("x"), 201, "answer to x"},
		{"GET", "asks", "", 405, ""},
	} {
		code, got := do(t, tc.method, base+tc.path, tc.body, "")
		if code != tc.code || !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %d %s, want %d %s", tc.method, tc.path, code, got, tc.code, tc.want)
		}
	}
	ctx, end := context.WithCancel(t.Context()) // a watch ends with its client
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"streams?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, `{"type":"ADDED"`) {
		t.Errorf("watch: %s %s, %v", resp.Status, got, err)
	}
}

func TestTable(t *testing.T) {
	cfg := serve(t, allShapes()...)
	ctx, c := t.Context(), client(t, cfg, widgetsGVR)
	must[*unstructured.Unstructured](t)(c.Create(ctx, newObject("Widget", "a", map[string]any{"spec": map[string]any{"colour": "red", "size": int64(3)}}), metav1.CreateOptions{}))
	table := func(path string) string {
		_, body := do(t, "GET", cfg.Host+"/apis/kit.test/v1/namespaces/default/"+path, "", "application/json;as=Table;v=v1;g=meta.k8s.io")
		var tab metav1.Table
		if err := json.Unmarshal([]byte(body), &tab); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, col := range tab.ColumnDefinitions {
			fmt.Fprintf(&b, "%s(%s,%d) ", col.Name, col.Type, col.Priority)
		}
		for _, r := range tab.Rows {
			fmt.Fprintf(&b, "| %v ", r.Cells[:len(r.Cells)-1])
		}
		return b.String()
	}
	for path, want := range map[string]string{
		"widgets":     "Name(string,0) Colour(string,0) Size(integer,1) Age(string,0) | [a red 3] ",
		"widgets/a":   "Name(string,0) Colour(string,0) Size(integer,1) Age(string,0) | [a red 3] ",
		"sights":      "Name(string,0) Text(string,0) Age(string,0) | [one first] | [two second] ",
		"entries/one": "Name(string,0) Text(string,0) Age(string,0) | [one of one] ",
	} {
		if got := table(path); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
}
