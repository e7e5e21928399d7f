// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"slices"
	"time"
)

// exactEvents is how many events a division reads one by one, where the bound of a bucket falls between two marks.
const exactEvents = 8192

// division divides the time of a stream into buckets of equal length.
type division struct {
	start, width int64 // in microseconds
	buckets      []tally
	seqs         []int64 // of the first event of each; 0: none yet
}

// of returns the bucket of a time.
func (d *division) of(created int64) int {
	return int(min(max((created-d.start)/d.width, 0), int64(len(d.buckets)-1)))
}

func (d *division) add(bucket int, seq int64, counts *tally) {
	d.buckets[bucket].plus(counts, 1)
	if at := d.seqs[bucket]; at == 0 || seq < at {
		d.seqs[bucket] = seq
	}
}

// divide counts events in buckets. Between two marks of one bucket it adds the difference. Of the others it reads those
// that span the most time event by event, and divides the rest by the time between the marks.
func (c *counting) divide(out *Counts, f *filter, marks []mark, buckets int) error {
	from, to := marks[0].created, marks[len(marks)-1].created
	d := &division{start: from, width: max(to-from, 0)/int64(buckets) + 1, buckets: make([]tally, buckets), seqs: make([]int64, buckets)}
	var split []int // indexes of marks that are in another bucket than the one before
	for i := 1; i < len(marks); i++ {
		a, b := &marks[i-1], &marks[i]
		if at := d.of(a.created); at != d.of(b.created) {
			split = append(split, i)
		} else {
			difference := b.counts
			difference.plus(&a.counts, -1)
			d.add(at, a.seq+1, &difference)
		}
	}
	slices.SortStableFunc(split, func(i, j int) int {
		return cmp.Compare(marks[j].created-marks[j-1].created, marks[i].created-marks[i-1].created)
	})
	left := int64(exactEvents)
	for _, i := range split {
		a, b := &marks[i-1], &marks[i]
		if left -= b.seq - a.seq; left < 0 {
			out.Approximate = true
			d.interpolate(a, b)
			continue
		}
		err := c.each(a.seq+1, b.seq, func(seq int64, h header) {
			var one tally
			one.count(h.typ, h.sev, 1)
			d.add(d.of(h.created), seq, &one)
		})
		if err != nil {
			return err
		}
	}
	out.Buckets = d.list(f)
	return nil
}

// interpolate spreads the events between two marks evenly over the time between them.
func (d *division) interpolate(a, b *mark) {
	span, done := b.created-a.created, tally{}
	if span <= 0 { // the clock was set back
		part := b.counts
		part.plus(&a.counts, -1)
		d.add(d.of(a.created), a.seq+1, &part)
		return
	}
	for at := d.of(a.created); at <= d.of(b.created); at++ {
		end := min(d.start+int64(at+1)*d.width, b.created) - a.created
		var part tally
		for i := range part {
			upTo := (b.counts[i] - a.counts[i]) * end / span
			part[i], done[i] = upTo-done[i], upTo
		}
		seq := a.seq + 1 + (b.seq-a.seq)*max(d.start+int64(at)*d.width-a.created, 0)/span
		if part.total(0) > 0 {
			d.add(at, seq, &part)
		}
	}
}

// list returns the buckets that have a selected event.
func (d *division) list(f *filter) []Bucket {
	list := []Bucket{}
	for i := range d.buckets {
		n := d.buckets[i].total(f.types)
		if n == 0 {
			continue
		}
		from := d.start + int64(i)*d.width
		b := Bucket{From: time.UnixMicro(from), To: time.UnixMicro(from + d.width), Seq: d.seqs[i], Total: n}
		b.Types, b.Severities = d.buckets[i].split()
		list = append(list, b)
	}
	return list
}
