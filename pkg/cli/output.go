// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/visible"
)

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", flag, value, strings.Join(allowed, ", "))
}

// tableHeader requests the columns that kubectl shows.
const tableHeader = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"

// fetch sends r and returns the answer: the server's own table, or the objects completely.
func fetch(ctx context.Context, r *rest.Request, f format) (runtime.Object, error) {
	if f.table() {
		r = r.SetHeader("Accept", tableHeader)
	}
	answer := r.Do(ctx)
	if err := answer.Error(); err != nil { // unlike the error of Raw, this one has the server's message
		return nil, err
	}
	raw, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	return decode(raw, f)
}

// printAnswer prints what fetch returned.
func (term *terminal) printAnswer(p printers.ResourcePrinter, obj runtime.Object) error {
	t, ok := obj.(*metav1.Table)
	if ok && len(t.Rows) == 0 {
		note(term.Err, "nothing found")
		return nil
	}
	if err := p.PrintObj(obj, term.Out); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if ok && t.Continue != "" {
		note(term.Err, "there are more: --continue "+t.Continue)
	}
	return nil
}

// decode decodes an answer of the server into an object that can be printed.
func decode(raw []byte, f format) (runtime.Object, error) {
	if f.table() {
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
func (term *terminal) objectPrinter(f format, namespaced bool) printers.ResourcePrinter {
	if f.templated() {
		if p, err := templatePrinter(f); err == nil { // the flag was checked
			return p
		}
	}
	switch f {
	case asJSON:
		return &printers.JSONPrinter{}
	case asYAML:
		return &yamlPrinter{}
	case asName:
		return &printers.NamePrinter{}
	default:
		if term.Width > 0 && f == asTable {
			return &narrowPrinter{screen: term.Width, namespaced: namespaced}
		}
		return printers.NewTablePrinter(printers.PrintOptions{Wide: f == asWide, WithNamespace: namespaced})
	}
}

// write prints a value as JSON or YAML.
func (term *terminal) write(v any, f format) error {
	b, err := json.MarshalIndent(v, "", "    ")
	if err == nil && f == asYAML {
		b, err = toYAML(b)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	_, err = fmt.Fprintln(term.Out, strings.TrimRight(string(b), "\n"))
	return err
}

// toYAML converts JSON. YAML is read before it is written here, and it is refused with a raw control character in it.
func toYAML(b []byte) ([]byte, error) { return yaml.JSONToYAML([]byte(visible.Text(string(b)))) }

// yamlPrinter prints objects as documents of one stream.
type yamlPrinter struct{ printed bool }

// PrintObj prints an object.
func (p *yamlPrinter) PrintObj(obj runtime.Object, out io.Writer) error {
	b, err := json.Marshal(obj)
	if err == nil {
		b, err = toYAML(b)
	}
	if err != nil {
		return err
	}
	if p.printed {
		b = append([]byte("---\n"), b...)
	}
	p.printed = true
	_, err = out.Write(b)
	return err
}
