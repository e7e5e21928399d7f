// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// listFlags are the flags of commands that list.
type listFlags struct {
	selector, fields, token string
	limit                   int64
	everywhere, follow      bool
}

func (l *listFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&l.selector, "selector", "l", "", "only objects with these labels")
	f.StringVar(&l.fields, "field-selector", "", "only objects with these fields, for example status.phase=Running")
	f.Int64Var(&l.limit, "limit", 0, "at most this many; 0 is all")
	f.StringVar(&l.token, "continue", "", "go on where a list with --limit ended")
	f.BoolVarP(&l.everywhere, "all-namespaces", "A", false, "of all namespaces")
	f.BoolVarP(&l.follow, "watch", "w", false, "go on with every change, until you stop")
}

// request returns the request for the list.
func (l *listFlags) request(c rest.Interface, namespace, resource string) *rest.Request {
	r := c.Get().Resource(resource)
	if !l.everywhere {
		r = r.NamespaceIfScoped(namespace, scoped(resource))
	}
	for name, value := range map[string]string{"labelSelector": l.selector, "fieldSelector": l.fields, "continue": l.token} {
		if value != "" {
			r = r.Param(name, value)
		}
	}
	if l.limit > 0 {
		r = r.Param("limit", strconv.FormatInt(l.limit, 10))
	}
	return r
}

// scoped reports whether the objects of a resource are in namespaces.
func scoped(resource string) bool { return resource != gatewayClasses }

// listOf returns a command that lists objects.
func listOf(api *server, term *terminal, resource, short string) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: short, Args: cobra.NoArgs}
	l.add(cmd)
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return printList(cmd.Context(), api, term, resource, &l, *f)
	}
	return cmd
}

// printList prints the objects of a resource, and each change of one if the flags ask for that.
func printList(ctx context.Context, api *server, term *terminal, resource string, l *listFlags, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	request := func() *rest.Request { return l.request(c.RESTClient(), namespace, resource) }
	p := term.objectPrinter(f, l.everywhere)
	if l.follow {
		if l.limit > 0 || l.token != "" {
			return errors.New("--watch cannot be combined with --limit or --continue")
		}
		return (&listWatch{terminal: term, request: request, format: f, printer: p}).follow(ctx)
	}
	obj, err := fetch(ctx, request(), f)
	if err != nil {
		return err
	}
	return term.printAnswer(p, obj)
}
