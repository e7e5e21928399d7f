// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func price(model, from, input, output, cached, written string) v1alpha1.ProviderPrice {
	return v1alpha1.ProviderPrice{Model: model, EffectiveFrom: from, Currency: "USD", Input: input, Output: output, CachedInput: cached, CacheWriteInput: written}
}

func TestCost(t *testing.T) {
	p := Prices{}
	p.Set("a", []v1alpha1.ProviderPrice{
		price("m", "2026-01-01", "3", "15", "0.3", "3.75"),
		price("m", "2026-03-01T12:00:00+01:00", "2", "10", "", ""),
		price("*", "2026-02-01", "1", "1", "", ""),
	})
	day := func(s string) time.Time {
		at, err := ParseTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	n := func(v int64) *int64 { return &v }
	for name, c := range map[string]struct {
		provider, model, at string
		Counts
		source Source
		want   string // empty for none
	}{
		"parts do not overlap":        {"a", "m", "2026-01-01", Counts{n(1000), n(100), n(600), n(300)}, SourceProvider, "0.003105"}, // 100·3 + 600·0.3 + 300·3.75 + 100·15
		"before any price":            {"a", "m", "2025-12-31", Counts{n(1), n(1), n(0), n(0)}, SourceProvider, ""},
		"other provider":              {"b", "m", "2026-01-01", Counts{n(1), n(1), n(0), n(0)}, SourceProvider, ""},
		"other model":                 {"a", "x", "2026-02-01", Counts{n(1), n(1), nil, nil}, SourceProvider, "0.000002"},
		"other model, before":         {"a", "x", "2026-01-31", Counts{n(1), n(1), nil, nil}, SourceProvider, ""},
		"its own price, though older": {"a", "m", "2026-02-01", Counts{n(1), n(0), n(0), n(0)}, SourceProvider, "0.000003"},
		"last moment of a price":      {"a", "m", "2026-03-01T10:59:59.999999999Z", Counts{n(1), n(0), n(0), n(0)}, SourceProvider, "0.000003"},
		"first moment of the next":    {"a", "m", "2026-03-01T11:00:00Z", Counts{n(1), n(0), n(0), n(0)}, SourceProvider, "0.000002"},
		"cache of unknown size":       {"a", "m", "2026-01-01", Counts{n(10), n(0), nil, n(0)}, SourceProvider, ""},
		"cache without a price":       {"a", "m", "2026-04-01", Counts{n(10), n(0), nil, nil}, SourceProvider, "0.00002"},
		"nothing that a cache had":    {"a", "m", "2026-01-01", Counts{n(0), n(1), nil, nil}, SourceProvider, "0.000015"},
		"no output reported":          {"a", "m", "2026-01-01", Counts{n(1), nil, n(0), n(0)}, SourceProvider, ""},
		"nothing used is free":        {"a", "m", "2026-01-01", Counts{n(0), n(0), n(0), n(0)}, SourceProvider, "0"},
		"an estimate":                 {"a", "m", "2026-01-01", Counts{n(1), n(1), n(0), n(0)}, SourceEstimate, ""},
		"parts that exceed the whole": {"a", "m", "2026-01-01", Counts{n(1), n(0), n(2), n(0)}, SourceProvider, ""},
		"the greatest count, exactly": {"a", "m", "2026-04-01", Counts{n(MaxTokens), n(MaxTokens), nil, nil}, SourceProvider, "108086391056.891892"},
	} {
		got, ok := p.Cost(&Observation{Provider: c.provider, Model: c.model, StartedAt: day(c.at), Counts: c.Counts, Source: c.source})
		if ok != (c.want != "") || ok && (got.Amount.String() != c.want || got.Currency != "USD") {
			t.Errorf("%s: %v %v, want %q", name, got.Amount, ok, c.want)
		}
	}
	// A reservation covers whatever a cache does with the input.
	first, ok := p.At("a", "m", day("2026-01-01"))
	if most := first.AtMost(1000, 10); !ok || most.String() != "0.0039" || most.Micros() != 3900 || AmountOfMicros(3900) != most {
		t.Errorf("at most %v %v", most, ok)
	}
}

// Amounts are exact, whatever their size.
func TestAmount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var sum Amount
	want := new(big.Int)
	for range 10_000 {
		tokens, price := r.Int64N(MaxTokens), r.Uint64N(1e15)
		sum = sum.Add(priced(tokens, price))
		want.Add(want, new(big.Int).Mul(big.NewInt(tokens), new(big.Int).SetUint64(price)))
		exact, ok := new(big.Rat).SetString(sum.String())
		if scaled := new(big.Rat).SetFrac(want, big.NewInt(1e12)); !ok || exact.Cmp(scaled) != 0 {
			t.Fatalf("%s, want %s", sum, scaled.FloatString(12))
		}
	}
	if sum.Micros() != math.MaxInt64 {
		t.Errorf("%d micros", sum.Micros())
	}
	if m := (Amount{low: 1}).Micros(); m != 1 {
		t.Errorf("the smallest amount is %d micros", m)
	}
}

func TestCheckPrices(t *testing.T) {
	good := price("m", "2026-01-01", "3", "15", "0.3", "3.75")
	for name, c := range map[string]struct {
		change func(*v1alpha1.ProviderPrice)
		want   string
	}{
		"date":          {func(p *v1alpha1.ProviderPrice) { p.EffectiveFrom = "January" }, "prices[1].effectiveFrom: Invalid value: must be a UTC date"},
		"currency":      {func(p *v1alpha1.ProviderPrice) { p.Currency = "usd" }, "prices[1].currency: Invalid value: must be an ISO 4217 code"},
		"negative":      {func(p *v1alpha1.ProviderPrice) { p.Input = "-1" }, "prices[1].input: Invalid value: must be a decimal number"},
		"exponent":      {func(p *v1alpha1.ProviderPrice) { p.Output = "1e3" }, "prices[1].output: Invalid value: must be a decimal number"},
		"empty":         {func(p *v1alpha1.ProviderPrice) { p.Output = "" }, ""}, // a required field
		"point":         {func(p *v1alpha1.ProviderPrice) { p.CachedInput = "1." }, "prices[1].cachedInput: Invalid value: must be a decimal number"},
		"too exact":     {func(p *v1alpha1.ProviderPrice) { p.CacheWriteInput = "0.0000001" }, "prices[1].cacheWriteInput: Invalid value: must be a decimal number"},
		"the same time": {func(p *v1alpha1.ProviderPrice) { p.EffectiveFrom = "2026-01-01T01:00:00+01:00" }, "prices[1]: Duplicate value"},
		"":              {func(p *v1alpha1.ProviderPrice) { p.EffectiveFrom = "2026-01-02" }, ""},
	} {
		second := good
		c.change(&second)
		err := CheckPrices([]v1alpha1.ProviderPrice{good, second}, field.NewPath("prices")).ToAggregate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseTime(t *testing.T) {
	for _, s := range []string{"", "2026-13-01", "2026-01-01 10:00", "1500-01-01", "9999-12-31T00:00:00Z", "2262-04-11T23:47:16.854775808Z"} {
		if at, err := ParseTime(s); err == nil {
			t.Errorf("%q is %s", s, at)
		}
	}
	if at, err := ParseTime("2026-02-01T00:30:00+01:00"); err != nil || at.Format(time.RFC3339) != "2026-01-31T23:30:00Z" {
		t.Errorf("%s %v", at, err)
	}
}

// TestBelieved: a report of zero is complete only if the prices in force say that the model was free. Otherwise it has no cost.
func TestBelieved(t *testing.T) {
	t.Parallel()
	prices := Prices{}
	prices.Set("p", []v1alpha1.ProviderPrice{
		{Model: "*", EffectiveFrom: "2026-01-01", Currency: "USD", Input: "1", Output: "1"},
		{Model: "free", EffectiveFrom: "2026-01-01", Currency: "USD", Input: "0", Output: "0"},
	})
	for _, c := range []struct {
		provider, model string
		from            int
		complete, cost  bool
	}{
		{"p", "m", 2026, false, false}, {"p", "free", 2026, true, true}, {"p", "free", 2025, false, false}, {"q", "free", 2026, false, false},
	} {
		o := &Observation{Provider: c.provider, Model: c.model, StartedAt: time.Date(c.from, 2, 1, 0, 0, 0, 0, time.UTC)}
		o.Settle(Outcome{Counts: Counts{InputTokens: new(int64), OutputTokens: new(int64)}})
		got := prices.Believed(o)
		if _, cost := prices.Cost(got); got.Complete != c.complete || (got.Gap == "") != c.complete || cost != c.cost {
			t.Errorf("%+v: %+v, cost %v", c, got, cost)
		}
		if o.Gap != GapZero || o.Complete {
			t.Errorf("the record itself says %q", o.Gap)
		}
	}
}
