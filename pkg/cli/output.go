// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// format is the value of -o.
type format string

const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name"
)

// addOutput adds -o with the given formats, the first of which is the default.
func addOutput(cmd *cobra.Command, allowed ...format) *format {
	f := allowed[0]
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	cmd.Flags().StringVarP((*string)(&f), "output", "o", string(f), "how to print: "+strings.Join(names, ", "))
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("-o", string(f), names...); err != nil {
			return err
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	return &f
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", flag, value, strings.Join(allowed, ", "))
}

// tableHeader requests the columns that kubectl shows.
const tableHeader = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"

// show sends r and prints the answer: either as the server's own table, with a namespace column if namespaced is set,
// or completely.
func (a *app) show(ctx context.Context, r *rest.Request, f format, namespaced bool) error {
	p := a.objectPrinter(f, namespaced)
	if f == asTable || f == asWide {
		r = r.SetHeader("Accept", tableHeader)
	}
	answer := r.Do(ctx)
	if err := answer.Error(); err != nil { // unlike the error of Raw, this one has the server's message
		return err
	}
	raw, err := answer.Raw()
	if err != nil {
		return err
	}
	obj, err := decode(raw, f)
	if err != nil {
		return err
	}
	if t, ok := obj.(*metav1.Table); ok && len(t.Rows) == 0 {
		note(a.Err, "nothing found")
		return nil
	}
	if err := p.PrintObj(obj, a.Out); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if t, ok := obj.(*metav1.Table); ok && t.Continue != "" {
		note(a.Err, "there are more: --continue "+t.Continue)
	}
	return nil
}

// decode decodes an answer of the server into an object that can be printed.
func decode(raw []byte, f format) (runtime.Object, error) {
	if f == asTable || f == asWide {
		t := &metav1.Table{}
		if err := json.Unmarshal(raw, t); err != nil {
			return nil, fmt.Errorf("answer of the server: %w", err)
		}
		for i := range t.Rows { // the printer takes the namespace from the object
			obj, err := runtime.Decode(unstructured.UnstructuredJSONScheme, t.Rows[i].Object.Raw)
			if err != nil {
				return nil, fmt.Errorf("row of the server: %w", err)
			}
			t.Rows[i].Object.Object = obj
		}
		return t, nil
	}
	obj, err := runtime.Decode(unstructured.UnstructuredJSONScheme, raw)
	if err != nil {
		return nil, fmt.Errorf("answer of the server: %w", err)
	}
	return obj, nil
}

// objectPrinter returns a printer of API objects. Rows of a watch are printed without repeated headings.
func (a *app) objectPrinter(f format, namespaced bool) printers.ResourcePrinter {
	switch f {
	case asJSON:
		return &printers.JSONPrinter{}
	case asYAML:
		return &printers.YAMLPrinter{}
	case asName:
		return &printers.NamePrinter{}
	default:
		return printers.NewTablePrinter(printers.PrintOptions{Wide: f == asWide, WithNamespace: namespaced})
	}
}

// write prints a value as JSON or YAML.
func (a *app) write(v any, f format) error {
	b, err := json.MarshalIndent(v, "", "    ")
	if err == nil && f == asYAML {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	_, err = fmt.Fprintln(a.Out, strings.TrimRight(string(b), "\n"))
	return err
}

// listFlags are the flags of commands that list.
type listFlags struct {
	selector, fields, token string
	limit                   int64
	everywhere              bool
}

func (l *listFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&l.selector, "selector", "l", "", "only objects with these labels")
	f.StringVar(&l.fields, "field-selector", "", "only objects with these fields, for example status.phase=Running")
	f.Int64Var(&l.limit, "limit", 0, "at most so many; 0 is all")
	f.StringVar(&l.token, "continue", "", "go on where a list with --limit ended")
	f.BoolVarP(&l.everywhere, "all-namespaces", "A", false, "of all namespaces")
}

// request returns the request for the list.
func (l *listFlags) request(c rest.Interface, namespace, resource string) *rest.Request {
	r := c.Get().Resource(resource)
	if !l.everywhere {
		r = r.Namespace(namespace)
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

// list prints the objects of a resource.
func (a *app) list(ctx context.Context, resource string, l *listFlags, f format) error {
	c, namespace, err := a.client()
	if err != nil {
		return err
	}
	return a.show(ctx, l.request(c.RESTClient(), namespace, resource), f, l.everywhere)
}

// get prints one object.
func (a *app) get(ctx context.Context, resource, name string, f format) error {
	c, namespace, err := a.client()
	if err != nil {
		return err
	}
	return a.show(ctx, c.RESTClient().Get().Namespace(namespace).Resource(resource).Name(name), f, false)
}

// names completes the names of a resource.
func (a *app) names(resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, namespace, err := a.client()
		if len(args) > 0 || err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		raw, err := c.RESTClient().Get().Namespace(namespace).Resource(resource).Do(cmd.Context()).Raw()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
