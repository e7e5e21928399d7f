// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/event"
)

// offer completes the values of a flag.
func offer(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist
	}
}

// offerNames completes the values of flags with names of a resource.
func (api *server) offerNames(cmd *cobra.Command, resource string, flags ...string) {
	for _, flag := range flags {
		offer(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return api.stored(cmd, resource), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// offerTypes completes the values of a flag with the types of events.
func offerTypes(cmd *cobra.Command, flag string) {
	var types []string
	for _, t := range event.Types() {
		types = append(types, string(t))
	}
	offer(cmd, flag, cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
}

// names completes the name of one object.
func (api *server) names(resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return api.stored(cmd, resource), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf completes the names of several objects.
func (api *server) namesOf(resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(api.stored(cmd, resource), func(name string) bool { return slices.Contains(args, name) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

// stored returns the names of a resource's objects in the namespace; none if they cannot be read.
func (api *server) stored(cmd *cobra.Command, resource string) []string {
	c, namespace, err := api.client()
	if err != nil {
		return nil
	}
	return namesIn(cmd.Context(), c.RESTClient().Get().NamespaceIfScoped(namespace, scoped(resource)).Resource(resource))
}

// namespaces completes the value of --namespace.
func (api *server) namespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, _, err := api.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return namesIn(cmd.Context(), c.RESTClient().Get().AbsPath("/api/v1/namespaces")), cobra.ShellCompDirectiveNoFileComp
}

// namesIn returns the names of a list; none if it cannot be read.
func namesIn(ctx context.Context, r *rest.Request) []string {
	raw, err := r.Do(ctx).Raw()
	if err != nil {
		return nil
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// contexts completes the value of --context.
func (api *server) contexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := api.loader.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(c.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
