// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"time"

	"github.com/netresearch/go-cron"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Schedule checks the fields schedule and timeZone below p. An empty schedule is none.
func Schedule(schedule, zone string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := time.LoadLocation(zone); err != nil || strings.EqualFold(zone, "Local") {
		errs = append(errs, field.Invalid(p.Child("timeZone"), zone, "must be an IANA time zone name"))
	}
	at := p.Child("schedule")
	if schedule == "" {
		return errs
	}
	if strings.Contains(schedule, "TZ=") {
		return append(errs, field.Invalid(at, schedule, "the time zone belongs in timeZone"))
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	if err != nil {
		return append(errs, field.InternalError(at, err))
	}
	if _, err := parser.Parse(schedule); err != nil {
		errs = append(errs, field.Invalid(at, schedule, "must be five cron fields or a descriptor: "+err.Error()))
	}
	return errs
}
