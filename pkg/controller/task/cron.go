// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones, for hosts that have none

	cron "github.com/netresearch/go-cron"
)

// schedule is a parsed spec.schedule in its time zone.
type schedule struct {
	// next returns the first tick after a time; zero if there is none within the next years.
	next func(time.Time) time.Time
	// every is the interval of a schedule that counts from its last tick, instead of by the clock; otherwise 0.
	every time.Duration
}

// parseSchedule parses five cron fields or a descriptor such as @daily. An empty zone means UTC.
func parseSchedule(spec, zone string) (schedule, error) {
	if strings.Contains(spec, "TZ=") {
		return schedule{}, errors.New("the time zone belongs in timeZone, not in schedule")
	}
	if zone == "Local" {
		return schedule{}, errors.New("time zone: Local is not an IANA name")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return schedule{}, fmt.Errorf("time zone: %w", err)
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	if err != nil {
		return schedule{}, fmt.Errorf("cron parser: %w", err)
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return schedule{}, fmt.Errorf("schedule: %w", err)
	}
	switch s := s.(type) {
	case cron.ConstantDelaySchedule:
		return schedule{every: s.Delay, next: s.Next}, nil
	case *cron.SpecSchedule:
		return schedule{next: func(t time.Time) time.Time { return nextByClock(s, t.In(loc)) }}, nil
	}
	return schedule{next: func(t time.Time) time.Time { return s.Next(t.In(loc)) }}, nil
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
func nextByClock(s *cron.SpecSchedule, t time.Time) time.Time {
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
func (s schedule) firstAfter(last, now time.Time) time.Time {
	if s.every == 0 || !now.After(last) {
		if now.Before(last) {
			now = last
		}
		return s.next(now)
	}
	return s.nth(last, s.passed(last, now)+1)
}

// passed returns how many intervals passed since the last tick; they are between whole seconds.
func (s schedule) passed(last, now time.Time) int64 {
	return int64(now.Sub(last.Truncate(time.Second)) / s.every)
}

// nth returns the n-th tick after the last one.
func (s schedule) nth(last time.Time, n int64) time.Time {
	return last.Truncate(time.Second).Add(time.Duration(n * int64(s.every)))
}

// latest returns the latest tick after one time and up to another; zero if there is none. It does not walk through all of them.
func (s schedule) latest(after, until time.Time) time.Time {
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

// countMost bounds how many missed ticks are counted.
const countMost = 10_000

// count returns how many ticks are after one time and up to another, at most countMost.
func (s schedule) count(after, until time.Time) (n int) {
	if s.every > 0 {
		return int(min(max(s.passed(after, until), 0), countMost))
	}
	for t := s.next(after); n < countMost && !t.IsZero() && !t.After(until); t = s.next(t) {
		n++
	}
	return n
}

// due describes a schedule at one moment.
type due struct {
	// tick is the latest tick, if it may still be run; otherwise zero.
	tick time.Time
	// missed is how many ticks were not run and cannot be any more, at most countMost, and lastMissed is the latest of them.
	missed     int
	lastMissed time.Time
	// next is the first tick in the future; zero if the schedule has no more.
	next time.Time
}

// at evaluates the ticks after last. Ticks older than deadline are missed. Of several that are due only the latest is run, so
// that a server that was down does not start many runs at once; the others are missed, too.
func (s schedule) at(last, now time.Time, deadline time.Duration) due {
	d := due{next: s.firstAfter(last, now)}
	newest := s.latest(last, now)
	if newest.IsZero() {
		return d
	}
	if newest.Before(now.Add(-max(deadline, 0))) {
		d.lastMissed, d.missed = newest, s.count(last, newest)
		return d
	}
	d.tick = newest
	if before := s.latest(last, newest.Add(-time.Nanosecond)); !before.IsZero() {
		d.lastMissed, d.missed = before, s.count(last, before)
	}
	return d
}
