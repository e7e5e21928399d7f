// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Fields by which records of monitors are found.
const (
	ofMonitor = "spec.monitorName"
	ofKind    = "spec.targetKind"
	ofNumber  = "spec.number"
	ofState   = "status.state"
	ofAction  = "spec.desiredAction"
)

// narrowing is a flag of a list that leaves only records with a value.
type narrowing struct{ flag, field, usage string }

// Flags of several lists.
var (
	byMonitor = narrowing{"name", ofMonitor, "only of this monitor"}
	byKind    = narrowing{"kind", ofKind, "only about pull_request or issue"}
	byNumber  = narrowing{"number", ofNumber, "only about the pull request or issue with this number"}
	byState   = narrowing{"state", ofState, "only in this state"}
	byAction  = narrowing{"intent", ofAction, "only work of this kind, such as review"}
)

// recordList is a list of records of monitors.
type recordList struct {
	use, short, resource string
	// below is set if the command has the monitor as its argument.
	below bool
	// fixed is a field selector.
	fixed string
	by    []narrowing
	// columns replace those of the server in a table.
	columns string
}

// command returns the command that lists.
func (r recordList) command(api *server, term *terminal) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{Use: r.use, Short: r.short, Args: cobra.NoArgs}
	if r.below {
		cmd.Args, cmd.ValidArgsFunction = cobra.ExactArgs(1), api.names(monitors)
	} else {
		cmd.Aliases = []string{"ls"}
	}
	l.add(cmd)
	values := make([]string, len(r.by))
	for i, b := range r.by {
		cmd.Flags().StringVar(&values[i], b.flag, "", b.usage)
		switch b {
		case byMonitor:
			api.offerNames(cmd, monitors, b.flag)
		case byKind:
			offerTargets(cmd, b.flag)
		}
	}
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.below {
			c, namespace, err := api.client()
			if err != nil {
				return err
			}
			if _, err := c.RepositoryMonitors(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{}); err != nil {
				return err // an unknown monitor has no records, but an empty list would mislead
			}
			l.narrow(ofMonitor, args[0])
		}
		l.fields = strings.Trim(l.fields+","+r.fixed, ",")
		for i, b := range r.by {
			l.narrow(b.field, values[i])
		}
		if r.columns != "" && *f == asTable {
			*f = byColumns + format(r.columns)
		}
		return printList(cmd.Context(), api, term, r.resource, &l, *f)
	}
	return cmd
}

// narrow leaves only objects whose field has the value, unless it is empty.
func (l *listFlags) narrow(field, value string) {
	if value != "" {
		l.fields = strings.Trim(l.fields+","+field+"="+fields.EscapeValue(value), ",")
	}
}

// recordCommands returns the commands about what monitors keep.
func recordCommands(api *server, term *terminal) []*cobra.Command {
	const items, works = "monitoritems", "monitorworkactions"
	group := func(use, short, what, resource, fixed string, by ...narrowing) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short}
		list := recordList{use: "list", short: "List " + what, resource: resource, fixed: fixed, by: append([]narrowing{byMonitor}, by...)}
		cmd.AddCommand(list.command(api, term), getOf(api, term, "NAME", resource, "Show "+what+" by their names"))
		return cmd
	}
	commands := group("commands", "What people asked monitors for", "commands", "monitorcommands", "", byKind, byNumber, byState, narrowing{"intent", "spec.intent", "only this command, such as review"})
	commands.AddCommand(commandCreate(api, term))
	return []*cobra.Command{
		recordList{use: "runs MONITOR", short: "List the runs of a monitor", resource: "monitorruns", below: true, by: []narrowing{byState}}.command(api, term),
		recordList{use: "items MONITOR", short: "List the pull requests and issues that a monitor looks after", resource: items, below: true, by: []narrowing{
			byKind, byNumber, byState,
			{"review-verdict", "status.review.verdict", "only pull requests whose newest review came to this, such as needs_changes"},
			{"repair-state", "status.repair.phase", "only pull requests whose newest repair is so far: queued, succeeded or failed"},
			{"automerge-state", "status.automerge.state", "only pull requests whose merge is so far, such as merge_ready"},
		}}.command(api, term),
		group("issues", "Issues that monitors look after", "issues", items, ofKind+"="+string(v1alpha1.MonitorIssue), byNumber, byState),
		commands,
		group("actions", "Work on issues", "work on issues", works, ofKind+"="+string(v1alpha1.MonitorIssue), byNumber, byState, byAction),
		group("work-actions", "Work on pull requests and issues", "work", works, "", byKind, byNumber, byState, byAction),
		group("implementations", "Implementations of issues", "implementations", works, ofAction+"="+string(v1alpha1.MonitorImplement), byNumber, byState),
		group("mutations", "What monitors write on code hosts", "mutations", "monitormutations", "", byKind, byNumber, byState, narrowing{"operation", "spec.operation", "only this, such as post_review or merge"}),
	}
}
