// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func gatewayWatchCommand(api *server, term *terminal) *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use: "watch", Short: "Follow events and deliveries, a line for each change, until you stop", Args: cobra.NoArgs,
		Long: "Follow events and deliveries, a line for each change from now on, until you stop. What is there already is shown by\n" +
			"platform gateway events list and platform gateway deliveries list.",
		Example: "  platform gateway watch --gateway chat",
	}
	g.add(api, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return g.watch(cmd.Context(), api, term) }
	return cmd
}

// watch follows events and deliveries beside each other.
func (g *gatewayFlags) watch(ctx context.Context, api *server, term *terminal) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	var printing sync.Mutex
	follow, ctx := errgroup.WithContext(ctx)
	for _, of := range []struct {
		resource string
		found    string // where binding, session and task are
		line     func(*unstructured.Unstructured) (string, error)
	}{
		{gatewayEvents, "status", term.eventLine}, {gatewayDeliveries, "spec", term.deliveryLine},
	} {
		var l listFlags
		l.narrow("spec.gatewayName", g.gateway)
		l.narrow(of.found+".bindingName", g.binding)
		l.narrow(of.found+".sessionName", g.session)
		l.narrow(of.found+".taskName", g.task)
		w := &listWatch{
			terminal: term, format: asJSON, request: func() *rest.Request { return l.request(c.RESTClient(), namespace, of.resource) },
			printer: printers.ResourcePrinterFunc(func(obj runtime.Object, out io.Writer) error {
				record, ok := obj.(*unstructured.Unstructured)
				if !ok {
					return fmt.Errorf("the server answered with %T and not with an object", obj)
				}
				line, err := of.line(record)
				if err != nil {
					return err
				}
				printing.Lock()
				defer printing.Unlock()
				_, err = fmt.Fprintln(out, line)
				return err
			}),
			missed: func() {
				printing.Lock()
				defer printing.Unlock()
				note(term.Err, "Warning: changes of "+of.resource+" were missed; to see where they are now: platform gateway "+strings.TrimPrefix(of.resource, "gateway")+" list")
			},
		}
		follow.Go(func() error { return w.follow(ctx) })
	}
	return follow.Wait()
}

// changeLine is the line of a change.
func changeLine(at *metav1.MicroTime, created metav1.MicroTime, what, state, name string, more ...string) string {
	when := created
	if at != nil {
		when = *at
	}
	var said []string
	for _, text := range more {
		if text != "" {
			said = append(said, text)
		}
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  %s  %s  %s", when.Local().Format(time.DateTime), pad(what, 8), pad(state, 14), name, clean(strings.Join(said, ", "))), " ")
}

func (term *terminal) eventLine(record *unstructured.Unstructured) (string, error) {
	e := &v1alpha1.GatewayEvent{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(record.Object, e); err != nil {
		return "", fmt.Errorf("answer of the server: %w", err)
	}
	s, about := &e.Status, ""
	switch s.State {
	case v1alpha1.GatewayEventQueued:
		about = e.Spec.SenderID + ": " + fit(clean(e.Spec.Text), textColumns)
	case v1alpha1.GatewayEventTaskCreated:
		about = "task " + s.TaskName
	case v1alpha1.GatewayEventCompleted:
		about = "delivery " + s.DeliveryID
	}
	return changeLine(s.UpdatedAt, e.Spec.CreatedAt, "event", string(s.State), e.Name, e.Spec.GatewayName, about, cmp.Or(s.StateMessage, s.Reason)), nil
}

func (term *terminal) deliveryLine(record *unstructured.Unstructured) (string, error) {
	d := &v1alpha1.GatewayDelivery{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(record.Object, d); err != nil {
		return "", fmt.Errorf("answer of the server: %w", err)
	}
	s := &d.Status
	return changeLine(s.UpdatedAt, d.Spec.CreatedAt, "delivery", string(s.State), d.Name, append([]string{d.Spec.GatewayName}, term.deliveryFacts(d)...)...), nil
}

// deliveryFacts says how far a delivery got, besides its state.
func (term *terminal) deliveryFacts(d *v1alpha1.GatewayDelivery) []string {
	s := &d.Status
	facts := []string{string(d.Spec.Kind)}
	if s.AttemptCount > 0 {
		facts = append(facts, fmt.Sprintf("sent %d of %s", s.AttemptCount, many(int(d.Spec.MaxAttempts), "time")))
	}
	if s.UnreachedCount > 0 {
		facts = append(facts, many(int(s.UnreachedCount), "time")+" not reached")
	}
	if s.OutcomeUnknown && s.State != v1alpha1.GatewayDeliveryDelivered {
		facts = append(facts, "may have been posted")
	}
	if s.Late {
		facts = append(facts, "marked as late")
	}
	if s.ManualRetryCount > 0 {
		facts = append(facts, fmt.Sprintf("retried by hand %s", many(int(s.ManualRetryCount), "time")))
	}
	if s.State == v1alpha1.GatewayDeliveryRetryScheduled {
		facts = append(facts, "next attempt "+term.until(s.NextAttemptAt))
	}
	if s.ProviderMessageID != "" {
		facts = append(facts, "message "+s.ProviderMessageID)
	}
	if why := cmp.Or(s.LastError, s.Reason); why != "" && s.State != v1alpha1.GatewayDeliveryDelivered {
		facts = append(facts, why)
	}
	return facts
}
