// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"cmp"
	"encoding/json"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// identity returns the fields that identify the caller.
func identity() []rest.Field {
	fields := rest.Fields("authenticated: = true", "authType: request.authentication")
	for _, name := range []string{"username", "uid", "groups", "namespace", "subject", "email", "issuer", "roles", "transaction"} {
		kind := map[string]string{"groups": "array|null", "roles": "array", "transaction": "object"}[name]
		fields = append(fields, rest.Field{Name: name, From: []string{"status.userInfo"}, Type: cmp.Or(kind, "string"), As: func(raw json.RawMessage) json.RawMessage { return caller(raw)[name] }})
	}
	return fields
}

// caller returns what is known about a user, as the members of the answer. Callers with a token of an OpenID provider or
// a transaction token see what the token says, not the names that roles are bound to.
func caller(raw json.RawMessage) map[string]json.RawMessage {
	var info authenticationv1.UserInfo
	if json.Unmarshal(raw, &info) != nil {
		return nil
	}
	u := &user.DefaultInfo{Name: info.Username, Extra: map[string][]string{}}
	for k, v := range info.Extra {
		u.Extra[k] = v
	}
	known := map[string]any{"username": info.Username, "subject": info.Username, "groups": info.Groups, "uid": info.UID}
	if i := external.From(u); i != nil {
		r := i.Requester
		known = map[string]any{
			"username": r.Username, "subject": r.Subject, "groups": append([]string{}, r.Groups...), "uid": info.UID, "namespace": i.Namespace,
			"email": r.Email, "issuer": r.Issuer, "roles": r.Roles,
		}
		if t := i.Transaction; t != nil {
			known["transaction"] = map[string]any{
				"profile": t.Profile, "type": "txntoken+jwt", "id": t.ID, "issuer": t.Issuer, "subject": t.Subject, "audience": t.Audience,
				"scope": t.Scope, "scopes": t.Scopes, "requestingWorkload": t.RequestingWorkload,
			}
		}
	}
	out := map[string]json.RawMessage{}
	for name, value := range known {
		data, err := json.Marshal(value)
		empty := string(data) == `""` || string(data) == "null" && name != "groups"
		if required := name == "username" || name == "subject"; err == nil && (!empty || required) {
			out[name] = data
		}
	}
	if name, err := json.Marshal(info.Username); err == nil && out["namespace"] == nil {
		if ns := rest.AccountNamespace(name); ns != nil {
			out["namespace"] = ns
		}
	}
	return out
}
