// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// question is one request, which each caller makes.
type question struct {
	// row names it in the golden file.
	row string
	// plain is set for the listener that serves REST paths only.
	plain               bool
	method, path        string
	body                string
	contentType, accept string
	// shows is set for a list or watch of what belongs to the task: an answer without it counts as a refusal.
	shows bool
	// changes is set if the request would change what other questions are about. Such questions are asked at the end.
	changes bool
	needs   []need
}

// selectors narrow a list to what belongs to the task, if the name of the object does not.
var selectors = map[string]string{
	"executionevents": "taskName=mine", "approvals": "spec.taskName=mine", "memoryproposals": "status.origin.taskName=mine",
}

// bodies are the parts of native objects that decide who may create them, or without which they are not decoded.
func (w *world) bodies() map[string]string {
	owner := must(w.api.Tasks("team").Get(w.t.Context(), "mine", metav1.GetOptions{}))(w.t)
	ref := must(json.Marshal([]metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Group: "core.platform.ai", Version: "v1alpha1", Kind: "Task"})}))(w.t)
	return map[string]string{
		"tasks":               `"metadata":{"name":"new","ownerReferences":` + string(ref) + `},"spec":{"type":"ai","prompt":"p","agentRef":{"name":"child"}}`,
		"toolcalls":           `"spec":{"taskName":"mine","toolName":"web_fetch","arguments":{"url":"https://example.com/"}}`,
		"executionevents":     `"metadata":{},"taskName":"mine","type":"ModelMessage"`,
		"tasks/events":        `"metadata":{},"taskName":"mine","type":"ModelMessage"`,
		"tasks/messages":      `"spec":{"toTask":"parent","content":"c"}`,
		"tasks/connectortool": `"toolName":"find"`,
		"tasks/reply":         `"spec":{"text":"c","messageID":"1"}`,
		"agents":              `"metadata":{"name":"new"},"spec":{"providerRef":{"name":"mine"}}`,
		"memoryproposals":     `"metadata":{"name":"new"},"spec":{"title":"t","content":"c"}`,
	}
}

// connected are the subresources that know no dry run.
var connected = []string{"tasks/events", "tasks/log", "tasks/result", "tasks/artifacts", "tasks/delta", "tasks/proxy", "tasks/transactiontoken", "sessions/transcript"}

// native returns a question for each verb of each resource and subresource that the server has.
func (w *world) native() []question {
	w.t.Helper()
	_, lists, err := w.Kubernetes(w.t).Discovery().ServerGroupsAndResources()
	if err != nil {
		w.t.Fatal(err)
	}
	bodies := w.bodies()
	var all []question
	for _, list := range lists {
		gv := must(schema.ParseGroupVersion(list.GroupVersion))(w.t)
		for _, r := range list.APIResources {
			if r.Group == "" {
				r.Group, r.Version = gv.Group, gv.Version
			}
			for _, verb := range r.Verbs {
				all = append(all, w.about(gv, r, verb, bodies[r.Name])...)
			}
		}
	}
	slices.SortFunc(all, func(a, b question) int { // discovery does not order the groups
		verb, resource, _ := strings.Cut(a.row, " ")
		verbOfB, resourceOfB, _ := strings.Cut(b.row, " ")
		return cmp.Or(strings.Compare(resource, resourceOfB), strings.Compare(verb, verbOfB))
	})
	return all
}

// about returns the questions for one verb of one resource.
func (w *world) about(gv schema.GroupVersion, r metav1.APIResource, verb, body string) []question {
	resource, sub, _ := strings.Cut(r.Name, "/")
	root := "/apis/" + gv.String()
	if gv.Group == "" {
		root = "/api/" + gv.Version
	}
	everywhere := root + "/" + resource
	all := everywhere
	if r.Namespaced {
		all = root + "/namespaces/team/" + resource
	}
	name, ok := w.names[resource]
	if !ok {
		name = "mine"
	}
	one := all + "/" + name
	if sub != "" {
		one += "/" + sub
	}
	selector, ok := selectors[resource]
	if !ok {
		selector = "metadata.name=" + name
	}
	narrowed := "?fieldSelector=" + url.QueryEscape(selector)
	const dry = "?dryRun=All"
	if body == "" {
		body = `"metadata":{"name":"new"}`
	}
	body = `{"apiVersion":"` + schema.GroupVersion{Group: r.Group, Version: r.Version}.String() + `","kind":"` + r.Kind + `",` + body + `}`
	q := question{row: verb + " " + r.Name, path: one, method: http.MethodGet, contentType: "application/json", needs: []need{{verb: verb, resource: r.Name, narrowed: true}}}
	if gv.Group != "core.platform.ai" {
		q.row = verb + " " + strings.TrimPrefix(gv.Group+"/", "/") + r.Name
		q.needs[0].resource = r.Name + "." + gv.Group
		if strings.HasPrefix(r.Name, "selfsubject") {
			q.needs[0].resource = r.Name
		}
	}
	switch verb {
	case "list":
		q.path, q.shows = all+narrowed, gv.Group == "core.platform.ai" && resource != "usagemeasurements" // of which the world has none
	case "watch":
		q.path = all + narrowed + "&watch=true&timeoutSeconds=60&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
		q.shows = gv.Group == "core.platform.ai"
	case "create":
		q.method, q.path, q.body = http.MethodPost, all+dry, body
		if sub != "" {
			q.path = one + dry
		}
		if slices.Contains(connected, r.Name) {
			q.path = one
		}
		if r.Name == "tasks/artifacts" {
			q.path += "/new"
		}
	case "update":
		q.method, q.path, q.body = http.MethodPut, one+dry, strings.Replace(body, `"new"`, `"`+name+`"`, 1)
	case "patch":
		q.method, q.path, q.body, q.contentType = http.MethodPatch, one+dry, "{}", "application/merge-patch+json"
	case "delete":
		q.method, q.path = http.MethodDelete, one+dry
	case "deletecollection":
		q.method, q.path = http.MethodDelete, all+narrowed+"&dryRun=All"
	}
	out := []question{q}
	if verb == "list" || verb == "watch" {
		whole := q
		whole.needs = []need{{verb: verb, resource: q.needs[0].resource}}
		whole.row, whole.path, whole.shows = q.row+", all", all+strings.Replace(strings.TrimPrefix(q.path, all), narrowed+"&", "?", 1), false
		whole.path = strings.Replace(whole.path, narrowed, "", 1)
		out = append(out, whole)
		if r.Namespaced {
			whole.row, whole.path = q.row+", all namespaces", strings.Replace(whole.path, all, everywhere, 1)
			whole.needs = []need{{verb: verb, resource: q.needs[0].resource, everywhere: true}}
			out = append(out, whole)
		}
	}
	return out
}
