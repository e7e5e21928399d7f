// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// presents returns an error if a request has no credential that the chain can check. A transaction token is one where this
// host has External, which knows whether it accepts them.
func (h *Handler) presents(r *http.Request) error {
	kind, _ := h.external(r)
	switch {
	case kind != "":
		return nil
	case len(r.Header["Txn-Token"]) > 0:
		return problem{code: http.StatusUnauthorized, message: "transaction tokens are not accepted here"}
	case !rest.HasCredentials(r):
		return problem{code: http.StatusUnauthorized, message: "a token is required, as a Bearer token or in x-api-key"}
	}
	return nil
}

// external returns the type of a request's credential if it is none of this host, and the namespace of its bearer.
func (h *Handler) external(r *http.Request) (authType, namespace string) {
	if h.o.External == nil {
		return "", ""
	}
	return h.o.External(r)
}

// namespace returns the namespace that the query names, otherwise the caller's own namespace, otherwise "default".
func (h *Handler) namespace(r *http.Request, query url.Values) (string, error) {
	ns := "default"
	if kind, own := h.external(r); own != "" {
		ns = own
	} else if own := h.homes.of(r); kind == "" && own != "" {
		ns = own
	}
	if named := query["namespace"]; len(named) > 1 {
		return "", invalid("namespace", "namespace may be given once")
	} else if len(named) == 1 && named[0] != "" {
		ns = named[0]
	}
	if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
		return "", invalid("namespace", "namespace: %s", strings.Join(msgs, "; "))
	}
	if h.o.Namespace != "" && ns != h.o.Namespace {
		return "", problem{code: http.StatusForbidden, message: "namespace not allowed"}
	}
	return ns, nil
}

// rememberedHomes bounds the cache of the namespaces of tokens, in entries of about 200 bytes.
const rememberedHomes = 4096

// homes remembers the namespaces that tokens name, by the hash of the token. The chain checks each token anyway.
type homes struct{ bearers, keys *lru.Cache }

func newHomes() homes { return homes{lru.New(rememberedHomes), lru.New(rememberedHomes)} }

// of is rest.OwnNamespace.
func (h homes) of(r *http.Request) string {
	credential, known := r.Header.Get("X-Api-Key"), h.keys
	if all, has := r.Header["Authorization"]; has {
		credential, known = "", h.bearers
		if len(all) > 0 {
			credential = all[0]
		}
	}
	key := sha256.Sum256([]byte(credential))
	if found, ok := known.Get(key); ok {
		return found.(string) //nolint:forcetypeassert // nothing else is added
	}
	own := rest.OwnNamespace(r)
	if len(own) <= validation.DNS1123LabelMaxLength {
		known.Add(key, own)
	}
	return own
}
