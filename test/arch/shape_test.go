// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Half of the files have at most medianLines lines and nine of ten at most p90Lines. They may only shrink.
const medianLines, p90Lines = 120, 300

// measure limits one count of each type or package. A type or package above the limit says why in a line of its doc comment,
// "//large:NAME reason", which go doc does not print. A reason without need is an error, too.
type measure struct {
	name   string
	limit  int
	counts map[string]int // by the folder of a package, or that and the name of a type
}

// The limits are in gaps of the distribution above its 99th percentile, which TestShape logs (of imports, above the 98th), so that
// few types and packages are above them and none is near them by chance. Methods are not counted: their number says little of
// a type, and a limit on it makes functions of methods.
const maxFields, maxTypeLines, maxImports = 24, 550, 20

// large begins the reason in a doc comment.
const large = "//large:"

// shape is what is counted in the code.
type shape struct {
	fields  map[string]int      // of each struct
	lines   map[string]int      // of each type: its declaration and methods
	imports map[string][]string // packages of this module that each package imports without its tests
	reasons map[string][]string // of each type and package
}

// TestShape: most files are short, and what is large says why.
func TestShape(t *testing.T) {
	var lines []int
	s := newShape()
	for _, f := range withTests(t, "pkg", "cmd", "test", "hack") {
		if f.generated {
			continue
		}
		lines = append(lines, f.lines)
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join(root, f.path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.add(fset, f.pkg, parsed)
		if !strings.HasSuffix(f.path, "_test.go") {
			s.imports[f.pkg] = append(s.imports[f.pkg], f.imports...)
		}
	}
	slices.Sort(lines)
	median, p90 := lines[len(lines)/2], lines[len(lines)*9/10]
	t.Logf("%d files: median %d lines, 90%% have at most %d", len(lines), median, p90)
	if median > medianLines || p90 > p90Lines {
		t.Errorf("files have a median of %d lines (at most %d), and 90%% have at most %d (%d)", median, medianLines, p90, p90Lines)
	}
	for _, m := range s.measures() {
		names := slices.SortedFunc(maps.Keys(m.counts), func(a, b string) int { return cmp.Compare(m.counts[a], m.counts[b]) })
		at := func(percent int) int { return m.counts[names[len(names)*percent/100]] }
		t.Logf("%s of %d: 50%% have at most %d, 90%% %d, 95%% %d, 98%% %d, 99%% %d; the limit is %d, and the largest are", m.name, len(names), at(50), at(90), at(95), at(98), at(99), m.limit)
		for _, name := range names[len(names)-12:] {
			t.Logf("%6d %s", m.counts[name], name)
		}
	}
	for _, fault := range s.faults() {
		t.Error(fault)
	}
}

func newShape() *shape {
	return &shape{map[string]int{}, map[string]int{}, map[string][]string{}, map[string][]string{}}
}

// add counts a file, without its imports.
func (s *shape) add(fset *token.FileSet, pkg string, f *ast.File) {
	size := func(n ast.Node) int { return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1 }
	s.explain(pkg, f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.lines[pkg+"."+receiver(d.Recv.List[0].Type)] += size(d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				name := pkg + "." + ts.Name.Name
				s.explain(name, d.Doc)
				s.explain(name, ts.Doc)
				s.lines[name] += size(ts)
				if st, ok := ts.Type.(*ast.StructType); ok {
					s.fields[name] = st.Fields.NumFields()
				}
			}
		}
	}
}

func (s *shape) explain(name string, doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	for _, c := range doc.List {
		if reason, ok := strings.CutPrefix(c.Text, large); ok {
			s.reasons[name] = append(s.reasons[name], reason)
		}
	}
}

// measures returns what is counted and limited.
func (s *shape) measures() []measure {
	fields, lines, imports := measure{"fields", maxFields, map[string]int{}}, measure{"lines", maxTypeLines, s.lines}, measure{"imports", maxImports, map[string]int{}}
	for name, n := range s.fields {
		if path.Dir(name)+"/"+strings.Split(path.Base(name), ".")[0] != apiFolder { // the API says which fields its types have
			fields.counts[name] = n
		}
	}
	for pkg, all := range s.imports {
		own := map[string]bool{}
		for _, i := range all {
			if strings.HasPrefix(i, module+"/") {
				own[i] = true
			}
		}
		imports.counts[pkg] = len(own)
	}
	return []measure{fields, lines, imports}
}

// faults are what is large without a reason, and reasons without need.
func (s *shape) faults() []string {
	var faults []string
	reasons := map[string]string{} // by name and measure
	for name, all := range s.reasons {
		for _, r := range all {
			what, why, _ := strings.Cut(r, " ")
			if strings.TrimSpace(why) == "" {
				faults = append(faults, fmt.Sprintf("%s: %s%s names no reason", name, large, r))
			}
			reasons[name+" "+what] = why
		}
	}
	for _, m := range s.measures() {
		for name, n := range m.counts {
			_, explained := reasons[name+" "+m.name]
			delete(reasons, name+" "+m.name)
			switch {
			case n > m.limit && !explained:
				faults = append(faults, fmt.Sprintf("%s has %d %s, more than %d: divide it by noun, or say why it is so large: %s%s REASON in its doc comment", name, n, m.name, m.limit, large, m.name))
			case n <= m.limit && explained:
				faults = append(faults, fmt.Sprintf("%s has %d %s, not more than %d: %s%s is not needed", name, n, m.name, m.limit, large, m.name))
			}
		}
	}
	for which := range reasons {
		faults = append(faults, fmt.Sprintf("%s%s stands where nothing of that name is measured", large, which))
	}
	slices.Sort(faults)
	return faults
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct{ name, doc, body, want string }{
		{"small", "", "struct{ a int }", ""},
		{"as many fields as may be", "", "struct{ a" + strings.Repeat(", a", maxFields-1) + " int }", ""},
		{"one more", "", "struct{ a" + strings.Repeat(", a", maxFields-1) + " int; U }", "p.T has 25 fields, more than 24"},
		{"with a reason", "//large:fields each is a flag", "struct{ a" + strings.Repeat(", a", maxFields) + " int }", ""},
		{"of another measure", "//large:lines each is a flag", "struct{ a" + strings.Repeat(", a", maxFields) + " int }", "p.T has 1 lines, not more than 550: //large:lines is not needed|p.T has 25 fields, more than 24"},
		{"without need", "//large:fields each is a flag", "struct{ a int }", "p.T has 1 fields, not more than 24: //large:fields is not needed"},
		{"no reason", "//large:fields", "struct{ a" + strings.Repeat(", a", maxFields) + " int }", "p.T: //large:fields names no reason"},
		{"unknown measure", "//large:methods each is a command", "struct{ a int }", "//large:p.T methods stands where nothing of that name is measured"},
		{"long", "", "struct{ a int" + strings.Repeat("\n", maxTypeLines) + "}", "p.T has 551 lines, more than 550"},
		{"long by its methods", "", "struct{ a int }\nfunc (T) m() {" + strings.Repeat("\n", maxTypeLines) + "}", "p.T has 552 lines, more than 550"},
	} {
		s, fset := newShape(), token.NewFileSet()
		f, err := parser.ParseFile(fset, "", "package p\n"+tc.doc+"\ntype T "+tc.body+"\n", parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		s.add(fset, "p", f)
		got, want := s.faults(), strings.Split(tc.want, "|")
		if tc.want == "" {
			want = nil
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", tc.name, got, want)
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
