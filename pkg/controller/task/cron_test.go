// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
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
		if _, err := parseSchedule(tc[0], tc[1]); err == nil {
			t.Errorf("no error for %q in %q", tc[0], tc[1])
		}
	}
}

func TestScheduleDue(t *testing.T) {
	for _, tc := range []struct {
		name, spec, zone, last, now string
		tick, missed, next          string
	}{
		{name: "not yet", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:59:59Z", next: "2026-01-01T11:00:00Z"},
		{name: "on the second", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:00:00Z", tick: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "just in time", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:01:40Z", tick: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "too late", spec: "0 * * * *", last: "2026-01-01T10:00:00Z", now: "2026-01-01T11:01:41Z", missed: "2026-01-01T11:00:00Z", next: "2026-01-01T12:00:00Z"},
		{name: "only the latest of many", spec: "@every 10s", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:00:35Z", tick: "2026-01-01T10:00:30Z", next: "2026-01-01T10:00:40Z"},
		{name: "time zone", spec: "0 9 * * *", zone: "America/New_York", last: "2026-01-01T00:00:00Z", now: "2026-01-01T14:00:00Z", tick: "2026-01-01T14:00:00Z", next: "2026-01-02T14:00:00Z"},
		{name: "daylight saving", spec: "@daily", zone: "Europe/Berlin", last: "2026-03-28T23:00:00Z", now: "2026-03-29T22:00:00Z", tick: "2026-03-29T22:00:00Z", next: "2026-03-30T22:00:00Z"},
		{name: "never again", spec: "0 0 30 2 *", last: "2026-01-01T00:00:00Z", now: "2026-01-02T00:00:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSchedule(tc.spec, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			got := s.at(at(t, tc.last), at(t, tc.now), 100*time.Second)
			for _, f := range []struct {
				name string
				got  time.Time
				want string
			}{{"tick", got.tick, tc.tick}, {"missed", got.missed, tc.missed}, {"next", got.next, tc.next}} {
				if want := at(t, f.want); !f.got.Equal(want) {
					t.Errorf("%s = %s, want %s", f.name, f.got, want)
				}
			}
		})
	}
}
