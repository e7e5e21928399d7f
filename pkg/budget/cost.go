// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/usage"
)

// Amounts of an account are tokens, or millionths of the currency if its budget limits cost. What a request costs is
// rounded up to a millionth.

// Show returns an amount of the account as text without its unit.
func (c Charge) Show(n int64) string {
	if c.Currency == "" {
		return strconv.FormatInt(n, 10)
	}
	return usage.AmountOfMicros(n).String()
}

// Value returns an amount of the account as JSON shows it: a number of tokens, or the text of a decimal number.
func (c Charge) Value(n int64) any {
	if c.Currency == "" {
		return n
	}
	return c.Show(n)
}

// Unit is what amounts of the account count: tokens, or a currency.
func (c Charge) Unit() string {
	if c.Currency == "" {
		return "tokens"
	}
	return c.Currency
}

// Need is what a request uses, or may use at most.
type Need struct {
	// Tokens are those of input and output together.
	Tokens int64 `json:"tokens"`
	// Cost is what they cost, in millionths of the currency of Price.
	Cost int64 `json:"cost,omitempty"`
	// Price is the one that was in force when the request began; nil if none was.
	Price *usage.Price `json:"price,omitempty"`
	// Of names the model and its Provider, for errors.
	Of string `json:"-"`
}

// NeedOf returns what a request with at most this much input and output may use. price is nil if no price of the
// model is in force.
func NeedOf(input, output int64, price *usage.Price) Need {
	n := Need{Tokens: sum(max(0, input), max(0, output)), Price: price}
	if price != nil {
		n.Cost = price.AtMost(input, output).Micros()
	}
	return n
}

// In returns what an account counts of it. The error is an *UnpricedError if the account is one of money, and no price
// in its currency was in force.
func (n Need) In(c Charge) (int64, error) {
	switch {
	case c.Currency == "":
		return n.Tokens, nil
	case n.Price == nil || n.Price.Currency != c.Currency:
		return 0, &UnpricedError{Charge: c, Of: n.Of}
	}
	return n.Cost, nil
}

// Used returns what a request used, for which n was reserved: all of n if nobody reported its end (nil), or if its vendor did not
// report what it used, or reported zero, unless it is free of charge. If the report does not say how much of the input came from
// a cache, all input is charged at the highest input price.
func (n Need) Used(o *usage.Outcome) Need {
	if o == nil {
		return n
	}
	end := *o
	end.Free = end.Free || n.Price.Free()
	tokens := end.Used()
	if tokens == nil {
		return n
	}
	u := Need{Tokens: *tokens, Price: n.Price, Of: n.Of}
	if n.Price == nil || !end.Measured() {
		return u
	}
	cost, ok := n.Price.Of(end.Counts)
	if !ok {
		cost = n.Price.AtMost(*end.InputTokens, *end.OutputTokens)
	}
	u.Cost = cost.Micros()
	return u
}

// UnpricedError says that a budget limits cost, and that no price for the request is in force.
type UnpricedError struct {
	Charge

	Of string
}

// Error names the budget and what is missing.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("%s: Budget %s limits the cost in %s, and no price in %s is in force for %s; add one to spec.prices of the Provider",
		v1alpha1.ReasonBudgetUnpriced, e.Name, e.Currency, e.Currency, e.Of)
}
