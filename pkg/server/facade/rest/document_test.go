// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestObjectsAreMadeOfAnswers(t *testing.T) {
	d := Parts{}
	d.add("task", json.RawMessage(`{"metadata":{"name":"<x>","uid":null},"status":{"n":0}}`))
	d.add("log", json.RawMessage(`"text"`))
	d.add("empty", nil)
	d.add("", json.RawMessage(`{"items":[{"a":1},{"b":{"c":[2]}}],"task":"hidden"}`))
	for want, fields := range map[string][]Field{
		`{}`:                             Fields("a: task.metadata.uid", "b: task.nosuch.x", "c: nosuch", "d: log.deeper", "e: task.status.n.x"),
		`{"a":"<x>","n":0}`:              Fields("a: task.metadata.name", "n: task.status.n"),
		`{"a":"text","b":null,"c":true}`: Fields("a: empty | log | task.metadata.name", "b: task.metadata.uid = null", "c: = true"),
		`{"list":[{"x":1},{"x":0,"y":[2]}]}`: {
			{Name: "list", From: []string{"items"}, Each: Fields("x: a = 0", "y: b.c")},
		},
		`{"list":[]}`:   {{Name: "list", From: []string{"nosuch"}, Default: "[]", Each: Fields("x: a")}},
		`{"as":"a"}`:    {{Name: "as", From: []string{"user"}, Default: `"a"`, As: AccountNamespace}},
		`{"as":"none"}`: {{Name: "as", From: []string{"log"}, Default: `"none"`, As: AccountNamespace}},
	} {
		if got := d.object(fields); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if d.has("empty") || !d.has("log") || d.Text("task.status.n") != "0" || d.Text("task.metadata.name") != "<x>" {
		t.Errorf("%+v", d)
	}
}

// Rows build native requests from parameters of the path, of the query and of earlier answers.
func TestRowsBecomeNativeRequests(t *testing.T) {
	rows := []Row{
		{
			Method: http.MethodGet, Path: "/api/v1/things/:id", Native: []Native{
				{Name: "thing", Verb: "get", Path: "things/:id", Pass: []string{"a", "b"}, Set: map[string]string{"fixed": "x"}},
				{Name: "of", Verb: "list", Path: "others", Page: true, With: func(c *Call, q url.Values) {
					q.Set("fieldSelector", "uid="+c.Text("thing.metadata.uid")+",id="+c.Param("id")+c.Text("thing.none"))
				}},
			},
			Answer: Answer{Fields: Fields("path: of.path", "query: of.query")},
		},
		{Method: http.MethodPost, Path: "/api/v1/things", Body: &Body{Max: 1000, Kind: "Thing", Flat: true}, Native: []Native{{Verb: "create", Path: "things"}}},
		{Method: http.MethodDelete, Path: "/api/v1/things/:id", Native: []Native{{Name: "thing", Verb: "get", Path: "things/:id"}, {Verb: "delete", Path: "things/:id"}}, Answer: Answer{Code: http.StatusNoContent}, Handler: DeleteSame},
	}
	var asked []string
	f, err := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.Path, "/apis/core.platform.ai/v1alpha1/namespaces/")+"?"+r.URL.RawQuery+" "+string(body)))
		_, _ = io.WriteString(w, `{"metadata":{"uid":"u1"},"path":"p"}`)
	}), rows, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ method, path, body, answer, asked string }{
		{
			"GET", "/api/v1/things/x?a=&b=2&limit=7", "", `{"path":"p"}`,
			"GET default/things/x?a=&b=2&fixed=x&pretty=false GET default/others?fieldSelector=uid%3Du1%2Cid%3Dx&limit=7&pretty=false",
		},
		{"POST", "/api/v1/things", `{"metadata":null,"spec":null,"name":"n","namespace":"team","type":"t"}`, "", ""}, // type belongs in spec
		{
			"POST", "/api/v1/things", `{"metadata":null,"name":"n","namespace":"team","type":"t"}`, `{"metadata":{"uid":"u1"},"path":"p"}`,
			`POST team/things?fieldValidation=Strict&pretty=false {"apiVersion":"core.platform.ai/v1alpha1","kind":"Thing","metadata":{"name":"n","namespace":"team"},"spec":{"type":"t"}}`,
		},
		{"DELETE", "/api/v1/things/x?namespace=team", "", "", `GET team/things/x?pretty=false DELETE team/things/x?pretty=false {"preconditions":{"uid":"u1"}}`},
	} {
		asked = nil
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if got := strings.Join(asked, " "); got != tc.asked {
			t.Errorf("%s %s asked for\n%s, want\n%s", tc.method, tc.path, got, tc.asked)
		}
		if got := strings.TrimSpace(w.Body.String()); tc.asked != "" && got != tc.answer || tc.asked == "" && w.Code != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s, want %s", tc.method, tc.path, w.Code, got, tc.answer)
		}
	}
}
