// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cron says when schedules are due: five fields of cron, or a descriptor such as @hourly, in a time zone. Where the clocks of the zone
// are set forward, a skipped time of the day comes as long after the change as it would without it; a time that occurs twice is due twice.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones, for hosts that have none

	parsed "github.com/netresearch/go-cron"
)

// Schedule is a parsed spec.schedule in its time zone.
type Schedule struct {
	// next returns the first tick after a time; zero if there is none within the next years.
	next func(time.Time) time.Time
	// every is the interval of a schedule that counts from its last tick, instead of by the clock; otherwise 0.
	every time.Duration
}

// Parse parses five cron fields or a descriptor such as @daily. An empty zone means UTC.
func Parse(spec, zone string) (Schedule, error) {
	if strings.Contains(spec, "TZ=") {
		return Schedule{}, errors.New("the time zone belongs in timeZone, not in schedule")
	}
	if zone == "Local" {
		return Schedule{}, errors.New("time zone: Local is not an IANA name")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return Schedule{}, fmt.Errorf("time zone: %w", err)
	}
	parser, err := parsed.TryNewParser(parsed.Minute | parsed.Hour | parsed.Dom | parsed.Month | parsed.Dow | parsed.Descriptor)
	if err != nil {
		return Schedule{}, fmt.Errorf("cron parser: %w", err)
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule: %w", err)
	}
	switch s := s.(type) {
	case parsed.ConstantDelaySchedule:
		return Schedule{every: s.Delay, next: s.Next}, nil
	case *parsed.SpecSchedule:
		return Schedule{next: func(t time.Time) time.Time { return nextByClock(s, t.In(loc)) }}, nil
	}
	return Schedule{next: func(t time.Time) time.Time { return s.Next(t.In(loc)) }}, nil
}

const (
	// anyHour is the bit by which a schedule says that it names no hours.
	anyHour = 1 << 63
	// searched is how far into the future a tick is searched for.
	searched = 5 * 366 * 24 * time.Hour
)

// nextByClock returns the first tick after t, in t's time zone. Where the clocks are set forward, a time of the day that they skip is
// as long after the change as it would be without it: 02:30 becomes 03:30, and midnight 01:00. Schedules of any hour have no such
// times. The library does so only for skips of an hour that is not at midnight; those it leaves out.
func nextByClock(s *parsed.SpecSchedule, t time.Time) time.Time {
	next := s.Next(t)
	if s.Hour&anyHour != 0 {
		return next
	}
	until := next
	if next.IsZero() {
		until = t.Add(searched)
	}
	for change, later := t.ZoneBounds(); change.Before(until); change, later = later.ZoneBounds() {
		if !change.IsZero() {
			_, before := change.Add(-time.Nanosecond).Zone()
			_, after := change.Zone()
			from := change.Add(-time.Nanosecond)
			if from.Before(t) {
				from = t
			}
			// By a clock that was not set, the skipped times exist.
			skipped := s.Next(from.In(time.FixedZone("", before)))
			if !skipped.IsZero() && skipped.Before(change.Add(time.Duration(after-before)*time.Second)) && (next.IsZero() || skipped.Before(next)) {
				return skipped.In(t.Location())
			}
		}
		if later.IsZero() {
			break
		}
	}
	return next
}

// firstAfter returns the first tick after now, where last was the last one.
func (s Schedule) firstAfter(last, now time.Time) time.Time {
	if s.every == 0 || !now.After(last) {
		if now.Before(last) {
			now = last
		}
		return s.next(now)
	}
	return s.nth(last, s.passed(last, now)+1)
}

// passed returns how many intervals passed since the last tick; they are between whole seconds.
func (s Schedule) passed(last, now time.Time) int64 {
	return int64(now.Sub(last.Truncate(time.Second)) / s.every)
}

// nth returns the n-th tick after the last one.
func (s Schedule) nth(last time.Time, n int64) time.Time {
	return last.Truncate(time.Second).Add(time.Duration(n * int64(s.every)))
}

// latest returns the latest tick after one time and up to another; zero if there is none. It does not walk through all of them.
func (s Schedule) latest(after, until time.Time) time.Time {
	if !until.After(after) {
		return time.Time{}
	}
	if s.every > 0 {
		if n := s.passed(after, until); n > 0 {
			return s.nth(after, n)
		}
		return time.Time{}
	}
	for span := time.Minute; ; span *= 2 {
		from := until.Add(-span)
		all := span > searched || !from.After(after)
		if all {
			from = after
		}
		var tick time.Time
		for t := s.next(from); !t.IsZero() && !t.After(until); t = s.next(t) {
			tick = t
		}
		if all || !tick.IsZero() {
			return tick
		}
	}
}

// CountMost bounds how many missed ticks are counted.
const CountMost = 10_000

// count returns how many ticks are after one time and up to another, at most CountMost.
func (s Schedule) count(after, until time.Time) (n int) {
	if s.every > 0 {
		return int(min(max(s.passed(after, until), 0), CountMost))
	}
	for t := s.next(after); n < CountMost && !t.IsZero() && !t.After(until); t = s.next(t) {
		n++
	}
	return n
}

// Due describes a schedule at one moment.
type Due struct {
	// Tick is the latest tick, if it may still be run; otherwise zero.
	Tick time.Time
	// Missed is how many ticks were not run and cannot be any more, at most CountMost, and LastMissed is the latest of them.
	Missed     int
	LastMissed time.Time
	// Next is the first tick in the future; zero if the schedule has no more.
	Next time.Time
}

// At evaluates the ticks after last. Ticks older than deadline are missed. Of several that are due only the latest is run, so
// that a server that was down does not start many runs at once; the others are missed, too.
func (s Schedule) At(last, now time.Time, deadline time.Duration) Due {
	d := Due{Next: s.firstAfter(last, now)}
	newest := s.latest(last, now)
	if newest.IsZero() {
		return d
	}
	if newest.Before(now.Add(-max(deadline, 0))) {
		d.LastMissed, d.Missed = newest, s.count(last, newest)
		return d
	}
	d.Tick = newest
	if before := s.latest(last, newest.Add(-time.Nanosecond)); !before.IsZero() {
		d.LastMissed, d.Missed = before, s.count(last, before)
	}
	return d
}
