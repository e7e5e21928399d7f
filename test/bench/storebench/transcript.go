// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/transcript"
	"github.com/platform-ai/platform/test/bench/report"
)

// peer names figures of the closest peer's session store, measured on a machine
// of this size with synced writes of 1 KiB messages, as ours are.
const peer = "(peer)"

// newest is how many messages a task reads by default.
const newest = 50

// transcriptRow is a measurement of transcripts of a length.
type transcriptRow struct {
	name    string
	length  int     // messages of each session before
	peer    float64 // microseconds
	measure func(ctx context.Context, s *transcript.Store, r transcriptRow, window time.Duration) (float64, error)
}

func transcriptRows() []transcriptRow {
	return []transcriptRow{
		{"transcript append of 1 KiB, first message", 0, 120, appends},
		{"transcript append of 1 KiB, after 1,000", 1000, 430, appends},
		{"transcript append of 1 KiB, after 10,000", 10_000, 5800, appends},
		{"transcript, newest 50 of 100", 100, 1600, newests},
		{"transcript, newest 50 of 1,000", 1000, 7300, newests},
		{"transcript, newest 50 of 10,000", 10_000, 70_000, newests},
		{"transcript, all of 100", 100, 740, wholes},
		{"transcript, all of 1,000", 1000, 7900, wholes},
		{"transcript, all of 10,000", 10_000, 81_000, wholes},
	}
}

// Transcripts measures what sessions do with their messages, each figure compared
// with the peer's. It needs no etcd.
func Transcripts(ctx context.Context, o Options, r *report.Report) error {
	if o.Window == 0 {
		o.Window = 3 * time.Second
	}
	for _, row := range transcriptRows() {
		if o.Rows != nil && !o.Rows.MatchString(row.name) {
			continue
		}
		var figures []float64
		for range max(o.Repeat, 1) {
			figure, err := row.once(ctx, o)
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			figures = append(figures, figure)
		}
		if err := r.Add(report.Row{Name: row.name, Unit: "us", Better: report.Lower, Ours: median(figures), Other: row.peer, OtherName: peer}); err != nil {
			return err
		}
	}
	return nil
}

// sessions is the number of transcripts of a row's length. Appends take turns among
// them, so that none becomes much longer.
const sessions = 10

// once measures a row on a fresh store and returns the median call in microseconds.
func (m transcriptRow) once(ctx context.Context, o Options) (_ float64, err error) {
	dir, err := os.MkdirTemp(o.Dir, "transcripts-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	e, err := local.Open(ctx, local.Options{Dir: filepath.Join(dir, "store"), Mark: filepath.Join(dir, local.MarkFile)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	s := transcript.New(e, transcript.Options{})
	for i := range sessions {
		for n := 0; n < m.length; n += 100 {
			batch := slices.Repeat([]v1alpha1.SessionMessage{message()}, min(100, m.length-n))
			if _, err := s.Append(ctx, session(i), 0, batch); err != nil {
				return 0, err
			}
		}
	}
	return m.measure(ctx, s, m, o.Window)
}

func session(i int) types.UID { return types.UID(fmt.Sprintf("5f0c5ad4-0d0b-4a52-9e24-%012d", i)) }

// message has 1 KiB of text.
func message() v1alpha1.SessionMessage {
	return v1alpha1.SessionMessage{
		Role: v1alpha1.RoleUser, SourceType: "task", SourceRef: "bench",
		Content: strings.Repeat("what somebody said in a talk about a program, word after word. ", 17)[:1024],
	}
}

// each returns the median time of f in microseconds over the window.
func each(window time.Duration, f func(call int) error) (float64, error) {
	var took []float64
	for end := time.Now().Add(window); len(took) < 5 || time.Now().Before(end); {
		from := time.Now()
		if err := f(len(took)); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(from).Nanoseconds())/1000)
	}
	return median(took), nil
}

// appends adds messages with ids chosen by the caller, as the controller does.
func appends(ctx context.Context, s *transcript.Store, r transcriptRow, window time.Duration) (float64, error) {
	return each(window, func(call int) error {
		of := session(call % sessions)
		if r.length == 0 {
			of = session(call)
		}
		m := message()
		m.ID = fmt.Sprintf("task:%d:user", call)
		_, err := s.Append(ctx, of, 0, []v1alpha1.SessionMessage{m})
		return err
	})
}

func newests(ctx context.Context, s *transcript.Store, _ transcriptRow, window time.Duration) (float64, error) {
	return each(window, func(call int) error {
		p, err := s.Newest(ctx, session(call%sessions), newest, "")
		if err == nil && len(p.Messages) != newest {
			err = fmt.Errorf("%d messages", len(p.Messages))
		}
		return err
	})
}

// wholes reads transcripts from their beginning to their end, page by page.
func wholes(ctx context.Context, s *transcript.Store, r transcriptRow, window time.Duration) (float64, error) {
	return each(window, func(call int) error {
		for got, after := 0, int64(0); ; {
			p, err := s.Page(ctx, session(call%sessions), after, pageSize, "")
			if err != nil {
				return err
			}
			if got += len(p.Messages); !p.More {
				if got != r.length {
					return fmt.Errorf("%d messages", got)
				}
				return nil
			}
			after = p.Messages[len(p.Messages)-1].Order
		}
	})
}
