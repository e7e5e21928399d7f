// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
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

func measurements(p *standalone.Platform, selector string) []v1alpha1.UsageMeasurement {
	p.T.Helper()
	list, err := p.API().UsageMeasurements("default").List(p.T.Context(), metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		p.T.Fatal(err)
	}
	return list.Items
}

func usageReport(p *standalone.Platform) *v1alpha1.UsageReportStatus {
	p.T.Helper()
	u, err := p.API().UsageReports("default").Create(p.T.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{})
	if err != nil {
		p.T.Fatal(err)
	}
	return &u.Status
}

// TestUsageColumnsOfWorkers: what a vendor says about its cache comes to the same columns through a worker, its events, the
// ledger and the report: input, output, read from a cache, written to one. The scripted vendor has 100 tokens of input in
// each case, which Anthropic's protocol states without the parts of the cache and OpenAI's with them.
func TestUsageColumnsOfWorkers(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	caches := map[string]string{"none": "", "read": ", cached: 60", "write": ", cacheWrite: 30", "both": ", cached: 60, cacheWrite: 30", "zero": ", cached: 0, cacheWrite: 0"}
	text := "turns:\n"
	for name, cache := range caches {
		text += fmt.Sprintf("- {match: {contains: Cache %s.}, reply: {text: Hello., usage: {input: 100, output: 7%s}}}\n", name, cache)
	}
	p, _ := standalone.WithModel(t, text)
	providers := p.API().Providers("default")
	provider := kit.Must[*v1alpha1.Provider](t)(providers.Get(t.Context(), "model", metav1.GetOptions{}))
	claude := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "claude"}, Spec: provider.Spec}
	claude.Spec.Type, claude.Spec.BaseURL = v1alpha1.ProviderAnthropic, strings.TrimSuffix(provider.Spec.BaseURL, "/v1")
	kit.Must[*v1alpha1.Provider](t)(providers.Create(t.Context(), claude, metav1.CreateOptions{}))
	want := map[string]string{
		"model-none": "100 7 - -", "model-read": "100 7 60 -", "model-write": "100 7 - -", "model-both": "100 7 60 -", "model-zero": "100 7 0 -",
		"claude-none": "100 7 - -", "claude-read": "100 7 60 -", "claude-write": "100 7 - 30", "claude-both": "100 7 60 30", "claude-zero": "100 7 0 0",
	}
	for name := range want {
		vendor, cache, _ := strings.Cut(name, "-")
		p.OnModel(name, func(s *v1alpha1.TaskSpec) { s.AI.ProviderRef.Name, s.Prompt = vendor, "Cache "+cache+"." })
	}
	for name, columnsOf := range want {
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
		all := measurements(p, "spec.taskName="+name)
		if len(all) != 1 {
			t.Errorf("%s: %d measurements", name, len(all))
			continue
		}
		if m := all[0].Status; columns(m.InputTokens, m.OutputTokens, m.CachedInputTokens, m.CacheWriteInputTokens) != columnsOf || !m.Complete {
			t.Errorf("%s: %s %+v, want %s", name, columns(m.InputTokens, m.OutputTokens, m.CachedInputTokens, m.CacheWriteInputTokens), m, columnsOf)
		}
	}
	other := usageReport(p).OtherWork[1].Usage
	if got := columns(other.InputTokens, other.OutputTokens, other.CachedInputTokens, other.CacheWriteInputTokens); got != "1000 70 - -" || other.Calls != 10 {
		t.Errorf("all tasks: %s in %d calls", got, other.Calls) // some did not report a breakdown, so there is none of all
	}
}
