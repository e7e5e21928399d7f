// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// leftOut are the filters of upstream's default chain that callChain does without, and why.
var leftOut = map[string]string{
	"WithPriorityAndFairness":              "the handler bounds how many requests are answered, with a fair share for each caller",
	"WithMaxInFlightLimit":                 "the same",
	"WithTracing":                          "the server exports no traces",
	"WithCORS":                             "the handler answers for origins, which have options of their own",
	"WithWarningRecorder":                  "the answers of vendors have no warnings",
	"WithTimeoutForNonLongRunningRequests": "an answer of a model takes as long as it takes",
	"WithRequestDeadline":                  "the same",
	"WithWaitGroup":                        "endStreams ends the requests with the server",
	"WithWatchTerminationDuringShutdown":   "there are no watches",
	"WithProbabilisticGoaway":              "the server does not set its chance",
	"WithCacheControl":                     "the handler sets the headers of its answers",
	"WithHSTS":                             "the server has no such directives",
	"WithRetryAfter":                       "requests that begin during the shutdown are refused where models are asked",
	"WithHTTPLogging":                      "the handler logs failures, not requests",
	"WithLatencyTrackers":                  "each filter is not measured: that would take longer than the filters",
	"WithRoutine":                          "a model's answer is written by the goroutine that reads it",
	"WithMuxAndDiscoveryComplete":          "the vendors' paths are there from the beginning",
}

// TestCallChainKnowsUpstreamsFilters: each filter of upstream's default chain is one of callChain, in the same order, or is left out
// for a reason. A filter that a later version of upstream adds makes the test fail until somebody has decided.
func TestCallChainKnowsUpstreamsFilters(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiserver").Output()
	if err != nil {
		t.Fatalf("where upstream's code is: %v", err)
	}
	upstream := filters(t, filepath.Join(strings.TrimSpace(string(dir)), "pkg", "server", "config.go"), "DefaultBuildHandlerChain")
	ours := filters(t, "compat.go", "callChain")
	if len(upstream) < 20 || !slices.Contains(ours, "WithAuthorization") {
		t.Fatalf("upstream has %v, callChain %v", upstream, ours)
	}
	var want []string
	for _, name := range upstream {
		if leftOut[name] == "" {
			want = append(want, name)
		}
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("callChain lacks (-), or adds (+), filters of upstream's chain:\n%s", diff)
	}
	for name := range leftOut {
		if !slices.Contains(upstream, name) {
			t.Errorf("%s is left out, but upstream has no such filter any more", name)
		}
	}
}

// filters returns the filters that a func puts around a handler, in the order in which they are called: what is named With.
func filters(t *testing.T, file, name string) (list []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if of, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(of.Sel.Name, "With") {
					list = append(list, of.Sel.Name)
				}
			}
			return true
		})
	}
	return list
}
