// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// totals of measurements. A count of -1 is not reported.
func totals(measurements, input, output, cached int64) v1alpha1.UsageTotals {
	u := v1alpha1.UsageTotals{Measurements: measurements, Calls: measurements, Completeness: v1alpha1.UsageComplete}
	if input >= 0 {
		u.InputTokens = &input
	}
	if output >= 0 {
		u.OutputTokens = &output
	}
	if cached >= 0 {
		u.CachedInputTokens = &cached
	}
	if input >= 0 && output >= 0 {
		u.TotalTokens = new(input + output)
	} else if measurements > 0 {
		u.Completeness = v1alpha1.UsageUnavailable
	}
	return u
}

// sampleReport has a request with cost, one of which nothing is known, and one that used nothing of models.
func sampleReport() *v1alpha1.UsageReportStatus {
	priced := totals(2, 1000, 200, 0)
	priced.Cost = v1alpha1.UsageCost{Completeness: v1alpha1.UsagePartial, UnpricedMeasurements: 1, Amounts: []v1alpha1.UsageAmount{{Currency: "EUR", Amount: "0.25"}}}
	work := func(id string, number int64, u v1alpha1.UsageTotals) v1alpha1.UsageWork {
		return v1alpha1.UsageWork{ID: id, Repository: "owner/repo", Kind: v1alpha1.UsageOfIssue, Number: number, StartedAt: "2026-05-01T00:00:00Z", Summary: v1alpha1.UsageSummaryOf{UsageTotals: u}}
	}
	return &v1alpha1.UsageReportStatus{
		Selection: v1alpha1.UsageSelection{Teams: []string{"default"}, From: "2026-05-01T00:00:00Z", Until: "2026-05-02T00:00:00Z", AsOf: "2026-05-02T00:00:00Z"},
		Summary:   &v1alpha1.UsageSummaryOf{UsageTotals: priced, WorkRequests: 3, UnfinishedWork: 1, PRsOpened: new(int64(1)), PRsReady: new(int64), PRsMerged: new(int64), PRsClosed: new(int64), PRsAssisted: new(int64(2)), TokensPerPROpened: new(1200.0)},
		Works:     []v1alpha1.UsageWork{work("work-1", 7, priced), work("work-2", 8, totals(1, -1, -1, -1)), work("work-3", 9, totals(0, -1, -1, -1))},
		OtherWork: []v1alpha1.UsageOtherWork{{Category: v1alpha1.UsageUnassociated, Usage: totals(1, 0, 5, -1)}},
		Breakdown: []v1alpha1.UsageBreakdown{{Name: "big", Usage: totals(1, 900, 100, -1)}, {Name: "small", Usage: totals(1, 10, 0, -1)}, {Name: "", Usage: totals(1, -1, -1, -1)}},
	}
}

// TestUsageOutput: tables tell Unavailable, 0 and No model calls apart; CSV leaves empty what is not known; JSON and YAML
// are the report.
func TestUsageOutput(t *testing.T) {
	for f, name := range map[format]string{asTable: "usage.txt", asCSV: "usage.csv", asJSON: "usage.json", asYAML: "usage.yaml"} {
		var out bytes.Buffer
		term := &terminal{Streams: Streams{Out: &out, Err: &out}}
		if err := printUsage(term, sampleReport(), f); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
		var err error
		var back v1alpha1.UsageReportStatus
		switch f {
		case asJSON:
			err = json.Unmarshal(out.Bytes(), &back)
		case asYAML:
			err = yaml.UnmarshalStrict(out.Bytes(), &back)
		case asCSV:
			rows, err := csv.NewReader(&out).ReadAll()
			if err != nil || len(rows) != 5 || rows[2][3] != "" || rows[3][3] != "" || rows[4][3] != "0" {
				t.Errorf("CSV %q, %v", rows, err)
			}
			continue
		default:
			for _, text := range []string{"No model calls", "Unavailable", "at least EUR 0.25", "No PRs merged yet"} {
				if !strings.Contains(out.String(), text) {
					t.Errorf("the table lacks %q", text)
				}
			}
			continue
		}
		if d := cmp.Diff(sampleReport(), &back); err != nil || d != "" {
			t.Errorf("%s: %v, differs from the report (-want +got):\n%s", name, err, d)
		}
	}
}

// TestUsageOfWorkOutput: a work request is shown with its pull requests, and how each came to be linked with it.
func TestUsageOfWorkOutput(t *testing.T) {
	r := sampleReport()
	r.Summary, r.Works, r.OtherWork, r.Breakdown = nil, nil, nil, nil
	at := "2026-05-01T12:00:00Z"
	used := totals(1, 1000, 200, 0)
	r.Work = &v1alpha1.UsageWork{
		ID: "work-1", Repository: "owner/repo", Kind: v1alpha1.UsageOfIssue, Number: 7,
		Summary: v1alpha1.UsageSummaryOf{UsageTotals: used, WorkRequests: 1, PRsOpened: new(int64), PRsReady: new(int64(1)), PRsMerged: new(int64), PRsClosed: new(int64), PRsAssisted: new(int64(1))},
		Tasks:   []v1alpha1.UsageTask{{TaskName: "mend", TaskUID: "u", StartedAt: at, Usage: used}},
		PullRequests: []v1alpha1.UsagePullRequest{
			{Repository: "owner/repo", Number: 8, Origin: "assisted", State: "open", Ready: true, ObservedAt: &at, URL: "https://git.example/owner/repo/pull/8"},
			{Repository: "owner/repo", Number: 9, Origin: "review_only", State: "unknown", ReadinessReason: "not\x1b[31m found"},
		},
	}
	var out bytes.Buffer
	if err := printUsage(&terminal{Streams: Streams{Out: &out, Err: &out}}, r, asTable); err != nil {
		t.Fatal(err)
	}
	golden(t, "usage-work.txt", out.Bytes())
}

// golden compares an output with the file of a name in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; -rewrite writes it anew):\n%s", name, d)
	}
}

// TestUsageFormulas: nothing that a task or a server says begins a formula in a spreadsheet, or reaches a terminal as a control
// character.
func TestUsageFormulas(t *testing.T) {
	r := sampleReport()
	for i, kind := range []v1alpha1.UsageKind{"=1+1", "+1", "@SUM(A1)"} {
		r.Works[i].Kind, r.Works[i].Repository = kind, "o/\x1b[31m\r\n=2"
	}
	r.Works[1].ID, r.Works[2].StartedAt = "-2", "\t=3"
	for _, f := range []format{asCSV, asTable} {
		var out bytes.Buffer
		if err := printUsage(&terminal{Streams: Streams{Out: &out, Err: &out}}, r, f); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\r") {
			t.Errorf("%s has control characters: %q", f, out.String())
		}
		if f == asTable {
			continue
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 5 {
			t.Fatalf("CSV %q, %v", rows, err)
		}
		for _, row := range rows {
			for _, c := range row {
				if c != "" && strings.ContainsAny(c[:1], "=+-@\t\r\n") {
					t.Errorf("cell %q begins a formula", c)
				}
			}
		}
	}
}
