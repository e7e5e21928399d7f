// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Prices are those of the Providers of a namespace, by the name of the Provider.
type Prices map[string][]Price

// Price is what a model costs from a time on, until the next price of the same model applies.
type Price struct {
	// Model is AnyModel for all models without a price of their own.
	Model    string    `json:"model"`
	From     time.Time `json:"from"`
	Currency string    `json:"currency"`
	// Input, Output, Cached and Written are the prices of a million tokens, in millionths of the currency.
	Input   uint64 `json:"input"`
	Output  uint64 `json:"output"`
	Cached  uint64 `json:"cached"`
	Written uint64 `json:"written"`
}

// Cost is an amount in a currency.
type Cost struct {
	Currency string
	Amount   Amount
}

// ParsePrice parses a price. The error names the field.
func ParsePrice(p *v1alpha1.ProviderPrice) (Price, error) {
	out := Price{Model: p.Model, Currency: p.Currency}
	var err error
	if out.From, err = ParseTime(p.EffectiveFrom); err != nil {
		return out, fmt.Errorf("effectiveFrom: %w", err)
	}
	if err := CheckCurrency(p.Currency); err != nil {
		return out, fmt.Errorf("currency: %w", err)
	}
	for _, f := range []struct {
		name, text string
		into       *uint64
	}{
		{"input", p.Input, &out.Input},
		{"output", p.Output, &out.Output},
		{"cachedInput", cmp.Or(p.CachedInput, p.Input), &out.Cached},
		{"cacheWriteInput", cmp.Or(p.CacheWriteInput, p.Input), &out.Written},
	} {
		if *f.into, err = parseDecimal(f.text); err != nil {
			return out, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out, nil
}

// CheckCurrency checks the form of the code of a currency.
func CheckCurrency(code string) error {
	const letters = 3
	if len(code) != letters || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return errors.New("must be an ISO 4217 code such as USD")
	}
	return nil
}

// CheckPrices returns the errors of the prices of a Provider.
func CheckPrices(prices []v1alpha1.ProviderPrice, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type key struct {
		model string
		from  time.Time
	}
	seen := map[key]bool{}
	for i := range prices {
		if one := &prices[i]; one.EffectiveFrom == "" || one.Currency == "" || one.Input == "" || one.Output == "" {
			continue // these fields are required, which is checked elsewhere
		}
		p, err := ParsePrice(&prices[i])
		k := key{p.Model, p.From}
		switch {
		case err != nil:
			name, rule, _ := strings.Cut(err.Error(), ": ")
			errs = append(errs, field.Invalid(path.Index(i).Child(name), field.OmitValueType{}, rule))
		case seen[k]:
			errs = append(errs, field.Duplicate(path.Index(i), prices[i].Model+" from "+prices[i].EffectiveFrom))
		}
		seen[k] = true
	}
	return errs
}

// Set sets the prices of a Provider. Prices that are not valid are left out.
func (p Prices) Set(provider string, prices []v1alpha1.ProviderPrice) {
	var all []Price
	for i := range prices {
		if one, err := ParsePrice(&prices[i]); err == nil {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Price) int { return b.From.Compare(a.From) })
	p[provider] = all
}

// At returns the price of a model that was in force at a time. A price of the model itself precedes one of AnyModel,
// however old it is.
func (p Prices) At(provider, model string, at time.Time) (Price, bool) {
	for _, want := range []string{model, v1alpha1.AnyModel} {
		for _, price := range p[provider] {
			if price.Model == want && !at.Before(price.From) {
				return price, true
			}
		}
	}
	return Price{}, false
}

// InForce returns the price of a model among those of its Provider that is in force at a time; nil if there is none.
func InForce(prices []v1alpha1.ProviderPrice, model string, at time.Time) *Price {
	p := Prices{}
	p.Set("", prices)
	if price, ok := p.At("", model, at); ok {
		return &price
	}
	return nil
}

// Believed returns an observation as its Provider's prices make it: if its model was free, a report of zero is complete.
func (p Prices) Believed(o *Observation) *Observation {
	price, ok := p.At(o.Provider, o.Model, o.StartedAt)
	if !ok || o.Gap != GapZero || !price.Free() {
		return o
	}
	all := *o
	all.Gap, all.Complete = "", true
	return &all
}

// Cost returns what an observation cost by the price that was in force when it started. There is no cost if no price
// was in force, if its counts are an estimate or cannot be believed, or if Price.Of has none.
func (p Prices) Cost(o *Observation) (Cost, bool) {
	price, ok := p.At(o.Provider, o.Model, o.StartedAt)
	if !ok || o.Source == SourceEstimate || o.Gap == GapZero {
		return Cost{}, false
	}
	amount, ok := price.Of(o.Counts)
	return Cost{price.Currency, amount}, ok
}

// Of returns what a request cost. It reports false if its counts are not reported, or if a cache has a price of its own
// and the vendor did not report what came from the cache.
func (p *Price) Of(c Counts) (Amount, bool) {
	if !c.Reported() {
		return Amount{}, false
	}
	amount, plain := priced(*c.OutputTokens, p.Output), *c.InputTokens
	for _, part := range []struct {
		tokens *int64
		price  uint64
	}{{c.CachedInputTokens, p.Cached}, {c.CacheWriteInputTokens, p.Written}} {
		if part.price == p.Input || plain == 0 && part.tokens == nil {
			continue
		}
		if part.tokens == nil {
			return Amount{}, false
		}
		plain -= *part.tokens
		amount = amount.Add(priced(*part.tokens, part.price))
	}
	if plain < 0 {
		return Amount{}, false // the parts exceed the whole
	}
	return amount.Add(priced(plain, p.Input)), true
}

// Free reports whether the Provider says that the model costs nothing. It does not say so without a price.
func (p *Price) Free() bool {
	return p != nil && p.Input == 0 && p.Output == 0 && p.Cached == 0 && p.Written == 0
}

// AtMost returns the most that a request can cost with this much input and output, whatever part of the input a cache
// supplies or takes.
func (p *Price) AtMost(input, output int64) Amount {
	return priced(input, max(p.Input, p.Cached, p.Written)).Add(priced(output, p.Output))
}

// ParseTime parses a UTC date such as 2026-01-31, which is its midnight, or an RFC 3339 timestamp. Times must be
// representable as signed 64-bit nanoseconds since 1970.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, s)
	}
	if err != nil {
		return time.Time{}, errors.New("must be a UTC date such as 2026-01-31 or an RFC 3339 timestamp")
	}
	t = t.UTC()
	if !time.Unix(0, t.UnixNano()).Equal(t) {
		return time.Time{}, errors.New("must be between 1677-09-21T00:12:43.145224192Z and 2262-04-11T23:47:16.854775807Z")
	}
	return t, nil
}
