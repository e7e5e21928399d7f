// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// replay calls operations of the REST document.
type replay struct {
	t             *testing.T
	admin, nobody *standalone.Client
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
func (r *replay) ask(as *standalone.Client, method, path, body string) host.Answer {
	r.t.Helper()
	if method != http.MethodGet || !unending(path) {
		return as.Do(method, path, body)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	resp := as.Open(ctx, method, path, body)
	defer resp.Body.Close()
	a := host.Answer{Code: resp.StatusCode, Header: resp.Header}
	if resp.StatusCode != http.StatusOK {
		a.Body = string(kit.Must[[]byte](r.t)(io.ReadAll(resp.Body)))
	}
	return standalone.Comply(r.t, a, method, path, body)
}

// pages reads a list in pages of one item, as far as the second.
func (r *replay) pages(as *standalone.Client, template string, page func(token string) string) {
	r.t.Helper()
	read := func(token string) (first, next string) {
		var out struct {
			Items    []json.RawMessage
			Timeline []json.RawMessage // of a trace
			Metadata struct{ Continue string }
		}
		got := as.Do(http.MethodGet, page(token), "")
		if err := json.Unmarshal([]byte(got.Body), &out); err != nil || got.Code != http.StatusOK {
			r.t.Fatalf("%s: %d %.300s", page(token), got.Code, got.Body)
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
func (r *replay) call(as *standalone.Client, method, path, body string) host.Answer {
	r.t.Helper()
	bare, query, _ := strings.Cut(path, "?")
	template, op := kit.Must[*standalone.Contract](r.t)(standalone.TheContract()).Operation(method, bare)
	if op == nil {
		r.t.Fatalf("%s %s is not described", method, path)
	}
	if security, open := op["security"].([]any); !open || len(security) > 0 {
		r.nobody.Do(method, path, body).Problem(r.t, http.StatusUnauthorized, "Unauthorized")
		r.nobody.With("X-Api-Key", "x").Do(method, path, body).Problem(r.t, http.StatusUnauthorized, "Unauthorized")
	}
	params := parametersOf(r.t, op)
	with := func(name, value string) string {
		q := kit.Must[url.Values](r.t)(url.ParseQuery(query))
		q.Set(name, value)
		return bare + "?" + q.Encode()
	}
	has := func(name string) bool {
		return slices.ContainsFunc(params, func(p parameter) bool { return p.Name == name && p.In == "query" })
	}
	if strings.HasPrefix(bare, "/api/v1/") {
		as.Do(method, with("nosuch", "1"), body).Problem(r.t, http.StatusBadRequest, "nosuch")
	}
	if has("namespace") {
		as.Do(method, with("namespace", "A_B"), body).Problem(r.t, http.StatusBadRequest, "namespace")
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
	if a.Code >= 300 {
		r.t.Errorf("%s %s: %d %.500s", method, path, a.Code, a.Body)
		return a
	}
	r.succeeded[method+" "+template] = true
	if method != http.MethodGet {
		return a
	}
	if has("continue") {
		r.pages(as, template, func(token string) string {
			q := kit.Must[url.Values](r.t)(url.ParseQuery(query))
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
		if p.Name != "continue" && p.Name != "cursor" { // a token of the server; see pages
			target := with(p.Name, cmp.Or(valid[template+" "+p.Name], valid[p.Name], append(p.Schema.Enum, "")[0], map[string]string{"integer": "1", "boolean": "false", "string": "a"}[p.Schema.Type], "a"))
			if extra := beside[template+" "+p.Name]; extra != "" {
				target += "&" + extra
			}
			if got := r.ask(as, method, target, ""); got.Code >= 300 {
				r.t.Errorf("%s %s: %d %.500s", method, target, got.Code, got.Body)
			}
		}
		r.refuses(as, method, template, "", p, with)
	}
	return a
}

// refuses makes a request with values of a parameter that are none, or strange.
func (r *replay) refuses(as *standalone.Client, method, template, body string, p parameter, with func(name, value string) string) {
	r.t.Helper()
	for _, bad := range []string{"\xff\xfe", strings.Repeat("9", 4000), "-1", "\x00", "no-number"} {
		got := r.ask(as, method, with(p.Name, bad), body)
		wrong := p.Schema.Type == "boolean" || p.Schema.Type == "integer" && bad == "no-number" || len(p.Schema.Enum) > 0
		if got.Code >= 500 || wrong && got.Code != http.StatusBadRequest || p.Name == "continue" && got.Code < 400 {
			r.t.Errorf("%s ?%s=%.10q: %d %.300s", template, p.Name, bad, got.Code, got.Body)
		}
	}
}

// valid are values of parameters, by name and, before that, by template and name.
var valid = map[string]string{
	"namespace": "default", "labelSelector": "a=b", "tasks": "a", "startedAfter": "2026-01-01T00:00:00Z", "startedBefore": "2036-01-01T00:00:00Z",
	"minDuration": "1s", "asOf": "2026-06-01T00:00:00Z", "sessionName": "talk", "from": "2026-01-01", "until": "2036-01-01", "repository": "owner/repo", "teams": "default", "roles": "user", "phases": "Running",
	"order": "desc", "orderBy": "name", "parentTask": "lead", "sessions": "lasting", "offset": "0", "follow": "true", "kind": "issue", "type": "ModelMessage", "status": "pending", "after": "0",
	"/api/v1/gateway-events state": "Queued,Rejected", "/api/v1/gateway-deliveries state": "Pending",
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
	people := newAccounts(t)
	p, _ := standalone.WithChat(t, `{models: [scripted-1], turns: [{reply: {text: Hello.}}]}`, people.configure)
	s, client := p.Server, p.Core(t)
	family := s.RESTFamily(t)
	leader, worker := family["lead"], family["a"]
	r := &replay{t: t, admin: s.REST(t, "default", "adm", "admin").At(s.RESTURL), nobody: s.Stranger(t).At(s.RESTURL), succeeded: map[string]bool{}, continued: map[string]bool{}}
	get := func(path string) host.Answer { t.Helper(); return r.call(r.admin, http.MethodGet, path, "") }
	other := s.REST(t, "default", "other", "admin").At(s.RESTURL)
	post := func(path, body string) host.Answer { t.Helper(); return r.call(r.admin, http.MethodPost, path, body) }
	put := func(path, body string) { t.Helper(); r.call(r.admin, http.MethodPut, path, body) }
	remove := func(path string) { t.Helper(); r.call(r.admin, http.MethodDelete, path, "") }

	for _, path := range []string{"/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/auth/validate", "/api/v1/auth/whoami", "/api/v1/secrets"} {
		get(path)
	}
	// Kinds whose objects clients see as they are.
	const runtime = `{"contractVersion":"platform.harness.v1","deployment":{"mode":"external-endpoint","endpoint":"https://h.example/"},"clientAuth":{"bearerTokenSecretRef":{"name":"s","key":"k"}}}`
	for kind, spec := range map[string]string{
		"agents": `{"systemPrompt":{"inline":"x"}}`, "skills": `{"description":"d","content":{"inline":"x"}}`, "providers": `{"type":"openai","secretRef":{"name":"s"}}`,
		"tools": `{"description":"d","http":{"url":"https://h.example"}}`, "agent-runtimes": runtime, "monitors/repositories": monitor,
	} {
		all := "/api/v1/" + kind
		post(all, `{"name":"x","spec":`+spec+`}`)
		r.admin.Post(all, `{"name":"y","spec":`+spec+`}`).Want(t, http.StatusCreated) // for a second page
		get(all)
		one := get(all + "/x").Body
		put(all+"/x", one)
		if kind == "skills" {
			get(all + "/x/content")
		}
		remove(all + "/x")
	}
	pool := &v1alpha1.RuntimePool{}
	if err := yaml.Unmarshal(kit.Must[[]byte](t)(os.ReadFile("../../../artifacts/examples/runtimepool.yaml")), pool); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pool.Name, "other"} {
		pool.Name = name
		kit.Must[*v1alpha1.RuntimePool](t)(client.RuntimePools("default").Create(t.Context(), pool, metav1.CreateOptions{}))
	}
	get("/api/v1/runtime-pools")
	get("/api/v1/runtime-pools/coders")

	r.monitors(client)
	r.gateways(client, s.Kubernetes(t))
	r.connections(people, s)

	// Chats and sessions.
	post("/api/v1/chat", `{"message":"hello","sessionId":"talk"}`)
	r.admin.Chat(map[string]any{"message": "hello", "sessionId": "lasting"}, http.StatusOK)
	session := r.admin.StartChat("hello")
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
	id := func(a host.Answer) string { t.Helper(); return host.Decode[memoryAnswer](t, a).ID }
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
		r.call(worker.At(s.RESTURL), http.MethodPost, "/internal/v1"+path, body)
	}
	r.call(worker.At(s.RESTURL), http.MethodGet, "/internal/v1/plans/default/a", "")
	r.call(worker.At(s.RESTURL), http.MethodPost, "/internal/v1/messages/default", `{"fromTask":"a","toTask":"lead","parentTask":"lead","content":"c"}`)
	r.call(leader.At(s.RESTURL), http.MethodGet, "/internal/v1/messages/default/lead?parentTask=lead", "")
	if err := client.RESTClient().Post().AbsPath(standalone.TasksPath, "a", "log").Body([]byte("a line\n")).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}

	get("/api/v1/tasks/a/plan")

	// Tasks, of which a has ended.
	recorded := kit.Must[*v1alpha1.ExecutionEvent](t)(client.Tasks("default").AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{
		Type:      v1alpha1.EventModelRequestCompleted,
		Recording: &v1alpha1.EventRecording{Parts: []v1alpha1.RecordedPart{{Message: &v1alpha1.RecordedMessage{Role: "assistant", Text: "Done."}}}, Message: new(int32(0))},
	}, metav1.CreateOptions{}))
	get("/api/v1/tasks/a/recording")
	get("/api/v1/tasks/a/recording?after=0&limit=1")
	get("/api/v1/tasks/a/recording?before=100&limit=1")
	get("/api/v1/tasks/a/recording?q=done")
	get("/api/v1/tasks/a/recording?type=ModelRequestCompleted")
	get(fmt.Sprintf("/api/v1/tasks/a/recording/%d", recorded.Seq))
	kit.Must[*v1alpha1.ExecutionEvent](t)(client.Tasks("default").AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskSucceeded}, metav1.CreateOptions{}))
	ended := kit.Must[*v1alpha1.Task](t)(client.Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	ended.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(client.Tasks("default").UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}))
	for _, sub := range []string{"", "/result", "/artifacts", "/artifacts/notes.txt", "/children", "/tree", "/events", "/events/counts", "/trace", "/approvals", "/logs", "/stream"} {
		get("/api/v1/tasks/a" + sub)
	}
	get("/api/v1/tasks/a/stream?tree=false")
	get("/api/v1/tasks/lead/children")
	get("/api/v1/tasks")
	get("/api/v1/tasks?orderBy=name")
	post("/api/v1/tasks", `{"name":"made","type":"container","command":["true"]}`)
	remove("/api/v1/tasks/made")
	standalone.Source(t, client, "src", 3)
	for i, want := range []int{http.StatusCreated, http.StatusOK} { // the header is a parameter, too
		if got := r.admin.With("Idempotency-Key", "k").Do(http.MethodPost, "/api/v1/tasks/src/fork", `{"afterSeq":1}`); got.Code != want {
			t.Errorf("fork number %d: %d %s", i, got.Code, got.Body)
		}
	}
	post("/api/v1/tasks/src/fork", `{"newTaskName":"again"}`)
	w := standalone.NewWaiting(t, s, client, "waits")
	post("/api/v1/tasks/waits/approvals/"+w.Ask(`{"n":1}`)+"/decision", `{"decision":"approve","reason":"fine"}`)

	// Usage.
	get("/api/v1/usage")
	get("/api/v1/usage/other/unassociated")
	get("/api/v1/usage/requests")
	label := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelRecordRequests + `":"Full"}}}`)
	kit.Must[*corev1.Namespace](t)(s.Kubernetes(t).CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType, label, metav1.PatchOptions{}))
	said := ""
	kit.Await(t, "a request to be recorded", func() bool { // the label is seen a little later
		r.admin.Chat(map[string]any{"message": "hello", "sessionId": "recorded"}, http.StatusOK)
		list := kit.Must[*v1alpha1.UsageMeasurementList](t)(client.UsageMeasurements("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.sessionName=recorded"}))
		for i := range list.Items {
			if _, err := client.UsageMeasurements("default").GetRecording(t.Context(), list.Items[i].Name, metav1.GetOptions{}); err == nil {
				said = list.Items[i].Name
			}
		}
		return said != ""
	})
	get("/api/v1/usage/requests/" + said + "/recording")

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
			r.admin.Do(method, target, "").Problem(t, http.StatusNotImplemented, "not supported by this version")
			r.nobody.Do(method, target, "").Problem(t, http.StatusUnauthorized, "Unauthorized")
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
