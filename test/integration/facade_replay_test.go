// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// replay calls operations of the REST document.
type replay struct {
	t             *testing.T
	admin, nobody *restClient
	succeeded     map[string]bool // by method and template
	continued     map[string]bool // templates of lists whose second page was read
}

// parameter is one of an operation, as the document describes it.
type parameter struct {
	Name, In string
	Required bool
	Schema   struct {
		Type string
		Enum []string
	}
}

// parametersOf returns the parameters of an operation.
func parametersOf(t *testing.T, op map[string]any) (all []parameter) {
	t.Helper()
	data, err := json.Marshal(op["parameters"])
	if err != nil || json.Unmarshal(data, &all) != nil {
		t.Fatal(op["parameters"], err)
	}
	return all
}

// unending reports whether a stream may go on for ever: that of a session, and one that others join.
func unending(path string) bool {
	bare, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	return strings.HasSuffix(bare, "/stream") && (strings.HasPrefix(bare, "/api/v1/sessions/") || err == nil && (q.Has("tasks") || q.Has("sessions")))
}

// ask makes a request. A stream that may have no end is left as soon as it was opened.
func (r *replay) ask(as *restClient, method, path, body string) answer {
	r.t.Helper()
	if method != http.MethodGet || !unending(path) {
		return as.do(method, path, body)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	resp := as.open(ctx, method, path, body)
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, header: resp.Header}
	if resp.StatusCode != http.StatusOK {
		a.body = string(must[[]byte](r.t)(io.ReadAll(resp.Body)))
	}
	return a.comply(r.t, method, path, body)
}

// pages reads a list in pages of one item, as far as the second.
func (r *replay) pages(as *restClient, template string, page func(token string) string) {
	r.t.Helper()
	read := func(token string) (first, next string) {
		var out struct {
			Items    []json.RawMessage
			Timeline []json.RawMessage // of a trace
			Metadata struct{ Continue string }
		}
		got := as.do(http.MethodGet, page(token), "")
		if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.code != http.StatusOK {
			r.t.Fatalf("%s: %d %.300s", page(token), got.code, got.body)
		}
		if all := slices.Concat(out.Items, out.Timeline); len(all) > 0 {
			first = string(all[0])
		}
		return first, out.Metadata.Continue
	}
	first, token := read("")
	if token == "" {
		return // one item, or none; another call of the operation has more
	}
	if second, _ := read(token); second == "" || second == first {
		r.t.Errorf("%s: after %.200s comes %.200s", template, first, second)
		return
	}
	r.continued[template] = true
}

// call makes a request that must succeed, after some that must not: of a stranger, and with parameters that it does not have, or
// with values that are none. If it changes nothing, it makes it again with each of its parameters.
func (r *replay) call(as *restClient, method, path, body string) answer {
	r.t.Helper()
	bare, query, _ := strings.Cut(path, "?")
	template, op := must[*contract](r.t)(theContract()).operation(method, bare)
	if op == nil {
		r.t.Fatalf("%s %s is not described", method, path)
	}
	if security, open := op["security"].([]any); !open || len(security) > 0 {
		r.nobody.do(method, path, body).problem(r.t, http.StatusUnauthorized, "Unauthorized")
		r.nobody.with("X-Api-Key", "x").do(method, path, body).problem(r.t, http.StatusUnauthorized, "Unauthorized")
	}
	params := parametersOf(r.t, op)
	with := func(name, value string) string {
		q := must[url.Values](r.t)(url.ParseQuery(query))
		q.Set(name, value)
		return bare + "?" + q.Encode()
	}
	has := func(name string) bool {
		return slices.ContainsFunc(params, func(p parameter) bool { return p.Name == name && p.In == "query" })
	}
	if strings.HasPrefix(bare, "/api/v1/") {
		as.do(method, with("nosuch", "1"), body).problem(r.t, http.StatusBadRequest, "nosuch")
	}
	if has("namespace") {
		as.do(method, with("namespace", "A_B"), body).problem(r.t, http.StatusBadRequest, "namespace")
		if method != http.MethodGet {
			path = with("namespace", "default")
		}
	}
	if method != http.MethodGet {
		for _, p := range params {
			if p.In == "query" && p.Name != "namespace" {
				r.refuses(as, method, template, body, p, with)
			}
		}
	}
	a := r.ask(as, method, path, body)
	if a.code >= 300 {
		r.t.Errorf("%s %s: %d %.500s", method, path, a.code, a.body)
		return a
	}
	r.succeeded[method+" "+template] = true
	if method != http.MethodGet {
		return a
	}
	if has("continue") {
		r.pages(as, template, func(token string) string {
			q := must[url.Values](r.t)(url.ParseQuery(query))
			q.Set("limit", "1")
			if token != "" {
				q.Set("continue", token)
			}
			return bare + "?" + q.Encode()
		})
	}
	for _, p := range params {
		if p.In != "query" {
			continue
		}
		if p.Name != "continue" { // a token of the server; see pages
			target := with(p.Name, cmp.Or(valid[template+" "+p.Name], valid[p.Name], append(p.Schema.Enum, "")[0], map[string]string{"integer": "1", "boolean": "false", "string": "a"}[p.Schema.Type], "a"))
			if extra := beside[template+" "+p.Name]; extra != "" {
				target += "&" + extra
			}
			if got := r.ask(as, method, target, ""); got.code >= 300 {
				r.t.Errorf("%s %s: %d %.500s", method, target, got.code, got.body)
			}
		}
		r.refuses(as, method, template, "", p, with)
	}
	return a
}

// refuses makes a request with values of a parameter that are none, or strange.
func (r *replay) refuses(as *restClient, method, template, body string, p parameter, with func(name, value string) string) {
	r.t.Helper()
	for _, bad := range []string{"\xff\xfe", strings.Repeat("9", 4000), "-1", "\x00", "no-number"} {
		got := r.ask(as, method, with(p.Name, bad), body)
		wrong := p.Schema.Type == "boolean" || p.Schema.Type == "integer" && bad == "no-number" || len(p.Schema.Enum) > 0
		if got.code >= 500 || wrong && got.code != http.StatusBadRequest || p.Name == "continue" && got.code < 400 {
			r.t.Errorf("%s ?%s=%.10q: %d %.300s", template, p.Name, bad, got.code, got.body)
		}
	}
}

// valid are values of parameters, by name and, before that, by template and name.
var valid = map[string]string{
	"namespace": "default", "labelSelector": "a=b", "tasks": "a", "startedAfter": "2026-01-01T00:00:00Z", "startedBefore": "2036-01-01T00:00:00Z",
	"minDuration": "1s", "asOf": "2026-06-01T00:00:00Z", "sessionName": "talk", "from": "2026-01-01", "until": "2036-01-01", "repository": "owner/repo", "teams": "default", "roles": "user", "phases": "Running",
	"order": "desc", "orderBy": "name", "parentTask": "lead", "sessions": "lasting", "offset": "0", "follow": "true", "kind": "issue", "type": "ModelMessage", "status": "pending", "after": "0",
	"/api/v1/tasks/{id}/stream tasks": "lead", "/api/v1/memory-proposals type": "memory", "/internal/v1/memory-proposals/{namespace} type": "memory",
}

// beside is what the query needs besides a parameter.
var beside = map[string]string{
	"/api/v1/tasks/{id}/trace spans": "timeline=false", "/api/v1/tasks/{id}/trace after": "timeline=false&spans=1", "/api/v1/tasks descending": "orderBy=name",
}

// TestRESTDocumentIsTrue calls every documented operation so that it succeeds, with each of its parameters, valid and not. What
// is not built yet answers 501.
func TestRESTDocumentIsTrue(t *testing.T) {
	t.Parallel()
	p, _ := withChat(t, `{models: [scripted-1], turns: [{reply: {text: Hello.}}]}`)
	s, client := p.Server, clientOf(t, p.Server)
	family := restFamily(t, s)
	leader, worker := family["lead"], family["a"]
	r := &replay{t: t, admin: restAs(t, s, "default", "adm", "admin").at(s.RESTURL), nobody: restOf(t, s).at(s.RESTURL), succeeded: map[string]bool{}, continued: map[string]bool{}}
	get := func(path string) answer { t.Helper(); return r.call(r.admin, http.MethodGet, path, "") }
	other := restAs(t, s, "default", "other", "admin").at(s.RESTURL)
	post := func(path, body string) answer { t.Helper(); return r.call(r.admin, http.MethodPost, path, body) }
	put := func(path, body string) { t.Helper(); r.call(r.admin, http.MethodPut, path, body) }
	remove := func(path string) { t.Helper(); r.call(r.admin, http.MethodDelete, path, "") }

	for _, path := range []string{"/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/auth/validate", "/api/v1/auth/whoami", "/api/v1/secrets"} {
		get(path)
	}
	// Kinds whose objects clients see as they are.
	const runtime = `{"contractVersion":"platform.harness.v1","deployment":{"mode":"external-endpoint","endpoint":"https://h.example/"},"clientAuth":{"bearerTokenSecretRef":{"name":"s","key":"k"}}}`
	for kind, spec := range map[string]string{
		"agents": `{"systemPrompt":{"inline":"x"}}`, "skills": `{"description":"d","content":{"inline":"x"}}`, "providers": `{"type":"openai","secretRef":{"name":"s"}}`,
		"tools": `{"description":"d","http":{"url":"https://h.example"}}`, "agent-runtimes": runtime,
	} {
		all := "/api/v1/" + kind
		post(all, `{"name":"x","spec":`+spec+`}`)
		r.admin.post(all, `{"name":"y","spec":`+spec+`}`).want(t, http.StatusCreated) // for a second page
		get(all)
		one := get(all + "/x").body
		put(all+"/x", one)
		if kind == "skills" {
			get(all + "/x/content")
		}
		remove(all + "/x")
	}
	pool := &v1alpha1.RuntimePool{}
	if err := yaml.Unmarshal(must[[]byte](t)(os.ReadFile("../../artifacts/examples/runtimepool.yaml")), pool); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pool.Name, "other"} {
		pool.Name = name
		must[*v1alpha1.RuntimePool](t)(client.RuntimePools("default").Create(t.Context(), pool, metav1.CreateOptions{}))
	}
	get("/api/v1/runtime-pools")
	get("/api/v1/runtime-pools/coders")

	// Chats and sessions.
	post("/api/v1/chat", `{"message":"hello","sessionId":"talk"}`)
	r.admin.chat(map[string]any{"message": "hello", "sessionId": "lasting"}, http.StatusOK)
	session := r.admin.startChat("hello")
	get("/api/v1/chat/" + session + "/stream")
	get("/api/v1/chat/config")
	for _, sub := range []string{"", "/talk", "/talk/events", "/talk/events/counts", "/talk/stream"} {
		get("/api/v1/sessions" + sub)
	}
	remove("/api/v1/chat/" + session)
	get("/internal/v1/sessions/default/talk/transcript")
	get("/internal/v1/sessions/default/search?query=hello")
	remove("/api/v1/sessions/talk")

	// Memories and proposals, on both paths.
	id := func(a answer) string { t.Helper(); return decode[memoryAnswer](t, a).ID }
	for _, at := range [][2]string{{"/api/v1/memories", "/api/v1/memory-proposals"}, {"/internal/v1/memories/default", "/internal/v1/memory-proposals/default"}} {
		one := at[0] + "/" + id(post(at[0], `{"content":"c"}`))
		get(at[0])
		get(one)
		put(one, `{"content":"d"}`)
		post(one+"/disable", "")
		post(one+"/enable", "")
		remove(one)
		proposal := at[1] + "/" + id(post(at[1], `{"title":"t","content":"c"}`))
		get(at[1])
		get(proposal)
		post(proposal+"/review", `{"status":"accepted"}`)
		r.call(other, http.MethodPost, proposal+"/apply", "") // not by who proposed it
		post(at[1]+"/"+id(post(at[1], `{"title":"u","content":"c"}`))+"/archive", "")
	}

	// What workers submit.
	for path, body := range map[string]string{
		"/events/default/task/a": `{"type":"ModelMessage","summary":"x"}`, "/plans/default/a": `{"summary":"s","plan_document":"d"}`, "/artifacts/default/a/notes.txt": "hi",
		"/results/default/a": "done",
	} {
		r.call(worker.at(s.RESTURL), http.MethodPost, "/internal/v1"+path, body)
	}
	r.call(worker.at(s.RESTURL), http.MethodGet, "/internal/v1/plans/default/a", "")
	r.call(worker.at(s.RESTURL), http.MethodPost, "/internal/v1/messages/default", `{"fromTask":"a","toTask":"lead","parentTask":"lead","content":"c"}`)
	r.call(leader.at(s.RESTURL), http.MethodGet, "/internal/v1/messages/default/lead?parentTask=lead", "")
	if err := client.RESTClient().Post().AbsPath(tasksPath, "a", "log").Body([]byte("a line\n")).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}

	get("/api/v1/tasks/a/plan")

	// Tasks, of which a has ended.
	must[*v1alpha1.ExecutionEvent](t)(client.Tasks("default").AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskSucceeded}, metav1.CreateOptions{}))
	ended := must[*v1alpha1.Task](t)(client.Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	ended.Status.Phase = v1alpha1.TaskSucceeded
	must[*v1alpha1.Task](t)(client.Tasks("default").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}))
	for _, sub := range []string{"", "/result", "/artifacts", "/artifacts/notes.txt", "/children", "/tree", "/events", "/events/counts", "/trace", "/approvals", "/logs", "/stream"} {
		get("/api/v1/tasks/a" + sub)
	}
	get("/api/v1/tasks/a/stream?tree=false")
	get("/api/v1/tasks/lead/children")
	get("/api/v1/tasks")
	get("/api/v1/tasks?orderBy=name")
	post("/api/v1/tasks", `{"name":"made","type":"container","command":["true"]}`)
	remove("/api/v1/tasks/made")
	source(t, client, "src", 3)
	for i, want := range []int{http.StatusCreated, http.StatusOK} { // the header is a parameter, too
		if got := r.admin.with("Idempotency-Key", "k").do(http.MethodPost, "/api/v1/tasks/src/fork", `{"afterSeq":1}`); got.code != want {
			t.Errorf("fork number %d: %d %s", i, got.code, got.body)
		}
	}
	post("/api/v1/tasks/src/fork", `{"newTaskName":"again"}`)
	w := newWaiting(t, s, client, "waits")
	post("/api/v1/tasks/waits/approvals/"+w.ask(`{"n":1}`)+"/decision", `{"decision":"approve","reason":"fine"}`)

	// Usage.
	get("/api/v1/usage")
	get("/api/v1/usage/other/unassociated")

	eachOperation(t, func(method, path string, op map[string]any) {
		for _, p := range parametersOf(t, op) {
			if p.In == "header" && (method+" "+path != "POST /api/v1/tasks/{id}/fork" || p.Name != "Idempotency-Key") && p.Name != "Last-Event-ID" {
				t.Errorf("%s %s: the header %s is not tried", method, path, p.Name)
			}
		}
		if responses, _ := op["responses"].(map[string]any); responses["501"] != nil && responses["200"] == nil && responses["201"] == nil && responses["204"] == nil {
			target := path
			for _, p := range parametersOf(t, op) {
				target = strings.ReplaceAll(target, "{"+p.Name+"}", "default")
			}
			r.admin.do(method, target, "").problem(t, http.StatusNotImplemented, "not supported by this version")
			r.nobody.do(method, target, "").problem(t, http.StatusUnauthorized, "Unauthorized")
			return
		}
		if slices.ContainsFunc(parametersOf(t, op), func(p parameter) bool { return p.Name == "continue" }) && !r.continued[path] {
			t.Errorf("%s: no second page was read", path)
		}
		if !r.succeeded[method+" "+path] && !slices.Contains(elsewhere, method+" "+path) {
			t.Errorf("%s %s was not called with success", method, path)
		}
	})
	for _, key := range elsewhere {
		if r.succeeded[key] {
			t.Errorf("%s is tried here", key)
		}
	}
	t.Logf("%d operations succeeded", len(r.succeeded))
}

// elsewhere are the operations whose success other tests show: a work request needs runs of a repository.
var elsewhere = []string{"GET /api/v1/usage/work/{id}"}
