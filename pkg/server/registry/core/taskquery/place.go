// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package taskquery

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// place is a continue token: the state that the pages describe, and the last task of a page. It names no secret, and one
// that a client made up selects nothing that the client may not list.
type place struct {
	Revision uint64 `json:"r"`
	AsOf     int64  `json:"t"` // in seconds
	Value    int64  `json:"v,omitempty"`
	Second   int64  `json:"s,omitempty"`
	Known    bool   `json:"k,omitempty"`
	Name     string `json:"n"`
	Query    string `json:"q"` // digest of the query
}

func (p *place) token() (string, error) {
	b, err := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(b), err
}

// read parses a token of a query.
func (p *place) read(token, query string) error {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(b, p) != nil || p.Revision == 0 || p.Name == "" {
		return errors.New("continue: is not a continue token of a TaskQuery")
	}
	if p.Query != query {
		return errors.New("continue: belongs to another query: repeat the query of the page before; only limit may differ")
	}
	return nil
}

// digest identifies a query in a namespace, whatever its page is.
func digest(spec *v1alpha1.TaskQuerySpec, namespace string) (string, error) {
	s := *spec
	s.Limit, s.Continue = 0, ""
	b, err := json.Marshal(struct {
		Namespace string
		Spec      v1alpha1.TaskQuerySpec
	}{namespace, s})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), err
}
