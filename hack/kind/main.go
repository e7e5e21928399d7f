// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program kind writes the skeleton of a new kind: its types, its folder of the registry with its rules' test, its example, and the
// lines that register it. Run it as "make kind NAME=Widget". What it writes builds and is served after "make generate": objects are
// stored, with a status, for everybody who may run tasks, and closed to workers and to transaction tokens.
package main

import (
	"bytes"
	"embed"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

//go:embed templates
var templates embed.FS

// The files that list kinds.
const (
	types    = "pkg/apis/core/v1alpha1"
	registry = "pkg/server/registry/core"
	module   = "github.com/platform-ai/platform"
)

// files are the templates by the files that they write; KIND is the folder of the kind.
var files = map[string]string{
	"types.go.tmpl":     types + "/KIND_types.go",
	"kind.go.tmpl":      registry + "/KIND/KIND.go",
	"columns.go.tmpl":   registry + "/KIND/columns.go",
	"kind_test.go.tmpl": registry + "/KIND/KIND_test.go",
	"example.yaml.tmpl": "artifacts/examples/KIND.yaml",
}

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	if err := run(*root, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "kind:", err)
		os.Exit(1)
	}
	fmt.Print(next)
}

// next is what the program says at its end.
const next = `Now:
  1. Write the fields of spec and status, and the rules of single fields as +k8s: tags; then make generate.
  2. Say who may use the kind: Roles, Scopes and, if runs need it, a Guard in its Definition. It is closed to workers until then.
     RESTPath on the type gives it REST rows; list their paths in pkg/server/facade/testdata/endpoints.md.
  3. Write the rules across fields (Validate of Kept, in validation.go), a case of the test for each rule, and the example.
  4. make generate, and read what changed in the roles, the chart and the reference. Then accept what tests print of all kinds:
       go test ./test/integration/host -run TestTables -rewrite
       go test ./test/identity -run TestMatrix -rewrite
       PLATFORM_BIN=$PWD/_output/bin go test ./test/e2e -run TestDialogue -rewrite
`

// names are how a kind is called.
type names struct {
	// Kind is its name in Go and in objects, Resource its plural, and Folder its name in paths.
	Kind, Resource, Folder string
	// One and Many are what people call its objects, and Article is a or an.
	One, Many, Article string
}

// namesOf returns the names of a kind: "RepositoryScan" is a repository scan.
func namesOf(kind string) (names, error) {
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`).MatchString(kind) {
		return names{}, fmt.Errorf("NAME: %q: must be letters and digits, such as RepositoryScan", kind)
	}
	kind = strings.ToUpper(kind[:1]) + kind[1:]
	plural := v1alpha1.Plural
	words := strings.Fields(regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(kind, "$1 $2"))
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	n := names{Kind: kind, Resource: plural(kind), Folder: strings.ToLower(kind), One: strings.Join(words, " "), Article: "a"}
	words[len(words)-1] = plural(words[len(words)-1])
	n.Many = strings.Join(words, " ")
	if strings.ContainsAny(n.One[:1], "aeio") {
		n.Article = "an"
	}
	return n, nil
}

// run writes the skeleton into the repository at root. It writes nothing if a file is there already.
func run(root, kind string) error {
	n, err := namesOf(kind)
	if err != nil {
		return err
	}
	written := map[string][]byte{}
	for name, path := range files {
		path = filepath.Join(root, strings.ReplaceAll(path, "KIND", n.Folder))
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: is there already", path)
		}
		if written[path], err = fill(name, n); err != nil {
			return err
		}
	}
	register, all := filepath.Join(root, types, "register.go"), filepath.Join(root, registry, "all.go")
	if written[register], err = listed(register, "KnownTypes", fmt.Sprintf("&%[1]s{}, &%[1]sList{},", n.Kind), ""); err != nil {
		return err
	}
	if written[all], err = listed(all, "All", n.Folder+".Definition(),", module+"/"+registry+"/"); err != nil {
		return err
	}
	for path, data := range written {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fill returns a template with the names.
func fill(name string, n names) ([]byte, error) {
	t, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, n); err != nil {
		return nil, err
	}
	if !strings.Contains(name, ".go.") {
		return out.Bytes(), nil
	}
	return format.Source(out.Bytes())
}

// listed returns a file with a line at the end of the list that a function ends with. The line begins with the name of its package if
// it needs an import: that package is in the folder imports, among others that the file imports.
func listed(path, function, line, imports string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	end := 0
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Name.Name == function {
			ast.Inspect(d, func(n ast.Node) bool {
				if l, ok := n.(*ast.CompositeLit); ok {
					if _, list := l.Type.(*ast.ArrayType); list {
						end = max(end, files.Position(l.Rbrace).Offset)
					}
				}
				return true
			})
		}
	}
	if end == 0 {
		return nil, fmt.Errorf("%s: no list in %s", path, function)
	}
	text := string(data[:end]) + line + "\n" + string(data[end:])
	if imports != "" {
		name, _, _ := strings.Cut(line, ".")
		at := strings.Index(text, "\t\""+imports)
		if at < 0 {
			return nil, fmt.Errorf("%s: imports nothing of %s", path, imports)
		}
		text = text[:at] + "\t\"" + imports + name + "\"\n" + text[at:]
	}
	return format.Source([]byte(text))
}
