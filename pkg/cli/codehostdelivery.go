// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

const deliveries = "codehostdeliveries"

// deliveryCommand returns the commands about what code hosts delivered to the webhook.
func deliveryCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "delivery", Aliases: []string{"deliveries", "chd"}, Short: "What code hosts delivered to the webhook, and what came of it"}
	list := recordList{use: "list", short: "List deliveries of code hosts", resource: deliveries, by: []narrowing{
		byState,
		{"event", "spec.event", "only this event, such as pull_request"},
		{"repository", "spec.repository", "only about this repository: OWNER/NAME"},
		{"delivery-id", "spec.deliveryID", "only with this id, which the code host gave the event"},
	}}
	replay := eachNamed(api, "replay DELIVERY...", "Have deliveries decided once more", deliveries, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		body := []byte(`{"apiVersion":"` + v1alpha1.SchemeGroupVersion.String() + `","kind":"CodeHostDelivery"}`) // what is stored counts
		if err := c.RESTClient().Post().Namespace(namespace).Resource(deliveries).Name(name).SubResource("replay").
			SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error(); err != nil {
			return err
		}
		return term.say("codehostdelivery %s is decided once more", name)
	})
	replay.Long = "Have deliveries decided once more, as if they had just arrived: for example, once an Agent exists that was missing. What a\ndelivery asks for, such as a task, is made once more."
	cmd.AddCommand(list.command(api, term), getOf(api, term, "DELIVERY", deliveries, "Show deliveries of code hosts"), replay)
	return cmd
}
