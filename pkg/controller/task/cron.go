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
	next func(time.Time) time.Time
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
	return schedule{next: func(t time.Time) time.Time { return s.Next(t.In(loc)) }}, nil
}

// due describes a schedule at one moment.
type due struct {
	// tick is the latest tick that may still be run; zero if there is none.
	tick time.Time
	// missed is the latest tick that passed too long ago to be run; zero if there is none.
	missed time.Time
	// next is the first tick in the future; zero if the schedule has no more.
	next time.Time
}

// at evaluates the ticks after last. Ticks older than deadline count as missed. Of several that
// are due only the latest is run, so that a server that was down does not start many runs at
// once.
func (s schedule) at(last, now time.Time, deadline time.Duration) due {
	var d due
	oldest := now.Add(-deadline)
	if last.Before(oldest) {
		if t := s.next(last); !t.IsZero() && t.Before(oldest) {
			d.missed = t
		}
		last = oldest.Add(-time.Nanosecond) // a tick at oldest is in time
	}
	t := s.next(last)
	for ; !t.IsZero() && !t.After(now); t = s.next(t) {
		d.tick = t
	}
	d.next = t
	return d
}
