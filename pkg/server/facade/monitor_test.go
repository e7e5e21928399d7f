// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMonitorRows: filters become field selectors, rows with a fixed value find nothing else, and the kind of a command is not the kind of
// its body.
func TestMonitorRows(t *testing.T) {
	asked := ""
	f, err := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, path, _ := strings.Cut(r.URL.Path, "/namespaces/default/")
		asked = strings.Join(strings.Fields(path+" "+r.URL.Query().Get("fieldSelector")+" "+string(body)), " ")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(path, "/none"):
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{"kind":"Thing","metadata":{"name":"x","resourceVersion":"7","continue":"c"},"spec":{"targetKind":"issue","desiredAction":"plan"},"items":[]}`)
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	const list, one = `{"metadata":{"name":"x","continue":"c"},"spec":{"targetKind":"issue","desiredAction":"plan"},"items":[]}`, `"resourceVersion":"7"`
	for _, tc := range []struct {
		method, path, body string
		code               int
		asked, answer      string
	}{
		{"GET", "repositories", "", 200, "repositorymonitors", `"kind":"Thing"`},
		{"GET", "repositories/shop", "", 200, "repositorymonitors/shop", one},
		{"GET", "repositories/shop/runs?state=failed", "", 200, "monitorruns spec.monitorName=shop,status.state=failed", list},
		{"GET", "repositories/a,b=c/runs", "", 200, `monitorruns spec.monitorName=a\,b\=c`, list},
		{"GET", "repositories/none/runs", "", 404, "repositorymonitors/none", ""},
		{
			"GET", "repositories/shop/items?kind=pull_request&number=7&state=open&reviewVerdict=passed&repairState=failed&automergeState=merged", "", 200,
			"monitoritems spec.monitorName=shop,spec.number=7,spec.targetKind=pull_request,status.automerge.state=merged,status.repair.phase=failed,status.review.verdict=passed,status.state=open", list,
		},
		{"GET", "repositories/shop/items?number=seven", "", 400, "repositorymonitors/shop", "number: must be a number and at least 1"},
		{"POST", "repositories/shop/runs", "", 201, `repositorymonitors/shop/runs {"apiVersion":"core.platform.ai/v1alpha1","kind":"MonitorRunRequest"}`, one},
		{"POST", "repositories/shop/runs", `{"targetKind":"issue","targetNumber":7}`, 201, `repositorymonitors/shop/runs {"apiVersion":"core.platform.ai/v1alpha1","kind":"MonitorRunRequest","targetKind":"issue","targetNumber":7}`, one},
		{"POST", "repositories/shop/runs", `{"number":7}`, 400, "", `unknown field \"number\"`},
		{
			"POST", "repositories/shop/commands", `{"kind":"issue","number":7,"intent":"plan"}`, 201,
			`repositorymonitors/shop/commands {"apiVersion":"core.platform.ai/v1alpha1","intent":"plan","kind":"MonitorCommandRequest","number":7,"targetKind":"issue"}`, one,
		},
		{"POST", "repositories/shop/commands", `{"kind":"issue","intent":"plan"}`, 400, "", "number: is required"},
		{"GET", "commands?name=shop&kind=issue&number=7&state=accepted&intent=plan", "", 200, "monitorcommands spec.intent=plan,spec.monitorName=shop,spec.number=7,spec.targetKind=issue,status.state=accepted", list},
		{"GET", "commands", "", 400, "", "name: is required"},
		{"GET", "commands/x", "", 200, "monitorcommands/x", one},
		{"GET", "work-actions?name=shop&intent=review", "", 200, "monitorworkactions spec.desiredAction=review,spec.monitorName=shop", list},
		{"GET", "mutations?name=shop&operation=merge", "", 200, "monitormutations spec.monitorName=shop,spec.operation=merge", list},
		{"GET", "actions?name=shop&intent=plan", "", 200, "monitorworkactions spec.desiredAction=plan,spec.monitorName=shop,spec.targetKind=issue", list},
		{"GET", "actions?name=shop&kind=pull_request", "", 400, "", "kind: is not a parameter of this path"},
		{"GET", "actions/x", "", 200, "monitorworkactions/x", one},
		{"GET", "implementation-jobs?name=shop", "", 200, "monitorworkactions spec.desiredAction=implement,spec.monitorName=shop", list},
		{"GET", "implementation-jobs/x", "", 404, "monitorworkactions/x", `monitorworkactions.core.platform.ai \"x\" not found`},
		{"GET", "events?name=shop", "", 501, review, "see their runs"},
		{"GET", "implementation-jobs/x/patch-preview", "", 501, review, "artifacts of the task"},
	} {
		asked = ""
		req := httptest.NewRequestWithContext(t.Context(), tc.method, "/api/v1/monitors/"+tc.path, strings.NewReader(tc.body))
		req.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, req)
		var answer json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != tc.code || asked != tc.asked || err != nil || !strings.Contains(w.Body.String(), tc.answer) {
			t.Errorf("%s %s: %d %s\nasked %s, want %s", tc.method, tc.path, w.Code, w.Body, asked, tc.asked)
		}
	}
}
