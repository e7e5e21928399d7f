// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"crypto/sha256"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

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
