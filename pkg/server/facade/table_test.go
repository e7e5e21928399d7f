// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// The table has exactly the rows of the documented endpoint list.
func TestTableIsTheContract(t *testing.T) {
	data, err := os.ReadFile("testdata/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile("(GET|POST|PUT|PATCH|DELETE)[ |]+(/(?:api|internal)/v1/[a-zA-Z/:.-]+[a-zA-Z])").FindAllStringSubmatch(string(data), -1) {
		want = append(want, m[1]+" "+m[2])
	}
	for _, r := range Rows() {
		if r.Answer.Unsupported == "" {
			got = append(got, r.Method+" "+r.Path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	got = slices.Compact(got) // rows of a path differ in When
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the table differs from the contract (-contract +table):\n%s", d)
	}
}

// chain answers like an API server where every object exists, and records the requests.
type chain struct {
	absent  []string // resources of which there is nothing, so that a row asks for something else
	asked   []string
	headers []http.Header
	queries []string
}

func (c *chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	rest := parts[3:]
	if parts[0] == "api" { // the core group
		rest = parts[2:]
	}
	if rest[0] == "namespaces" {
		rest = rest[2:]
	}
	resource := rest[0]
	if len(rest) > 2 {
		resource += "/" + rest[2]
	}
	if verb == "get" && len(rest) == 1 {
		verb = "list"
	}
	c.asked = append(c.asked, verb+" "+resource)
	c.headers, c.queries = append(c.headers, r.Header), append(c.queries, r.URL.RawQuery)
	absent := verb == "get" && slices.Contains(c.absent, resource)
	switch {
	case strings.HasSuffix(resource, "/log") && absent:
		return // nothing was logged
	case absent:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if verb == "create" {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = io.WriteString(w, `{"kind":"Thing","metadata":{"name":"x"},"spec":{"sessionType":"chat","targetKind":"issue","desiredAction":"implement"},"items":[]}`)
}

// Each row makes exactly the requests that it declares, with the caller's credentials and nothing else of the REST
// query.
func TestRowsAskForTheirTargets(t *testing.T) {
	for _, r := range Rows() {
		c, chosen := &chain{}, selection(t, r)
		for _, n := range r.Native {
			if slices.ContainsFunc(r.Native, func(other rest.Native) bool { return other.Unless != "" && other.Unless == n.Name }) {
				c.absent = append(c.absent, n.Resource())
			}
		}
		f, err := New(c, Options{
			Document: func() ([]byte, error) { return []byte("{}"), nil },
			External: func(*http.Request) (string, string) { return chosen.auth, "" },
		})
		if err != nil {
			t.Fatal(err)
		}
		path := regexp.MustCompile(":[a-zA-Z]+").ReplaceAllStringFunc(r.Path, func(p string) string {
			if p == ":streamType" {
				return "task"
			}
			return "x"
		})
		body := map[string]string{
			"POST /api/v1/tasks": `{"name":"x","type":"ai"}`, "POST /api/v1/tasks/:id/approvals/:approvalID/decision": `{"decision":"approve"}`,
			"POST /api/v1/chat": `{"message":"x"}`, "POST /api/v1/connections": `{"provider":"x"}`, "PUT /api/v1/connections/:name": `{"mode":"readOnly"}`,
			"POST /api/v1/connections/:name/complete":           `{"completion":"x"}`,
			"POST /api/v1/monitors/repositories/:name/commands": `{"kind":"issue","number":7,"intent":"triage"}`,
			"POST /internal/v1/messages/:namespace":             `{"fromTask":"x","toTask":"y","parentTask":"z","content":"c"}`,
		}[r.Method+" "+r.Path]
		if strings.Contains(r.Path, "/memor") {
			body = `{"content":"x","title":"x","status":"accepted"}`
		}
		switch {
		case body != "":
		case r.Body != nil && r.Body.Flat:
			body = `{"name":"x","spec":{"description":"d"}}`
		case r.Method == http.MethodPost || r.Method == http.MethodPut:
			body = "{}"
		}
		req := httptest.NewRequestWithContext(t.Context(), r.Method, path+"?"+chosen.query, strings.NewReader(body))
		req.Header.Set("X-Api-Key", "secret")
		req.Header.Set("Accept-Encoding", "gzip")
		req.Header.Set("Accept", "text/html")
		if chosen.accept != "" {
			req.Header.Set("Accept", chosen.accept)
		}
		w := httptest.NewRecorder()
		if r.Plain {
			f.Alone().ServeHTTP(w, req)
		} else {
			f.ServeHTTP(w, req)
		}
		if w.Code >= 400 && r.Answer.Unsupported == "" {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, w.Code, w.Body)
		}
		slices.Sort(c.asked)
		if d := cmp.Diff(r.Targets(), slices.Compact(c.asked)); d != "" {
			t.Errorf("%s %s (-said +asked):\n%s", r.Method, r.Path, d)
		}
		accept := "application/json"
		if a := r.Native[len(r.Native)-1].Accept; a != "" {
			accept = a
		}
		for i, h := range c.headers {
			if h.Get("Authorization") != "Bearer secret" || h.Get("X-Api-Key") != "" || h.Get("Accept") != accept || h.Get("Accept-Encoding") != "" || h.Get("Audit-Id") == "" {
				t.Errorf("%s %s: headers %v", r.Method, r.Path, h)
			}
			if strings.Contains(c.queries[i], "watch") || strings.Contains(c.queries[i], "pretty=1") || strings.Contains(c.queries[i], "fieldSelector=a") {
				t.Errorf("%s %s: query %s", r.Method, r.Path, c.queries[i])
			}
		}
	}
}

// linesPerRow is how many lines this package may have for each path that it serves, with comments and blank lines; allLinesPerRow
// counts those that run the table and describe it as well. They may only shrink.
const linesPerRow, allLinesPerRow = 10, 48

// A row is data: this package has few lines for each row. Paths that answer 501 do not count.
func TestRowsAreData(t *testing.T) {
	count := func(folder string) (lines int) {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(data), "\n")
		}
		return lines
	}
	served := map[string]bool{}
	for _, r := range Rows() {
		if r.Answer.Unsupported == "" {
			served[r.Method+" "+r.Path] = true
		}
	}
	rows, lines := len(served), count(".")
	all := lines + count("rest") + count("openapi")
	t.Logf("%d rows: %d lines (%.1f a row), with rest and openapi %d (%.1f a row)", rows, lines, float64(lines)/float64(rows), all, float64(all)/float64(rows))
	if lines > linesPerRow*rows {
		t.Errorf("%d lines for %d rows; at most %d: what a row decides belongs into a native resource", lines, rows, linesPerRow*rows)
	}
	if all > allLinesPerRow*rows {
		t.Errorf("%d lines with those of rest and openapi for %d rows; at most %d", all, rows, allLinesPerRow*rows)
	}
}

// choice is what a request has so that a row serves it.
type choice struct{ query, accept, auth string }

// selection returns a choice for a row, with what the row requires.
func selection(t *testing.T, r rest.Row) choice {
	t.Helper()
	choices := []choice{{}, {accept: "application/json"}, {auth: external.TypeContextToken}}
	for _, name := range r.Parameters() {
		choices = append(choices, choice{query: name + "=1"})
		if name == "parentTask" || name == "name" { // which are required
			choices[0].query = name + "=1"
		}
	}
	i := slices.IndexFunc(choices, func(c choice) bool {
		req := httptest.NewRequestWithContext(t.Context(), r.Method, "/?"+c.query, nil)
		req.Header.Set("Accept", c.accept)
		return r.When == nil || r.When(req, c.auth)
	})
	if i < 0 {
		t.Fatalf("%s %s: no request selects it", r.Method, r.Path)
	}
	return choices[i]
}

// TestUnknownParametersAreRefused: a misspelt filter does not return everything.
func TestUnknownParametersAreRefused(t *testing.T) {
	auth := ""
	f, err := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), Options{
		External: func(*http.Request) (string, string) { return auth, "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rows() {
		if r.Answer.Unsupported != "" {
			continue
		}
		chosen := selection(t, r)
		auth = chosen.auth
		req := httptest.NewRequestWithContext(t.Context(), r.Method, strings.ReplaceAll(r.Path, ":streamType", "task")+"?"+chosen.query+"&colour=red", strings.NewReader("{}"))
		req.Header.Set("Authorization", "Bearer x")
		if chosen.accept != "" {
			req.Header.Set("Accept", chosen.accept)
		}
		w := httptest.NewRecorder()
		f.Alone().ServeHTTP(w, req)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "colour: is not a parameter of this path") {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, w.Code, w.Body)
		}
	}
}
