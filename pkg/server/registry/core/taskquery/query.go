// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package taskquery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/usage"
)

// Sizes of a page.
const (
	defaultLimit = 100
	maxLimit     = 500
)

var orders = []v1alpha1.TaskOrder{v1alpha1.TasksByCreated, v1alpha1.TasksByStarted, v1alpha1.TasksByDuration, v1alpha1.TasksByTokens, v1alpha1.TasksByName}

// query is a complete and valid query.
type query struct {
	*v1alpha1.TaskQuerySpec
	selector    labels.Selector
	phases      map[string]bool // nil for all
	text        string          // in lower case
	after       time.Time       // zero for all
	before      time.Time       // zero for all
	minDuration int64           // in seconds
	limit       int
	at          place // where the page begins
	now         time.Time
	digest      string // of what all pages have in common
}

// parse checks a query and adds the defaults. The error names the field.
func parse(spec *v1alpha1.TaskQuerySpec, namespace string, now time.Time) (*query, error) {
	q := &query{TaskQuerySpec: spec, text: strings.ToLower(spec.Text), now: now}
	q.OrderBy = cmp.Or(q.OrderBy, v1alpha1.TasksByCreated)
	switch {
	case !slices.Contains(orders, q.OrderBy):
		return nil, fmt.Errorf("orderBy: %.64q: must be one of created, started, duration, tokens, name", q.OrderBy)
	case q.MinTokens < 0:
		return nil, errors.New("minTokens: must be at least 0")
	}
	var err error
	if q.selector, err = labels.Parse(spec.LabelSelector); err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	if err := q.setPhases(); err != nil {
		return nil, err
	}
	if q.after, err = timeOf("startedAfter", spec.StartedAfter); err != nil {
		return nil, err
	}
	if q.before, err = timeOf("startedBefore", spec.StartedBefore); err != nil {
		return nil, err
	}
	if spec.MinDuration != nil {
		d, err := spec.MinDuration.Parse()
		if err != nil || d < 0 {
			return nil, fmt.Errorf("minDuration: %q: must be a length of time that is not negative, such as 90s or 1h30m", *spec.MinDuration)
		}
		q.minDuration = int64((d + time.Second - 1) / time.Second) // durations are in whole seconds
	}
	if q.limit, err = resource.Limit(spec.Limit, defaultLimit, maxLimit); err != nil {
		return nil, err
	}
	if q.digest, err = digest(spec, namespace); err != nil {
		return nil, err
	}
	if spec.Continue != "" {
		err = q.at.read(spec.Continue, q.digest)
	}
	return q, err
}

func (q *query) setPhases() error {
	all := []string{
		string(v1alpha1.TaskPending), string(v1alpha1.TaskRunning), string(v1alpha1.TaskFinalizing), string(v1alpha1.TaskSucceeded), string(v1alpha1.TaskFailed),
		string(v1alpha1.TaskScheduled), string(v1alpha1.TaskCancelled), v1alpha1.ConditionWaitingForApproval, v1alpha1.TaskTerminating,
	}
	for _, p := range q.Phases {
		if !slices.Contains(all, p) {
			return fmt.Errorf("phases: %.64q: must be one of %s", p, strings.Join(all, ", "))
		}
		if q.phases == nil {
			q.phases = map[string]bool{}
		}
		q.phases[p] = true
	}
	return nil
}

func timeOf(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := usage.ParseTime(text)
	if err != nil {
		return t, fmt.Errorf("%s: %.64q: %w", field, text, err)
	}
	return t, nil
}

// selects reports whether the query selects a task, as far as that needs nothing but the stored object. s is its summary.
func (q *query) selects(t *v1alpha1.Task, s *v1alpha1.TaskSummary) bool {
	started := t.Status.StartTime
	phase := cmp.Or(t.Status.Phase, v1alpha1.TaskPending)
	switch {
	case !q.selector.Empty() && !q.selector.Matches(labels.Set(t.Labels)),
		q.phases != nil && !q.phases[string(phase)] && !q.phases[s.Phase],
		q.Agent != "" && q.Agent != s.Agent,
		q.Model != "" && q.Model != s.Model,
		q.text != "" && !slices.ContainsFunc([]string{s.Name, s.Agent, s.Prompt}, func(in string) bool { return strings.Contains(strings.ToLower(in), q.text) }),
		!q.after.IsZero() && (started == nil || started.Time.Before(q.after)),
		!q.before.IsZero() && (started == nil || !started.Time.Before(q.before)):
		return false
	}
	return true
}
