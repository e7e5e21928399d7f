// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Links of pull requests: a creation needs its receipt, a merge stays, and an observation that comes late is refused.
func TestLinks(t *testing.T) {
	l := gatewayed()
	r, ctx := serve(l, append([]string{"get gateways g"}, reader...)...)
	r.o.ChangeLink = l.ChangeLink
	at := func(minutes int) *metav1.MicroTime {
		return &metav1.MicroTime{Time: start.Add(time.Duration(minutes) * time.Minute)}
	}
	base := v1alpha1.UsageLinkSpec{TaskUID: "t0", Repository: "O/R", Number: 7, Origin: v1alpha1.UsageLinkCreated, EvidenceID: "delivery-1", State: v1alpha1.UsageLinkOpen}
	with := func(change func(*v1alpha1.UsageLinkSpec)) v1alpha1.UsageLinkSpec {
		s := base
		change(&s)
		return s
	}
	merged := func(s *v1alpha1.UsageLinkSpec) {
		s.State, s.MergedAt, s.ObservedAt = v1alpha1.UsageLinkMerged, &metav1.Time{Time: start}, at(20)
	}
	for _, c := range []struct {
		name   string
		spec   v1alpha1.UsageLinkSpec
		code   int32
		want   string // of the error, or origin and state as they are recorded
		opened int64
		merged int64
	}{
		{"opened", with(func(s *v1alpha1.UsageLinkSpec) { s.ObservedAt = at(10) }), 0, "created open", 1, 0},
		{"no receipt", with(func(s *v1alpha1.UsageLinkSpec) { s.Number, s.EvidenceID = 8, "" }), 0, "assisted open", 1, 0},
		{"merged", with(merged), 0, "created merged", 1, 1},
		{"unknown later", with(func(s *v1alpha1.UsageLinkSpec) {
			s.State, s.Origin, s.EvidenceID, s.ObservedAt = v1alpha1.UsageLinkUnknown, v1alpha1.UsageLinkAssisted, "", at(30)
		}), 0, "created merged", 1, 1},
		{"late", with(func(s *v1alpha1.UsageLinkSpec) { s.ObservedAt = at(15) }), http.StatusConflict, "a later observation", 1, 1},
		{"no task", with(func(s *v1alpha1.UsageLinkSpec) { s.TaskUID = "elsewhere" }), http.StatusNotFound, "no task of the namespace", 1, 1},
		{"repository", with(func(s *v1alpha1.UsageLinkSpec) { s.Repository = "r" }), http.StatusUnprocessableEntity, "must be OWNER/REPOSITORY", 1, 1},
		{"future", with(func(s *v1alpha1.UsageLinkSpec) { s.ObservedAt = at(61) }), http.StatusUnprocessableEntity, "must not be in the future", 1, 1},
		{"ready and closed", with(func(s *v1alpha1.UsageLinkSpec) { s.State, s.Ready = v1alpha1.UsageLinkClosed, true }), http.StatusUnprocessableEntity, "only if state is open", 1, 1},
		{"merged at no time", with(func(s *v1alpha1.UsageLinkSpec) { s.State = v1alpha1.UsageLinkMerged }), http.StatusUnprocessableEntity, "spec.mergedAt", 1, 1},
	} {
		out, err := r.link(ctx, &v1alpha1.UsageLink{Spec: c.spec})
		if err != nil {
			if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %d %s", c.name, err, c.code, c.want)
			}
		} else if got := string(out.Spec.Origin) + " " + string(out.Spec.State); c.code != 0 || got != c.want || out.Spec.Repository != "o/r" {
			t.Errorf("%s: %+v, want %s", c.name, out.Spec, c.want)
		}
		u, err := r.create(ctx, &v1alpha1.UsageReport{})
		if err != nil {
			t.Fatal(err)
		}
		if s := u.Status.Summary; s.PRsOpened == nil || *s.PRsOpened != c.opened || *s.PRsMerged != c.merged {
			t.Errorf("%s: the report has %s", c.name, cmp.Diff(nil, s))
		}
	}
}
