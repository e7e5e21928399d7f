// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventbench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowRecordedPage   = "page of 100 at the end of 1,000,000 events, recorded"
	rowRecordedEntry  = "what is recorded at the last of 1,000,000 events"
	rowRecordedNewest = "the newest of 1,000,000 recorded events"
)

// recorded measures a run of a million events beside each of which something is recorded: pages of its events, and of what is recorded.
func recorded(ctx context.Context, b *bench) error {
	if err := b.close(); err != nil {
		return err
	}
	if err := b.openRecorded(ctx); err != nil {
		return err
	}
	const length, few, asked = 1_000_000, 1000, 50
	plain, small, large := stream(0, ""), stream(1, ""), stream(2, "")
	for s, n := range map[eventlog.Stream]int{small: few, large: length} {
		if err := b.fillRecorded(ctx, s, n, asked); err != nil {
			return err
		}
	}
	if err := b.fill(ctx, plain, length, short); err != nil {
		return err
	}
	entry := func(s eventlog.Stream, seq int64) func() error {
		return func() error {
			e, err := b.recordings.Entry(ctx, s.UID, seq)
			if err == nil && (e == nil || len(e.Conversation) != asked || e.Conversation[0].Omitted != "") {
				err = fmt.Errorf("event %d: %+v", seq, e)
			}
			return err
		}
	}
	newest := func(s eventlog.Stream) func() error {
		return func() error {
			page, _, _, err := b.recordings.Before(ctx, s.UID, 0, math.MaxInt64, 100)
			if err == nil && len(page) != 100 {
				err = fmt.Errorf("a page of %d events", len(page))
			}
			return err
		}
	}
	for _, row := range []struct {
		name, other string
		ours, peer  func() error
	}{
		{rowRecordedPage, "not recorded", b.page(ctx, large, length-100), b.page(ctx, plain, length-100)},
		{rowRecordedEntry, "of 1,000 events", entry(large, length), entry(small, few)},
		{rowRecordedNewest, "of 1,000 events", newest(large), newest(small)},
	} {
		other, err := b.micros(row.peer)
		if err != nil {
			return err
		}
		ours, err := b.micros(row.ours)
		if err != nil {
			return err
		}
		if err := b.add(row.name, "us", report.Lower, ours, other, row.other); err != nil {
			return err
		}
	}
	return nil
}

// openRecorded opens the log with the store of recordings beside it.
func (b *bench) openRecorded(ctx context.Context) (err error) {
	if err := b.openEngine(ctx); err != nil {
		return err
	}
	b.recordings = recording.New(b.engine, recording.Limits{})
	if b.log, err = eventlog.Open(ctx, b.engine, eventlog.Options{Projections: []eventlog.Projection{b.recordings}}); err != nil {
		return errors.Join(err, b.engine.Close())
	}
	return nil
}

// fillRecorded appends n model requests, each with one new message after asked-1 that came before.
func (b *bench) fillRecorded(ctx context.Context, s eventlog.Stream, n, asked int) error {
	const batch = 500
	for from := 0; from < n; from += batch {
		var events []*v1alpha1.ExecutionEvent
		for i := from; i < min(from+batch, n); i++ {
			events = append(events, short(i))
		}
		clean := eventlog.Sanitize(events)
		given := recording.Given{}
		for at, e := range clean.Events() {
			i := int32(from + at)
			p, err := recording.Prepare(e, &v1alpha1.EventRecording{
				First: i, Parts: []v1alpha1.RecordedPart{{Message: &v1alpha1.RecordedMessage{Role: "user", Text: fmt.Sprintf("This is message %d of the conversation.", i)}}},
				Conversation: []v1alpha1.RecordedRange{{From: max(0, i+1-int32(asked)), To: i}},
			}, v1alpha1.RecordingFull)
			if err != nil {
				return err
			}
			given[e] = p
		}
		if _, err := b.log.AppendSanitized(eventlog.WithNote(ctx, given), s, clean); err != nil {
			return err
		}
	}
	return nil
}
