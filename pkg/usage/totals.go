// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
)

// ErrTooLarge is the error of a sum above MaxTokens. Callers answer 422.
var ErrTooLarge = errors.New("the total exceeds 9007199254740991 tokens, which cannot be reported exactly: narrow the period or the filters")

// Completeness says how much of what was used is known.
type Completeness string

// Completeness of a sum.
const (
	// Complete: every measurement is complete. A sum without measurements is complete, too.
	Complete Completeness = "complete"
	// Partial: some counts are known and others are not.
	Partial Completeness = "partial"
	// Unavailable: there are measurements, and none reports a count.
	Unavailable Completeness = "unavailable"
)

// Totals adds up observations. The zero value is an empty sum.
//
// Nil is kept apart from zero: a column is nil if no measurement reported it. A sum without measurements has no columns
// at all, and Measurements is 0, which a report shows as "No model calls". The breakdowns of caches are available only
// if every measurement that reported input reports them. A measurement whose input is 0 needs no breakdown: both of its
// parts are 0.
type Totals struct {
	// InputTokens, OutputTokens and TotalTokens, their sum, are what was reported. Estimates are not part of them.
	InputTokens, OutputTokens, TotalTokens *int64
	// CachedInputTokens and CacheWriteInputTokens are parts of InputTokens; nil unless the breakdown is available.
	CachedInputTokens, CacheWriteInputTokens *int64
	// CachedUsageReported and CacheWriteUsageReported report whether the breakdowns are available.
	CachedUsageReported, CacheWriteUsageReported bool
	// EstimatedTokens is the input and output of estimates.
	EstimatedTokens int64
	// Measurements is how many observations there are: ReportedMeasurements are complete, MissingMeasurements report
	// neither input nor output, and PartialMeasurements are the rest.
	Measurements, ReportedMeasurements, MissingMeasurements, PartialMeasurements int64
	// Calls is how many of them are of scope call.
	Calls int64
	// Attempts is how many attempts of tasks they belong to.
	Attempts int64

	cached, written       int64
	noCached, noWritten   bool
	anyCached, anyWritten bool
	seen                  map[string]struct{}
	attempts              map[[2]string]struct{}
}

// Add adds an observation. One with an ID that was added before is ignored, so usage that several requests share counts
// once in a sum over all of them. After an error the sum must not be used.
func (t *Totals) Add(o *Observation) error {
	if t.seen == nil {
		t.seen, t.attempts = map[string]struct{}{}, map[[2]string]struct{}{}
	}
	if _, ok := t.seen[o.ID]; ok {
		return nil
	}
	t.seen[o.ID] = struct{}{}
	t.Measurements++
	if o.Scope == ScopeCall {
		t.Calls++
	}
	if o.TaskUID != "" && o.AttemptID != "" {
		t.attempts[[2]string{o.TaskUID, o.AttemptID}] = struct{}{}
		t.Attempts = int64(len(t.attempts))
	}
	switch {
	case !o.Some():
		t.MissingMeasurements++
	case o.Complete && o.Reported():
		t.ReportedMeasurements++
	default:
		t.PartialMeasurements++
	}
	if o.Source == SourceEstimate {
		return errors.Join(Sum(&t.EstimatedTokens, o.InputTokens), Sum(&t.EstimatedTokens, o.OutputTokens))
	}
	err := errors.Join(
		add(&t.InputTokens, o.InputTokens), add(&t.OutputTokens, o.OutputTokens),
		add(&t.TotalTokens, o.InputTokens), add(&t.TotalTokens, o.OutputTokens),
	)
	if o.InputTokens != nil {
		nothing := *o.InputTokens == 0
		err = errors.Join(err,
			part(&t.cached, &t.anyCached, &t.noCached, o.CachedInputTokens, nothing),
			part(&t.written, &t.anyWritten, &t.noWritten, o.CacheWriteInputTokens, nothing))
	}
	t.CachedUsageReported, t.CachedInputTokens = whole(t.cached, t.anyCached, t.noCached)
	t.CacheWriteUsageReported, t.CacheWriteInputTokens = whole(t.written, t.anyWritten, t.noWritten)
	return err
}

// Completeness says how much of the sum is known.
func (t *Totals) Completeness() Completeness {
	switch t.Measurements {
	case t.ReportedMeasurements:
		return Complete
	case t.MissingMeasurements:
		return Unavailable
	}
	return Partial
}

// Sum adds a count to a sum. Nil adds nothing. A negative count is an error of the caller.
func Sum(sum, n *int64) error {
	switch {
	case n == nil:
		return nil
	case *n < 0:
		return fmt.Errorf("a count must not be negative: %d", *n)
	case *n > MaxTokens || *sum > MaxTokens-*n:
		return ErrTooLarge
	}
	*sum += *n
	return nil
}

// add adds a count to a column that is nil until something was reported.
func add(column **int64, n *int64) error {
	if n == nil {
		return nil
	}
	if *column == nil {
		*column = new(int64)
	}
	return Sum(*column, n)
}

// part adds a count to a breakdown, or records that it is missing.
func part(sum *int64, some, missing *bool, n *int64, nothing bool) error {
	switch {
	case n != nil || nothing:
		*some = true
	default:
		*missing = true
	}
	return Sum(sum, n)
}

// whole returns a breakdown if every measurement reported it.
func whole(sum int64, some, missing bool) (bool, *int64) {
	if !some || missing {
		return false, nil
	}
	return true, &sum
}
