// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package taskquery

import (
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestParse: an error names the field; what is left out has a default.
func TestParse(t *testing.T) {
	t.Parallel()
	for field, spec := range map[string]v1alpha1.TaskQuerySpec{
		"labelSelector": {LabelSelector: "a in"}, "phases": {Phases: []string{"running"}}, "startedAfter": {StartedAfter: "yesterday"}, "startedBefore": {StartedBefore: "5"},
		"minDuration": {MinDuration: new(v1alpha1.Duration("-1s"))}, "limit": {Limit: -1}, "continue": {Continue: "x"}, "orderBy": {OrderBy: "size"}, "minTokens": {MinTokens: -1},
	} {
		if _, err := parse(&spec, "default", time.Now()); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	q, err := parse(&v1alpha1.TaskQuerySpec{MinDuration: new(v1alpha1.Duration("1500ms")), Limit: 10_000}, "default", time.Now())
	if err != nil || q.limit != maxLimit || q.OrderBy != v1alpha1.TasksByCreated || q.minDuration != 2 {
		t.Errorf("%+v, %v", q, err)
	}
}

// TestPlace: a token is good for the query that it is from, in its namespace, whatever the size of the page.
func TestPlace(t *testing.T) {
	t.Parallel()
	spec := v1alpha1.TaskQuerySpec{OrderBy: v1alpha1.TasksByTokens, Limit: 3}
	q, err := parse(&spec, "default", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := place{Revision: 5, Name: "a", Query: q.digest}
	token, err := p.token()
	if err != nil {
		t.Fatal(err)
	}
	spec.Continue, spec.Limit = token, 100
	if q, err := parse(&spec, "default", time.Now()); err != nil || q.at != p {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := parse(&spec, "other", time.Now()); err == nil {
		t.Error("the token is accepted in another namespace")
	}
	spec.Agent = "x"
	if _, err := parse(&spec, "default", time.Now()); err == nil {
		t.Error("the token is accepted for another query")
	}
}
