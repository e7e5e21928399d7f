// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// exactEvents is how many events a division divides exactly, where the bound of a bucket falls between two marks.
const exactEvents = 8192

// division divides the time of a stream into buckets of equal length.
type division struct {
	start, width int64 // in microseconds
	buckets      []tally
	seqs         []int64 // of the first event of each; 0: none yet
}

func newDivision(from, to int64, buckets int) *division {
	return &division{start: from, width: max(to-from, 0)/int64(buckets) + 1, buckets: make([]tally, buckets), seqs: make([]int64, buckets)}
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

// divide counts events in buckets. Between two points of one bucket it adds the difference. Of the others it divides those
// that span the most time exactly, and the rest by the time between the points.
func (c *counting) divide(out *Counts, f *filter, points []point, buckets int) (err error) {
	d := newDivision(points[0].created, points[len(points)-1].created, buckets)
	var split []int // indexes of points that are in another bucket than the one before
	for run, i := 0, 1; i <= len(points); i++ {
		at := d.of(points[run].created)
		if i < len(points) && d.of(points[i].created) == at {
			continue
		}
		if i-1 > run {
			difference, err := c.between(&points[run], &points[i-1])
			if err != nil {
				return err
			}
			d.add(at, points[run].seq+1, &difference)
		}
		if i < len(points) {
			split = append(split, i)
		}
		run = i
	}
	slices.SortStableFunc(split, func(i, j int) int {
		return cmp.Compare(points[j].created-points[j-1].created, points[i].created-points[i-1].created)
	})
	s := &splitter{counting: c, division: d}
	defer func() { err = errors.Join(err, s.close()) }()
	left := int64(exactEvents)
	for _, i := range split {
		a, b := &points[i-1], &points[i]
		difference, err := c.between(a, b)
		if err != nil {
			return err
		}
		if left -= b.seq - a.seq; left < 0 {
			out.Approximate = true
			d.interpolate(a, b, &difference)
		} else if err := s.split(a.seq+1, b.seq, &difference); err != nil {
			return err
		}
	}
	out.Buckets = d.list(f)
	return nil
}

// interpolate spreads the events between two points evenly over the time between them.
func (d *division) interpolate(a, b *point, counts *tally) {
	span, done := b.created-a.created, tally{}
	if span <= 0 { // the clock was set back
		d.add(d.of(a.created), a.seq+1, counts)
		return
	}
	for at := d.of(a.created); at <= d.of(b.created); at++ {
		end := min(d.start+int64(at+1)*d.width, b.created) - a.created
		var part tally
		for i := range part {
			if counts[i] == 0 {
				continue
			}
			upTo := counts[i] * end / span
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
