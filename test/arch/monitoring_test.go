// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMonitoring: the alert rules and the dashboard can be read, and name only metrics that the programs have. The page
// docs/operations/failures.md says of each alert what to do.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	var alerts struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "manifests/monitoring/alerts.yaml")), &alerts); err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "manifests/monitoring/dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	var exprs []string
	metrics, operating := regexp.MustCompile(`\bplatform_\w+`), read(t, "docs/operations/failures.md")
	for _, g := range alerts.Spec.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %+v is not complete", r)
			}
			exprs = append(exprs, r.Expr)
			if m := metrics.FindString(r.Expr); !strings.Contains(operating, r.Alert) && (m == "" || !strings.Contains(operating, "`"+m)) {
				t.Errorf("docs/operations/failures.md does not say what to do about the alert %s", r.Alert)
			}
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	if len(exprs) < 20 {
		t.Errorf("%d expressions", len(exprs))
	}
	reference := read(t, "artifacts/reference/metrics.md")
	for _, expr := range exprs {
		for _, metric := range metrics.FindAllString(expr, -1) {
			whole, histogram := strings.CutSuffix(metric, "_bucket")
			row := "| `" + whole + "` | "
			if histogram {
				row += "histogram |"
			}
			if !strings.Contains(reference, row) {
				t.Errorf("%s: there is no metric %s", expr, metric)
			}
		}
	}
}
