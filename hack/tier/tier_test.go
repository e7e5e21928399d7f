// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/test/kit"
)

// planted is a module with tests that fail in the ways a gate must tell apart. Each is chosen by its name.
const planted = `package planted

import (
	"os"
	"sync"
	"testing"
)

func TestPasses(t *testing.T) {}

func TestSkipped(t *testing.T) { t.Skip("needs the moon") }

func TestFailsOnce(t *testing.T) {
	t.Log("what the first try said")
	for range 200 {
		os.Stdout.WriteString("what a server logs\n")
	}
	if f, err := os.OpenFile(os.Getenv("ONCE"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
		t.Fatal("the first try")
	}
}

func TestFailsAlways(t *testing.T) { t.Fatal("always") }

func TestPanicsOnce(t *testing.T) {
	if f, err := os.OpenFile(os.Getenv("ONCE"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
		panic("once")
	}
}

func TestLeaksOnce(t *testing.T) {
	if f, err := os.OpenFile(os.Getenv("ONCE"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
		t.Fatal("leaked: 12 goroutines")
	}
}

func TestRacesOnce(t *testing.T) {
	f, err := os.OpenFile(os.Getenv("ONCE"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	f.Close()
	n, group := 0, sync.WaitGroup{}
	for range 2 {
		group.Go(func() { n++ })
	}
	group.Wait()
}
`

// tier runs the planted tests of a name as a tier does, and returns what it printed, its folder, and whether it was green.
func tier(t *testing.T, rerun bool, run string, args ...string) (output, dir string, green bool) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := kit.Bin(t, "tier")
	dir = t.TempDir()
	for name, text := range map[string]string{"go.mod": "module planted\n\ngo 1.26\n", "planted_test.go": planted} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := append([]string{"run", "-rest", "make acceptance", "planted", filepath.Join(root, "hack", "gotest.sh"), "step", ".", "-count=1", "-vet=off", "-run=" + run}, args...)
	cmd := exec.CommandContext(t.Context(), program, command...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ONCE="+filepath.Join(dir, "once"), envOut+"=", "TIER_RERUN=", "GOFLAGS=")
	if rerun {
		cmd.Env = append(cmd.Env, "TIER_RERUN=1")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), filepath.Join(dir, "_output", "tests", "planted"), err == nil
}

func TestSecondTry(t *testing.T) {
	for _, c := range []struct {
		name, run string
		rerun     bool
		green     bool
		says      []string
		minutes   bool // each case builds programs
	}{
		{"all is well", "TestPasses|TestSkipped", false, true, []string{"\ntests: 1 passed, 0 failed, 1 skipped\n", "skipped 1: needs the moon; the rest: make acceptance"}, false},
		{"nothing is repeated outside the gate", "TestFailsOnce", false, false, []string{"failed: planted TestFailsOnce", "\ntests: 0 passed, 1 failed"}, true},
		{"the gate repeats it and says so", "TestPasses|TestFailsOnce", true, true, []string{
			"\ntests: 2 passed, 0 failed", "=== passed at the second try: 1", "planted TestFailsOnce (step), try 1: fail", "the first try", "try 2: pass", "load ",
		}, false},
		{"what fails twice is red", "TestPasses|TestFailsAlways", true, false, []string{"failed: planted TestFailsAlways", "\ntests: 1 passed, 1 failed"}, false},
		{"a panic is final", "TestPanicsOnce", true, false, []string{"panic"}, true},
		{"a leak is final", "TestLeaksOnce", true, false, []string{"leaked, which a second try does not make good"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.minutes {
				kit.Needs(t, kit.Minutes)
			}
			output, _, green := tier(t, c.rerun, c.run)
			if green != c.green {
				t.Errorf("green: %v", green)
			}
			for _, text := range c.says {
				if !strings.Contains(output, text) {
					t.Errorf("the output lacks %q", text)
				}
			}
			if _, tries, second := strings.Cut(output, "=== passed at the second try"); second && strings.Contains(c.run, "TestFailsOnce") && !strings.Contains(tries, "what the first try said") {
				t.Error("the list of second tries lacks what the test said")
			}
			if t.Failed() {
				t.Log(output)
			}
		})
	}
}

func TestRaceIsFinal(t *testing.T) {
	if os.Getenv("CGO_ENABLED") != "1" {
		t.Skip("needs the race detector: make race")
	}
	if output, _, green := tier(t, true, "TestRacesOnce", "-race"); green || !strings.Contains(output, "DATA RACE") {
		t.Errorf("green: %v\n%s", green, output)
	}
}

func TestJUnit(t *testing.T) {
	_, dir, _ := tier(t, true, "TestPasses|TestSkipped|TestFailsOnce|TestFailsAlways")
	data, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 4 || got.Failures != 1 || got.Skipped != 1 || len(got.Suites) != 1 {
		t.Errorf("%d tests, %d failures, %d skipped, %d suites", got.Tests, got.Failures, got.Skipped, len(got.Suites))
	}
	for _, c := range got.Suites[0].Cases {
		if (c.Failure != nil) != (c.Name == "TestFailsAlways") || (c.Flaky != nil) != (c.Name == "TestFailsOnce") || (c.Skipped != nil) != (c.Name == "TestSkipped") {
			t.Errorf("%+v", c)
		}
	}
}

// envLeaves has TestLeavesGroup do what it is named after.
const envLeaves = "TIER_TEST_LEAVES"

// TestLeavesGroup is a command for TestLeftBehind: a server that forgot the group of a run.
func TestLeavesGroup(t *testing.T) {
	if os.Getenv(envLeaves) == "" {
		t.Skip("a command for TestLeftBehind")
	}
	dir, err := cgroup.Find()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cgroup.PlaceOf(dir, "forgotten", 1).Make(1); err != nil {
		t.Fatal(err)
	}
}

// TestLeftBehind: what a command leaves is named and, where it is a process, ended, also if it has left its parent, its session and
// its environment.
func TestLeftBehind(t *testing.T) {
	program := kit.Bin(t, "tier")
	for name, c := range map[string]struct{ command, says string }{
		"a process": {"env -i setsid sleep 4321 & disown", "left behind: process "},
		"a file":    {"touch $TMPDIR/forgotten", "left behind: temporary file forgotten"},
		"a group":   {envLeaves + "=1 " + os.Args[0] + " -test.run='^TestLeavesGroup$'", "/platform-forgotten-1."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := cgroup.Find(); name == "a group" && err != nil {
				t.Skipf("no control groups can be made here: %v", err)
			}
			cmd := exec.CommandContext(t.Context(), program, "run", "-ending", "1ms", "planted", "bash", "-c", c.command)
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), envOut+"=") // not into the folder of the tier that runs this test
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
			if name == "a process" {
				_, after, _ := strings.Cut(string(out), "left behind: process ")
				pid, _, _ := strings.Cut(after, ":")
				if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(line), "4321") {
					t.Errorf("process %s goes on", pid)
				}
			}
		})
	}
}

// TestBesideEachOther: a tier that ends does not remove the folder of one that took its number.
func TestBesideEachOther(t *testing.T) {
	t.Parallel()
	program, temporary := kit.Bin(t, "tier"), t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				cmd := exec.CommandContext(t.Context(), program, "run", "-ending", "1ms", fmt.Sprintf("planted-%d", i), "bash", "-c", "touch $TMPDIR/file && rm $TMPDIR/file")
				cmd.Dir, cmd.Env = temporary, append(os.Environ(), envOut+"=", "TMPDIR="+temporary)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
	all.Wait()
}

// TestParts: a second call runs what has not passed on this commit.
func TestParts(t *testing.T) {
	program := kit.Bin(t, "tier")
	dir := t.TempDir()
	makefile := "part-good:\n\techo ran good >>../log\npart-bad:\n\techo ran bad >>../log\n\ttest -e ../mended\n"
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Makefile": makefile, ".gitignore": "_output\n"} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = repo
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"}} {
		if out, err := run("git", args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := run(program, "parts", "acceptance", "good", "bad"); err == nil || !strings.Contains(out, "bad          failed") {
		t.Errorf("first: %v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(program, "parts", "acceptance", "good", "bad"); err != nil || !strings.Contains(out, "bad          passed") || !strings.Contains(out, "good         passed") {
		t.Errorf("second: %v: %s", err, out)
	}
	commit, err := run("git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	summary, err := os.ReadFile(filepath.Join(repo, "_output", "acceptance", strings.TrimSpace(commit), "summary.txt"))
	if err != nil || !strings.Contains(string(summary), "acceptance of "+strings.TrimSpace(commit)+", 2") {
		t.Errorf("the summary does not say of which commit and when it is: %v: %s", err, summary)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || string(log) != "ran good\nran bad\nran bad\n" {
		t.Errorf("%q %v", log, err)
	}
	if out, err := run(program, "parts", "-only", "ugly", "acceptance", "good", "bad"); err == nil || !strings.Contains(out, `no part is named "ugly": there are good, bad`) {
		t.Errorf("unknown part: %v: %s", err, out)
	}
}
