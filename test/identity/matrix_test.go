// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file of the matrix anew")

// golden has the whole matrix. Its head explains it.
const golden = "testdata/matrix.txt"

// Outcomes of a question. Everything but a refusal is a pass, also an error that the request itself deserves.
const (
	unknown = '.' // 401
	refused = '-' // 403
	unseen  = '0' // a list or watch without what belongs to the task
	passed  = 'y'
)

// TestMatrix: every caller makes every request that the server offers. Whether it is refused follows from a small model of
// the rules, and is as the golden file says. A new route, resource, verb or subresource is asked without being listed here,
// and has to be added to both.
func TestMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := slices.Concat(w.native(), w.rows(), w.vendors(), w.paths())
	answers := make([][]rune, len(all))
	var g errgroup.Group
	g.SetLimit(16)
	for i, q := range all {
		answers[i] = make([]rune, len(w.callers))
		for n := range w.callers {
			if !q.changes || !w.callers[n].allows(q.needs) { // it changes nothing
				g.Go(func() (err error) {
					answers[i][n], err = w.ask(w.callers[n], q)
					return err
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, q := range all { // whoever may change something comes last
		for n, c := range w.callers {
			if q.changes && c.allows(q.needs) {
				answers[i][n] = must(w.ask(c, q))(t)
			}
		}
	}
	for i, q := range all {
		for n, c := range w.callers {
			if got, want := answers[i][n] == passed, c.allows(q.needs); got != want {
				t.Errorf("%s: %s: allowed %t (%c), want %t", c.name, q.row, got, answers[i][n], want)
			}
		}
	}
	w.compare(all, answers)
}

// compare compares the matrix with the golden file.
func (w *world) compare(all []question, answers [][]rune) {
	w.t.Helper()
	var out bytes.Buffer
	fmt.Fprintln(&out, "# Who may do what: go test ./test/identity -run TestMatrix -rewrite")
	fmt.Fprintln(&out, "# y: allowed, -: refused (403), 0: allowed, but the answer leaves out what belongs to the task, .: not authenticated (401)")
	for n, c := range w.callers {
		fmt.Fprintf(&out, "# %2d %s\n", n+1, c.name)
	}
	for i, q := range all {
		fmt.Fprintf(&out, "%s %s\n", string(answers[i]), q.row)
	}
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		w.t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); d != "" {
		w.t.Errorf("%s differs (-want +got):\n%s", golden, d)
	}
}

// ask makes one request.
func (w *world) ask(c caller, q question) (rune, error) {
	config, base := rest.AnonymousClientConfig(w.Admin), w.Admin.Host
	config.BearerToken = c.token
	if c.unknown {
		config.NextProtos = []string{"http/1.1"} // the server ends each connection of HTTP/2 on which it refuses to know somebody
	}
	switch {
	case c.name == "administrator": // a certificate counts on the secure port only, which serves the same paths
		config = w.Admin
	case q.plain:
		base = w.RESTURL
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), kit.Patience)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, strings.NewReader(q.body))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", q.contentType)
		if q.accept != "" {
			req.Header.Set("Accept", q.accept)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", c.name, q.row, err)
		}
		outcome, err := classify(q, resp)
		if endless := strings.HasPrefix(q.row, "watch") || resp.Header.Get("Content-Type") == sse.ContentType; !endless {
			_, _ = io.Copy(io.Discard, resp.Body) // so that the connection serves the next request
		}
		_ = resp.Body.Close()
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", c.name, q.row, err)
		}
		if outcome != 0 {
			return outcome, nil
		}
	}
}

// classify returns the outcome; 0 if the request has to be made again.
func classify(q question, resp *http.Response) (rune, error) {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return 0, nil
	case resp.StatusCode == http.StatusUnauthorized:
		return unknown, nil
	case resp.StatusCode == http.StatusForbidden:
		return refused, nil
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented:
		text, _ := io.ReadAll(resp.Body)
		return 0, fmt.Errorf("%s: %s", resp.Status, text)
	case !q.shows || resp.StatusCode != http.StatusOK:
		return passed, nil
	}
	d := json.NewDecoder(resp.Body)
	for {
		var answer struct {
			Items []any
			Type  string
		}
		if err := d.Decode(&answer); err != nil {
			return 0, err
		}
		switch {
		case len(answer.Items) > 0 || answer.Type == "ADDED":
			return passed, nil
		case answer.Type == "" || answer.Type == "BOOKMARK":
			return unseen, nil
		}
	}
}
