// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func put(c *standalone.Client, path, body string) host.Answer {
	c.T.Helper()
	return c.Do(http.MethodPut, path, body)
}

// TestRESTObjects: the five rows of each kind whose objects REST clients see as they are.
func TestRESTObjects(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ed := s.REST(t, "default", "ed", "edit")
	viewer := s.REST(t, "default", "vi", "view")
	runtime := func(key string) string {
		return `{"contractVersion":"platform.harness.v1","deployment":{"mode":"external-endpoint","endpoint":"https://h.example/"},"clientAuth":{"bearerTokenSecretRef":{"name":"s","key":"` + key + `"}}}`
	}
	for _, tc := range []struct{ path, kind, spec, other, bad, wrong string }{
		{"agents", "Agent", `{"model":{"name":"m1"},"systemPrompt":{"inline":"x"}}`, `{"model":{"name":"m2"}}`, `{"model":{"temperature":9}}`, "spec.model.temperature"},
		{"skills", "Skill", `{"description":"d1","version":"1","content":{"inline":"# one"}}`, `{"description":"d2","content":{"inline":"# two"}}`, `{"description":"d"}`, "spec.content.inline"},
		{"providers", "Provider", `{"type":"openai","secretRef":{"name":"s"},"defaultModel":"m1"}`, `{"type":"openai","secretRef":{"name":"s"}}`, `{"type":"other","secretRef":{"name":"s"}}`, "spec.type"},
		{"tools", "Tool", `{"description":"d1","http":{"url":"https://h.example/a"}}`, `{"description":"d2","http":{"url":"https://h.example/b"}}`, `{"description":"d"}`, "spec.http.url"},
		{"agent-runtimes", "AgentRuntime", runtime("k1"), runtime("k2"), strings.Replace(runtime("k"), "https", "http", 1), "spec.deployment.endpoint"},
	} {
		t.Run(tc.path, func(t *testing.T) {
			all, ed := "/api/v1/"+tc.path, ed
			if tc.path == "agent-runtimes" {
				ed.Post(all, `{"name":"a","spec":`+tc.spec+`}`).Problem(t, 403, "cannot create")
				ed = s.REST(t, "default", "op", "platform-operator")
			}
			first := host.Decode[map[string]any](t, ed.Post(all, `{"name":"a","labels":{"team":"x"},"spec":`+tc.spec+`}`).Want(t, 201, `"kind":"`+tc.kind+`"`, `"team":"x"`))
			manifest := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"` + tc.kind + `","metadata":{"name":"b"},"spec":` + tc.spec + `}`
			ed.Post(all, manifest).Want(t, 201, `"name":"b"`)
			ed.Post(all, strings.Replace(tc.spec, "{", `{"name":"c",`, 1)).Want(t, 201, `"name":"c"`)
			ed.Post(all, manifest).Problem(t, 409, `"b" already exists`)
			ed.Post(all, `{"spec":`+tc.spec+`}`).Problem(t, 400, "name: is required")
			ed.Post(all, `{"name":"d","spec":`+tc.bad+`}`).Problem(t, 400, tc.wrong)
			ed.Post(all, `{"name":"d","colour":1}`).Problem(t, 400, "spec.colour")
			ed.Post(all, `{"name":"d","annotations":{"platform.ai/x":"y"},"spec":`+tc.spec+`}`).Problem(t, 400, "reserved")
			ed.Post(all, strings.Replace(manifest, tc.kind, "Task", 1)).Problem(t, 400, "Task")
			viewer.Post(all, manifest).Problem(t, 403, "cannot create")

			one := viewer.Get(all+"/a").Want(t, 200, `"kind":"`+tc.kind+`"`)
			viewer.Get(all+"/none").Problem(t, 404, `"none" not found`)
			viewer.Get(all+"/a?namespace=other").Problem(t, 403, "cannot get")
			type page struct {
				Items    []map[string]any
				Metadata struct {
					Continue           string
					RemainingItemCount *int64
				}
			}
			if tc.path != "tools" { // which have a test of their own
				list := viewer.Get(all+"?limit=2").Want(t, 200)
				p := host.Decode[page](t, list)
				native := strings.Contains(list.Body, `"kind":"`+tc.kind+`List"`) && strings.Contains(list.Body, `"apiVersion":"core.platform.ai/v1alpha1"`)
				if len(p.Items) != 2 || p.Metadata.Continue == "" || *p.Metadata.RemainingItemCount != 1 || strings.Contains(list.Body, `"resourceVersion":""`) || native != (tc.path == "agent-runtimes") {
					t.Errorf("page: %s", list.Body)
				}
				if rest := host.Decode[page](t, viewer.Get(all+"?limit=2&continue="+p.Metadata.Continue).Want(t, 200)); len(rest.Items) != 1 || rest.Metadata.Continue != "" {
					t.Errorf("second page: %v", rest)
				}
				viewer.Get(all+"?limit=0").Problem(t, 400, "limit: must be a number and at least 1")
			}
			if p := host.Decode[page](t, viewer.Get(all+"?limit=1&labelSelector=team%3Dx").Want(t, 200)); len(p.Items) != 1 {
				t.Errorf("by label: %v", p)
			}
			viewer.Get(all+"?labelSelector=%3D").Problem(t, 400, "labelSelector")
			viewer.Get(all+"?limit=99999999999999999999999").Want(t, 200)

			put(ed, all+"/a", `{"spec":`+tc.other+`}`).Want(t, 200, `"team":"x"`, fmt.Sprint(`"uid":"`, first["metadata"].(map[string]any)["uid"], `"`))
			changed := host.Decode[map[string]any](t, viewer.Get(all+"/a").Want(t, 200))
			if fmt.Sprint(changed["spec"]) == fmt.Sprint(first["spec"]) || changed["metadata"].(map[string]any)["generation"] != 2.0 {
				t.Errorf("after PUT: %v", changed)
			}
			put(ed, all+"/a", one.Body).Problem(t, 409, "modified") // its resourceVersion is not the present one
			put(ed, all+"/a", viewer.Get(all+"/a").Body).Want(t, 200)
			put(ed, all+"/a", `{"name":"other","spec":`+tc.other+`}`).Problem(t, 400, `name: must be "a"`)
			put(ed, all+"/a", `{"kind":"Task","spec":`+tc.other+`}`).Problem(t, 400, "kind: ")
			put(ed, all+"/a", `{}`).Problem(t, 400, "spec: is required")
			put(ed, all+"/a", `{"spec":`+tc.bad+`}`).Problem(t, 400, tc.wrong)
			put(ed, all+"/a", `{"spec":{"colour":1}}`).Problem(t, 400, "colour")
			put(ed, all+"/a", `{"labels":{"platform.ai/task":"x"},"spec":`+tc.other+`}`).Problem(t, 400, "reserved")
			put(ed, all+"/a", `{"labels":{"team":"y"},"spec":`+tc.other+`}`).Want(t, 200, `"team":"y"`)
			put(ed, all+"/none", `{"spec":`+tc.other+`}`).Problem(t, 404, "not found")
			put(viewer, all+"/a", `{"spec":`+tc.other+`}`).Problem(t, 403, "cannot patch")
			viewer.Do("DELETE", all+"/a", "").Problem(t, 403, "cannot delete")
			ed.Do("DELETE", all+"/a", "").Want(t, 204)
			ed.Do("DELETE", all+"/a", "").Problem(t, 404, "not found")
			a := ed.Do("PATCH", all+"/a", "{}")
			if a.Problem(t, 405, "allowed: DELETE, GET, PUT"); a.Header.Get("Allow") != "DELETE, GET, PUT" {
				t.Errorf("Allow %q", a.Header.Get("Allow"))
			}
		})
	}
	if a := viewer.Get("/api/v1/skills/b/content").Want(t, 200); a.Body != "# one" || a.Header.Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Errorf("content: %q %v", a.Body, a.Header)
	}
	viewer.Get("/api/v1/skills/none/content").Problem(t, 404, "not found")

	// Pools are read, and nobody but a controller makes them.
	pool := &v1alpha1.RuntimePool{}
	if err := yaml.Unmarshal(kit.Must[[]byte](t)(os.ReadFile("../../../artifacts/examples/runtimepool.yaml")), pool); err != nil {
		t.Fatal(err)
	}
	kit.Must[*v1alpha1.RuntimePool](t)(s.Core(t).RuntimePools("default").Create(t.Context(), pool, metav1.CreateOptions{}))
	viewer.Get("/api/v1/runtime-pools/coders").Want(t, 200, `"kind":"RuntimePool"`, `"model":"example-model"`)
	viewer.Get("/api/v1/runtime-pools?limit=1").Want(t, 200, `"kind":"RuntimePoolList"`, `"apiVersion":"core.platform.ai/v1alpha1"`, `"name":"coders"`, `"resourceVersion":"`)
	viewer.Get("/api/v1/runtime-pools/none").Problem(t, 404, "not found")
	viewer.Get("/api/v1/runtime-pools?namespace=other").Problem(t, 403, "cannot list")
	ed.Post("/api/v1/runtime-pools", `{"name":"more","spec":{}}`).Problem(t, 405, "allowed: GET")
	ed.Do("DELETE", "/api/v1/runtime-pools/coders", "").Problem(t, 405, "allowed: GET")

	row := host.Decode[struct{ Items []map[string]any }](t, viewer.Get("/api/v1/skills?limit=1").Want(t, 200)).Items[0]
	if row["name"] != "b" || row["description"] != "d1" || row["version"] != "1" || row["spec"] != nil {
		t.Errorf("row of a skill: %v", row)
	}
}

// TestRESTGuards: what REST cannot set, whichever way it is written, although its callers may do so natively.
func TestRESTGuards(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ed := s.REST(t, "default", "ed", "edit")
	client := s.Core(t)
	kit.Must[*v1alpha1.Provider](t)(client.Providers("default").Create(t.Context(), &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec:       v1alpha1.ProviderSpec{Type: "openai", SecretRef: v1alpha1.ProviderSecretReference{Name: "s"}, BaseURL: "https://gateway.example/v1"},
	}, metav1.CreateOptions{}))
	const provider = `"type":"openai","secretRef":{"name":"s"}`
	ed.Post("/api/v1/providers", `{"name":"x",`+provider+`,"baseURL":"https://evil.example"}`).Problem(t, 400, "spec.baseURL: ")
	ed.Post("/api/v1/providers", `{"name":"x","spec":{`+provider+`,"b\u0061seURL":"https://evil.example"}}`).Problem(t, 400, "spec.baseURL: ")
	ed.Post("/api/v1/providers", `{"name":"x",`+provider+`,"BaseURL":"https://evil.example"}`).Problem(t, 400, "BaseURL")
	for body, code := range map[string]int{
		`{` + provider + `}`: 400, // would send the key elsewhere
		`{` + provider + `,"baseURL":"https://evil.example"}`:             400,
		`{` + provider + `,"baseURL":["https://evil.example"]}`:           400,
		`{` + provider + `,"baseURL":"https://gateway.example/v1"}`:       200,
		`{"spec":{` + provider + `,"baseURL":null}}`:                      400,
		`{` + provider + `,"baseURL":"https://gateway.example/v1/../v2"}`: 400,
	} {
		if a := put(ed, "/api/v1/providers/mine", body).Want(t, code); code == 400 && !strings.Contains(a.Body, "baseURL") {
			t.Errorf("%s: %s", body, a.Body)
		}
	}

	for spec, field := range map[string]string{
		`"http":{"url":"https://h.example","authSecretRef":{"name":"s","key":"k"}}`:           "spec.http.authSecretRef",
		`"http":{"url":"https://h.example","outboundAccessPolicyRef":{"name":"s"}}`:           "spec.http.outboundAccessPolicyRef",
		`"http":{"url":"https://h.example","headers":{"authorization":"Bearer x"}}`:           "spec.http.headers",
		`"http":{"url":"https://h.example","headers":{"X-Api-Key":"x"}}`:                      "spec.http.headers",
		`"http":{"url":"https://h.example","headers":{"Cookie":"a=b"}}`:                       "spec.http.headers",
		`"http":{"url":"https://h.example","headers":{"X-Auth-Token":"x"}}`:                   "spec.http.headers",
		`"http":{"url":"https://h.example/?a=b&api_key=x"}`:                                   "spec.http.url",
		`"http":{"url":"https://h.example/?access%5Ftoken=x"}`:                                "spec.http.url",
		`"http":{"url":"https://user:pw@h.example/"}`:                                         "spec.http.url",
		`"mcp":{"remote":{"url":"https://h.example/mcp?key=x"}}`:                              "spec.mcp.remote.url",
		`"mcp":{"remote":{"url":"https://u@h.example/mcp"}}`:                                  "spec.mcp.remote.url",
		`"mcp":{"remote":{"url":"https://h.example/mcp"}},"http":{"headers":{"api-key":"x"}}`: "spec.http.headers",
	} {
		ed.Post("/api/v1/tools", `{"name":"x","description":"d",`+spec+`}`).Problem(t, 400, field+": ", "cannot be set through REST")
	}
	const fine = `"description":"d","parameters":{"type":"object","properties":{"transaction":{"type":"string"}}},"http":{"url":"https://h.example/?page=2","headers":{"X-Team":"a"}}`
	ed.Post("/api/v1/tools", `{"name":"fine",`+fine+`}`).Want(t, 201)
	put(ed, "/api/v1/tools/fine", `{`+strings.Replace(fine, "X-Team", "X-Api-Key", 1)+`}`).Problem(t, 400, "spec.http.headers: must stay")
	for _, name := range []string{"web_search", "delegate_task"} {
		ed.Post("/api/v1/tools", `{"name":"`+name+`",`+fine+`}`).Problem(t, 409, "built in")
		ed.Post("/api/v1/tools", `{"metadata":{"name":"`+name+`"},"spec":{`+fine+`}}`).Problem(t, 409, "built in")
		put(ed, "/api/v1/tools/"+name, `{`+fine+`}`).Problem(t, 409, "built in")
		ed.Do("DELETE", "/api/v1/tools/"+name, "").Problem(t, 409, "built in")
	}
}

// TestRESTSecrets: names and types, and never what the Secrets hold. The path belongs to Kubernetes on the secure port.
func TestRESTSecrets(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	for i := range 60 { // two pages
		kit.Must[*corev1.Secret](t)(s.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d", i), Annotations: map[string]string{"a": "hidden-value"}}, StringData: map[string]string{"k": "hidden-value"},
		}, metav1.CreateOptions{}))
	}
	ed := s.REST(t, "default", "ed", "edit")
	a := ed.At(s.RESTURL).Get("/api/v1/secrets").Want(t, 200, `{"name":"s00","namespace":"default","type":"Opaque"}`, `"name":"s59"`)
	if strings.Contains(a.Body, "hidden-value") || strings.Contains(a.Body, "aGlkZGVuLXZhbHVl") || strings.Contains(a.Body, "metadata") {
		t.Errorf("secrets: %s", a.Body)
	}
	s.REST(t, "default", "vi", "view").At(s.RESTURL).Get("/api/v1/secrets").Problem(t, 403, "cannot list")
	ed.At(s.RESTURL).Get("/api/v1/secrets?namespace=kube-system").Problem(t, 403, "cannot list")
	s.Stranger(t).At(s.RESTURL).Get("/api/v1/secrets").Problem(t, 401, "Unauthorized")
}

// TestRESTAbsent: documented paths that are not built answer 501, but only to callers who are known.
func TestRESTAbsent(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "vi", "view")
	for _, path := range []string{"/api/v1/security/findings/x", "/api/v1/monitors/events"} {
		c.Get(path).Problem(t, 501, "not supported by this version")
		s.Stranger(t).Get(path).Problem(t, 401, "Unauthorized")
		s.Stranger(t).With("Authorization", "Bearer x").Get(path).Problem(t, 401, "Unauthorized")
	}
	for _, path := range []string{"/internal/v1/tasks/default/a/children/b/requester-stamp", "/internal/v1/tasks/default/a/execution-workspace/status"} {
		c.Post(path, "{}").Problem(t, 501, "not supported by this version")
	}
	for _, path := range []string{"/internal/v2/acp/mcp", "/internal/v2/acp/mcp/tools/call"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			c.Do(method, path, "{}").Problem(t, 501, "runtimes of coding agents: not supported by this version")
			s.Stranger(t).Do(method, path, "{}").Problem(t, 401, "Unauthorized")
		}
	}
	c.Get("/api/v1/gateways/nosuch/thing").Problem(t, 404, "nothing at")
	c.Get("/internal/v2/acp").Problem(t, 404, "nothing at")
}
