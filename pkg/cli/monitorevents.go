// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// happening is something that a monitor did, or was asked for.
type happening struct {
	metav1.ObjectMeta `json:"-"`
	Time              metav1.Time                `json:"time"`
	Kind              string                     `json:"kind"`
	Name              string                     `json:"name"`
	TargetKind        v1alpha1.MonitorTargetKind `json:"targetKind,omitempty"`
	Number            int64                      `json:"number,omitempty"`
	What              string                     `json:"what"`
	State             string                     `json:"state"`
	Message           string                     `json:"message,omitempty"`
}

func monitorEvents(api *server, term *terminal) *cobra.Command {
	var number int64
	var limit int
	cmd := &cobra.Command{
		Use: "events MONITOR", Short: "Show what a monitor did, in one list", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(monitors),
		Long: "Show the runs, commands, work and mutations of a monitor in one list, in the order in which they were begun, with what became of them.",
	}
	cmd.Flags().Int64Var(&number, "number", 0, "only about the pull request or issue with this number")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most this many, the newest; 0 is all")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		if _, err := c.RepositoryMonitors(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{}); err != nil {
			return err // an unknown monitor did nothing, but an empty list would mislead
		}
		all, err := happenings(cmd.Context(), c, namespace, ofMonitor+"="+args[0], number)
		if err != nil {
			return err
		}
		newestFirst(all, func(h *happening) metav1.ObjectMeta { return h.ObjectMeta })
		if limit > 0 && len(all) > limit {
			note(term.Err, many(len(all)-limit, "earlier record")+" not shown: --limit")
			all = all[:limit]
		}
		return term.printHappenings(all, *f)
	}
	return cmd
}

// happenings returns what a monitor did, in any order.
func happenings(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, selector string, number int64) ([]happening, error) {
	var all []happening
	add := func(m metav1.ObjectMeta, kind string, of v1alpha1.MonitorTargetKind, n int64, what, state, message string) {
		if number == 0 || n == number {
			all = append(all, happening{m, m.CreationTimestamp, kind, m.Name, of, n, what, state, message})
		}
	}
	o := metav1.ListOptions{FieldSelector: selector}
	runs, err := c.MonitorRuns(namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, r := range runs.Items {
		add(r.ObjectMeta, "run", r.Spec.TargetKind, r.Spec.TargetNumber, string(r.Spec.Trigger), string(r.Status.State), r.Status.Message)
	}
	commands, err := c.MonitorCommands(namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, m := range commands.Items {
		add(m.ObjectMeta, "command", m.Spec.TargetKind, m.Spec.Number, string(m.Spec.Intent), string(m.Status.State), m.Status.Message)
	}
	works, err := c.MonitorWorkActions(namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, w := range works.Items {
		add(w.ObjectMeta, "work", w.Spec.TargetKind, w.Spec.Number, string(w.Spec.DesiredAction), string(w.Status.State), w.Status.Message)
	}
	mutations, err := c.MonitorMutations(namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, m := range mutations.Items {
		add(m.ObjectMeta, "mutation", m.Spec.TargetKind, m.Spec.Number, string(m.Spec.Operation), string(m.Status.State), m.Status.Message)
	}
	return all, nil
}

// printHappenings prints the oldest first, as a log.
func (term *terminal) printHappenings(newest []happening, f format) error {
	all := make([]happening, 0, len(newest))
	for _, h := range slices.Backward(newest) {
		all = append(all, h)
	}
	if f != asTable {
		return term.write(all, f)
	}
	if len(all) == 0 {
		note(term.Err, "nothing found")
		return nil
	}
	rows := [][]string{{"TIME", "KIND", "ABOUT", "WHAT", "STATE", "MESSAGE"}}
	for i := range all {
		h := &all[i]
		rows = append(rows, []string{h.Time.Local().Format(time.DateTime), h.Kind, about(h.TargetKind, h.Number), h.What, h.State, clean(h.Message)})
	}
	return term.columns(rows)
}

// about names what a record is about.
func about(kind v1alpha1.MonitorTargetKind, number int64) string {
	switch {
	case kind == "":
		return "all"
	case number == 0:
		return strings.ReplaceAll(string(kind), "_", " ") + "s"
	}
	return strings.ReplaceAll(string(kind), "_", " ") + " " + strconv.FormatInt(number, 10)
}
