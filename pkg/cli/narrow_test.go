// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestTablesFitTheScreen: no line of a table is longer than the screen is wide, and names stay whole where there is room for them. What
// is not written to a screen, and -o wide, is not shortened.
func TestTablesFitTheScreen(t *testing.T) {
	const name, why = "a-task-with-a-name-of-thirty-x", "because something happened that takes a lot of words to describe to somebody else"
	table := func(rows int) string {
		out := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string"}, {Name: "Phase", Type: "string"}, {Name: "Message", Type: "string"}, {Name: "Agent", Type: "string"}, {Name: "More", Type: "string", Priority: 1}, {Name: "Age", Type: "string"},
		}}
		for i := range rows {
			raw := fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"%s%d","namespace":"team-x"}}`, name, i)
			out.Rows = append(out.Rows, metav1.TableRow{Cells: []any{fmt.Sprint(name, i), "Succeeded", why, "summariser-of-reports", "more of it", "3d"}, Object: runtime.RawExtension{Raw: raw}})
		}
		raw, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/taskqueries"):
			q := v1alpha1.TaskQuery{TypeMeta: metav1.TypeMeta{Kind: "TaskQuery", APIVersion: v1alpha1.SchemeGroupVersion.String()}}
			q.Status.Items = []v1alpha1.TaskSummary{{Name: name, Phase: "Succeeded", Agent: strings.Repeat("agent-", 12), Type: v1alpha1.TaskTypeAI, Model: why}}
			_ = json.NewEncoder(w).Encode(q)
		case strings.HasSuffix(r.URL.Path, "/skills"):
			_, _ = io.WriteString(w, table(0))
		default:
			_, _ = io.WriteString(w, table(3))
		}
	}))
	t.Cleanup(s.Close)
	run := func(width int, args ...string) []string {
		var b strings.Builder
		if code := Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", s.URL}, args...), Streams{In: strings.NewReader(""), Out: &b, Err: &b, Width: width}); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, b.String())
		}
		return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	}
	for _, width := range []int{120, 80} {
		for _, args := range [][]string{{"task", "list"}, {"task", "list", "-A"}, {"task", "list", "--sort-by", "name"}, {"skill", "list"}} {
			lines := run(width, args...)
			for _, line := range lines {
				if n := utf8.RuneCountInString(strings.TrimRight(line, " ")); n > width {
					t.Errorf("%v: a line of %d columns on a screen of %d: %s", args, n, width, line)
				}
			}
			if args[0] == "task" && !strings.Contains(strings.Join(lines, "\n"), name) {
				t.Errorf("%v: the name is cut:\n%s", args, strings.Join(lines, "\n"))
			}
		}
	}
	for _, c := range []struct {
		width int
		args  []string
	}{{0, []string{"task", "list"}}, {80, []string{"task", "list", "-o", "wide"}}, {80, []string{"task", "list", "--sort-by", "name", "-o", "wide"}}, {300, []string{"task", "list"}}} {
		if out := strings.Join(run(c.width, c.args...), "\n"); !strings.Contains(out, why) {
			t.Errorf("%v on a screen of %d columns is shortened: %s", c.args, c.width, out)
		}
	}
}

// TestWatchedRows: a row that comes later may be wider than those before it.
func TestWatchedRows(t *testing.T) {
	var b strings.Builder
	p := &narrowPrinter{screen: 40}
	for i, phase := range []string{"Pending", "Succeeded with a long explanation of it"} {
		table := &metav1.Table{Rows: []metav1.TableRow{{Cells: []any{"one", phase, nil}}}}
		if i == 0 {
			table.ColumnDefinitions = []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Phase"}, {Name: "Age"}}
		}
		if err := p.PrintObj(table, &b); err != nil {
			t.Fatal(err)
		}
	}
	if want := "NAME   PHASE     AGE\none    Pending   <none>\none    Succeeded with a long e…   <none>\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestLimits: the widest columns give way first, and those with names last.
func TestLimits(t *testing.T) {
	rows := [][]string{{"NAME", "WHY", "AGE"}, {strings.Repeat("n", 30), strings.Repeat("w", 90), "3d"}}
	for screen, want := range map[int]string{200: "[30 90 3]", 80: "[30 41 3]", 50: "[30 11 3]", 40: "[26 5 3]", 10: "[20 5 3]"} {
		if got := fmt.Sprint(limits(rows, screen, 1)); got != want {
			t.Errorf("on %d columns: %s, want %s", screen, got, want)
		}
	}
}

// TestMany: one thing has no plural.
func TestMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls", 1234567: "1,234,567 calls"} {
		if got := many(n, "call"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
