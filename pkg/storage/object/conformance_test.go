// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/platform-ai/platform/test/kit"
)

// helper is one exported Run function of the API server's conformance kit, which
// etcd3's and the watch cache's own tests run.
type helper struct {
	name string
	run  func(ctx context.Context, t *testing.T, h harness)
	with func(*testing.T) func(*setup)

	// notDecoded is the reason why it cannot run with decoded objects kept in memory.
	notDecoded string
	// cached runs it with a watch cache in front; nil with notCached saying why not.
	cached    func(ctx context.Context, t *testing.T, c *cached)
	notCached string
}

const (
	countsReads      = "counts the values transformed"
	swapsTransformer = "swaps the transformer under objects that were read before"
	cacheSkips       = "the watch cache's own tests do not run it"
)

type plainHelper = func(context.Context, *testing.T, storage.Interface)

// plain returns a helper that needs only a store.
func plain(name string, f plainHelper) helper {
	return helper{
		name:   name,
		run:    func(ctx context.Context, t *testing.T, h harness) { f(ctx, t, h) },
		cached: func(ctx context.Context, t *testing.T, c *cached) { f(ctx, t, c) },
	}
}

func (r helper) uncached() helper {
	r.cached, r.notCached = nil, cacheSkips
	return r
}

// failing returns a helper that makes the codec or the transformer fail on demand.
func failing(name string, transformer bool, f func(context.Context, testing.TB, storage.Interface, func(bool))) helper {
	var fail func(bool)
	return helper{
		name: name,
		with: func(t *testing.T) func(*setup) {
			unsafeDeletion(t, true)
			return func(s *setup) {
				if transformer {
					ft := &failingTransformer{Transformer: s.config.Transformer}
					s.config.Transformer, fail = ft, ft.on.Store
				} else {
					fc := &failingCodec{Codec: s.config.Codec}
					s.config.Codec, fail = fc, fc.on.Store
				}
			}
		},
		run:    func(ctx context.Context, t *testing.T, h harness) { f(ctx, t, h, fail) },
		cached: func(ctx context.Context, t *testing.T, c *cached) { f(ctx, t, c, fail) },
	}
}

func gate(on bool) func(*testing.T) func(*setup) {
	return func(t *testing.T) func(*setup) { unsafeDeletion(t, on); return func(*setup) {} }
}

func corrupt() error { return &CorruptObjectError{Err: fmt.Errorf("bits flipped")} }

func conformance() []helper { return append(storeHelpers(), watchHelpers()...) }

// modes are the kinds of store that the kit is run on.
var modes = []struct {
	name string
	mode mode
}{
	{"disk", mode{objects: -1}},
	{"values", mode{values: 1 << 30, objects: -1}},
	{"objects", mode{values: 1 << 30, objects: 1 << 30}},
	{"indexed", mode{objects: -1, fields: storage.IndexerFuncs{
		"metadata.name": func(obj runtime.Object) string { return obj.(*example.Pod).Name },
		"spec.nodeName": func(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName },
	}}},
	{"cacher", mode{objects: -1, cacher: true}},
}

// envConformance is set in a process of its own for one mode, and names the mode.
const envConformance = "OBJECT_TEST_CONFORMANCE"

// TestConformance runs every helper in every mode that applies to it. Helpers change feature gates and other state of the
// whole process and mostly wait, so each mode runs in a process of its own, at the same time as the others. What is in waits needs minutes.
func TestConformance(t *testing.T) {
	only, child := os.LookupEnv(envConformance)
	if child {
		for _, m := range modes {
			if m.name == only {
				t.Run(m.name, func(t *testing.T) { runMode(t, m.name, m.mode) })
			}
		}
		return
	}
	t.Parallel() // with other tests of this process; it changes nothing in it
	results := map[string]<-chan result{}
	for _, m := range modes {
		results[m.name] = inProcess(t, m.name)
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			r := <-results[m.name]
			if r.err != nil && hurried.MatchString(r.output) {
				t.Logf("once more, without the other modes:\n%s", r.output)
				r = <-inProcess(t, m.name)
			}
			if r.err != nil {
				t.Fatalf("%v\n%s", r.err, r.output)
			}
			_, summary, ok := strings.Cut(r.output, "conformance: ")
			if !ok {
				t.Fatalf("the mode was not run:\n%s", r.output)
			}
			summary, _, _ = strings.Cut(summary, "\n")
			t.Log("conformance: " + summary)
		})
	}
}

// waits are the tests of the kit that wait for seconds, which the kit counts. TestClientBookmarks and TestProgressBookmarks cover bookmarks
// on a fake clock, and TestWatchDropsNothing covers watches that are read late. Revisions that are yet to come are read in the modes without
// a watch cache; the 3 s for which a watch cache waits for them are its own.
var waits = []string{
	"TestConformance/.*/^RunTestWatchDispatchBookmarkEvents$",
	"TestConformance/.*/^RunTestOptionalWatchBookmarksWithCorrectResourceVersion$",
	"TestConformance/.*/^RunOptionalTestProgressNotify$",
	"TestConformance/.*/^RunTestDelayedWatchDelivery$",
	"TestConformance/cacher/^RunTestGet$/too_high",
	"TestConformance/cacher/^RunTestGetListNonRecursive$/too_high",
	"TestConformance/cacher/^RunTestList$/(future_resource_version,_match=Exact|set_too_high)",
}

// scans are the tests of the kit that expect a list to have looked at objects that are not selected: they count them, or want a token
// for a page that has none. A list by an indexed field ends where its objects do.
var scans = []string{
	"TestConformance/indexed/^RunTestListPaginationRareObject$",
	"TestConformance/indexed/^RunTestList$/filter_returning_(two_items,_more_pages_possible|only_one_item,_ensure)",
}

// hurried is what the kit says when it did not wait long enough: 150 ms to 12 s, which cannot be changed.
var hurried = regexp.MustCompile(`cannot receive enough events|Unexpected object watched \((no objects|timeout)\)|did not received a bookmark|deadline exceeded|Unexpected number of events|took too long|Too large resource version`)

// result is how a process ended, and what it printed.
type result struct {
	output string
	err    error
}

// inProcess runs the rows of one mode in another process. Rows that the flag -run leaves out are left out there, too.
func inProcess(t *testing.T, mode string) <-chan result {
	run := "^TestConformance$/^" + mode + "$"
	if parts := strings.SplitN(flag.Lookup("test.run").Value.String(), "/", 3); len(parts) == 3 {
		run += "/" + parts[2]
	}
	skip := scans
	if !kit.Offered(kit.Minutes) {
		skip = slices.Concat(scans, waits)
	}
	args := []string{"-test.run=" + run, "-test.v", "-test.timeout=" + flag.Lookup("test.timeout").Value.String(), "-test.skip=" + strings.Join(skip, "|")}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), envConformance+"="+mode)
	over := make(chan result, 1)
	go func() { // ends with the process
		out, err := cmd.CombinedOutput()
		over <- result{string(out), err}
	}()
	return over
}

func runMode(t *testing.T, name string, m mode) {
	ran, passed, long := map[string]bool{}, 0, 0
	for _, r := range conformance() {
		if m.objects > 0 && r.notDecoded != "" || m.cacher && r.cached == nil {
			continue
		}
		begun := false
		ok := t.Run(r.name, func(t *testing.T) {
			begun = true
			r.runIn(t, m)
		})
		if !begun { // left out
			long++
			continue
		}
		ran[r.name] = true
		if ok {
			passed++
		}
	}
	t.Logf("conformance: mode %s: %d rows of %d helpers, %d passed, %d left out", name, passed, len(ran), passed, long)
}

func (r helper) runIn(t *testing.T, m mode) {
	if r.notDecoded == "" && r.run == nil || r.cached == nil && r.notCached == "" {
		t.Fatal("the row says neither how to run it nor why not")
	}
	with := []func(*setup){func(s *setup) {
		s.db.ValueCacheBytes, s.db.ObjectCacheBytes, s.db.ProgressInterval = m.values, m.objects, time.Second
		s.config.Fields = m.fields
	}}
	if m.cacher { // the helpers expect each test's own prefix in errors and in recorded lists
		with = append(with, func(s *setup) { s.config.Prefix = "/registry" })
	}
	if r.with != nil {
		with = append(with, r.with(t))
	}
	ctx := context.Background()
	h := open(t, with...)
	if !m.cacher {
		r.run(ctx, t, h)
		return
	}
	keyFunc := storage.NamespaceKeyFunc
	if r.name == "RunTestClusterScopedWatch" {
		keyFunc = storage.NoNamespaceKeyFunc
	}
	r.cached(ctx, t, withCache(t, h, keyFunc))
}

// TestConformanceIsComplete fails when the kit exports a helper that is not in
// the table, or the table names one that does not exist.
func TestConformanceIsComplete(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiserver").Output()
	if err != nil {
		t.Fatalf("find the kit's source: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "pkg", "storage", "testing")
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var exported []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Run") && !strings.HasPrefix(f.Name.Name, "RunBenchmark") {
				exported = append(exported, f.Name.Name)
			}
		}
	}
	names := map[string]bool{}
	for _, r := range conformance() {
		names[r.name] = true
		if !slices.Contains(exported, r.name) {
			t.Errorf("%s is not a helper of the kit", r.name)
		}
	}
	for _, name := range exported {
		if !names[name] {
			t.Errorf("%s of the kit is not run", name)
		}
	}
	t.Logf("conformance: %d helpers exported, %d in the table", len(exported), len(names))
}

// exactCreate waits after a create until the watch cache serves it, as the
// cacher's tests of watch semantics do.
type exactCreate struct{ *cached }

func (c exactCreate) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := c.CacheDelegator.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	rv, err := versioner.ObjectResourceVersion(out)
	if err != nil {
		return err
	}
	return c.CacheDelegator.Get(ctx, key, storage.GetOptions{ResourceVersion: fmt.Sprint(rv)}, newPod())
}

func exactly(name string, f plainHelper) helper {
	r := plain(name, f)
	r.cached = func(ctx context.Context, t *testing.T, c *cached) { f(ctx, t, exactCreate{c}) }
	return r
}

func watchHelpers() []helper {
	return []helper{
		plain("RunTestWatch", storagetesting.RunTestWatch),
		plain("RunTestClusterScopedWatch", storagetesting.RunTestClusterScopedWatch),
		plain("RunTestNamespaceScopedWatch", storagetesting.RunTestNamespaceScopedWatch),
		plain("RunTestDeleteTriggerWatch", storagetesting.RunTestDeleteTriggerWatch),
		plain("RunTestWatchFromNonZero", storagetesting.RunTestWatchFromNonZero),
		plain("RunTestDelayedWatchDelivery", storagetesting.RunTestDelayedWatchDelivery),
		plain("RunTestWatchContextCancel", storagetesting.RunTestWatchContextCancel).uncached(),
		plain("RunTestWatcherTimeout", storagetesting.RunTestWatcherTimeout),
		plain("RunTestWatchDeleteEventObjectHaveLatestRV", storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		plain("RunTestWatchInitializationSignal", storagetesting.RunTestWatchInitializationSignal),
		plain("RunTestOptionalWatchBookmarksWithCorrectResourceVersion", storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
		plain("RunSendInitialEventsBackwardCompatibility", storagetesting.RunSendInitialEventsBackwardCompatibility),
		exactly("RunWatchSemantics", storagetesting.RunWatchSemantics),
		exactly("RunWatchSemanticInitialEventsExtended", storagetesting.RunWatchSemanticInitialEventsExtended),
		exactly("RunWatchListMatchSingle", storagetesting.RunWatchListMatchSingle),
		plain("RunTestWatchDispatchBookmarkEvents", func(ctx context.Context, t *testing.T, s storage.Interface) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
		}),
		{
			name: "RunTestWatchFromZero",
			run: func(ctx context.Context, t *testing.T, h harness) {
				storagetesting.RunTestWatchFromZero(ctx, t, h, h.compact)
			},
			cached: func(ctx context.Context, t *testing.T, c *cached) {
				storagetesting.RunTestWatchFromZero(ctx, t, c, nil) // reaching into the cache's history is for its own tests
			},
		},
		{name: "RunTestWatchError", notDecoded: swapsTransformer, notCached: cacheSkips, run: func(ctx context.Context, t *testing.T, h harness) {
			storagetesting.RunTestWatchError(ctx, t, h)
		}},
		{name: "RunWatchErrorIsBlockingFurtherEvents", notDecoded: swapsTransformer, notCached: cacheSkips, run: func(ctx context.Context, t *testing.T, h harness) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, h)
		}},
		{name: "RunOptionalTestProgressNotify", notCached: cacheSkips, run: func(ctx context.Context, t *testing.T, h harness) {
			storagetesting.RunOptionalTestProgressNotify(ctx, t, h, h.increaseRV)
		}},
		{name: "RunTestWatchWithUnsafeDelete", notDecoded: swapsTransformer, notCached: cacheSkips, with: gate(true), run: func(ctx context.Context, t *testing.T, h harness) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, h, corrupt())
		}},
	}
}
