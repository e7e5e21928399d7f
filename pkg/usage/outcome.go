// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

// Outcome is what is known about the use of tokens by a request that has ended.
type Outcome struct {
	// Counts are what the vendor reported.
	Counts
	// Refused is set if the vendor refused the request, or never got it. It used nothing, although nobody reports so; not if the
	// vendor had begun to report what it used.
	Refused bool
	// Free is set if the request is free of charge, whatever its vendor reports.
	Free bool
}

// Measured reports whether the counts can be believed: both input and output were reported, and not as nothing. Each request to a
// model has an input, so a vendor that reports no tokens at all does not count them.
func (c Counts) Measured() bool { return c.Reported() && (*c.InputTokens > 0 || *c.OutputTokens > 0) }

// unused reports whether the request used nothing, because it was refused.
func (o *Outcome) unused() bool { return o.Refused && !o.Some() }

// Used returns the sum of input and output; nil if nobody knows it. What is free and was not reported is nothing.
func (o *Outcome) Used() *int64 {
	if !o.Measured() && !o.unused() && !o.Free {
		return nil
	}
	sum := int64(0)
	for _, n := range []*int64{o.InputTokens, o.OutputTokens} {
		if n != nil {
			sum += max(0, *n)
		}
	}
	return &sum
}

// Settle makes the outcome that of an observation, and says whether its counts are complete. Counts that are negative or too great
// count as not reported.
func (o *Observation) Settle(out Outcome) {
	bad := false
	for _, n := range []**int64{&out.InputTokens, &out.OutputTokens, &out.CachedInputTokens, &out.CacheWriteInputTokens} {
		if *n != nil && (**n < 0 || **n > MaxTokens) {
			*n, bad = nil, true
		}
	}
	o.Counts, o.Gap = out.Counts, ""
	switch {
	case bad:
		o.Gap = GapTooLarge
	case out.unused():
		o.Gap = GapRefused
	case !out.Reported():
		o.Gap = GapNotReported
	case !out.Measured() && !out.Free:
		o.Gap = GapZero
	}
	o.Complete = o.Gap == ""
}
