// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// columns are the four counts of a report or a measurement; a dash is not reported.
func columns(all ...*int64) string {
	var out []string
	for _, n := range all {
		if n == nil {
			out = append(out, "-")
			continue
		}
		out = append(out, fmt.Sprint(*n))
	}
	return strings.Join(out, " ")
}

func (p *platform) measurements(selector string) []v1alpha1.UsageMeasurement {
	p.t.Helper()
	list, err := p.api().UsageMeasurements("default").List(p.t.Context(), metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		p.t.Fatal(err)
	}
	return list.Items
}

func (p *platform) report() *v1alpha1.UsageReportStatus {
	p.t.Helper()
	u, err := p.api().UsageReports("default").Create(p.t.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return &u.Status
}

// TestUsageColumnsOfWorkers: what a vendor says about its cache comes to the same columns through a worker, its events, the
// ledger and the report: input, output, read from a cache, written to one. The scripted vendor has 100 tokens of input in
// each case, which Anthropic's protocol states without the parts of the cache and OpenAI's with them.
func TestUsageColumnsOfWorkers(t *testing.T) {
	t.Parallel()
	caches := map[string]string{"none": "", "read": ", cached: 60", "write": ", cacheWrite: 30", "both": ", cached: 60, cacheWrite: 30", "zero": ", cached: 0, cacheWrite: 0"}
	text := "turns:\n"
	for name, cache := range caches {
		text += fmt.Sprintf("- {match: {contains: Cache %s.}, reply: {text: Hello., usage: {input: 100, output: 7%s}}}\n", name, cache)
	}
	p, _ := withModel(t, text)
	providers := p.api().Providers("default")
	provider := must[*v1alpha1.Provider](t)(providers.Get(t.Context(), "model", metav1.GetOptions{}))
	claude := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "claude"}, Spec: provider.Spec}
	claude.Spec.Type, claude.Spec.BaseURL = v1alpha1.ProviderAnthropic, strings.TrimSuffix(provider.Spec.BaseURL, "/v1")
	must[*v1alpha1.Provider](t)(providers.Create(t.Context(), claude, metav1.CreateOptions{}))
	want := map[string]string{
		"model-none": "100 7 - -", "model-read": "100 7 60 -", "model-write": "100 7 - -", "model-both": "100 7 60 -", "model-zero": "100 7 0 -",
		"claude-none": "100 7 - -", "claude-read": "100 7 60 -", "claude-write": "100 7 - 30", "claude-both": "100 7 60 30", "claude-zero": "100 7 0 0",
	}
	for name := range want {
		vendor, cache, _ := strings.Cut(name, "-")
		p.onModel(name, func(s *v1alpha1.TaskSpec) { s.AI.ProviderRef.Name, s.Prompt = vendor, "Cache "+cache+"." })
	}
	for name, columnsOf := range want {
		p.awaitPhase(name, v1alpha1.TaskSucceeded)
		all := p.measurements("spec.taskName=" + name)
		if len(all) != 1 {
			t.Errorf("%s: %d measurements", name, len(all))
			continue
		}
		if m := all[0].Status; columns(m.InputTokens, m.OutputTokens, m.CachedInputTokens, m.CacheWriteInputTokens) != columnsOf || !m.Complete {
			t.Errorf("%s: %s %+v, want %s", name, columns(m.InputTokens, m.OutputTokens, m.CachedInputTokens, m.CacheWriteInputTokens), m, columnsOf)
		}
	}
	other := p.report().OtherWork[1].Usage
	if got := columns(other.InputTokens, other.OutputTokens, other.CachedInputTokens, other.CacheWriteInputTokens); got != "1000 70 - -" || other.Calls != 10 {
		t.Errorf("all tasks: %s in %d calls", got, other.Calls) // some did not report a breakdown, so there is none of all
	}
}
