// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// unlisted are the members of a native list that a REST list does not have.
func unlisted() []string { return []string{"kind", "apiVersion", "metadata.resourceVersion"} }

// objectRows returns the rows of kinds whose objects REST clients see as they are.
func objectRows() []rest.Row {
	const providers, skills = "/api/v1/providers", "/api/v1/skills"
	address := rest.Fixed{Path: "spec.baseURL", Else: "the address of a provider cannot be set through REST, because the provider's key is sent to it; use kubectl"}
	row := append(rest.Fields("name: metadata.name", "namespace: metadata.namespace"), skillRow()...)
	// Callers with a transaction token do not see where a Provider is, nor which Secret has its key.
	reduced := rest.Fields("name: metadata.name", "namespace: metadata.namespace", "type: spec.type", `defaultModel: spec.defaultModel = ""`, "ready: status.ready = false")
	inTransaction := func(_ *http.Request, authType string) bool { return authType == external.TypeContextToken }
	secret := rest.Fields("name: metadata.name", "namespace: metadata.namespace", `type: type = ""`)
	return slices.Concat(
		objects("/api/v1/agents", "agents", "Agent"),
		typeRows(),
		[]rest.Row{
			{
				Method: http.MethodGet, Path: providers, When: inTransaction, Answer: rest.Answer{Fields: paged(reduced)},
				Native: []rest.Native{{Verb: "list", Path: "providers", Page: true, Pass: []string{"labelSelector"}}},
			},
			{Method: http.MethodGet, Path: providers + "/:name", When: inTransaction, Native: one("get", "providers/:name"), Answer: rest.Answer{Fields: reduced}},
		},
		objects(providers, "providers", "Provider", address),
		changes(objects(skills, "skills", "Skill"), func(r *rest.Row) {
			if r.Path == skills && r.Method == http.MethodGet {
				r.Answer = rest.Answer{Fields: paged(row)}
			}
		}),
		[]rest.Row{
			{Method: http.MethodGet, Path: skills + "/:name/content", Native: one("get", "skills/:name/content"), Answer: rest.Answer{Media: "text/markdown"}},
			{ // On the secure port of the standalone server, this is the path of kubectl get secrets --all-namespaces. In a
				// cluster, the server asks kube-apiserver.
				Method: http.MethodGet, Path: "/api/v1/secrets", Plain: true, Answer: rest.Answer{Fields: list("items", secret)},
				Native: []rest.Native{{Verb: "list", Path: "/api/v1/namespaces/:namespace/secrets", All: true, Keep: rest.Fields("metadata: metadata", "type: type"), Set: map[string]string{"limit": "50"}}},
			},
		},
	)
}

// skillRow returns what a list says of a skill besides its name.
func skillRow() []rest.Field {
	return rest.Fields("displayName: spec.displayName", `description: spec.description = ""`, "version: spec.version", "author: spec.author", "tags: spec.tags", "phase: status.phase")
}

// paged returns a page of a list whose items have the fields.
func paged(each []rest.Field) []rest.Field {
	return append(list("items", each), rest.Field{
		Name: "metadata", From: []string{"metadata"}, Default: "{}", Only: rest.Fields("continue: continue", "remainingItemCount: remainingItemCount"),
	})
}

// objects returns the five rows of a kind. Fixed are members that the rows cannot set.
func objects(all, resource, kind string, fixed ...rest.Fixed) []rest.Row {
	one, native := all+"/:name", resource+"/:name"
	body := rest.Body{Max: maxObject, Kind: kind, Flat: true, Fixed: fixed}
	put := body
	put.Replace = "stored"
	stored := rest.Native{Name: "stored", Verb: "get", Path: native}
	return []rest.Row{
		{
			Method: http.MethodGet, Path: all, Answer: rest.Answer{Drop: unlisted()},
			Native: []rest.Native{{Verb: "list", Path: resource, Page: true, Pass: []string{"labelSelector"}}},
		},
		{Method: http.MethodPost, Path: all, Native: []rest.Native{{Verb: "create", Path: resource}}, Body: &body, Answer: rest.Answer{Code: http.StatusCreated}},
		{Method: http.MethodGet, Path: one, Native: []rest.Native{{Verb: "get", Path: native}}},
		{Method: http.MethodPut, Path: one, Native: []rest.Native{stored, {Verb: "patch", Path: native}}, Body: &put},
		{Method: http.MethodDelete, Path: one, Native: []rest.Native{{Verb: "delete", Path: native}}, Answer: rest.Answer{Code: http.StatusNoContent}},
	}
}

// typeRows returns the rows of all kinds that say so themselves. Their lists are the native list objects.
func typeRows() (rows []rest.Row) {
	for _, o := range v1alpha1.KnownTypes() {
		of, ok := o.(v1alpha1.RESTObject)
		if !ok {
			continue
		}
		path, written := of.RESTPath()
		kind, resource := names(o)
		if _, ok := o.(*v1alpha1.GatewayClass); ok { // which is in no namespace
			resource = "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/" + resource
		}
		for _, r := range objects("/api/v1/"+path, resource, kind) {
			if r.Native[0].Verb == "list" {
				r.Answer.Drop = nil
			}
			if written || r.Method == http.MethodGet {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// changes changes rows.
func changes(rows []rest.Row, change func(*rest.Row)) []rest.Row {
	for i := range rows {
		change(&rows[i])
	}
	return rows
}

// toolRows returns the rows of tools. The list has built-in tools and Tools; a single one is the row of a built-in
// tool, or the whole Tool.
func toolRows() []rest.Row {
	const tools = "/api/v1/tools"
	const how = "a credential cannot be set through REST; use kubectl"
	fixed := []rest.Fixed{
		{Path: "spec.http.authSecretRef", Else: how},
		{Path: "spec.http.outboundAccessPolicyRef", Else: how},
		{Path: "spec.http.headers", Part: rest.SecretMembers, Else: how},
		{Path: "spec.http.url", Part: rest.SecretsOfURL, Else: how},
		{Path: "spec.mcp.remote.url", Part: rest.SecretsOfURL, Else: how},
	}
	return changes(objects(tools, "tools", "Tool", fixed...), func(r *rest.Row) {
		switch {
		case r.Method != http.MethodGet:
			r.Names = notBuiltin
		case r.Path == tools:
			r.Native = []rest.Native{{Verb: "list", Path: "catalogtools", Page: true, Pass: []string{"labelSelector"}}}
			r.Answer = rest.Answer{Fields: paged(toolRow(""))}
		default:
			r.Answer = rest.Answer{Of: "tool", Fields: toolRow("entry.")}
			r.Native = []rest.Native{
				{Name: "tool", Verb: "get", Path: "tools/:name", Optional: true},
				{Name: "entry", Verb: "get", Path: "catalogtools/:name", Unless: "tool"},
			}
		}
	})
}

// toolRow returns the fields of a tool in a list. A built-in tool has its parameters, a Tool its namespace, its address
// and whether it is available.
func toolRow(of string) []rest.Field {
	return rest.Fields(
		"name: "+of+"metadata.name", "namespace: "+of+"spec.toolRef.namespace", "builtin: "+of+"spec.builtin", "description: "+of+"spec.description",
		"parameters: "+of+"spec.parameters", "available: "+of+"spec.available", "url: "+of+"spec.url",
	)
}
