// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// countFlags ask for numbers of events instead of the events.
type countFlags struct {
	count   bool
	periods int64
}

func (c *countFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.count, "count", false, "how many events there are by type, instead of the events; does not read them")
	cmd.Flags().Int64Var(&c.periods, "periods", 0, "with --count: also in this many periods of equal length, 500 at most")
}

// check refuses flags that have no effect together.
func (c *countFlags) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	switch {
	case f.Changed("periods") && !c.count:
		return errors.New("--periods: needs --count")
	case f.Changed("periods") && c.periods < 1:
		return errors.New("--periods: must be at least 1")
	case !c.count:
		return nil
	}
	for _, name := range []string{"after", "limit", "last", "before", "search"} {
		if f.Changed(name) {
			return errors.New("--" + name + ": cannot be combined with --count, which counts all events that are kept, or those of a --type")
		}
	}
	return nil
}

// printEventCounts prints how many events there are of a task or a session.
func printEventCounts(ctx context.Context, api *server, term *terminal, resource, name string, types []string, periods int64, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	r := c.RESTClient().Get().Namespace(namespace).Resource(resource).Name(name).SubResource("events", "counts")
	for _, t := range types {
		r = r.Param("type", t)
	}
	if periods > 0 {
		r = r.Param("buckets", strconv.FormatInt(periods, 10))
	}
	counts := &v1alpha1.ExecutionEventCounts{}
	if err := r.Do(ctx).Into(counts); err != nil {
		return err
	}
	if f != asTable {
		counts.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ExecutionEventCounts"))
		return term.write(counts, f)
	}
	rows := [][]string{{"TYPE", "EVENTS"}}
	for _, t := range slices.SortedFunc(maps.Keys(counts.Types), func(x, y v1alpha1.EventType) int {
		return cmp.Or(cmp.Compare(counts.Types[y], counts.Types[x]), cmp.Compare(x, y))
	}) {
		if len(types) == 0 || slices.Contains(types, string(t)) {
			rows = append(rows, []string{string(t), strconv.FormatInt(counts.Types[t], 10)})
		}
	}
	rows = append(rows, []string{"all", strconv.FormatInt(counts.Total, 10)})
	if len(counts.Buckets) > 0 {
		rows = append(rows, nil, []string{"FROM", "EVENTS", "ERRORS", "FIRST"})
	}
	for i := range counts.Buckets {
		b := &counts.Buckets[i]
		rows = append(rows, []string{
			b.From.Local().Format("2006-01-02 15:04:05.000"), strconv.FormatInt(b.Total, 10), strconv.FormatInt(b.Severities[v1alpha1.SeverityError], 10), strconv.FormatInt(b.Seq, 10),
		})
	}
	return term.wholeColumns(rows)
}
