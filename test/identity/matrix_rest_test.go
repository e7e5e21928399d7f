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

	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// restBodies are bodies of REST requests by the native kind, or by the row, so that each is decoded. Specs are those that are stored.
var restBodies = map[string]string{
	"Task":                 `{"name":"new","type":"ai","prompt":"p","agentRef":{"name":"child"}}`,
	"Agent":                `{"metadata":{"name":"mine"},"spec":{"providerRef":{"name":"mine"},"tools":[{"name":"mine"}],"coordination":{"enabled":true,"maxDepth":3}}}`,
	"AgentRuntime":         `{"metadata":{"name":"mine"},"spec":{"contractVersion":"platform.harness.v1","deployment":{"mode":"external-endpoint","endpoint":"https://h/"},"clientAuth":{"bearerTokenSecretRef":{"name":"s","key":"k"}}}}`,
	"Provider":             `{"metadata":{"name":"mine"},"spec":{"type":"openai","secretRef":{"name":"none"}}}`,
	"Skill":                `{"metadata":{"name":"mine"},"spec":{"description":"d","content":{"inline":"text"}}}`,
	"Tool":                 `{"metadata":{"name":"mine"},"spec":{"description":"d","http":{"url":"https://example.com/"}}}`,
	"Memory":               `{"content":"c","sessionName":"mine"}`,
	"MemoryProposal":       `{"title":"t","content":"c"}`,
	"MemoryProposalReview": `{"status":"accepted"}`,
	"ApprovalDecision":     `{"decision":"approve"}`,
	"ExecutionEvent":       `{"type":"ModelMessage"}`,
	"TaskPlan":             `{"summary":"s","plan_document":"d"}`,
	"TaskMessage":          `{"fromTask":"mine","toTask":"parent","parentTask":"parent","content":"c"}`,
	"Chat":                 `{"message":"m","provider":"none"}`,

	"POST /api/v1/connections":                `{"provider":"mine"}`,
	"PUT /api/v1/connections/:name":           `{"mode":"readOnly"}`,
	"POST /api/v1/connections/:name/complete": `{"completion":"c"}`,

	"MonitorCommandRequest": `{"kind":"pull_request","number":1,"intent":"stop"}`,
}

// rows returns a question for each row of the REST facade.
func (w *world) rows() []question {
	var all []question
	for _, r := range facade.Rows() {
		variant := variantOf(r)
		if variant.name == "" && r.When != nil { // for callers with a transaction token: needs what the row of the same path needs
			continue
		}
		var path []string
		for segment := range strings.SplitSeq(r.Path, "/") {
			path = append(path, w.parameter(r.Path, segment))
		}
		q := question{
			row: r.Method + " " + r.Path, plain: true, method: r.Method, path: strings.Join(path, "/") + "?" + queryOf(r),
			accept: variant.accept, contentType: "application/json", changes: r.Method == http.MethodDelete || strings.HasPrefix(r.Path, "/api/v1/memory-proposals/:id/"), needs: needsOf(r),
		}
		q.row, q.path = q.row+variant.name, q.path+variant.query
		if r.Body != nil {
			q.body = cmp.Or(restBodies[r.Method+" "+r.Path], restBodies[r.Body.Kind], "{}")
		}
		all = append(all, q)
	}
	return all
}

// variant is what a request has so that a row with a condition serves it.
type variant struct{ name, query, accept string }

// variantOf returns the variant of a row; the zero value if it needs none.
func variantOf(r rest.Row) variant {
	for _, v := range []variant{
		{name: "?follow", query: "&follow=true"},
		{name: "?orderBy", query: "&orderBy="},
		{name: "?tailLines", query: "&tailLines="},
		{name: "?limit", query: "&limit="},
		{name: " as JSON", accept: "application/json"},
	} {
		name, value, _ := strings.Cut(v.query, "=")
		with := &http.Request{URL: &url.URL{RawQuery: name + "=" + cmp.Or(value, "1")}, Header: http.Header{"Accept": {v.accept}}}
		if r.When != nil && r.When(with, "") {
			return v
		}
	}
	return variant{}
}

// queryOf returns the query of a row; others than its own are refused.
func queryOf(r rest.Row) string {
	switch {
	case r.Method == http.MethodGet && strings.Contains(r.Path, "/messages/"):
		return "parentTask=parent"
	case r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/api/v1/monitors/") && !strings.Contains(r.Path, ":") && !strings.HasSuffix(r.Path, "/repositories"):
		return "namespace=team&name=mine"
	case strings.Contains(r.Path, ":namespace"):
		return ""
	}
	return "namespace=team"
}

// parameter returns the value of a segment of a path.
func (w *world) parameter(path, segment string) string {
	switch {
	case !strings.HasPrefix(segment, ":"):
		return segment
	case segment == ":namespace":
		return "team"
	case segment == ":streamType":
		return "task"
	case segment == ":approvalID":
		return w.names["approvals"]
	case strings.HasPrefix(path, "/api/v1/chat/"):
		return "talk"
	case strings.HasPrefix(path, "/api/v1/connections/"):
		return w.names["connections"]
	case strings.Contains(path, "/memory-proposals/"):
		return w.names["memoryproposals"]
	}
	return "mine"
}

// needsOf returns the permissions for the native requests of a row.
func needsOf(r rest.Row) []need {
	var needs []need
	byName := map[string]*need{}
	for _, n := range r.Native {
		one := need{verb: n.Verb, resource: n.Resource(), optional: n.Optional, person: strings.HasPrefix(r.Path, "/api/v1/connect")}
		if n.Unless != "" {
			one.unless = byName[n.Unless]
		}
		if one.resource == "secrets" {
			one.resource += "." // of the host
		}
		if strings.HasSuffix(r.Path, "/children") && n.Verb == "list" {
			one.children = true
		}
		one.unowned = r.Path == "/api/v1/tasks" // which has no owner references
		byName[n.Name] = &one
		needs = append(needs, one)
	}
	if strings.HasSuffix(r.Path, "/fork") { // made by the server as the caller
		needs = append(needs, need{verb: "get", resource: "tasks"}, need{verb: "create", resource: "tasks"})
	}
	return needs
}

// vendors returns a question for each path of the vendors' APIs.
func (w *world) vendors() []question {
	create, list := need{verb: "create", resource: "chats"}, need{verb: "list", resource: "models"}
	var all []question
	for _, prefix := range []string{"/openai/v1/", "/provider-a/v1/", "/anthropic/v1/", "/provider-b/v1/"} {
		operations := []string{"chat/completions", "responses"}
		if prefix == "/anthropic/v1/" || prefix == "/provider-b/v1/" {
			operations = []string{"messages", "messages/count_tokens"}
		}
		for _, o := range operations {
			all = append(all, question{
				row: "POST " + prefix + o, plain: true, method: http.MethodPost, path: prefix + o + "?namespace=team", contentType: "application/json",
				body: `{"model":"none/none","max_tokens":1,"store":false,"input":"m","messages":[{"role":"user","content":"m"}]}`, needs: []need{create},
			})
		}
		all = append(all, question{row: "GET " + prefix + "models", plain: true, method: http.MethodGet, path: prefix + "models?namespace=team", needs: []need{list}})
	}
	return all
}

// paths returns a question for each path of the secure port that belongs to no resource.
func (w *world) paths() []question {
	w.t.Helper()
	raw := must(w.Kubernetes(w.t).Discovery().RESTClient().Get().AbsPath("/").DoRaw(w.t.Context()))(w.t)
	var root struct{ Paths []string }
	if err := json.Unmarshal(raw, &root); err != nil || len(root.Paths) < 40 {
		w.t.Fatalf("paths: %v %s", err, raw)
	}
	slices.Sort(root.Paths)
	var all []question
	for _, path := range append(root.Paths, "/", "/debug/pprof/", "/logs", "/none") {
		n := need{verb: "get", resource: path}
		if _, resource, ok := strings.Cut(path, "apiextensions.k8s.io/v1/"); ok {
			n = need{verb: "list", resource: resource}
		}
		all = append(all, question{row: "GET " + path, method: http.MethodGet, path: path, needs: []need{n}})
	}
	return all
}
