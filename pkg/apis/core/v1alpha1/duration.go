// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// Duration is a length of time in Go's notation, such as 90s or 1h30m. It is stored as it was written: if 10m became
// 10m0s, a manifest that is applied again would differ from what is stored.
type Duration string

// Longest is the greatest length of time that is told from longer ones. A few of them can be added, and to a date, without an overflow, which
// would make them negative.
const Longest = 50 * 365 * 24 * time.Hour

// Length returns n units of time, within Longest.
func Length(n int64, unit time.Duration) time.Duration {
	most := int64(Longest / unit)
	return time.Duration(min(max(n, -most), most)) * unit
}

// DurationOf returns a length of time as a Duration.
func DurationOf(d time.Duration) *Duration { return new(Duration(d.String())) }

// Parse returns the length of time. The error is for values that were not validated.
func (d Duration) Parse() (time.Duration, error) {
	return time.ParseDuration(string(d)) //nolint:wrapcheck // it names the value
}

// Value returns the length of time, within Longest; 0 if there is none.
func (d *Duration) Value() time.Duration {
	if d == nil {
		return 0
	}
	v, err := d.Parse()
	if err != nil { // objects are validated when they are stored
		return 0
	}
	return min(max(v, -Longest), Longest)
}
