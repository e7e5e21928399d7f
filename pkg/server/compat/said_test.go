// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/models"
)

// notes is a Meter that keeps what it is told.
type notes struct {
	asked []models.Asked
	ended []models.Ended
}

func (r *notes) Start(_ context.Context, a models.Asked) (models.Measurement, error) {
	r.asked = append(r.asked, a)
	return r, nil
}

func (r *notes) End(e models.Ended) { r.ended = append(r.ended, e) }

// A fallback that is passed over is said in the header of the answer, in the audit event of the request, and in the usage, where it
// is a request that used nothing.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	ctx := audit.WithAuditContext(t.Context())
	if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditapi.LevelMetadata}, nil); err != nil {
		t.Fatal(err)
	}
	meter, answer := &notes{}, httptest.NewRecorder()
	x := &exchange{
		h: &Handler{o: Options{Meter: meter}}, w: answer, r: httptest.NewRequestWithContext(ctx, "POST", "/", nil),
		call: &call{namespace: "team", id: "1", query: map[string][]string{"agent": {"a"}}},
	}
	of := func(name string) models.Candidate {
		return models.Candidate{Provider: &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}, Model: "m"}
	}
	if x.passesOver(of("fine"), 1, nil) {
		t.Error("a fallback that can be asked is passed over")
	}
	if !x.passesOver(of("one"), 2, untranslatable("seed", "")) || !x.passesOver(of("two"), 3, untranslatable("", "text that is not Unicode")) {
		t.Error("a fallback that cannot be asked is asked")
	}
	if said := answer.Header().Get(headerPassed); said != "one (seed), two (this request)" {
		t.Errorf("the header says %q", said)
	}
	if said := audit.AuditContextFrom(ctx).GetEventAnnotations(); said["passed-over.core.platform.ai/one"] != "seed" || said["passed-over.core.platform.ai/two"] != "this request" {
		t.Errorf("the audit event says %v", said)
	}
	if len(meter.asked) != 2 || len(meter.ended) != 2 || !meter.ended[0].Refused || meter.ended[0].Usage != (llm.Usage{}) {
		t.Fatalf("the usage has %+v and %+v", meter.asked, meter.ended)
	}
	for i, a := range meter.asked {
		if !a.PassedOver || a.Candidate != i+2 || a.Provider != []string{"one", "two"}[i] || a.Namespace != "team" || a.ID != "1" || a.Agent != "a" || a.Model != "m" {
			t.Errorf("the usage has %+v", a)
		}
	}
}
