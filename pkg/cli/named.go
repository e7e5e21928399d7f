// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// getOf returns a command that shows objects; what is the word for one of them.
func getOf(api *server, term *terminal, what, resource, short string) *cobra.Command {
	cmd := &cobra.Command{Use: "get " + what + "...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: api.namesOf(resource)}
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return printNamed(cmd.Context(), api, term, resource, args, *f)
	}
	return cmd
}

// printNamed prints objects by their names. Those that cannot be read are reported after the others were printed.
func printNamed(ctx context.Context, api *server, term *terminal, resource string, names []string, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	var found []runtime.Object
	var missing error
	for _, name := range names {
		obj, err := fetch(ctx, c.RESTClient().Get().NamespaceIfScoped(namespace, scoped(resource)).Resource(resource).Name(name), f)
		if err != nil {
			missing = errors.Join(missing, errors.New(explain(err)))
			continue
		}
		found = append(found, obj)
	}
	if len(found) == 0 {
		return missing
	}
	obj, err := together(found)
	if err != nil {
		return err
	}
	return errors.Join(term.printAnswer(term.objectPrinter(f, false), obj), missing)
}

// together makes one table of several, and a List of several objects.
func together(found []runtime.Object) (runtime.Object, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	if all, ok := found[0].(*metav1.Table); ok {
		for _, next := range found[1:] {
			all.Rows = append(all.Rows, next.(*metav1.Table).Rows...) //nolint:forcetypeassert // all answers have one format
		}
		return all, nil
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}}}
	return list, meta.SetList(list, found)
}

// eachNamed returns a command that does something with each object that is named.
func eachNamed(api *server, use, short, resource string, do func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: api.namesOf(resource)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		var failed error
		for _, name := range args {
			if err := do(cmd.Context(), c, namespace, name); err != nil {
				failed = errors.Join(failed, errors.New(explain(err)))
			}
		}
		return failed
	}
	return cmd
}
