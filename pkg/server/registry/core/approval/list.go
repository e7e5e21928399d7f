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
	list := &v1alpha1.ApprovalList{Items: []v1alpha1.Approval{}}
	if o.Limit <= 0 {
		return list, v.whole(ctx, q, s, from, list)
	}
	if from.Asked > 0 {
		q.From = eventlog.Position{Namespace: from.Namespace, Revision: from.Asked + 1}
	}
	last, left, more, err := v.page(ctx, q, s, o.Limit, list)
	if err != nil {
		return nil, positionError(err, from)
	}
	list.ResourceVersion = strconv.FormatUint(last.Revision, 10)
	if left > 0 || more {
		last.Query = s.hash()
		if len(list.Items) == 0 {
			last.Namespace, last.Asked = from.Namespace, from.Asked
		}
		list.Continue = last.encode()
		if s.all() && !more {
			list.RemainingItemCount = &left
		}
	}
	return list, nil
}

// whole adds all selected approvals after the position to the list.
func (v *view) whole(ctx context.Context, q eventlog.Query, s *selection, from token, list *v1alpha1.ApprovalList) error {
	state, rev, err := v.fold(ctx, q)
	if err != nil {
		return positionError(err, from)
	}
	list.ResourceVersion = strconv.FormatUint(rev, 10)
	state.Each(func(a *v1alpha1.Approval, asked string) {
		if s.takes(a) && from.before(token{Namespace: a.Namespace, Asked: number(asked)}) {
			v.remember(a)
			list.Items = append(list.Items, *a)
		}
	})
	return nil
}

// positionError is the API error about a list. If the state of a continued list is no longer kept, the next page continues
// in the newest state.
func positionError(err error, from token) error {
	if expired := (*eventlog.ExpiredError)(nil); errors.As(err, &expired) && from.Query != 0 {
		from.Revision = 0
		expired.Continue = from.encode()
	}
	return resource.PositionError(err)
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
