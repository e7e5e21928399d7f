// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/usage"
)

// after is a continue token: the next page begins after this measurement, as of the time of the first page.
type after struct {
	AsOf    int64  `json:"asOf"`
	Started int64  `json:"started"`
	ID      string `json:"id"`
}

// measurements lists the records of a namespace.
func (r *Resource) measurements(ctx context.Context, opts *internalversion.ListOptions) (runtime.Object, error) {
	var from after
	now := r.o.Clock.Now()
	asOf, err := r.asOf(opts, now)
	if err != nil {
		return nil, err
	}
	if opts.Continue != "" {
		b, err := base64.RawURLEncoding.DecodeString(opts.Continue)
		if err != nil || json.Unmarshal(b, &from) != nil || from.ID == "" || from.AsOf > now.UnixNano() {
			return nil, apierrors.NewBadRequest("continue: is not a continue token of this list")
		}
		asOf = time.Unix(0, from.AsOf)
	}
	v, err := r.records(ctx, asOf)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	list := &v1alpha1.UsageMeasurementList{Items: []v1alpha1.UsageMeasurement{}}
	list.ResourceVersion = strconv.FormatInt(asOf.UnixNano(), 10)
	for o, err := range v.from(from, opts) {
		if err != nil {
			return nil, err
		}
		started := o.StartedAt.UnixNano()
		if started < from.Started || started == from.Started && o.ID <= from.ID || !selects(opts, o) {
			continue
		}
		if ok, err := v.shows(o); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if n := len(list.Items); opts.Limit > 0 && int64(n) >= opts.Limit {
			last := list.Items[n-1].Name
			token, err := json.Marshal(after{asOf.UnixNano(), v.last.UnixNano(), last})
			list.Continue = base64.RawURLEncoding.EncodeToString(token)
			return list, err
		}
		list.Items, v.last = append(list.Items, *measured(o)), o.StartedAt
	}
	return list, nil
}

// asOf returns the time that a list asks for by its resourceVersion, which is a time in nanoseconds.
func (*Resource) asOf(opts *internalversion.ListOptions, now time.Time) (time.Time, error) {
	rev, err := resource.Revision(opts.ResourceVersion)
	if err != nil {
		return now, err
	}
	if n := uint64(now.UnixNano()); rev > n {
		return now, storage.NewTooLargeResourceVersionError(rev, n, 1)
	}
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return time.Unix(0, int64(rev)), nil
	}
	return now, nil
}

// from yields the records among which those of a list are: those of one task, or those that started at a position or
// later.
func (v *records) from(at after, opts *internalversion.ListOptions) iter.Seq2[*usage.Observation, error] {
	if opts.FieldSelector != nil {
		if uid, ok := opts.FieldSelector.RequiresExactMatch(fieldTaskUID); ok && uid != "" {
			return v.OfTask(uid)
		}
	}
	p := usage.Period{}
	if at.Started > 0 {
		p.From = time.Unix(0, at.Started).UTC()
	}
	return v.Observations(p)
}

// selects reports whether the selectors of a list match. Measurements have no labels.
func selects(opts *internalversion.ListOptions, o *usage.Observation) bool {
	if opts.LabelSelector != nil && !opts.LabelSelector.Matches(labels.Set{}) {
		return false
	}
	if opts.FieldSelector == nil || opts.FieldSelector.Empty() {
		return true
	}
	m := measured(o)
	set := fields.Set{"metadata.name": m.Name, "metadata.namespace": m.Namespace}
	for _, f := range measurementFields() {
		set[f.Path] = f.Value(m)
	}
	return opts.FieldSelector.Matches(set)
}
