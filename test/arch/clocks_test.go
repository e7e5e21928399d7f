// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clocks are what waits for a wall clock or reads how much time has passed on it.
var clocks = []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Since", "Until"}

// leastPatience is the shortest limit of a wait that needs no reason: shorter ones fail on a busy machine.
const leastPatience = time.Minute

// TestClocks: no test depends on the speed of the machine. In tests and in their kits whatever waits for a wall clock or measures on
// it, and each limit of a wait that is short, has its reason in a comment on its line or on the line above. A bubble of testing/synctest
// has a clock of its own, so it needs none. Measurements belong in test/bench.
func TestClocks(t *testing.T) {
	for _, f := range withTests(t, "pkg", "cmd", "test", "hack") {
		kit := strings.HasSuffix(f.pkg, "test") || (strings.HasPrefix(f.path, "test/") && !strings.HasPrefix(f.path, "test/bench/"))
		if !strings.HasSuffix(f.path, "_test.go") && !kit {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, filepath.Join(root, f.path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		reasons := map[int]bool{} // lines that a comment is on
		for _, c := range parsed.Comments {
			for line := files.Position(c.Pos()).Line; line <= files.Position(c.End()).Line; line++ {
				reasons[line] = true
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := selector(call.Fun)
			if name == "synctest.Test" {
				return false
			}
			line := files.Position(call.Pos()).Line
			if reasons[line] || reasons[line-1] {
				return true
			}
			if what, ok := strings.CutPrefix(name, "time."); ok && slices.Contains(clocks, what) {
				t.Errorf("%s:%d: time.%s needs a reason beside it: await an event or kit.Await, or use testing/synctest or a clock that is passed in", f.path, line, what)
			}
			if name == "context.WithTimeout" && len(call.Args) == 2 {
				if d := duration(call.Args[1]); d > 0 && d < leastPatience {
					t.Errorf("%s:%d: a wait of at most %s fails on a busy machine: use kit.Patience, or say beside it why the limit is what is tested", f.path, line, d)
				}
			}
			return true
		})
	}
}

// duration is the value of a constant expression such as 5*time.Second, or 0.
func duration(e ast.Expr) time.Duration {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return duration(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.MUL {
			return time.Duration(int64(duration(e.X)) * int64(duration(e.Y)))
		}
	case *ast.BasicLit:
		n, _ := strconv.ParseInt(e.Value, 0, 64) // 0 for what is no integer
		return time.Duration(n)
	case *ast.SelectorExpr:
		return map[string]time.Duration{
			"time.Nanosecond": 1, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
			"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
		}[selector(e)]
	}
	return 0
}
