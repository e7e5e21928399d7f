// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// tourTime is how long any command of the tour may take, in seconds.
const tourTime = "300"

// TestTour types what the script and the server suggest, and then every command of docs/tour.md, in order, into one shell
// of a user who started the server with hack/run.sh. Each has to succeed.
func TestTour(t *testing.T) {
	t.Parallel()
	s := startRunScript(t)
	var script strings.Builder
	script.WriteString("set -eo pipefail\n")
	for _, command := range slices.Concat(s.hints(), tour(t), []string{"kubectl create -f artifacts/examples/create/chat.yaml -o yaml"}) {
		command = strings.NewReplacer("$PWD/_data", s.data, "localhost:7080", s.rest).Replace(command)
		script.WriteString("printf '%s\\n' " + quoted("$ "+command) + "\n" + command + "\n")
	}
	file := filepath.Join(t.TempDir(), "tour.sh")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := kit.Run(t, s.env(t), "bash", "-c", "cd ../.. && timeout "+tourTime+" bash "+file).Must(t, "the tour")
	for _, want := range []string{
		`23`, "TaskSucceeded", "approved by ", "0 held for approval", "The sum of these ten numbers is 129.", "task primes-again created", `"model/scripted-1"`, "user   system:serviceaccount:default:me",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour does not show %q", want)
		}
	}
	if n := strings.Count(out, "These are the tasks, the newest first:"); n != 2 {
		t.Errorf("the tour's question and that of the example are answered %d times", n)
	}
	if t.Failed() {
		t.Log(out)
	}
	if err := s.process.Stop(); err != nil {
		t.Errorf("hack/run.sh ends with %v when it is told to stop", err)
	}
}

// TestRunScriptFailsAtOnce: a port that is taken ends hack/run.sh, which says so.
func TestRunScriptFailsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // the test is over
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := kit.Run(t, append(os.Environ(), "DATA_DIR="+t.TempDir()), "timeout", tourTime, "../../hack/run.sh", "--secure-port", port, "--rest-bind-address", "127.0.0.1:0")
	if r.Code != 1 || !strings.Contains(r.Output, "another --secure-port?") {
		t.Errorf("exit %d: %s", r.Code, r.Output)
	}
}

// runScript is a running hack/run.sh.
type runScript struct {
	process    *kit.Process
	data, rest string
	home       string
}

func startRunScript(t *testing.T) *runScript {
	t.Helper()
	s := &runScript{data: t.TempDir(), rest: "127.0.0.1:" + kit.FreePort(t), home: t.TempDir()}
	kit.EndRunsAfter(t, s.data)
	env := append(os.Environ(), "DATA_DIR="+s.data, "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=")
	s.process = kit.Start(t, env, "../../hack/run.sh", "--secure-port", kit.FreePort(t), "--rest-bind-address", s.rest)
	s.process.Await(t, "Stop with Ctrl-C.")
	return s
}

// hints returns the commands that the script and the server print, except watches, which do not end.
func (s *runScript) hints() []string {
	var commands []string
	for line := range strings.Lines(s.process.Output()) {
		command := strings.TrimSpace(line)
		word, _, _ := strings.Cut(command, " ")
		if strings.HasPrefix(line, "  ") && slices.Contains([]string{"cd", "export", "kubectl", "platform"}, word) && !strings.Contains(command, "--watch") {
			commands = append(commands, command)
		}
	}
	return commands
}

func (s *runScript) env(t *testing.T) []string {
	t.Helper()
	return append(os.Environ(), "HOME="+s.home, "PATH="+filepath.Dir(kit.Bin(t, "kubectl"))+":"+os.Getenv("PATH"))
}

// tour returns the commands of docs/tour.md.
func tour(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	blocks := strings.Split(string(data), "\n```")
	for i := 1; i < len(blocks); i += 2 {
		body, ok := strings.CutPrefix(blocks[i], "sh\n")
		if !ok {
			t.Fatalf("a block of the tour is not a shell's: %s", blocks[i])
		}
		commands = append(commands, strings.Split(strings.TrimSpace(body), "\n")...)
	}
	if len(commands) < 30 {
		t.Fatalf("the tour has %d commands", len(commands))
	}
	return commands
}

// quoted returns a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
