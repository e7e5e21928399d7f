// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

// Count collects what a vendor reports about the use of tokens while one answer arrives. Some vendors report a running count,
// so a count of the output is final only if it comes with the reason why the answer ended or after it, or if nothing follows
// it in a complete stream. The output of an answer that was cut is unknown: the vendor may have written, and charges for,
// more than it had counted.
type Count struct {
	usage        Usage
	ended, final bool
}

// Report adds a report. Figures that it lacks keep their value.
func (c *Count) Report(u Usage) {
	for _, f := range []struct{ to, from **int64 }{
		{&c.usage.InputTokens, &u.InputTokens},
		{&c.usage.OutputTokens, &u.OutputTokens},
		{&c.usage.CachedInputTokens, &u.CachedInputTokens},
		{&c.usage.CacheWriteInputTokens, &u.CacheWriteInputTokens},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	c.final = c.final || c.ended && u.OutputTokens != nil
}

// Ended notes that the vendor has said why the answer ended. It is called before the Report of the same event.
func (c *Count) Ended() { c.ended = true }

// Complete notes that the vendor has said that nothing follows, so what it reported last is final.
func (c *Count) Complete() { c.ended, c.final = true, true }

// Over reports whether the vendor has said that the answer ended. Otherwise an answer that does not go on was cut.
func (c *Count) Over() bool { return c.ended }

// Usage returns the usage as far as it is known, without an output that is not final.
func (c *Count) Usage() Usage {
	u := c.usage
	if !c.final {
		u.OutputTokens = nil
	}
	return u
}
