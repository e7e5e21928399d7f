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
	Model    string
	From     time.Time
	Currency string
	// Input, Output, Cached and Written are the prices of a million tokens, in millionths of the currency.
	Input, Output, Cached, Written uint64
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
	if len(p.Currency) != 3 || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return out, errors.New("currency: must be an ISO 4217 code such as USD")
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

// Cost returns what an observation cost by the price that was in force when it started. There is no cost if no price
// was in force, if its counts are not reported or are an estimate, or if a cache has a price of its own and the vendor
// did not report what came from the cache.
func (p Prices) Cost(o *Observation) (Cost, bool) {
	price, ok := p.At(o.Provider, o.Model, o.StartedAt)
	if !ok || !o.Reported() || o.Source == SourceEstimate {
		return Cost{}, false
	}
	amount, plain := priced(*o.OutputTokens, price.Output), *o.InputTokens
	for _, part := range []struct {
		tokens *int64
		price  uint64
	}{{o.CachedInputTokens, price.Cached}, {o.CacheWriteInputTokens, price.Written}} {
		if part.price == price.Input || plain == 0 && part.tokens == nil {
			continue
		}
		if part.tokens == nil {
			return Cost{}, false
		}
		plain -= *part.tokens
		amount = amount.Add(priced(*part.tokens, part.price))
	}
	if plain < 0 {
		return Cost{}, false // the parts exceed the whole
	}
	return Cost{price.Currency, amount.Add(priced(plain, price.Input))}, true
}

// AtMost returns the most that a request of a model can cost with so much input and output, whatever part of the input
// a cache supplies or takes.
func (p Prices) AtMost(provider, model string, at time.Time, input, output int64) (Cost, bool) {
	price, ok := p.At(provider, model, at)
	if !ok {
		return Cost{}, false
	}
	dearest := max(price.Input, price.Cached, price.Written)
	return Cost{price.Currency, priced(input, dearest).Add(priced(output, price.Output))}, true
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
