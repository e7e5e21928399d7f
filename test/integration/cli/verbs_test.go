// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// step is a command, the code that it exits with, and what it prints.
type step struct {
	args       string
	code       int
	out, about string
}

// play runs commands one after the other.
func play(t *testing.T, kubeconfig string, steps []step) {
	t.Helper()
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
		out, errs, code := standalone.Command(ctx, kubeconfig, strings.Split(s.args, " ")...)
		cancel()
		if code != s.code || !strings.Contains(out, s.out) || !strings.Contains(errs, s.about) {
			t.Errorf("platform %s: exit code %d, want %d\n%s%s\nwant %q and %q", s.args, code, s.code, out, errs, s.out, s.about)
		}
	}
}

// TestCommandVerbs: what a user of kubectl expects of a command that lists, shows and changes tasks.
func TestCommandVerbs(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `exit 0`)
	for _, name := range []string{"one", "two"} {
		p.Run(name)
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	p.Run("nightly", func(s *v1alpha1.TaskSpec) { s.Schedule, s.Suspend = "0 3 1 1 *", true })
	p.AwaitPhase("nightly", v1alpha1.TaskScheduled)
	play(t, p.Kubeconfig, []step{
		{"task get one two", 0, "\ntwo ", ""},
		{"task get one none two", 1, "\ntwo ", `"none" not found`},
		{"task get one two -o json", 0, `"kind": "List"`, ""},
		{"task get one -o jsonpath={.status.phase}", 0, "Succeeded", ""},
		{"task get one -o jsonpath=.metadata.name", 0, "one", ""},
		{"task list -o jsonpath={.items[*].metadata.name}", 0, "nightly one two", ""},
		{"task list -o custom-columns=NAME:.metadata.name,WHERE:metadata.namespace,X:.spec.agentRef.name", 0, "one       default   <none>\n", ""},
		{"task list -o custom-columns=NAME", 1, "", "must be HEADING:PATH"},
		{"task list -o jsonpath={.x", 1, "", "-o jsonpath={.x"},
		{"task list -o jsonpath=", 1, "", "a template must follow"},
		{"task list --status Done", 1, "", `--status: "Done" is not one of Pending`},
		{"task list -w --limit 1", 1, "", "--watch cannot be combined with --limit"},
		{"approval list --state open", 1, "", `--state: "open" is not one of`},
		{"task describe one", 0, "Phase:      Succeeded\n", ""},
		{"task describe one", 0, "\nEvents", ""},
		{"task artifacts one", 0, "", "nothing found"},
		{"task artifacts none", 1, "", `"none" not found`},
		{"task children nightly", 0, "", "nothing found"},
		{"task resume nightly", 0, "task nightly resumed", ""},
		{"task get nightly -o jsonpath={.spec.suspend}", 0, "", ""},
		{"task suspend nightly", 0, "task nightly suspended", ""},
		{"task get nightly -o jsonpath={.spec.suspend}", 0, "true", ""},
		{"task suspend one", 1, "", "task one has ended (Succeeded), so there is nothing to suspend"},
		{"task run-now one", 1, "", "task one has no schedule"},
		{"task run-now nightly --name extra -w", 0, "TaskSucceeded", ""},
		{"task children nightly", 0, "extra", ""},
		{"task get extra -o jsonpath={.metadata.ownerReferences[0].name}", 0, "nightly", ""},
		{"task delete one none two", 1, "task two deleted", `"none" not found`},
		{"agent list", 0, "", "nothing found"},
		{"provider list", 0, "", "nothing found"},
		{"skill list", 0, "", "nothing found"},
		{"tool list -A", 0, "", "nothing found"},
		{"tool list", 0, "file_read ", ""},
		{"tool list --custom", 0, "", "nothing found"},
		{"tool list -o name", 0, "", ""},
		{"status", 0, "state      ready\nyou        ", ""},
		{"status", 0, "tasks      0 running, 0 pending, 2 in all\napprovals  0 pending", ""},
		{"status -o json", 0, `"ready": true`, ""},
		{"audit trace none", 0, "", "nothing found"},
		{"memory list --query gate", 0, "", "nothing found"},
		{"memory list --tags ci -w", 1, "", "cannot be combined with the filters of a search"},
		{"memory list --query gate -o jsonpath={.kind}", 0, "MemoryList", ""},
		{"memory proposal list --query gate --status all", 0, "", "nothing found"},
		{"memory proposal list --type memory --task-name one", 0, "", "nothing found"},
		{"agent get none", 1, "", `"none" not found`},
		{"version", 0, "server v1.", ""},
		{"version --client", 0, "client ", ""},
		{"version -o json", 0, `"server": "v1.`, ""},
		{"__complete task get ext", 0, "extra\n", ""},
		{"__complete task list --status ", 0, "Succeeded\n", ""},
		{"__complete task list --namespace ", 0, "kube-system\n", ""},
		{"__complete task events extra --type ", 0, "TaskSucceeded\n", ""},
		{"__complete approval list --state ", 0, "pending\n", ""},
		{"__complete task list -o ", 0, "custom-columns=\n", ""},
		{"task rerun nightly", 1, "", "task nightly has not ended (Scheduled), so it cannot be run again"},
		{"task rerun none extra", 1, "task extra-rerun-", `"none" not found`},
	})
}

// TestCommandNeedsNoKubeconfig: an address, a token and the certificate of the authority are enough.
func TestCommandNeedsNoKubeconfig(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := kit.Must[*clientcmdapi.Config](t)(clientcmd.LoadFromFile(s.Kubeconfig))
	authority := filepath.Join(t.TempDir(), "ca.crt")
	for _, c := range admin.Clusters {
		if err := os.WriteFile(authority, c.CertificateAuthorityData, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := s.Token(t, "default", "viewer", "platform-viewer")
	empty := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	play(t, empty, []step{
		{"task list --server " + s.URL + " -t " + token + " --certificate-authority " + authority, 0, "", "nothing found"},
		{"task list --server " + s.URL + " -t " + token, 1, "", "certificate"},
	})
}

// TestApprovalsByShortNames: the beginning of an id names an approval of any task, as long as no other begins with it.
func TestApprovalsByShortNames(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	w := standalone.NewWaiting(t, s, admin, "rotate")
	first, second := w.Ask(`{"n":1}`), w.Ask(`{"n":2}`)
	play(t, s.Kubeconfig, []step{
		{"approval get " + first[:12] + " " + second, 0, second[:20], ""},
		{"approval get abc", 1, "", "at least 4 characters"},
		{"approval get 00000000", 1, "", "no id is this or begins with this"},
		{"approval approve " + first[:12] + " --yes --reason fine", 0, "approved by ", ""},
		{"approval approve " + first[:12] + " " + second[:12] + " --yes", 0, "approved by ", ""},
		{"approval deny " + second[:12], 1, "", "approved"},
	})
	for id, want := range map[string]v1alpha1.ApprovalState{first: v1alpha1.ApprovalApproved, second: v1alpha1.ApprovalApproved} {
		if got := kit.Must[*v1alpha1.Approval](t)(admin.Approvals("default").Get(t.Context(), id, metav1.GetOptions{})); got.Status.State != want {
			t.Errorf("%s: %s, want %s", id, got.Status.State, want)
		}
	}
}

// TestListGoesOnAcrossARestart: list -w shows a task that is created after the server was stopped and started.
func TestListGoesOnAcrossARestart(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	lines := follow(t, s.Kubeconfig, "task", "list", "-w", "-o", "custom-columns=N:.metadata.name,P:.status.phase")
	create := func(name string) {
		s.MustShell(t, "platform task create --name "+name+" --command true")
	}
	create("before")
	awaitLine(t, lines, "before   Succeeded")
	s.Kill()
	s.Restart(t)
	create("after")
	awaitLine(t, lines, "after   Succeeded")
}

// TestLogGoesOnAfterAKill: logs -f prints each byte of the log once, although the server is killed meanwhile.
func TestLogGoesOnAfterAKill(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	// It goes on when there is a file of the line's number, which the test writes before, while and after the server is away.
	s.MustShell(t, `platform task create --name long --command sh --arg -c --arg 'echo folder $PWD; for i in $(seq 150); do
		if [ $i = 21 ] || [ $i = 81 ]; then while [ ! -e $i ]; do sleep 0.01; done; fi
		echo line $i
		if [ $i = 80 ]; then : >reached; fi
	done'`)
	lines := follow(t, s.Kubeconfig, "task", "logs", "-f", "long")
	got := awaitLine(t, lines, "line 20")
	_, after, _ := strings.Cut(got, "folder ")
	folder, _, _ := strings.Cut(after, "\n")
	permit := func(line string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, line), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill()
	permit("21")
	kit.Await(t, "line 80", func() bool {
		_, err := os.Stat(filepath.Join(folder, "reached"))
		return err == nil
	})
	s.Restart(t)
	permit("81")
	for lines.Scan() {
		got += lines.Text() + "\n"
	}
	if want := s.MustShell(t, "platform task logs long"); got != want || !strings.Contains(want, "line 150\n") {
		t.Errorf("followed:\n%s\nstored:\n%s", got, want)
	}
}

// follow starts a command and returns the lines that it prints. It is interrupted at the end of the test.
func follow(t *testing.T, kubeconfig string, args ...string) *bufio.Scanner {
	t.Helper()
	in, out := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cli.Main(ctx, "platform", append([]string{"--kubeconfig", kubeconfig}, args...), cli.Streams{In: strings.NewReader(""), Out: out, Err: io.Discard})
		_ = out.Close() // a pipe: it cannot fail
	}()
	t.Cleanup(func() {
		cancel()
		_ = in.Close() // as above
		<-done
	})
	return bufio.NewScanner(in)
}

// awaitLine reads to the line that contains text and returns everything up to it.
func awaitLine(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	var read strings.Builder
	for lines.Scan() {
		read.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), text) {
			return read.String()
		}
	}
	t.Fatalf("no line has %q:\n%s", text, read.String())
	return ""
}
