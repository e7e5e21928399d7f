// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package external authenticates callers whose identity comes from outside of the platform: people and programs with a
// token of an OpenID provider, and callers with a transaction token. It also decides what such callers may ask for at
// all; their rights are those that RBAC gives to their names and groups.
//
//	options.go        flags and their rules
//	identity.go       what is known about a caller, and how it is carried through the server
//	authenticator.go  which credential of a request counts
//	token.go          the checks of a token
//	keys.go           the keys of an issuer
//	authorizer.go     the namespace and the scopes of a caller
//	scopes.go         the scope that each request needs
//	constraints.go    the constraints in the context of a transaction
//	task.go           the same, for tasks and their tools
//	tasktoken.go      transaction tokens that tasks get
//	denied.go         what happens to requests that a transaction does not cover
//	login.go          how people in browsers get a token of the provider
//	seal.go           the seal of a task's requester
//
// What is known about a caller is carried in the extras of its user, so it reaches audit, policies and the requests that
// the server makes for a caller. Only this package sets these extras: they are removed from users that another
// authenticator found, and nobody but the server itself may impersonate a user with them.
package external

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Types of authentication, as they are reported to callers.
const (
	// TypeOIDC is a token of an OpenID provider.
	TypeOIDC = "oidc"
	// TypeContextToken is a transaction token.
	TypeContextToken = "contextToken"
)

// Groups of callers, which administrators bind to roles.
const (
	// GroupOIDC has every caller with a token of the OpenID provider.
	GroupOIDC = "platform:oidc"
	// GroupContextToken has every caller with a transaction token.
	GroupContextToken = "platform:context-token"
)

// extraPrefix begins the names of all extras of this package. Names of extras are in lower case, because they are also
// the names of headers.
const extraPrefix = v1alpha1.GroupName + "/auth-"

// Identity is what a verified token says about its bearer.
type Identity struct {
	// Type is TypeOIDC or TypeContextToken.
	Type string
	// Namespace is the only namespace that the caller may use.
	Namespace string
	// Requester is who asks.
	Requester v1alpha1.TaskRequester
	// Transaction is set for transaction tokens.
	Transaction *v1alpha1.TaskTransaction
}

// user returns the user that the rest of the server sees. Its name and its groups begin with a prefix that depends on
// the type, so they never equal those of other authenticators, nor a name that the server gives a meaning. The name is
// preferred_username, if the token has one: it may change, and is only as unique as the provider makes it.
func (i *Identity) user() *user.DefaultInfo {
	prefix, group := "oidc", GroupOIDC
	if i.Type == TypeContextToken {
		prefix, group = "txn", GroupContextToken
	}
	r := &i.Requester
	u := &user.DefaultInfo{Name: prefix + ":" + r.Username, UID: r.Subject, Groups: []string{user.AllAuthenticated, group}, Extra: map[string][]string{}}
	for _, g := range r.Groups {
		u.Groups = append(u.Groups, prefix+":"+g)
	}
	for _, role := range r.Roles {
		u.Groups = append(u.Groups, prefix+"-role:"+role)
	}
	set := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			u.Extra[extraPrefix+name] = values
		}
	}
	set("type", i.Type)
	set("namespace", i.Namespace)
	set("issuer", r.Issuer)
	set("subject", r.Subject)
	set("username", r.Username)
	set("email", r.Email)
	set("groups", r.Groups...)
	set("roles", r.Roles...)
	if t := i.Transaction; t != nil {
		set("transaction-profile", t.Profile)
		set("transaction-id", t.ID)
		set("transaction-audience", t.Audience...)
		set("transaction-workload", t.RequestingWorkload)
		set("transaction-scope", t.Scope)
		set("transaction-context-digest", t.ContextDigest)
		set("transaction-requester-context-digest", t.RequesterContextDigest)
		if t.Context != nil {
			set("transaction-context", string(t.Context.Raw))
		}
	}
	return u
}

// From returns the verified identity of a user; nil for users that other authenticators found.
func From(u user.Info) *Identity {
	if u == nil {
		return nil
	}
	list := func(name string) []string { return u.GetExtra()[extraPrefix+name] }
	one := func(name string) string {
		if v := list(name); len(v) == 1 {
			return v[0]
		}
		return ""
	}
	i := &Identity{Type: one("type"), Namespace: one("namespace"), Requester: v1alpha1.TaskRequester{
		Subject: one("subject"), Issuer: one("issuer"), Username: one("username"), Email: one("email"), Groups: list("groups"), Roles: list("roles"),
	}}
	switch i.Type {
	case TypeOIDC:
		return i
	case TypeContextToken:
	default:
		return nil
	}
	t := &v1alpha1.TaskTransaction{
		Profile: one("transaction-profile"), ID: one("transaction-id"), Issuer: i.Requester.Issuer, Audience: list("transaction-audience"),
		Subject: i.Requester.Subject, RequestingWorkload: one("transaction-workload"), Scope: one("transaction-scope"),
		ContextDigest: one("transaction-context-digest"), RequesterContextDigest: one("transaction-requester-context-digest"),
	}
	t.Scopes = strings.Fields(t.Scope)
	if raw := one("transaction-context"); raw != "" && json.Valid([]byte(raw)) {
		t.Context = &apiextensionsv1.JSON{Raw: []byte(raw)}
	}
	i.Transaction = t
	return i
}

// without returns a user without the extras of this package.
func without(u user.Info) user.Info {
	clean := map[string][]string{}
	for k, v := range u.GetExtra() {
		if !OfIdentity(k) {
			clean[k] = v
		}
	}
	if len(clean) == len(u.GetExtra()) {
		return u
	}
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: clean}
}

// OfIdentity reports whether an extra of a user belongs to a verified identity. What keeps users must keep all of these extras:
// without some of them, a user may have more rights.
func OfIdentity(name string) bool { return strings.HasPrefix(strings.ToLower(name), extraPrefix) }
