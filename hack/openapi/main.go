// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi leaves out of the generated OpenAPI definitions what no request or answer of this server contains. The generator
// describes all types of a package, and of k8s.io/api/core/v1 the server serves five kinds:
//
//	go run ./hack/openapi PREFIX KIND... <IN >OUT
//
// Of the definitions whose functions begin with PREFIX it keeps the kinds, their lists, and what any kept definition refers to.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

var (
	function = regexp.MustCompile(`(?ms)^func (schema_\w+)\(ref common\.ReferenceCallback\).*?^}\n\n?`)
	listed   = regexp.MustCompile(`(?m)^\t\t(\w+\.\w+)\{\}\.OpenAPIModelName\(\): +(schema_\w+)\(ref\),\n`)
	referred = regexp.MustCompile(`(\w+\.\w+)\{\}\.OpenAPIModelName\(\)`)
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("PREFIX KIND... are needed")
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	text, err := prune(string(raw), args[0], args[1:])
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func prune(text, prefix string, kinds []string) (string, error) {
	functions := map[string]string{} // of a type, as the file names it
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		functions[m[1]] = m[2]
	}
	bodies := map[string]string{}
	for _, m := range function.FindAllStringSubmatch(text, -1) {
		bodies[m[1]] = m[0]
	}
	kept := map[string]bool{}
	var keep func(name string)
	keep = func(name string) {
		if kept[name] {
			return
		}
		kept[name] = true
		for _, m := range referred.FindAllStringSubmatch(bodies[name], -1) {
			keep(functions[m[1]])
		}
	}
	for name := range bodies {
		if kind, ok := strings.CutPrefix(name, prefix); !ok || slices.Contains(kinds, strings.TrimSuffix(kind, "List")) {
			keep(name)
		}
	}
	for _, kind := range kinds {
		if bodies[prefix+kind] == "" {
			return "", fmt.Errorf("there is no definition of %s%s", prefix, kind)
		}
	}
	text = listed.ReplaceAllStringFunc(text, func(line string) string {
		if kept[listed.FindStringSubmatch(line)[2]] {
			return line
		}
		return ""
	})
	return function.ReplaceAllStringFunc(text, func(body string) string {
		if kept[function.FindStringSubmatch(body)[1]] {
			return body
		}
		return ""
	}), nil
}
