// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func (v *view) list(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	s := v.newSelection(request.NamespaceValue(ctx), o)
	q, err := v.query(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := resource.At(&q, o); err != nil {
		return nil, err
	}
	var from token
	if o.Continue != "" {
		if from, err = decodeToken(o.Continue); err != nil || from.Query != s.hash() {
			return nil, resource.PositionError(eventlog.ErrContinue)
		}
		q.Revision, q.NotOlderThan = from.Revision, false
	}
	state, rev, err := v.fold(ctx, q)
	if expired := (*eventlog.ExpiredError)(nil); errors.As(err, &expired) && o.Continue != "" {
		from.Revision = 0 // the next page continues in the newest state
		expired.Continue = from.encode()
	}
	if err != nil {
		return nil, resource.PositionError(err)
	}
	list := &v1alpha1.ApprovalList{Items: []v1alpha1.Approval{}}
	list.ResourceVersion = strconv.FormatUint(rev, 10)
	left, last := int64(0), token{Revision: rev, Query: s.hash()}
	state.Each(func(a *v1alpha1.Approval, asked string) {
		at := token{Namespace: a.Namespace, Asked: number(asked)}
		if !s.takes(a) || !from.before(at) {
			return
		}
		if o.Limit > 0 && int64(len(list.Items)) >= o.Limit {
			left++
			return
		}
		v.remember(a)
		list.Items = append(list.Items, *a)
		last.Namespace, last.Asked = at.Namespace, at.Asked
	})
	if left > 0 {
		list.Continue = last.encode()
		if s.all() {
			list.RemainingItemCount = &left
		}
	}
	return list, nil
}

// token is the position where the next page of a list begins: after the
// approval that was requested at revision Asked. With Revision 0 the newest
// state is read.
type token struct {
	Version   int    `json:"v"`
	Revision  uint64 `json:"rv"`
	Namespace string `json:"ns,omitempty"`
	Asked     uint64 `json:"after"`
	Query     uint32 `json:"q"`
}

const tokenVersion = 1

// before compares positions in the order of the log: by namespace first.
func (t token) before(u token) bool {
	return t.Namespace < u.Namespace || t.Namespace == u.Namespace && t.Asked < u.Asked
}

func (t token) encode() string {
	t.Version = tokenVersion
	b, err := json.Marshal(t)
	if err != nil { // numbers and strings can always be marshalled
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeToken(s string) (t token, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(b, &t) != nil || t.Version != tokenVersion {
		return token{}, eventlog.ErrContinue
	}
	return t, nil
}

// hash distinguishes lists in continue tokens.
func (s *selection) hash() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q %q", s.namespace, s.fields, s.labels) //nolint:errcheck // a hash never fails
	return h.Sum32()
}

// number parses a resourceVersion that the log made.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
