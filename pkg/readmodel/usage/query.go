// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage makes the reports about the use of models from the records of the ledger. It has no clock and no store:
// the same query of the same records gives the same report.
//
// A report is about requests. An issue with everything that was done for it is a work request: the tasks that name it,
// what these delegated and what was forked from them, and the reviews and repairs of pull requests that these created or
// assisted. A task that belongs to several work requests is part of each, and counts once in totals. Reviews and repairs
// of other pull requests are work requests of the pull request, outside the totals of the issues. All other tasks are
// other requests: one for each task and what it delegated. Usage without a task is unassociated.
//
// A request is selected as a whole, by its first task.
//
// What nobody reported is null and never zero. A report of all requests reads every task and link of the namespace, because only
// together they show what belongs to what; a report of one work request reads those that are joined with it. Measurements are read
// only of what was selected.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
)

// Limits of a report.
const (
	// MaxRecords is how many records a selection may have.
	MaxRecords   = 20_000
	defaultLimit = 25
	maxLimit     = 100
	// maxAhead is how far in the future asOf may be, because clocks differ.
	maxAhead = time.Second
)

// Errors of a report. Those of a query wrap ErrInvalid.
var (
	// ErrInvalid is answered with 400.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound is answered with 404.
	ErrNotFound = errors.New("not found")
	// ErrTooMany is answered with 422, as records.ErrTooLarge is.
	ErrTooMany = fmt.Errorf("the selection needs more than %d retained records: narrow it by from, until, repository or kind", MaxRecords)
)

// Query is a selection, complete and valid.
type Query struct {
	spec v1alpha1.UsageReportSpec
	// namespace and uid identify the team.
	namespace, uid string
	period         records.Period
	asOf           time.Time
	limit, offset  int
}

// invalid returns an error about a field.
func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
}

// Parse checks a selection and adds the defaults.
func Parse(spec *v1alpha1.UsageReportSpec, namespace string, now time.Time) (*Query, error) {
	q := &Query{spec: *spec, namespace: namespace, offset: int(spec.Offset), limit: defaultLimit}
	if q.spec.Mode == "" {
		q.spec.Mode = v1alpha1.UsageSummary
	}
	q.spec.Repository = strings.ToLower(spec.Repository)
	if err := q.times(now); err != nil {
		return nil, err
	}
	teams := slices.Compact(slices.Sorted(slices.Values(spec.Teams)))
	owner, name, slash := strings.Cut(spec.Repository, "/")
	switch {
	case len(teams) > 1:
		return nil, invalid("teams", "reports on several teams are not supported: select one")
	case len(teams) == 1 && teams[0] != namespace:
		return nil, invalid("teams", "must be the namespace of the report, %q", namespace)
	case spec.Repository != "" && (!slash || owner == "" || name == "" || strings.Contains(name, "/")):
		return nil, invalid("repository", "must be OWNER/REPOSITORY")
	case spec.Kind != "" && spec.Kind != string(v1alpha1.UsageOfIssue) && spec.Kind != string(v1alpha1.UsageOfPullRequest):
		return nil, invalid("kind", "must be issue or pull_request")
	case spec.Limit != nil && (*spec.Limit < 1 || *spec.Limit > maxLimit):
		return nil, invalid("limit", "must be between 1 and %d", maxLimit)
	case spec.Offset < 0:
		return nil, invalid("offset", "must be at least 0")
	case q.spec.Mode == v1alpha1.UsageOfWork && spec.WorkID == "":
		return nil, invalid("workID", "is required")
	case q.spec.Mode == v1alpha1.UsageOther && !slices.Contains(categories(), v1alpha1.UsageCategory(spec.Category)):
		return nil, fmt.Errorf("%w: category %q: must be review_only, other_requests or unassociated", ErrNotFound, spec.Category)
	}
	if spec.Limit != nil {
		q.limit = int(*spec.Limit)
	}
	return q, nil
}

// times reads the period and asOf.
func (q *Query) times(now time.Time) error {
	parse := func(name, text string, otherwise time.Time) (time.Time, error) {
		if text == "" {
			return otherwise.UTC(), nil
		}
		t, err := records.ParseTime(text)
		if err != nil {
			return t, invalid(name, "%v", err)
		}
		return t, nil
	}
	var err error
	if q.asOf, err = parse("asOf", q.spec.AsOf, now); err != nil {
		return err
	}
	if q.asOf.After(now.Add(maxAhead)) {
		return invalid("asOf", "must not be in the future")
	}
	from := time.Unix(0, 0)
	if q.spec.Mode == v1alpha1.UsageSummary {
		from = time.Date(q.asOf.Year(), q.asOf.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	if q.period.From, err = parse("from", q.spec.From, from); err != nil {
		return err
	}
	if q.period.Until, err = parse("until", q.spec.Until, q.asOf.Add(1)); err != nil {
		return err
	}
	if !q.period.Until.After(q.period.From) {
		return invalid("until", "must be after from, %s", stamp(q.period.From))
	}
	return nil
}

// AsOf is the time that the report describes.
func (q *Query) AsOf() time.Time { return q.asOf }

// selection returns the query as reports show it.
func (q *Query) selection() v1alpha1.UsageSelection {
	return v1alpha1.UsageSelection{
		Teams: []string{q.namespace}, Repository: q.spec.Repository, Kind: q.spec.Kind, Model: q.spec.Model,
		From: stamp(q.period.From), Until: stamp(q.period.Until), AsOf: stamp(q.asOf),
	}
}

// stamp writes a time exactly.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func categories() []v1alpha1.UsageCategory {
	return []v1alpha1.UsageCategory{v1alpha1.UsageReviewOnly, v1alpha1.UsageOtherRequests, v1alpha1.UsageUnassociated}
}

// page returns a page of a list.
func page[T any](q *Query, all []T) ([]T, *v1alpha1.UsagePage) {
	from := min(q.offset, len(all))
	return all[from:min(from+q.limit, len(all))], &v1alpha1.UsagePage{Limit: int32(q.limit), Offset: int32(q.offset), Total: int32(len(all))}
}
