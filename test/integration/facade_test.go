// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// restClient is a client of the REST paths.
type restClient struct {
	t      testing.TB
	base   string
	http   *http.Client
	header http.Header
}

// answer is what the server sent.
type answer struct {
	code   int
	header http.Header
	body   string
}

// restAs returns a client with the token of a ServiceAccount that has a ClusterRole in its namespace. Both are made if
// they do not exist. The role "" means none.
func restAs(t testing.TB, s *standalone.Server, ns, account, role string) *restClient {
	t.Helper()
	c := restOf(t, s)
	c.header.Set("Authorization", "Bearer "+accountToken(t, s, ns, account, role))
	return c
}

// restOf returns a client of the secure port without credentials.
func restOf(t testing.TB, s *standalone.Server) *restClient {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.Admin.CAData)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &restClient{t: t, base: s.URL, http: &http.Client{Transport: tr}, header: http.Header{}}
}

// at is the same client on another address.
func (c *restClient) at(base string) *restClient {
	d := *c
	d.base, d.header = base, c.header.Clone()
	return &d
}

// with is the same client that also sends a header; an empty value removes it.
func (c *restClient) with(name, value string) *restClient {
	d := c.at(c.base)
	if d.header.Del(name); value != "" {
		d.header.Set(name, value)
	}
	return d
}

// open sends a request and leaves the body to be read.
func (c *restClient) open(ctx context.Context, method, path, body string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = c.header.Clone()
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *restClient) do(method, path, body string) answer {
	c.t.Helper()
	resp := c.open(context.Background(), method, path, body)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{resp.StatusCode, resp.Header, string(data)}
	if path == "/api/v1/secrets" && strings.HasPrefix(c.base, "https:") {
		return a // Kubernetes' own path
	}
	return a.comply(c.t, method, path, body)
}

func (c *restClient) get(path string) answer { c.t.Helper(); return c.do(http.MethodGet, path, "") }
func (c *restClient) post(path, body string) answer {
	c.t.Helper()
	return c.do(http.MethodPost, path, body)
}

// want fails the test unless the answer has the code and, in its body, all texts.
func (a answer) want(t testing.TB, code int, texts ...string) answer {
	t.Helper()
	if a.code != code {
		t.Errorf("code %d, want %d: %.400s", a.code, code, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("no %q in %.400s", text, a.body)
		}
	}
	return a
}

// problem fails the test unless the answer is the error envelope with the code and all texts in its message.
func (a answer) problem(t testing.TB, code int, texts ...string) {
	t.Helper()
	var e struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Error == nil {
		t.Errorf("code %d, no error envelope: %v: %.400s", a.code, err, a.body)
		return
	}
	if a.code != code || e.Error.Code != code || e.Error.Message == "" {
		t.Errorf("code %d, want %d: %.400s", a.code, code, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(e.Error.Message, text) {
			t.Errorf("no %q in message %q", text, e.Error.Message)
		}
	}
	if ct := a.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
}

// decode reads the body.
func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.NewDecoder(bytes.NewReader([]byte(a.body))).Decode(&v); err != nil {
		t.Fatalf("code %d: %v: %.400s", a.code, err, a.body)
	}
	return v
}

// accountToken makes a ServiceAccount, binds it to a ClusterRole in its namespace, and requests a token, as
// kubectl create token does.
func accountToken(t testing.TB, s *standalone.Server, ns, account, role string) string {
	t.Helper()
	k, ctx := s.Kubernetes(t), context.Background()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := k.CoreV1().ServiceAccounts(ns).Create(ctx, sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if role != "" {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: ns}},
		}
		if _, err := k.RbacV1().RoleBindings(ns).Create(ctx, b, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	req, err := k.CoreV1().ServiceAccounts(ns).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return req.Status.Token
}

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
	c := restAs(t, s, "default", "ed", "edit")
	a := c.post("/api/v1/tasks", `{"name":"a","type":"container","command":["true"],"labels":{"team":"x"}}`).want(t, 201, `"kind":"Task"`, `"uid":`)
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control %q", a.header.Get("Cache-Control"))
	}
	c.post("/api/v1/tasks", `{"name":"b","spec":{"type":"container","command":["true"]}}`).want(t, 201)
	c.post("/api/v1/tasks", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"c","labels":{"team":"x"}},"spec":{"type":"ai","prompt":"hello"},"status":{}}`).want(t, 201)
	c.post("/api/v1/tasks", `{"name":"a","type":"container","command":["true"]}`).problem(t, 409, `"a" already exists`)

	c.get("/api/v1/tasks/a").want(t, 200, `"name":"a"`, `"command":["true"]`)
	c.get("/api/v1/tasks/a/").want(t, 200)
	c.get("/api/v1/tasks/nosuch").problem(t, 404, `tasks.core.platform.ai "nosuch" not found`)
	c.get("/api/v1/tasks/a%2Fresult").problem(t, 400, "id: must be one path element")

	all := c.with("User-Agent", "curl/8").get("/api/v1/tasks").want(t, 200)
	if l := decode[taskList](t, all); l.names() != "a b c" || strings.Contains(all.body, "resourceVersion\":\"\"") || !strings.HasPrefix(all.body, `{"metadata":{}`) {
		t.Errorf("list: %.300s", all.body)
	}
	if l := decode[taskList](t, c.get("/api/v1/tasks?labelSelector=team%3Dx").want(t, 200)); l.names() != "a c" {
		t.Errorf("by label: %s", l.names())
	}
	first := decode[taskList](t, c.get("/api/v1/tasks?limit=2").want(t, 200))
	if first.names() != "a b" || first.Metadata.Continue == "" || first.Metadata.RemainingItemCount == nil || *first.Metadata.RemainingItemCount != 1 {
		t.Errorf("first page: %+v", first)
	}
	if l := decode[taskList](t, c.get("/api/v1/tasks?limit=2&continue="+first.Metadata.Continue).want(t, 200)); l.names() != "c" || l.Metadata.Continue != "" {
		t.Errorf("second page: %+v", l)
	}
	if l := decode[taskList](t, c.get("/api/v1/tasks?limit=0").want(t, 200)); l.names() != "a b c" {
		t.Errorf("everything: %+v", l)
	}
	for path, text := range map[string]string{
		"?watch=true":              "watch: is not a parameter of this path; it has: continue, labelSelector, limit, namespace",
		"?limit=-1":                "limit: must be a number and at least 0",
		"?limit=ten":               "limit: must be a number",
		"?limit=0&continue=x":      "continue: cannot be given with limit=0",
		"?continue=x":              "continue key",
		"?labelSelector=%3D%3D%3D": "labelSelector",
		"?namespace=A_b":           "namespace: ",
	} {
		c.get("/api/v1/tasks"+path).problem(t, 400, text)
	}
	if a := c.do("DELETE", "/api/v1/tasks/a", ""); a.code != 204 || a.body != "" {
		t.Errorf("delete: %d %s", a.code, a.body)
	}
	c.do("DELETE", "/api/v1/tasks/a", "").problem(t, 404, `"a" not found`)
}

func TestRESTTaskBodies(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := restAs(t, s, "default", "ed", "edit")
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
		a := c.post("/api/v1/tasks", body)
		a.problem(t, 400, strings.ReplaceAll(text, `\"`, `"`))
		if t.Failed() {
			t.Fatalf("body %s", body)
		}
	}
	c.with("Content-Type", "application/x-www-form-urlencoded").post("/api/v1/tasks", `{"name":"by-hand",`+rest+`}`).want(t, 201)
	c.post("/api/v1/tasks", `{"name":"x","labels":{"transaction":"t"},`+rest+`}`).want(t, 201)
	c.post("/api/v1/tasks", `{"name":"`+strings.Repeat("x", 15<<20)+`"}`).problem(t, 413, "at most 15728640 bytes")
}

func TestRESTCallers(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	makeNamespace(t, s.Kubernetes(t), "team")
	nobody := restOf(t, s)
	for _, path := range []string{"/api/v1/tasks", "/api/v1/tasks/a", "/api/v1/auth/validate"} {
		nobody.get(path).problem(t, 401, "Unauthorized")
		nobody.with("Authorization", "Bearer x").get(path).problem(t, 401, "Unauthorized")
	}
	nobody.post("/api/v1/tasks", "not JSON").problem(t, 401, "Unauthorized")

	token := accountToken(t, s, "team", "ed", "edit")
	key := nobody.with("X-Api-Key", token)
	key.post("/api/v1/tasks", `{"name":"mine","type":"container","command":["true"]}`).want(t, 201, `"namespace":"team"`)
	key.get("/api/v1/tasks/mine").want(t, 200)
	key.with("Authorization", "Bearer x").get("/api/v1/tasks/mine").problem(t, 401, "Unauthorized")
	key.with("Authorization", "Basic eDp5").get("/api/v1/tasks/mine").problem(t, 401, "Unauthorized")
	key.get("/api/v1/tasks/mine?namespace=default").problem(t, 403, `system:serviceaccount:team:ed`, `cannot get resource "tasks"`, `namespace "default"`)
	key.post("/api/v1/tasks", `{"name":"x","namespace":"default","type":"ai","prompt":"p"}`).problem(t, 403, "cannot create")
	key.post("/api/v1/tasks", `{"metadata":{"name":"x","namespace":"default"},"spec":{"type":"ai","prompt":"p"}}`).problem(t, 403, "cannot create")

	who := decode[map[string]any](t, key.get("/api/v1/auth/whoami").want(t, 200))
	if who["authenticated"] != true || who["authType"] != "tokenReview" || who["username"] != "system:serviceaccount:team:ed" || who["namespace"] != "team" {
		t.Errorf("whoami: %v", who)
	}
	key.get("/api/v1/auth/validate").want(t, 200, `{"authenticated":true}`)

	// A client certificate, as in the administrator's kubeconfig, is accepted here as it is natively.
	code, body := get(t, s.Admin, "/api/v1/tasks?namespace=team", "")
	if code != 200 || !strings.Contains(body, `"mine"`) {
		t.Errorf("administrator: %d %s", code, body)
	}
	if code, body = get(t, s.Admin, "/api/v1/auth/whoami", ""); code != 200 || !strings.Contains(body, `"authType":"clientCertificate"`) {
		t.Errorf("administrator: %d %s", code, body)
	}
	view := restAs(t, s, "team", "vi", "view")
	view.get("/api/v1/tasks").want(t, 200, `"mine"`)
	view.do("DELETE", "/api/v1/tasks/mine", "").problem(t, 403, "cannot delete")
}

func TestRESTPaths(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := restAs(t, s, "default", "ed", "edit")
	c.get("/api/v1/tasks/a/nosuch").problem(t, 404, "nothing at /api/v1/tasks/a/nosuch")
	c.get("/api/v1/auth").problem(t, 404, "nothing at")
	a := c.do("PUT", "/api/v1/tasks", "")
	a.problem(t, 405, "allowed: GET, POST")
	if a.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow %q", a.header.Get("Allow"))
	}
	// The host's own paths below /api/v1 still work.
	c.get("/api/v1/namespaces/default/configmaps").want(t, 200, `"kind":"ConfigMapList"`)
	c.get("/api/v1/secrets").want(t, 403, `"kind":"Status"`)
	c.get("/api/v1").want(t, 200, `"kind":"APIResourceList"`)

	// The plain listener serves REST and nothing else.
	plain := c.at(s.RESTURL)
	plain.get("/api/v1/tasks").want(t, 200, `"items":[]`)
	plain.with("Authorization", "").get("/api/v1/tasks").problem(t, 401, "Unauthorized")
	plain.get("/api/v1/namespaces/default/configmaps").problem(t, 404, "nothing at")
	plain.get("/apis/core.platform.ai/v1alpha1/tasks").problem(t, 404, "nothing at")
	plain.with("Authorization", "").get("/healthz").want(t, 200, `{"status":"ok"}`)
	plain.with("Authorization", "").get("/readyz").want(t, 200, `{"status":"ok","checks":{"kubernetes":"ok","store":"ok"}}`)
	// The secure port answers in the same way to clients that accept JSON alone, and to others as Kubernetes does.
	stranger := c.with("Authorization", "")
	stranger.with("Accept", "application/json").get("/healthz").want(t, 200, `{"status":"ok"}`)
	stranger.with("Accept", "application/json").get("/readyz").want(t, 200, `{"status":"ok","checks":{"kubernetes":"ok","store":"ok"}}`)
	for _, accept := range []string{"", "*/*", "application/json, */*"} {
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/readyz", nil))
		req.Header.Set("Accept", accept)
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body := must[[]byte](t)(io.ReadAll(resp.Body)); string(body) != "ok" {
			t.Errorf("Accept %q: %s", accept, body)
		}
	}
}

func TestRESTRequestIDs(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := restAs(t, s, "default", "ed", "edit")
	a := c.with("X-Request-Id", "order-17.a:b").get("/api/v1/tasks")
	if a.header.Get("X-Request-Id") != "order-17.a:b" || a.header.Get("Audit-Id") != "order-17.a:b" {
		t.Errorf("ids %q %q", a.header.Get("X-Request-Id"), a.header.Get("Audit-Id"))
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 129), "<script>"} {
		id := c.with("X-Request-Id", bad).get("/api/v1/tasks").header.Get("X-Request-Id")
		if id == "" || id == bad || strings.ContainsAny(id, " <") {
			t.Errorf("id %q became %q", bad, id)
		}
	}
}

func TestRESTPages(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.CORSOrigins = []string{"https://ui.example"} })
	open := standalone.Start(t)
	preflight := func(s *standalone.Server, origin string) answer {
		c := restOf(t, s).with("Origin", origin).with("Access-Control-Request-Method", "DELETE").with("Access-Control-Request-Headers", "authorization")
		return c.do("OPTIONS", "/api/v1/tasks/a", "")
	}
	for _, tc := range []struct {
		s            *standalone.Server
		origin, want string
	}{{s, "https://ui.example", "https://ui.example"}, {s, "https://evil.example", ""}, {open, "https://x.example", "*"}} {
		a := preflight(tc.s, tc.origin)
		if a.code != 204 || a.header.Get("Access-Control-Allow-Origin") != tc.want {
			t.Errorf("preflight of %s: %d, allowed %q", tc.origin, a.code, a.header.Get("Access-Control-Allow-Origin"))
		}
		if allowed := a.header.Get("Access-Control-Allow-Methods"); (tc.want != "") != strings.Contains(allowed, "DELETE") {
			t.Errorf("preflight of %s: methods %q", tc.origin, allowed)
		}
		if allowed := a.header.Get("Access-Control-Allow-Headers"); (tc.want != "") != strings.Contains(allowed, "Authorization") {
			t.Errorf("preflight of %s: headers %q", tc.origin, allowed)
		}
	}
	a := restAs(t, s, "default", "ed", "edit").with("Origin", "https://ui.example").get("/api/v1/tasks").want(t, 200)
	if a.header.Get("Access-Control-Allow-Origin") != "https://ui.example" || !strings.Contains(fmt.Sprint(a.header["Vary"]), "Origin") {
		t.Errorf("answer to a page: %v", a.header)
	}
	// A web page cannot use its visitor's client certificate.
	admin := s.Config()
	admin.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Origin", "https://evil.example")
			return rt.RoundTrip(r)
		})
	}
	if code, body := get(t, admin, "/api/v1/tasks", ""); code != 401 {
		t.Errorf("a page with its visitor's certificate: %d %s", code, body)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
