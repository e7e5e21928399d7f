// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// maxConnection is the limit of the bodies of these rows, in bytes.
const maxConnection = 4 << 10

// maxConnectorCall is the limit of the body of a call of a tool, in bytes.
const maxConnectorCall = 1 << 20

// connectorRows returns the rows of accounts that people link. Providers send people back to a door of the server, which is no row.
func connectorRows() []rest.Row {
	const (
		get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
		all                    = "/api/v1/connections"
		single                 = all + "/:name"
		begin                  = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ConnectionAuthorization"}`
	)
	begun := rest.Answer{Fields: append([]rest.Field{{Name: "connection", From: []string{"status.connection"}, Only: connection("")}}, rest.Fields("authorizeURL: status.authorizeURL")...)}
	made := begun
	made.Code = http.StatusCreated
	return []rest.Row{
		{Method: get, Path: "/api/v1/connectors", Native: []rest.Native{{Verb: "list", Path: "connectorproviders", All: true}}, Answer: rest.Answer{Fields: list("items", connectorFields())}},
		{Method: get, Path: all, Native: []rest.Native{{Verb: "list", Path: "connections", All: true}}, Answer: rest.Answer{Fields: list("items", connection(""))}},
		{
			Method: post, Path: all, Native: one("create", "connectionauthorizations"), Answer: made,
			Body: &rest.Body{Max: maxConnection, Kind: "ConnectionAuthorization", Under: "spec", Required: []string{"provider"}, Edit: ofProvider, Members: struct {
				Provider string `json:"provider"`
				Mode     string `json:"mode"`
			}{}},
		},
		{Method: get, Path: single, Native: []rest.Native{{Name: "connection", Verb: "get", Path: "connections/:name"}}, Answer: rest.Answer{Fields: connection("connection.")}},
		{
			Method: put, Path: single, Native: one("create", "connections/:name/authorize"), Answer: begun,
			Body: &rest.Body{Max: maxConnection, Kind: "ConnectionAuthorization", Under: "spec", Required: []string{"mode"}, Members: struct {
				Mode string `json:"mode"`
			}{}},
		},
		{Method: remove, Path: single, Native: one("delete", "connections/:name"), Answer: rest.Answer{Code: http.StatusNoContent}},
		{Method: post, Path: single + "/authorize", Native: []rest.Native{{Verb: "create", Path: "connections/:name/authorize", Send: begin}}, Answer: begun},
		{
			Method: post, Path: single + "/complete", Native: one("create", "connections/:name/complete"), Answer: rest.Answer{Fields: connection("status.connection.")},
			Body: &rest.Body{Max: maxConnection, Kind: "ConnectionCompletion", Under: "spec", Required: []string{"completion"}, Members: struct {
				Completion string `json:"completion"`
			}{}},
		},
		{
			Method: post, Path: "/internal/v1/tasks/:namespace/:taskName/connector-tools/:tool", Native: one("create", "tasks/:taskName/connectortool"),
			Answer: rest.Answer{Errors: []int{http.StatusBadGateway}, Fields: rest.Fields("effect: effect", "result: result", "replayed: replayed = false", "failure: failure")},
			Body: &rest.Body{Max: maxConnectorCall, Kind: "TaskConnectorCall", Edit: ofTool, Members: struct {
				CallID     string          `json:"callId"`
				Arguments  json.RawMessage `json:"arguments"`
				ApprovalID string          `json:"approvalId"`
			}{}},
		},
	}
}

// ofTool writes the name of the tool, which is in the path.
func ofTool(params map[string]string, object map[string]json.RawMessage) error {
	name, err := json.Marshal(params["tool"])
	object["toolName"] = name
	return err
}

// ofProvider writes the name of a provider as a reference.
func ofProvider(_ map[string]string, object map[string]json.RawMessage) error {
	object["providerRef"] = json.RawMessage(`{"name":` + string(object["provider"]) + `}`)
	delete(object, "provider")
	return nil
}

// connectorFields returns the fields of a provider as people see it.
func connectorFields() []rest.Field {
	name := rest.Fields("name: metadata.name", "namespace: metadata.namespace", "displayName: spec.displayName | metadata.name")
	return append(
		name,
		rest.Field{Name: "ready", From: []string{"status.conditions"}, Default: "false", Type: "boolean", As: func(raw json.RawMessage) json.RawMessage {
			all := conditions(raw)
			return boolean(meta.IsStatusConditionTrue(all, v1alpha1.ConditionAccepted) && meta.IsStatusConditionTrue(all, v1alpha1.ConditionResolvedRefs))
		}},
		rest.Field{Name: "scopes", From: []string{"spec.oauth.scopes"}, Default: "{}", Only: rest.Fields("read: read = []", "write: write = []")},
		rest.Field{Name: "tools", From: []string{"spec.tools"}, Default: "[]", Each: rest.Fields("name: name", "class: class")},
	)
}

// connection returns the fields of a connection as its owner sees it. in is the path of the object, with a dot at its end.
func connection(in string) []rest.Field {
	return append(
		rest.Fields(
			"name: "+in+"metadata.name", "namespace: "+in+"metadata.namespace", "provider: "+in+"spec.providerRef.name", "mode: "+in+"spec.mode", "state: "+in+`status.state = ""`,
			"grantedScopes: "+in+"status.grantedScopes = []", "linkedAt: "+in+"status.linkedAt", "expiresAt: "+in+"status.expiresAt", "lastRefreshTime: "+in+"status.lastRefreshTime",
		),
		rest.Field{Name: "ready", From: []string{in + "status.conditions"}, Default: "false", Type: "boolean", As: func(raw json.RawMessage) json.RawMessage {
			return boolean(unmet(conditions(raw)) == nil)
		}},
		rest.Field{Name: "message", From: []string{in + "status.conditions"}, Default: `""`, Type: "string", As: func(raw json.RawMessage) json.RawMessage {
			c := unmet(conditions(raw))
			if c == nil {
				return json.RawMessage(`""`)
			}
			text, err := json.Marshal(c.Message)
			if err != nil {
				return json.RawMessage(`""`)
			}
			return text
		}},
	)
}

// unmet returns the first condition that keeps a connection from being used; nil if it can be.
func unmet(all []metav1.Condition) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionProviderResolved, v1alpha1.ConditionReady, v1alpha1.ConditionScopesGranted} {
		c := meta.FindStatusCondition(all, kind)
		if c == nil {
			return &metav1.Condition{Message: "it was not looked at yet"}
		}
		if c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// conditions decodes conditions; what cannot be decoded is none.
func conditions(raw json.RawMessage) (all []metav1.Condition) {
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

func boolean(is bool) json.RawMessage {
	if is {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}
