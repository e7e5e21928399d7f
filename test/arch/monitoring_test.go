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

// TestMonitoring: the alert rules and the dashboard can be read, and name only metrics that the programs have.
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
	for _, g := range alerts.Spec.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %+v is not complete", r)
			}
			exprs = append(exprs, r.Expr)
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
	reference, name := read(t, "artifacts/reference/metrics.md"), regexp.MustCompile(`\bplatform_\w+`)
	for _, expr := range exprs {
		for _, metric := range name.FindAllString(expr, -1) {
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
