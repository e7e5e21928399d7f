// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"math"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	if s == "" {
		return time.Time{}
	}
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestScheduleIsRefused(t *testing.T) {
	for _, tc := range [][2]string{
		{"", ""},
		{"* * * *", ""},
		{"* * * * * *", ""},
		{"61 * * * *", ""},
		{"@never", ""},
		{"TZ=Europe/Berlin * * * * *", ""},
		{"CRON_TZ=UTC @daily", ""},
		{"@daily", "Mars/Olympus"},
		{"@daily", "Local"},
	} {
		if _, err := Parse(tc[0], tc[1]); err == nil {
			t.Errorf("no error for %q in %q", tc[0], tc[1])
		}
	}
}

func TestScheduleDue(t *testing.T) {
	const deadline = 100 * time.Second
	for _, tc := range []struct {
		name, spec, zone, last, now string
		deadline                    time.Duration
		tick, lastMissed, next      string
		missed                      int
	}{
		{name: "not yet", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:59:59Z", next: "2026-01-01T11:00:00Z"},
		{name: "on the second", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:00:00Z", tick: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "just in time", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:01:40Z", tick: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "too late", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:01:41Z", missed: 1, lastMissed: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "never too late", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:59:00Z", deadline: math.MaxInt64, tick: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "only the latest of many", spec: "@every 10s", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:00:35Z", tick: "2026-01-01T10:00:30Z", missed: 2, lastMissed: "2026-01-01T10:00:20Z", next: "2026-01-01T10:00:40Z"},
		{name: "every, within the second", spec: "@every 10s", last: "2026-01-01T10:00:00.7Z", now: "2026-01-01T10:00:10.1Z", tick: "2026-01-01T10:00:10Z", next: "2026-01-01T10:00:20Z"},
		{name: "every, for a year", spec: "@every 1s", last: "2025-01-01T10:00:00Z", now: "2026-01-01T10:00:00.5Z", tick: "2026-01-01T10:00:00Z", missed: CountMost, lastMissed: "2026-01-01T09:59:59Z", next: "2026-01-01T10:00:01Z"},
		{name: "a day", spec: "* * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-02T10:00:30Z", tick: "2026-01-02T10:00:00Z", missed: 1439, lastMissed: "2026-01-02T09:59:00Z", next: "2026-01-02T10:01:00Z"},
		{name: "a day, and the last one too late", spec: "*/5 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-02T10:04:00Z", missed: 288, lastMissed: "2026-01-02T10:00:00Z", next: "2026-01-02T10:05:00Z"},
		{name: "ten years", spec: "* * * * *", last: "2016-01-01T10:00:00Z", now: "2026-01-02T10:00:30Z", deadline: math.MaxInt64, tick: "2026-01-02T10:00:00Z", missed: CountMost, lastMissed: "2026-01-02T09:59:00Z", next: "2026-01-02T10:01:00Z"},
		{name: "rare", spec: "0 0 29 2 *", last: "2020-02-29T00:00:00Z", now: "2026-01-02T10:00:30Z", missed: 1, lastMissed: "2024-02-29T00:00:00Z", next: "2028-02-29T00:00:00Z"},
		{name: "a clock that was set back", spec: "* * * * *", last: "2026-01-01T10:05:00Z", now: "2026-01-01T10:00:30Z", next: "2026-01-01T10:06:00Z"},
		{name: "time zone", spec: "0 9 * * *", zone: "America/New_York", last: "2026-01-01T00:00:00Z", now: "2026-01-01T14:00:00Z", tick: "2026-01-01T14:00:00Z", next: "2026-01-02T14:00:00Z"},
		{name: "daylight saving", spec: "@daily", zone: "Europe/Berlin", last: "2026-03-28T23:00:00Z", now: "2026-03-29T22:00:00Z", tick: "2026-03-29T22:00:00Z", next: "2026-03-30T22:00:00Z"},
		{name: "never again", spec: "0 0 30 2 *", last: "2026-01-01T00:00:00Z", now: "2026-01-02T00:00:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Parse(tc.spec, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			if tc.deadline == 0 {
				tc.deadline = deadline
			}
			got := s.At(at(t, tc.last), at(t, tc.now), tc.deadline)
			for _, f := range []struct {
				name string
				got  time.Time
				want string
			}{{"tick", got.Tick, tc.tick}, {"missed", got.LastMissed, tc.lastMissed}, {"next", got.Next, tc.next}} {
				if want := at(t, f.want); !f.got.Equal(want) {
					t.Errorf("%s = %s, want %s", f.name, f.got, want)
				}
			}
			if got.Missed != tc.missed {
				t.Errorf("missed %d, want %d", got.Missed, tc.missed)
			}
		})
	}
}

// Times of the day that the clocks skip are as long after the change as they would be without it, also around midnight; times that occur
// twice are run twice.
func TestScheduleWhereClocksAreSet(t *testing.T) {
	for _, tc := range []struct{ spec, zone, after, want string }{
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T02:00:00Z", "03 00:00 04 01:00 05 00:00"},
		{"30 0 * * *", "America/Sao_Paulo", "2018-11-03T02:00:00Z", "03 00:30 04 01:30 05 00:30"},
		{"0 0 4 11 *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "04 01:00 04 00:00 04 00:00"},
		{"15,45 0-1 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", "29 01:15 29 01:45 30 00:15"},
		{"0 0 * * *", "Africa/Cairo", "2026-04-22T22:00:00Z", "24 01:00 25 00:00 26 00:00"},
		{"*/20 * * * *", "America/Sao_Paulo", "2018-11-04T02:30:00Z", "03 23:40 04 01:00 04 01:20"},
		{"0 0 * * *", "Pacific/Apia", "2011-12-29T09:00:00Z", "29 00:00 31 00:00 01 00:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "29 03:30 30 02:30 31 02:30"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "04 02:45 05 02:15 06 02:15"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "25 02:30 25 02:30 26 02:30"},
		{"0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "29 03:00 29 04:00 29 05:00"},
		{"@daily", "America/Havana", "2026-03-07T12:00:00Z", "08 01:00 09 00:00 10 00:00"},
	} {
		s, err := Parse(tc.spec, tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		loc, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for tick := at(t, tc.after); len(got) < 3; got = append(got, tick.In(loc).Format("02 15:04")) {
			next := s.next(tick)
			if !next.After(tick) {
				t.Fatalf("%s after %s", next, tick)
			}
			// A tick does not depend on the moment from which it is looked for.
			if again := s.next(next.Add(-time.Millisecond)); !again.Equal(next) {
				t.Errorf("%s in %s: %s, or %s", tc.spec, tc.zone, next, again)
			}
			tick = next
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%s in %s: %s, want %s", tc.spec, tc.zone, text, tc.want)
		}
	}
}
