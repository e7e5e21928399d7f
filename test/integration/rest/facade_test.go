// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// taskList is the list envelope of tasks.
type taskList struct {
	Items []struct {
		Metadata struct{ Name, Namespace string }
	}
	Metadata struct {
		Continue           string
		RemainingItemCount *int64
	}
}

func (l taskList) names() string {
	var names []string
	for _, i := range l.Items {
		names = append(names, i.Metadata.Name)
	}
	return strings.Join(names, " ")
}

func TestRESTTasks(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "ed", "edit")
	a := c.Post("/api/v1/tasks", `{"name":"a","type":"container","command":["true"],"labels":{"team":"x"}}`).Want(t, 201, `"kind":"Task"`, `"uid":`)
	if a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control %q", a.Header.Get("Cache-Control"))
	}
	c.Post("/api/v1/tasks", `{"name":"b","spec":{"type":"container","command":["true"]}}`).Want(t, 201)
	c.Post("/api/v1/tasks", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"c","labels":{"team":"x"}},"spec":{"type":"ai","prompt":"hello"},"status":{}}`).Want(t, 201)
	c.Post("/api/v1/tasks", `{"name":"a","type":"container","command":["true"]}`).Problem(t, 409, `"a" already exists`)

	c.Get("/api/v1/tasks/a").Want(t, 200, `"name":"a"`, `"command":["true"]`)
	c.Get("/api/v1/tasks/a/").Want(t, 200)
	c.Get("/api/v1/tasks/nosuch").Problem(t, 404, `tasks.core.platform.ai "nosuch" not found`)
	c.Get("/api/v1/tasks/a%2Fresult").Problem(t, 400, "id: must be one path element")

	all := c.With("User-Agent", "curl/8").Get("/api/v1/tasks").Want(t, 200)
	if l := host.Decode[taskList](t, all); l.names() != "a b c" || strings.Contains(all.Body, "resourceVersion\":\"\"") || !strings.HasPrefix(all.Body, `{"metadata":{}`) {
		t.Errorf("list: %.300s", all.Body)
	}
	if l := host.Decode[taskList](t, c.Get("/api/v1/tasks?labelSelector=team%3Dx").Want(t, 200)); l.names() != "a c" {
		t.Errorf("by label: %s", l.names())
	}
	first := host.Decode[taskList](t, c.Get("/api/v1/tasks?limit=2").Want(t, 200))
	if first.names() != "a b" || first.Metadata.Continue == "" || first.Metadata.RemainingItemCount == nil || *first.Metadata.RemainingItemCount != 1 {
		t.Errorf("first page: %+v", first)
	}
	if l := host.Decode[taskList](t, c.Get("/api/v1/tasks?limit=2&continue="+first.Metadata.Continue).Want(t, 200)); l.names() != "c" || l.Metadata.Continue != "" {
		t.Errorf("second page: %+v", l)
	}
	if l := host.Decode[taskList](t, c.Get("/api/v1/tasks?limit=0").Want(t, 200)); l.names() != "a b c" {
		t.Errorf("everything: %+v", l)
	}
	for path, text := range map[string]string{
		"?watch=true":              "watch: is not a parameter of this path; it has: agent, continue, descending, labelSelector, limit, ",
		"?limit=-1":                "limit: must be a number and at least 0",
		"?limit=ten":               "limit: must be a number",
		"?limit=0&continue=x":      "continue: cannot be given with limit=0",
		"?continue=x":              "continue key",
		"?labelSelector=%3D%3D%3D": "labelSelector",
		"?namespace=A_b":           "namespace: ",
	} {
		c.Get("/api/v1/tasks"+path).Problem(t, 400, text)
	}
	if a := c.Do("DELETE", "/api/v1/tasks/a", ""); a.Code != 204 || a.Body != "" {
		t.Errorf("delete: %d %s", a.Code, a.Body)
	}
	c.Do("DELETE", "/api/v1/tasks/a", "").Problem(t, 404, `"a" not found`)
}

func TestRESTTaskBodies(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "ed", "edit")
	const rest = `"type":"container","command":["true"]`
	for body, text := range map[string]string{
		``:                                     "JSON",
		`[]`:                                   "must be a JSON object",
		`null`:                                 "must be a JSON object",
		`{"name":"x"} {}`:                      "one JSON object",
		`{"name":"x",`:                         "not JSON",
		`{` + rest + `}`:                       "name: is required",
		`{"name":"x"}`:                         "type: is required",
		`{"name":"x","spec":{}}`:               "type: is required",
		`{"name":"x","name":"y",` + rest + `}`: "name: is given twice",
		`{"name":"x","spec":{"type":"ai","type":"container"}}`:                                              "spec.type: is given twice",
		`{"name":"x","prompt":"p","spec":{` + rest + `}}`:                                                   "prompt: belongs in spec",
		`{"name":"x","metadata":{"name":"y"},` + rest + `}`:                                                 "name: differs from metadata.name",
		`{"name":"x","colour":"red",` + rest + `}`:                                                          `unknown field \"spec.colour\"`,
		`{"name":"x","type":"robot"}`:                                                                       "spec.type",
		`{"name":"X_","type":"container","command":["true"]}`:                                               "metadata.name",
		`{"name":"x","labels":{"platform.ai/task":"y"},` + rest + `}`:                                       `labels: "platform.ai/task"`,
		`{"metadata":{"name":"x","annotations":{"Platform.AI/requested-by":"root"}},"spec":{` + rest + `}}`: `annotations: "Platform.AI/requested-by"`,
		`{"name":"x","labels":["a"],` + rest + `}`:                                                          "labels: must be an object",
		`{"name":"x","requestedBy":{},` + rest + `}`:                                                        "requestedBy: is set by the server",
		`{"name":"x","spec":{"REQUESTEDBY":{},` + rest + `}}`:                                               "spec.REQUESTEDBY: is set by the server",
		`{"metadata":{"name":"x"},"spec":{` + rest + `,"ai":{"transaction":{}}}}`:                           "spec.ai.transaction: is set by the server",
		`{"name":"x","env":[{"name":"a","Transaction":1}],` + rest + `}`:                                    "env.Transaction: is set by the server",
		`{"name":"x","kind":"Agent",` + rest + `}`:                                                          "Agent",
		`{"name":"x","namespace":"default","metadata":{"namespace":"other"},` + rest + `}`:                  "namespace: differs",
	} {
		a := c.Post("/api/v1/tasks", body)
		a.Problem(t, 400, strings.ReplaceAll(text, `\"`, `"`))
		if t.Failed() {
			t.Fatalf("body %s", body)
		}
	}
	c.With("Content-Type", "application/x-www-form-urlencoded").Post("/api/v1/tasks", `{"name":"by-hand",`+rest+`}`).Want(t, 201)
	c.Post("/api/v1/tasks", `{"name":"x","labels":{"transaction":"t"},`+rest+`}`).Want(t, 201)
	c.Post("/api/v1/tasks", `{"name":"`+strings.Repeat("x", 15<<20)+`"}`).Problem(t, 413, "at most 15728640 bytes")
}

func TestRESTCallers(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	s.Namespaces(t, "team")
	nobody := s.Stranger(t)
	for _, path := range []string{"/api/v1/tasks", "/api/v1/tasks/a", "/api/v1/auth/validate"} {
		nobody.Get(path).Problem(t, 401, "Unauthorized")
		nobody.With("Authorization", "Bearer x").Get(path).Problem(t, 401, "Unauthorized")
	}
	nobody.Post("/api/v1/tasks", "not JSON").Problem(t, 401, "Unauthorized")

	token := s.Token(t, "team", "ed", "edit")
	key := nobody.With("X-Api-Key", token)
	key.Post("/api/v1/tasks", `{"name":"mine","type":"container","command":["true"]}`).Want(t, 201, `"namespace":"team"`)
	key.Get("/api/v1/tasks/mine").Want(t, 200)
	key.With("Authorization", "Bearer x").Get("/api/v1/tasks/mine").Problem(t, 401, "Unauthorized")
	key.With("Authorization", "Basic eDp5").Get("/api/v1/tasks/mine").Problem(t, 401, "Unauthorized")
	key.Get("/api/v1/tasks/mine?namespace=default").Problem(t, 403, `system:serviceaccount:team:ed`, `cannot get resource "tasks"`, `namespace "default"`)
	key.Post("/api/v1/tasks", `{"name":"x","namespace":"default","type":"ai","prompt":"p"}`).Problem(t, 403, "cannot create")
	key.Post("/api/v1/tasks", `{"metadata":{"name":"x","namespace":"default"},"spec":{"type":"ai","prompt":"p"}}`).Problem(t, 403, "cannot create")

	who := host.Decode[map[string]any](t, key.Get("/api/v1/auth/whoami").Want(t, 200))
	if who["authenticated"] != true || who["authType"] != "tokenReview" || who["username"] != "system:serviceaccount:team:ed" || who["namespace"] != "team" {
		t.Errorf("whoami: %v", who)
	}
	key.Get("/api/v1/auth/validate").Want(t, 200, `{"authenticated":true}`)

	// A client certificate, as in the administrator's kubeconfig, is accepted here as it is natively.
	code, body := host.Get(t, s.Admin, "/api/v1/tasks?namespace=team", "")
	if code != 200 || !strings.Contains(body, `"mine"`) {
		t.Errorf("administrator: %d %s", code, body)
	}
	if code, body = host.Get(t, s.Admin, "/api/v1/auth/whoami", ""); code != 200 || !strings.Contains(body, `"authType":"clientCertificate"`) {
		t.Errorf("administrator: %d %s", code, body)
	}
	view := s.REST(t, "team", "vi", "view")
	view.Get("/api/v1/tasks").Want(t, 200, `"mine"`)
	view.Do("DELETE", "/api/v1/tasks/mine", "").Problem(t, 403, "cannot delete")
}

func TestRESTPaths(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "ed", "edit")
	c.Get("/api/v1/tasks/a/nosuch").Problem(t, 404, "nothing at /api/v1/tasks/a/nosuch")
	c.Get("/api/v1/auth").Problem(t, 404, "nothing at")
	a := c.Do("PUT", "/api/v1/tasks", "")
	a.Problem(t, 405, "allowed: GET, POST")
	if a.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow %q", a.Header.Get("Allow"))
	}
	// The host's own paths below /api/v1 still work.
	c.Get("/api/v1/namespaces/default/configmaps").Want(t, 200, `"kind":"ConfigMapList"`)
	c.Get("/api/v1/secrets").Want(t, 403, `"kind":"Status"`)
	c.Get("/api/v1").Want(t, 200, `"kind":"APIResourceList"`)

	// The plain listener serves REST and nothing else.
	plain := c.At(s.RESTURL)
	plain.Get("/api/v1/tasks").Want(t, 200, `"items":[]`)
	plain.With("Authorization", "").Get("/api/v1/tasks").Problem(t, 401, "Unauthorized")
	plain.Get("/api/v1/namespaces/default/configmaps").Problem(t, 404, "nothing at")
	plain.Get("/apis/core.platform.ai/v1alpha1/tasks").Problem(t, 404, "nothing at")
	plain.With("Authorization", "").Get("/healthz").Want(t, 200, `{"status":"ok"}`)
	plain.With("Authorization", "").Get("/readyz").Want(t, 200, `{"status":"ok","checks":{"kubernetes":"ok","store":"ok"}}`)
	// The secure port answers in the same way to clients that accept JSON alone, and to others as Kubernetes does.
	stranger := c.With("Authorization", "")
	stranger.With("Accept", "application/json").Get("/healthz").Want(t, 200, `{"status":"ok"}`)
	stranger.With("Accept", "application/json").Get("/readyz").Want(t, 200, `{"status":"ok","checks":{"kubernetes":"ok","store":"ok"}}`)
	for _, accept := range []string{"", "*/*", "application/json, */*"} {
		req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Base+"/readyz", nil))
		req.Header.Set("Accept", accept)
		resp, err := c.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body := kit.Must[[]byte](t)(io.ReadAll(resp.Body)); string(body) != "ok" {
			t.Errorf("Accept %q: %s", accept, body)
		}
	}
}

func TestRESTRequestIDs(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "ed", "edit")
	a := c.With("X-Request-Id", "order-17.a:b").Get("/api/v1/tasks")
	if a.Header.Get("X-Request-Id") != "order-17.a:b" || a.Header.Get("Audit-Id") != "order-17.a:b" {
		t.Errorf("ids %q %q", a.Header.Get("X-Request-Id"), a.Header.Get("Audit-Id"))
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 129), "<script>"} {
		id := c.With("X-Request-Id", bad).Get("/api/v1/tasks").Header.Get("X-Request-Id")
		if id == "" || id == bad || strings.ContainsAny(id, " <") {
			t.Errorf("id %q became %q", bad, id)
		}
	}
}

func TestRESTPages(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.CORSOrigins = []string{"https://ui.example"} })
	open := standalone.Start(t)
	preflight := func(s *standalone.Server, origin string) host.Answer {
		c := s.Stranger(t).With("Origin", origin).With("Access-Control-Request-Method", "DELETE").With("Access-Control-Request-Headers", "authorization")
		return c.Do("OPTIONS", "/api/v1/tasks/a", "")
	}
	for _, tc := range []struct {
		s            *standalone.Server
		origin, want string
	}{{s, "https://ui.example", "https://ui.example"}, {s, "https://evil.example", ""}, {open, "https://x.example", "*"}} {
		a := preflight(tc.s, tc.origin)
		if a.Code != 204 || a.Header.Get("Access-Control-Allow-Origin") != tc.want {
			t.Errorf("preflight of %s: %d, allowed %q", tc.origin, a.Code, a.Header.Get("Access-Control-Allow-Origin"))
		}
		if allowed := a.Header.Get("Access-Control-Allow-Methods"); (tc.want != "") != strings.Contains(allowed, "DELETE") {
			t.Errorf("preflight of %s: methods %q", tc.origin, allowed)
		}
		if allowed := a.Header.Get("Access-Control-Allow-Headers"); (tc.want != "") != strings.Contains(allowed, "Authorization") {
			t.Errorf("preflight of %s: headers %q", tc.origin, allowed)
		}
	}
	a := s.REST(t, "default", "ed", "edit").With("Origin", "https://ui.example").Get("/api/v1/tasks").Want(t, 200)
	if a.Header.Get("Access-Control-Allow-Origin") != "https://ui.example" || !strings.Contains(fmt.Sprint(a.Header["Vary"]), "Origin") {
		t.Errorf("answer to a page: %v", a.Header)
	}
	// A web page cannot use its visitor's client certificate.
	admin := s.Config()
	admin.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Origin", "https://evil.example")
			return rt.RoundTrip(r)
		})
	}
	if code, body := host.Get(t, admin, "/api/v1/tasks", ""); code != 401 {
		t.Errorf("a page with its visitor's certificate: %d %s", code, body)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
