// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/platform-ai/platform/pkg/visible"
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

// Formats that a template of the user follows.
const (
	byJSONPath = "jsonpath="
	byColumns  = "custom-columns="
)

// objectFormats are the formats of commands that print API objects. These commands also take templates.
var objectFormats = []format{asTable, asWide, asJSON, asYAML, asName}

// templated reports whether a template decides what is printed.
func (f format) templated() bool {
	return strings.HasPrefix(string(f), byJSONPath) || strings.HasPrefix(string(f), byColumns)
}

// table reports whether the server's own table is printed.
func (f format) table() bool { return f == asTable || f == asWide }

// addOutput adds -o with the given formats, the first of which is the default.
func addOutput(cmd *cobra.Command, allowed ...format) *format {
	f := allowed[0]
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	templates := slices.Equal(allowed, objectFormats)
	if templates {
		names = append(names, byJSONPath, byColumns)
	}
	cmd.Flags().StringVarP((*string)(&f), "output", "o", string(f), "how to print: "+strings.Join(names, ", "))
	offer(cmd, "output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if templates && f.templated() {
			if _, err := templatePrinter(f); err != nil {
				return err
			}
		} else if err := oneOf("-o", string(f), names...); err != nil {
			return err
		}
		if w, ok := cmd.OutOrStdout().(*visible.Writer); ok && (f == asYAML || strings.HasPrefix(string(f), byJSONPath)) {
			w.Data()
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	return &f
}

// templatePrinter returns the printer of a format with a template.
func templatePrinter(f format) (printers.ResourcePrinter, error) {
	if text, ok := strings.CutPrefix(string(f), byJSONPath); ok {
		expression, err := expressionOf(text)
		if err != nil {
			return nil, err
		}
		p, err := printers.NewJSONPathPrinter(expression)
		if err != nil {
			return nil, fmt.Errorf("-o %s: %w", f, err)
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	c := &columnPrinter{}
	for spec := range strings.SplitSeq(strings.TrimPrefix(string(f), byColumns), ",") {
		heading, path, ok := strings.Cut(spec, ":")
		if !ok || heading == "" || path == "" {
			return nil, fmt.Errorf("-o %s: %q: must be HEADING:PATH, for example NAME:.metadata.name", f, spec)
		}
		expression, err := expressionOf(path)
		if err != nil {
			return nil, err
		}
		p := jsonpath.New(heading).AllowMissingKeys(true)
		if err := p.Parse(expression); err != nil {
			return nil, fmt.Errorf("-o %s: %w", f, err)
		}
		c.headings, c.paths = append(c.headings, heading), append(c.paths, p)
	}
	return c, nil
}

// expressionOf completes a path that was written without braces, or without the leading dot.
func expressionOf(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("-o: a template must follow, for example " + byJSONPath + "'{.metadata.name}'")
	case strings.ContainsAny(path, "{}"):
		return path, nil
	}
	return "{." + strings.TrimPrefix(path, ".") + "}", nil
}

// columnPrinter prints a column for each path and a row for each object. It prints the headings once.
type columnPrinter struct {
	headings []string
	paths    []*jsonpath.JSONPath
	headed   bool
}

// PrintObj prints the row of an object, or of each object of a list.
func (c *columnPrinter) PrintObj(obj runtime.Object, out io.Writer) error {
	w := printers.GetNewTabWriter(out)
	if !c.headed {
		c.headed = true
		note(w, strings.Join(c.headings, "\t"))
	}
	objects := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if objects, err = meta.ExtractList(obj); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	for _, o := range objects {
		cells := make([]string, len(c.paths))
		for i, p := range c.paths {
			cell, err := cellOf(p, o)
			if err != nil {
				return fmt.Errorf("%s: %w", c.headings[i], err)
			}
			cells[i] = cell
		}
		note(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// cellOf returns what a path selects, as kubectl prints it.
func cellOf(p *jsonpath.JSONPath, o runtime.Object) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", err
	}
	found, err := p.FindResults(content)
	if err != nil {
		return "", err
	}
	var cells []string
	for _, values := range found {
		for _, v := range values {
			cells = append(cells, clean(fmt.Sprint(v.Interface())))
		}
	}
	if len(cells) == 0 {
		return "<none>", nil
	}
	return strings.Join(cells, ","), nil
}
