// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is an amount of money, exact to 12 decimal places. The zero value is nothing. It does not overflow: the
// greatest cost of an observation is below 2^105 units, and the greatest sum below 2^128.
type Amount struct{ high, low uint64 }

// Limits of a price: digits before and after the point.
const (
	wholeDigits  = 9
	priceDigits  = 6
	amountDigits = 12
	microUnits   = 1_000_000 // units of an Amount in a millionth
)

// priced returns the price of tokens. The price is that of a million tokens in millionths, so their product is in units
// of 10^-12.
func priced(tokens int64, price uint64) Amount {
	if tokens <= 0 {
		return Amount{}
	}
	high, low := bits.Mul64(uint64(tokens), price)
	return Amount{high, low}
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return Amount{high, low}
}

// IsZero reports whether the amount is nothing.
func (a Amount) IsZero() bool { return a == Amount{} }

// Micros returns the amount in millionths of the currency, rounded up; the greatest int64 if it is greater.
func (a Amount) Micros() int64 {
	if a.high >= microUnits {
		return math.MaxInt64
	}
	q, r := bits.Div64(a.high, a.low, microUnits)
	if r > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// AmountOfMicros returns an amount of millionths; a negative one is nothing.
func AmountOfMicros(n int64) Amount {
	high, low := bits.Mul64(uint64(max(0, n)), microUnits)
	return Amount{high, low}
}

// ParseMicros parses a decimal number into millionths.
func ParseMicros(s string) (int64, error) {
	n, err := parseDecimal(s)
	return int64(n), err // it has at most 15 digits
}

// String returns a decimal number without trailing zeros.
func (a Amount) String() string {
	n := new(big.Int).SetUint64(a.high)
	n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(a.low))
	s := n.String()
	if len(s) <= amountDigits {
		s = strings.Repeat("0", amountDigits+1-len(s)) + s
	}
	point := len(s) - amountDigits
	return strings.TrimSuffix(strings.TrimRight(s[:point]+"."+s[point:], "0"), ".")
}

// parseDecimal parses a decimal number into millionths.
func parseDecimal(s string) (uint64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > wholeDigits || len(fraction) > priceDigits || point && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, errors.New(`must be a decimal number such as "0.25", with at most 9 digits before and 6 after the point`)
	}
	return strconv.ParseUint(whole+fraction+strings.Repeat("0", priceDigits-len(fraction)), 10, 64)
}
