// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// Resources of gateways.
const (
	gateways          = "gateways"
	gatewayClasses    = "gatewayclasses"
	gatewayBindings   = "gatewaybindings"
	gatewayIdentities = "gatewayidentities"
	gatewayEvents     = "gatewayevents"
	gatewayDeliveries = "gatewaydeliveries"
)

// gatewayCommand returns the commands about gateways and what came through them.
func gatewayCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "gateway", Aliases: []string{gateways}, Short: "Gateways to chat systems: conversations, their events and deliveries"}
	kind := func(use, alias, resource, what, short string) *cobra.Command {
		cmd := &cobra.Command{Use: use, Aliases: []string{alias}, Short: short}
		list := listOf(api, term, resource, "List "+what)
		if !scoped(resource) {
			list.Flags().Lookup("all-namespaces").Hidden = true
		}
		cmd.AddCommand(list, getOf(api, term, "NAME", resource, "Show "+what))
		return cmd
	}
	cmd.AddCommand(
		listOf(api, term, gateways, "List gateways, and whether their adapters answer"), getOf(api, term, "GATEWAY", gateways, "Show gateways"),
		kind("class", "classes", gatewayClasses, "gateway classes", "What gateways to one chat system have in common"),
		kind("binding", "bindings", gatewayBindings, "gateway bindings", "Which Agent answers in which conversation"),
		kind("identity", "identities", gatewayIdentities, "gateway identities", "In whose name a sender of a chat system decides on approvals"),
		gatewayEventCommands(api, term), gatewayDeliveryCommands(api, term), gatewayWatchCommand(api, term), gatewayConformance(api, term),
	)
	return cmd
}

func gatewayEventCommands(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "events", Aliases: []string{"event"}, Short: "What people wrote in conversations, and what became of it"}
	replay := gatewayAction(api, term, "replay EVENT...", "Have events routed once more", gatewayEvents, "GatewayEvent")
	replay.Long = "Have events routed once more, as if they had just arrived: for example, once a binding exists that was missing. An event must be\n" +
		"Rejected, DeadLettered or Expired. It gets a new place at the end of its session, and is answered by a new task."
	cmd.AddCommand(gatewayRecordList(api, term, v1alpha1.GatewayRecordsEvents), getOf(api, term, "EVENT", gatewayEvents, "Show events"), replay, gatewayExplain(api, term))
	return cmd
}

func gatewayDeliveryCommands(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "deliveries", Aliases: []string{"delivery"}, Short: "Answers on their way to conversations"}
	retry := gatewayAction(api, term, "retry DELIVERY...", "Send again what was given up", gatewayDeliveries, "GatewayDelivery")
	retry.Long = "Send again what was given up. A delivery must be DeadLettered or Failed. It gets all its attempts again, and a new time to expire.\n" +
		"If its outcome is unknown it may have been posted; the adapter recognises it by its idempotency id, and posts it once."
	abandon := gatewayAction(api, term, "abandon DELIVERY...", "Give up what was not delivered yet", gatewayDeliveries, "GatewayDelivery")
	abandon.Long = "Give up what was not delivered yet. A delivery must be Pending or RetryScheduled; afterwards it is Failed, and the next one of its\nsession is sent."
	cmd.AddCommand(gatewayRecordList(api, term, v1alpha1.GatewayRecordsDeliveries), getOf(api, term, "DELIVERY", gatewayDeliveries, "Show deliveries"), retry, abandon)
	return cmd
}

// gatewayAction returns a command that has something done with records: it creates the subresource of the command's name.
func gatewayAction(api *server, term *terminal, use, short, resource, kind string) *cobra.Command {
	var cmd *cobra.Command
	cmd = eachNamed(api, use, short, resource, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		body := []byte(`{"apiVersion":"` + v1alpha1.SchemeGroupVersion.String() + `","kind":"` + kind + `"}`) // what is stored counts
		answer := c.RESTClient().Post().Namespace(namespace).Resource(resource).Name(name).SubResource(cmd.Name()).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
		if err := answer.Error(); err != nil { // unlike the error of Raw, this one has the server's message
			return err
		}
		raw, err := answer.Raw()
		if err != nil {
			return err
		}
		var now struct {
			Status struct{ State, Reason, StateMessage string }
		}
		if err := json.Unmarshal(raw, &now); err != nil {
			return fmt.Errorf("answer of the server: %w", err)
		}
		return term.say("%s %s: %s", strings.ToLower(kind), name, clean(inOne(now.Status.State, now.Status.Reason, now.Status.StateMessage)))
	})
	return cmd
}
