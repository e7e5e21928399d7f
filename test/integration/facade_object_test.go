// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

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
	"github.com/platform-ai/platform/test/kit/standalone"
)

func (c *restClient) put(path, body string) answer {
	c.t.Helper()
	return c.do(http.MethodPut, path, body)
}

// TestRESTObjects: the five rows of each kind whose objects REST clients see as they are.
func TestRESTObjects(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ed := restAs(t, s, "default", "ed", "edit")
	viewer := restAs(t, s, "default", "vi", "view")
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
				ed.post(all, `{"name":"a","spec":`+tc.spec+`}`).problem(t, 403, "cannot create")
				ed = restAs(t, s, "default", "op", "platform-operator")
			}
			first := decode[map[string]any](t, ed.post(all, `{"name":"a","labels":{"team":"x"},"spec":`+tc.spec+`}`).want(t, 201, `"kind":"`+tc.kind+`"`, `"team":"x"`))
			manifest := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"` + tc.kind + `","metadata":{"name":"b"},"spec":` + tc.spec + `}`
			ed.post(all, manifest).want(t, 201, `"name":"b"`)
			ed.post(all, strings.Replace(tc.spec, "{", `{"name":"c",`, 1)).want(t, 201, `"name":"c"`)
			ed.post(all, manifest).problem(t, 409, `"b" already exists`)
			ed.post(all, `{"spec":`+tc.spec+`}`).problem(t, 400, "name: is required")
			ed.post(all, `{"name":"d","spec":`+tc.bad+`}`).problem(t, 400, tc.wrong)
			ed.post(all, `{"name":"d","colour":1}`).problem(t, 400, "spec.colour")
			ed.post(all, `{"name":"d","annotations":{"platform.ai/x":"y"},"spec":`+tc.spec+`}`).problem(t, 400, "reserved")
			ed.post(all, strings.Replace(manifest, tc.kind, "Task", 1)).problem(t, 400, "Task")
			viewer.post(all, manifest).problem(t, 403, "cannot create")

			one := viewer.get(all+"/a").want(t, 200, `"kind":"`+tc.kind+`"`)
			viewer.get(all+"/none").problem(t, 404, `"none" not found`)
			viewer.get(all+"/a?namespace=other").problem(t, 403, "cannot get")
			type page struct {
				Items    []map[string]any
				Metadata struct {
					Continue           string
					RemainingItemCount *int64
				}
			}
			if tc.path != "tools" { // which have a test of their own
				list := viewer.get(all+"?limit=2").want(t, 200)
				p := decode[page](t, list)
				native := strings.Contains(list.body, `"kind":"`+tc.kind+`List"`) && strings.Contains(list.body, `"apiVersion":"core.platform.ai/v1alpha1"`)
				if len(p.Items) != 2 || p.Metadata.Continue == "" || *p.Metadata.RemainingItemCount != 1 || strings.Contains(list.body, `"resourceVersion":""`) || native != (tc.path == "agent-runtimes") {
					t.Errorf("page: %s", list.body)
				}
				if rest := decode[page](t, viewer.get(all+"?limit=2&continue="+p.Metadata.Continue).want(t, 200)); len(rest.Items) != 1 || rest.Metadata.Continue != "" {
					t.Errorf("second page: %v", rest)
				}
				viewer.get(all+"?limit=0").problem(t, 400, "limit: must be a number and at least 1")
			}
			if p := decode[page](t, viewer.get(all+"?limit=1&labelSelector=team%3Dx").want(t, 200)); len(p.Items) != 1 {
				t.Errorf("by label: %v", p)
			}
			viewer.get(all+"?labelSelector=%3D").problem(t, 400, "labelSelector")
			viewer.get(all+"?limit=99999999999999999999999").want(t, 200)

			ed.put(all+"/a", `{"spec":`+tc.other+`}`).want(t, 200, `"team":"x"`, fmt.Sprint(`"uid":"`, first["metadata"].(map[string]any)["uid"], `"`))
			changed := decode[map[string]any](t, viewer.get(all+"/a").want(t, 200))
			if fmt.Sprint(changed["spec"]) == fmt.Sprint(first["spec"]) || changed["metadata"].(map[string]any)["generation"] != 2.0 {
				t.Errorf("after PUT: %v", changed)
			}
			ed.put(all+"/a", one.body).problem(t, 409, "modified") // its resourceVersion is not the present one
			ed.put(all+"/a", viewer.get(all+"/a").body).want(t, 200)
			ed.put(all+"/a", `{"name":"other","spec":`+tc.other+`}`).problem(t, 400, `name: must be "a"`)
			ed.put(all+"/a", `{"kind":"Task","spec":`+tc.other+`}`).problem(t, 400, "kind: ")
			ed.put(all+"/a", `{}`).problem(t, 400, "spec: is required")
			ed.put(all+"/a", `{"spec":`+tc.bad+`}`).problem(t, 400, tc.wrong)
			ed.put(all+"/a", `{"spec":{"colour":1}}`).problem(t, 400, "colour")
			ed.put(all+"/a", `{"labels":{"platform.ai/task":"x"},"spec":`+tc.other+`}`).problem(t, 400, "reserved")
			ed.put(all+"/a", `{"labels":{"team":"y"},"spec":`+tc.other+`}`).want(t, 200, `"team":"y"`)
			ed.put(all+"/none", `{"spec":`+tc.other+`}`).problem(t, 404, "not found")
			viewer.put(all+"/a", `{"spec":`+tc.other+`}`).problem(t, 403, "cannot patch")
			viewer.do("DELETE", all+"/a", "").problem(t, 403, "cannot delete")
			ed.do("DELETE", all+"/a", "").want(t, 204)
			ed.do("DELETE", all+"/a", "").problem(t, 404, "not found")
			a := ed.do("PATCH", all+"/a", "{}")
			if a.problem(t, 405, "allowed: DELETE, GET, PUT"); a.header.Get("Allow") != "DELETE, GET, PUT" {
				t.Errorf("Allow %q", a.header.Get("Allow"))
			}
		})
	}
	if a := viewer.get("/api/v1/skills/b/content").want(t, 200); a.body != "# one" || a.header.Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Errorf("content: %q %v", a.body, a.header)
	}
	viewer.get("/api/v1/skills/none/content").problem(t, 404, "not found")

	// Pools are read, and nobody but a controller makes them.
	pool := &v1alpha1.RuntimePool{}
	if err := yaml.Unmarshal(must[[]byte](t)(os.ReadFile("../../artifacts/examples/runtimepool.yaml")), pool); err != nil {
		t.Fatal(err)
	}
	must[*v1alpha1.RuntimePool](t)(clientOf(t, s).RuntimePools("default").Create(t.Context(), pool, metav1.CreateOptions{}))
	viewer.get("/api/v1/runtime-pools/coders").want(t, 200, `"kind":"RuntimePool"`, `"model":"example-model"`)
	viewer.get("/api/v1/runtime-pools?limit=1").want(t, 200, `"kind":"RuntimePoolList"`, `"apiVersion":"core.platform.ai/v1alpha1"`, `"name":"coders"`, `"resourceVersion":"`)
	viewer.get("/api/v1/runtime-pools/none").problem(t, 404, "not found")
	viewer.get("/api/v1/runtime-pools?namespace=other").problem(t, 403, "cannot list")
	ed.post("/api/v1/runtime-pools", `{"name":"more","spec":{}}`).problem(t, 405, "allowed: GET")
	ed.do("DELETE", "/api/v1/runtime-pools/coders", "").problem(t, 405, "allowed: GET")

	row := decode[struct{ Items []map[string]any }](t, viewer.get("/api/v1/skills?limit=1").want(t, 200)).Items[0]
	if row["name"] != "b" || row["description"] != "d1" || row["version"] != "1" || row["spec"] != nil {
		t.Errorf("row of a skill: %v", row)
	}
}

// TestRESTGuards: what REST cannot set, whichever way it is written, although its callers may do so natively.
func TestRESTGuards(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ed := restAs(t, s, "default", "ed", "edit")
	client := clientOf(t, s)
	must[*v1alpha1.Provider](t)(client.Providers("default").Create(t.Context(), &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec:       v1alpha1.ProviderSpec{Type: "openai", SecretRef: v1alpha1.ProviderSecretReference{Name: "s"}, BaseURL: "https://gateway.example/v1"},
	}, metav1.CreateOptions{}))
	const provider = `"type":"openai","secretRef":{"name":"s"}`
	ed.post("/api/v1/providers", `{"name":"x",`+provider+`,"baseURL":"https://evil.example"}`).problem(t, 400, "spec.baseURL: ")
	ed.post("/api/v1/providers", `{"name":"x","spec":{`+provider+`,"b\u0061seURL":"https://evil.example"}}`).problem(t, 400, "spec.baseURL: ")
	ed.post("/api/v1/providers", `{"name":"x",`+provider+`,"BaseURL":"https://evil.example"}`).problem(t, 400, "BaseURL")
	for body, code := range map[string]int{
		`{` + provider + `}`: 400, // would send the key elsewhere
		`{` + provider + `,"baseURL":"https://evil.example"}`:             400,
		`{` + provider + `,"baseURL":["https://evil.example"]}`:           400,
		`{` + provider + `,"baseURL":"https://gateway.example/v1"}`:       200,
		`{"spec":{` + provider + `,"baseURL":null}}`:                      400,
		`{` + provider + `,"baseURL":"https://gateway.example/v1/../v2"}`: 400,
	} {
		if a := ed.put("/api/v1/providers/mine", body).want(t, code); code == 400 && !strings.Contains(a.body, "baseURL") {
			t.Errorf("%s: %s", body, a.body)
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
		ed.post("/api/v1/tools", `{"name":"x","description":"d",`+spec+`}`).problem(t, 400, field+": ", "cannot be set through REST")
	}
	const fine = `"description":"d","parameters":{"type":"object","properties":{"transaction":{"type":"string"}}},"http":{"url":"https://h.example/?page=2","headers":{"X-Team":"a"}}`
	ed.post("/api/v1/tools", `{"name":"fine",`+fine+`}`).want(t, 201)
	ed.put("/api/v1/tools/fine", `{`+strings.Replace(fine, "X-Team", "X-Api-Key", 1)+`}`).problem(t, 400, "spec.http.headers: must stay")
	for _, name := range []string{"web_search", "delegate_task"} {
		ed.post("/api/v1/tools", `{"name":"`+name+`",`+fine+`}`).problem(t, 409, "built in")
		ed.post("/api/v1/tools", `{"metadata":{"name":"`+name+`"},"spec":{`+fine+`}}`).problem(t, 409, "built in")
		ed.put("/api/v1/tools/"+name, `{`+fine+`}`).problem(t, 409, "built in")
		ed.do("DELETE", "/api/v1/tools/"+name, "").problem(t, 409, "built in")
	}
}

// TestRESTSecrets: names and types, and never what the Secrets hold. The path belongs to Kubernetes on the secure port.
func TestRESTSecrets(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	for i := range 60 { // two pages
		must[*corev1.Secret](t)(s.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d", i), Annotations: map[string]string{"a": "hidden-value"}}, StringData: map[string]string{"k": "hidden-value"},
		}, metav1.CreateOptions{}))
	}
	ed := restAs(t, s, "default", "ed", "edit")
	a := ed.at(s.RESTURL).get("/api/v1/secrets").want(t, 200, `{"name":"s00","namespace":"default","type":"Opaque"}`, `"name":"s59"`)
	if strings.Contains(a.body, "hidden-value") || strings.Contains(a.body, "aGlkZGVuLXZhbHVl") || strings.Contains(a.body, "metadata") {
		t.Errorf("secrets: %s", a.body)
	}
	restAs(t, s, "default", "vi", "view").at(s.RESTURL).get("/api/v1/secrets").problem(t, 403, "cannot list")
	ed.at(s.RESTURL).get("/api/v1/secrets?namespace=kube-system").problem(t, 403, "cannot list")
	restOf(t, s).at(s.RESTURL).get("/api/v1/secrets").problem(t, 401, "Unauthorized")
}

// TestRESTAbsent: documented paths that are not built answer 501, but only to callers who are known.
func TestRESTAbsent(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := restAs(t, s, "default", "vi", "view")
	for _, path := range []string{"/api/v1/gateways", "/api/v1/connections/x", "/api/v1/security/findings/x", "/api/v1/monitors/repositories"} {
		c.get(path).problem(t, 501, "not supported by this version")
		restOf(t, s).get(path).problem(t, 401, "Unauthorized")
		restOf(t, s).with("Authorization", "Bearer x").get(path).problem(t, 401, "Unauthorized")
	}
	for _, path := range []string{"/webhooks/github", "/internal/v1/tasks/default/a/children/b/requester-stamp", "/internal/v1/tasks/default/a/execution-workspace/status"} {
		c.post(path, "{}").problem(t, 501, "not supported by this version")
	}
	for _, path := range []string{"/internal/v2/acp/mcp", "/internal/v2/acp/mcp/tools/call"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			c.do(method, path, "{}").problem(t, 501, "runtimes of coding agents: not supported by this version")
			restOf(t, s).do(method, path, "{}").problem(t, 401, "Unauthorized")
		}
	}
	c.get("/api/v1/gateways/nosuch/thing").problem(t, 404, "nothing at")
	c.get("/internal/v2/acp").problem(t, 404, "nothing at")
}
