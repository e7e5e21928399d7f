// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// mostSecondTries is how many tests may pass at the second try in all steps of a tier together.
	mostSecondTries = 5
	// final are signs in the output of a failed test that no second try makes good.
	signRace, signPanic, signLeak = "WARNING: DATA RACE", "panic: ", "leaked: "
	// mostOutput bounds what is repeated of one try, in lines.
	mostOutput = 60
)

// event is a line of "go test -json" (cmd/test2json).
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// try is one run of one test.
type try struct {
	action  string // pass, fail or skip
	at      time.Time
	elapsed time.Duration
	output  []string
}

// result is what one test did, in the order of its tries. A test that ran in several steps has one for each.
type result struct {
	step, pkg, test string // the name of a package's own failure is empty
	tries           []try
}

func (r result) last() try { return r.tries[len(r.tries)-1] }

// name is how people find the test.
func (r result) name() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.pkg, "github.com/platform-ai/platform/")+" "+r.test, " ")
}

// secondTry reports whether the test failed and passed then.
func (r result) secondTry() bool {
	return r.last().action == "pass" && slices.ContainsFunc(r.tries, func(t try) bool { return t.action == "fail" })
}

// lasting returns what no second try makes good, or "".
func (r result) lasting() string {
	for _, t := range r.tries {
		for _, line := range t.output {
			for _, sign := range []string{signRace, signPanic, signLeak} {
				if t.action == "fail" && strings.Contains(line, sign) {
					return strings.TrimSpace(strings.Trim(sign, ": "))
				}
			}
		}
	}
	return ""
}

// summary is what the tests of a tier did.
type summary struct {
	title   string // what was run, on which commit, and when
	results []result
	parts   []part // of "tier parts"
	load    []sample
	took    time.Duration
}

// sample is the load of the machine at a time.
type sample struct {
	at   time.Time
	load string
}

// summarize reads what the tests wrote below a folder.
func summarize(dir string) (summary, error) {
	var s summary
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch {
		case d.Name() == loadFile:
			samples, err := readLoad(path)
			s.load = append(s.load, samples...)
			return err
		case filepath.Ext(path) == ".json":
			results, err := readEvents(path)
			s.results = append(s.results, results...)
			return err
		}
		return nil
	})
	slices.SortFunc(s.load, func(a, b sample) int { return a.at.Compare(b.at) })
	return s, err
}

// readEvents reads the tests of one step: those without tests below them count, and packages that failed by themselves.
func readEvents(path string) ([]result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	step := strings.TrimSuffix(filepath.Base(path), ".json")
	type key struct{ pkg, test string }
	results, pending := map[key]*result{}, map[key][]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output":
			pending[k] = append(pending[k], e.Output)
		case "pass", "fail", "skip":
			if results[k] == nil {
				results[k] = &result{step: step, pkg: e.Package, test: e.Test}
			}
			results[k].tries = append(results[k].tries, try{e.Action, e.Time, time.Duration(e.Elapsed * float64(time.Second)), pending[k]})
			delete(pending, k)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	above := map[key]bool{} // tests that have others below them, and packages that have tests
	for k := range results {
		for i := strings.LastIndexByte(k.test, '/'); i >= 0; i = strings.LastIndexByte(k.test[:i], '/') {
			above[key{k.pkg, k.test[:i]}] = true
		}
		if k.test != "" && results[k].tries[0].action == "fail" {
			above[key{k.pkg, ""}] = true
		}
	}
	var out []result
	for k, r := range results {
		failed := r.last().action == "fail"
		if (k.test == "" && (!failed || above[k])) || (above[k] && !failed && !r.secondTry()) {
			continue
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b result) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test)) })
	return out, nil
}

func readLoad(path string) ([]sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []sample
	for line := range strings.Lines(string(data)) {
		at, load, ok := strings.Cut(strings.TrimSpace(line), "\t")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %q is not a sample", path, line)
		}
		out = append(out, sample{time.Unix(seconds, 0), load})
	}
	return out, nil
}

// count returns how many tests ended with an action.
func (s summary) count(action string) int {
	n := 0
	for _, r := range s.results {
		if r.last().action == action {
			n++
		}
	}
	return n
}

// secondTries are the tests that passed at the second try: each is a defect.
func (s summary) secondTries() []result {
	return slices.DeleteFunc(slices.Clone(s.results), func(r result) bool { return !r.secondTry() })
}

// err says why the tier is red although its command may have ended well.
func (s summary) err() error {
	var err error
	for _, r := range s.results {
		if why := r.lasting(); why != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s, which a second try does not make good", r.name(), why))
		}
	}
	if n := len(s.secondTries()); n > mostSecondTries {
		err = errors.Join(err, fmt.Errorf("%d tests passed only at the second try; at most %d may", n, mostSecondTries))
	}
	return err
}

// loadAt returns the newest sample at a time.
func (s summary) loadAt(at time.Time) string {
	load := "unknown"
	for _, l := range s.load {
		if l.at.After(at) {
			break
		}
		load = l.load
	}
	return load
}

// skipped groups the skipped tests by reason, the most frequent first.
func (s summary) skipped() string {
	reasons := map[string]int{}
	for _, r := range s.results {
		if r.last().action != "skip" {
			continue
		}
		reason := "no reason given"
		for _, line := range r.last().output {
			// "    file_test.go:12: reason"
			if _, said, ok := strings.Cut(strings.TrimSpace(line), ".go:"); ok {
				if _, said, ok = strings.Cut(said, ": "); ok {
					reason = said
				}
			}
		}
		reasons[reason]++
	}
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for i, reason := range names {
		names[i] = fmt.Sprintf("%d: %s", reasons[reason], reason)
	}
	return strings.Join(names, "; ")
}

// print writes the summary for people; the list of second tries comes last.
func (s summary) print(out io.Writer, rest string) {
	fmt.Fprintf(out, "\n=== %s\n", s.title)
	for _, p := range s.parts {
		fmt.Fprintf(out, "%-12s %-8s %6s  %s\n", p.name, p.state, p.took.Round(time.Second), p.said)
	}
	for _, r := range s.results {
		if r.last().action == "fail" {
			fmt.Fprintf(out, "failed: %s\n", r.name())
		}
	}
	fmt.Fprintf(out, "tests: %d passed, %d failed, %d skipped\n", s.count("pass"), s.count("fail"), s.count("skip"))
	line := "in " + s.took.Round(time.Second).String()
	if skipped := s.skipped(); skipped != "" {
		line += "; skipped " + skipped
	}
	if rest != "" {
		line += "; the rest: " + rest
	}
	fmt.Fprintln(out, line)
	tries := s.secondTries()
	if len(tries) == 0 {
		return
	}
	fmt.Fprintf(out, "\n=== passed at the second try: %d. Each is a defect to mend before other work.\n", len(tries))
	for _, r := range tries {
		for i, t := range r.tries {
			fmt.Fprintf(out, "--- %s (%s), try %d: %s after %s; load %s\n", r.name(), r.step, i+1, t.action, t.elapsed, s.loadAt(t.at))
			fmt.Fprint(out, strings.Join(excerpt(t.output), ""))
		}
	}
}

// excerpt returns the end of an output, and before it what the test itself has said: servers log much when they end.
func excerpt(output []string) []string {
	before, end := output[:max(0, len(output)-mostOutput)], output[max(0, len(output)-mostOutput):]
	said := slices.DeleteFunc(slices.Clone(before), func(line string) bool { return !strings.Contains(line, "_test.go:") })
	return append(said, end...)
}
