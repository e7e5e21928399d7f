// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// mostRecords is how many records of gateways the server returns at a time, and how many a list has that names no limit.
const mostRecords = 500

// textColumns is how much of a text tables show.
const textColumns = 40

// gatewayStates returns the states that stored records have.
func gatewayStates(of v1alpha1.GatewayRecords) []string {
	if of == v1alpha1.GatewayRecordsEvents {
		return texts(v1alpha1.GatewayEventQueued, v1alpha1.GatewayEventDispatching, v1alpha1.GatewayEventTaskCreated, v1alpha1.GatewayEventCompleted,
			v1alpha1.GatewayEventRejected, v1alpha1.GatewayEventDeadLettered, v1alpha1.GatewayEventExpired)
	}
	return texts(v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliverySending, v1alpha1.GatewayDeliveryRetryScheduled, v1alpha1.GatewayDeliveryDelivered,
		v1alpha1.GatewayDeliveryFailed, v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.GatewayDeliveryExpired)
}

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// gatewayFlags narrow lists and watches of records.
type gatewayFlags struct{ gateway, binding, session, task string }

func (g *gatewayFlags) add(api *server, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.gateway, "gateway", "", "only of this gateway")
	f.StringVar(&g.binding, "binding", "", "only of this binding")
	f.StringVar(&g.session, "session", "", "only of this session")
	f.StringVar(&g.task, "task", "", "only of this task")
	api.offerNames(cmd, gateways, "gateway")
	api.offerNames(cmd, gatewayBindings, "binding")
	api.offerNames(cmd, "tasks", "task")
}

// gatewayRecordList returns the command that lists records, the newest first.
func gatewayRecordList(api *server, term *terminal, of v1alpha1.GatewayRecords) *cobra.Command {
	var g gatewayFlags
	var event, token, cursor string
	var states []string
	var limit int64
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + string(of) + ", the newest first", Args: cobra.NoArgs,
		Long: fmt.Sprintf("List %s, the newest first: %d, or as many as --limit says. kubectl get gateway%[1]s lists all, and has other selectors.", of, mostRecords),
	}
	g.add(api, cmd)
	flags := cmd.Flags()
	if of == v1alpha1.GatewayRecordsDeliveries {
		flags.StringVar(&event, "event", "", "only of this event")
	}
	flags.StringSliceVar(&states, "state", nil, "only in these states, separated by commas")
	offer(cmd, "state", cobra.FixedCompletions(gatewayStates(of), cobra.ShellCompDirectiveNoFileComp))
	flags.Int64Var(&limit, "limit", 0, fmt.Sprintf("at most this many; 0 is %d", mostRecords))
	flags.StringVar(&token, "continue", "", "go on where a list ended")
	flags.StringVar(&cursor, "cursor", "", "another name for --continue")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, state := range states {
			if err := oneOf("--state", state, gatewayStates(of)...); err != nil {
				return err
			}
		}
		switch {
		case limit < 0:
			return errors.New("--limit: must be at least 0")
		case token != "" && cursor != "" && token != cursor:
			return errors.New("--cursor: differs from --continue, which is another name for it; give one of them")
		case cursor != "":
			token = cursor
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		found, err := gatewayRecords(cmd.Context(), c, namespace, v1alpha1.GatewayRecordQuerySpec{
			Records: of, Gateway: g.gateway, Binding: g.binding, Session: g.session, Task: g.task, Event: event, States: states, Cursor: token,
		}, limit)
		if err != nil {
			return err
		}
		return term.printGatewayRecords(of, found, *f)
	}
	return cmd
}

// gatewayRecords asks for records, the newest first. A limit of 0 is mostRecords.
func gatewayRecords(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, spec v1alpha1.GatewayRecordQuerySpec, limit int64) (*v1alpha1.GatewayRecordQueryStatus, error) {
	if limit == 0 {
		limit = mostRecords
	}
	all := &v1alpha1.GatewayRecordQueryStatus{}
	for {
		spec.Limit = int32(min(limit-int64(len(all.Events)+len(all.Deliveries)), mostRecords))
		page, err := c.GatewayRecordQueries(namespace).Create(ctx, &v1alpha1.GatewayRecordQuery{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		all.Events, all.Deliveries, all.Continue = append(all.Events, page.Status.Events...), append(all.Deliveries, page.Status.Deliveries...), page.Status.Continue
		if spec.Cursor = all.Continue; spec.Cursor == "" || int64(len(all.Events)+len(all.Deliveries)) >= limit {
			return all, nil
		}
	}
}

// printGatewayRecords prints records as a table, or as a list of objects.
func (term *terminal) printGatewayRecords(of v1alpha1.GatewayRecords, found *v1alpha1.GatewayRecordQueryStatus, f format) error {
	word := "gatewayevent"
	var objects runtime.Object = &v1alpha1.GatewayEventList{TypeMeta: typeMeta("GatewayEventList"), ListMeta: metav1.ListMeta{Continue: found.Continue}, Items: found.Events}
	for i := range found.Events {
		found.Events[i].TypeMeta = typeMeta("GatewayEvent")
	}
	rows := term.gatewayEventRows(found.Events, f == asWide)
	if of == v1alpha1.GatewayRecordsDeliveries {
		word = "gatewaydelivery"
		objects = &v1alpha1.GatewayDeliveryList{TypeMeta: typeMeta("GatewayDeliveryList"), ListMeta: metav1.ListMeta{Continue: found.Continue}, Items: found.Deliveries}
		for i := range found.Deliveries {
			found.Deliveries[i].TypeMeta = typeMeta("GatewayDelivery")
		}
		rows = term.gatewayDeliveryRows(found.Deliveries, f == asWide)
	}
	switch {
	case f == asName:
		for _, row := range rows[1:] {
			if err := term.say("%s.%s/%s", word, v1alpha1.GroupName, row[0]); err != nil {
				return fmt.Errorf("output: %w", err)
			}
		}
		return nil
	case !f.table():
		if err := term.objectPrinter(f, false).PrintObj(objects, term.Out); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		return nil
	case len(rows) == 1:
		note(term.Err, "nothing found")
		return nil
	}
	show := term.columns
	if f == asWide {
		show = term.wholeColumns
	}
	if err := show(rows); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if found.Continue != "" {
		note(term.Err, "there are more: --continue "+found.Continue)
	}
	return nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: v1alpha1.SchemeGroupVersion.String()}
}

func (term *terminal) gatewayEventRows(events []v1alpha1.GatewayEvent, wide bool) [][]string {
	heading := []string{"NAME", "STATE", "REASON", "GATEWAY", "SENDER", "TEXT", "AGE"}
	if wide {
		heading = append(heading, "BINDING", "SESSION", "TASK", "DELIVERY", "MESSAGE")
	}
	rows := [][]string{heading}
	for i := range events {
		e := &events[i]
		s := &e.Status
		row := []string{e.Name, string(s.State), s.Reason, e.Spec.GatewayName, e.Spec.SenderID, fit(clean(e.Spec.Text), textColumns), term.age(e.Spec.CreatedAt.Time)}
		if wide {
			row = append(row, s.BindingName, s.SessionName, s.TaskName, s.DeliveryID, s.StateMessage)
		}
		rows = append(rows, cleanRow(row))
	}
	return rows
}

func (term *terminal) gatewayDeliveryRows(sent []v1alpha1.GatewayDelivery, wide bool) [][]string {
	heading := []string{"NAME", "STATE", "REASON", "GATEWAY", "KIND", "SENT", "POSTED", "NEXT", "AGE"}
	if wide {
		heading = append(heading, "EVENT", "SESSION", "TASK", "ERROR")
	}
	rows := [][]string{heading}
	for i := range sent {
		d := &sent[i]
		s := &d.Status
		row := []string{d.Name, string(s.State), s.Reason, d.Spec.GatewayName, string(d.Spec.Kind), sentOf(d), wasPosted(s), "", term.age(d.Spec.CreatedAt.Time)}
		if s.State == v1alpha1.GatewayDeliveryRetryScheduled {
			row[7] = term.until(s.NextAttemptAt)
		}
		if wide {
			row = append(row, d.Spec.EventID, d.Spec.SessionName, d.Spec.TaskName, s.LastError)
		}
		rows = append(rows, cleanRow(row))
	}
	return rows
}

func cleanRow(cells []string) []string {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	return cells
}

// sentOf says how often a delivery was sent, and how often it may be.
func sentOf(d *v1alpha1.GatewayDelivery) string {
	return fmt.Sprintf("%d/%d", d.Status.AttemptCount, d.Spec.MaxAttempts)
}

// wasPosted says whether the conversation has the text.
func wasPosted(s *v1alpha1.GatewayDeliveryStatus) string {
	switch {
	case s.State == v1alpha1.GatewayDeliveryDelivered:
		return "yes"
	case s.OutcomeUnknown:
		return "maybe"
	}
	return "no"
}

// until says in how long a time comes; empty if it is not known.
func (term *terminal) until(t *metav1.Time) string {
	switch {
	case t == nil:
		return ""
	case !t.After(term.clock.Now()):
		return "now"
	}
	return "in " + length(t.Sub(term.clock.Now()).Round(time.Second))
}
