// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// public are names of rules and patterns of what is not secret.
var public = regexp.MustCompile(`(?i)(id|user|username|usr|url|uri|domain|subdomain|host|hostname|email|account|acc|name|org|organization|region|project|endpoint|server|instance|tenant|workspace|store|cluster|site|company|version|portal|microsoft|s?ip|time|service)(value)?(pat|regex|match|matches|pattern|patterns)?\d?$`)

// publicName finds the same in the sentences by which noseyparker and kingfisher name their rules.
var publicName = regexp.MustCompile(`(?i)\b(id|domain|host|email|identifier|recipient|username|account name|public (access token|api token|key)|(instance|search|jfrog) url)\b`)

// fromYAML reads the rules of noseyparker and kingfisher, which are alike.
func fromYAML(clone string) ([]rule, error) {
	var rules []rule
	err := files(clone, ".yml", func(path string) error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var file struct {
			Rules []struct {
				ID, Name, Pattern    string
				Entropy              float64 `json:"min_entropy"`
				Visible              *bool
				Categories, Examples []string
				Negative             []string `json:"negative_examples"`
			}
		}
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return nil //nolint:nilerr // other files of the repository
		}
		for _, r := range file.Rules {
			identifier := slices.Contains(r.Categories, "identifier") && !slices.Contains(r.Categories, "secret")
			named := publicName.MatchString(r.Name) && !strings.Contains(strings.ToLower(r.Name), "password")
			secret := r.Pattern != "" && !identifier && !named && (r.Visible == nil || *r.Visible)
			if secret || len(r.Negative) > 0 {
				rules = append(rules, rule{id: r.ID, pattern: r.Pattern, entropy: r.Entropy, examples: r.Examples, innocent: r.Negative, public: !secret})
			}
		}
		return nil
	})
	return rules, err
}

// gitleaks reads the generated configuration, and the texts that the generator's sources call true positives.
func gitleaks(clone string) ([]rule, error) {
	raw, err := os.ReadFile(filepath.Join(clone, "config", "gitleaks.toml"))
	if err != nil {
		return nil, err
	}
	examples, innocent := map[string][]string{}, map[string][]string{}
	if err := files(filepath.Join(clone, "cmd", "generate", "config", "rules"), ".go", func(path string) error {
		return positives(path, examples, innocent)
	}); err != nil {
		return nil, err
	}
	var rules []rule
	for _, block := range strings.Split(string(raw), "[[rules]]\n")[1:] {
		var r rule
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
			switch name {
			case "id":
				r.id = strings.Trim(value, `"`)
			case "regex":
				r.pattern = strings.Trim(value, "'")
			case "entropy":
				if r.entropy, err = strconv.ParseFloat(value, 64); err != nil {
					return nil, err
				}
			}
			if strings.HasPrefix(name, "[") {
				break // allowlists have patterns, too
			}
		}
		r.examples, r.innocent = examples[r.id], innocent[r.id]
		if r.public = r.pattern == "" || public.MatchString(r.id); !r.public || len(r.innocent) > 0 {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// positives adds the literal texts of the variables tps and fps of each function, the true and the false positives, to the
// rule that the function makes.
func positives(path string, examples, innocent map[string][]string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		id := ""
		var texts, others []string
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "RuleID" {
					id = text(n.Value, nil)
				}
			case *ast.AssignStmt:
				switch to, _ := n.Lhs[0].(*ast.Ident); {
				case to == nil:
				case to.Name == "tps":
					texts = append(texts, literals(n.Rhs[0])...)
				case to.Name == "fps":
					others = append(others, literals(n.Rhs[0])...)
				}
			}
			return true
		})
		examples[id], innocent[id] = append(examples[id], texts...), append(innocent[id], others...)
	}
	return nil
}

// literals returns the elements of the lists of texts in an expression.
func literals(e ast.Expr) (all []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if list, ok := n.(*ast.CompositeLit); ok {
			for _, element := range list.Elts {
				if member, ok := element.(*ast.KeyValueExpr); ok {
					element = member.Value // of a map from paths to texts
				}
				if s := text(element, nil); s != "" {
					all = append(all, s)
				}
			}
		}
		return true
	})
	return all
}

// trufflehog reads the patterns of each detector's sources, and those inputs of its tests in which something is found.
func trufflehog(clone string) ([]rule, error) {
	type detector struct {
		patterns map[string]string
		inputs   []string
	}
	all := map[string]*detector{}
	root := filepath.Join(clone, "pkg", "detectors")
	err := files(root, ".go", func(path string) error {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil //nolint:nilerr // some of its integration tests are not valid
		}
		name, _ := filepath.Rel(root, filepath.Dir(path))
		d := all[name]
		if d == nil {
			d = &detector{patterns: map[string]string{}}
			all[name] = d
		}
		known := values(f)
		if strings.HasSuffix(path, "_test.go") {
			d.inputs = append(d.inputs, inputs(f, known)...)
			return nil
		}
		patterns(f, known, d.patterns)
		return nil
	})
	var rules []rule
	for name, d := range all {
		for of, p := range d.patterns {
			rules = append(rules, rule{id: name + "." + of, pattern: p, entropy: 0, examples: d.inputs})
		}
	}
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.id, b.id) })
	return rules, err
}

// patterns adds the patterns of the package's variables, by their names, but for those of what is public.
func patterns(f *ast.File, known, found map[string]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.BlockStmt); ok {
			return false // a variable within a function is not the pattern of a secret
		}
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && !public.MatchString(v.Names[0].Name) {
			if call, ok := v.Values[0].(*ast.CallExpr); ok && function(call) == "MustCompile" {
				if p := text(call.Args[0], known); p != "" {
					found[v.Names[0].Name] = p
				}
			}
		}
		return true
	})
}

// inputs returns the field input of each case of a test whose field want is neither nil nor empty.
func inputs(f *ast.File, known map[string]string) (all []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		input, found := "", false
		for _, e := range list.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key, _ := kv.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "input":
				input = text(kv.Value, known)
			case key.Name == "want":
				wanted, ok := kv.Value.(*ast.CompositeLit)
				found = ok && len(wanted.Elts) > 0
			}
		}
		if found && input != "" {
			all = append(all, input)
		}
		return true
	})
	return all
}

// values returns the texts of the variables and constants of a file.
func values(f *ast.File) map[string]string {
	known := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for i := range min(len(v.Names), len(v.Values)) {
				known[v.Names[i].Name] = text(v.Values[i], known)
			}
		}
		return true
	})
	return known
}

// text evaluates an expression; it is empty if the expression has more than literals, known names, sums, and the
// functions that are used to put such texts together.
func text(e ast.Expr, known map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return s
	case *ast.Ident:
		return known[e.Name]
	case *ast.ParenExpr:
		return text(e.X, known)
	case *ast.BinaryExpr:
		a, b := text(e.X, known), text(e.Y, known)
		if a == "" || b == "" {
			return ""
		}
		return a + b
	case *ast.CallExpr:
		switch function(e) {
		case "PrefixRegex":
			return "(?i:" + strings.Join(literals(e.Args[0]), "|") + `)(?:.|[\n\r]){0,40}?`
		case "Sprintf":
			s := text(e.Args[0], known)
			for _, a := range e.Args[1:] {
				s = strings.Replace(s, "%s", text(a, known), 1)
			}
			return s
		}
	}
	return ""
}

// function returns the last part of the name of the called function.
func function(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func files(root, ext string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ext {
			return err
		}
		return visit(path)
	})
}
