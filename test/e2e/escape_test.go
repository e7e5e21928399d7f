// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/escape"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// escapeImage has the program that tries to escape, and next to nothing else.
const escapeImage = "platform.ai/test-escape:dev"

// TestEscapesInPods tries all known escapes from a command in a Pod: from its sandbox to its worker, whose user and container
// are the same, and to the worker's token.
func TestEscapesInPods(t *testing.T) {
	if err := sandbox.Probe().Check(); err != nil {
		t.Skip(err)
	}
	p := newTeam(t)
	p.cluster.LoadImages(t, imageOfEscape(t))
	const api = "/var/run/secrets/platform.ai"
	target := escape.Target{
		Secrets: []string{api + "/token", "/dev/termination-log"}, Hidden: []string{api, "/spool"}, Processes: []int{1},
		Signals: sandbox.Probe().Landlock >= 6, Work: "/workspace",
	}
	raw, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	command(t, p, "escapes", "", map[string]any{"image": escapeImage, "command": []string{"/escape", escape.Argument, string(raw)}, "args": []string{}})
	p.MustShell(t, "kubectl wait --for=condition=Complete --timeout=300s task/escapes")
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(p.MustShell(t, "kubectl get --raw "+native(p, "tasks/escapes/result"))), &result); err != nil {
		t.Fatal(err)
	}
	// The file system is the image's, and the network is the Pod's.
	permitted := []string{
		"OPEN: write to /tmp", "OPEN: write to /dev/shm", "OPEN: listen", "OPEN: listen without a port of its own", "OPEN: talk to the kernel by netlink", "OPEN: read /etc/shadow",
		"OPEN: share memory", "OPEN: share semaphores", "OPEN: share a queue", "OPEN: share a queue of POSIX",
	}
	open, tried := escape.Open(result.Result)
	open = slices.DeleteFunc(open, func(line string) bool {
		return slices.Contains(permitted, line) || strings.HasPrefix(line, "OPEN: watch /")
	})
	if !tried || len(open) > 0 {
		t.Errorf("open:\n%s\nof\n%s", strings.Join(open, "\n"), result.Result)
	}
	except := []string{ // there are no such files, ports and programs here, and the Pod's network is the command's
		"read a file that was made later", "run with the rights of its owner", "connect to 127.0.0.1", "connect to [::1]", "connect to @", "send to", "connect by MPTCP to",
		"connect by TCP fast open to", "connect a pair anew to", "watch /",
	}
	for _, line := range permitted {
		except = append(except, strings.TrimPrefix(line, "OPEN: "))
	}
	if left := escape.Missing(result.Result, except...); len(left) > 0 {
		t.Errorf("not tried:\n%s\nof\n%s", strings.Join(left, "\n"), result.Result)
	}
	t.Logf("%d ways were denied", strings.Count(result.Result, "denied: "))
}

// leaks are what a model's program in a Pod must not get: the keys of the run, the token of its worker, what the worker has yet to
// deliver, and the worker's memory, by name and by way of a link. Each line of the output is one way.
const leaks = `
try() { what=$1; shift; if error=$("$@" 2>&1 > /dev/null); then echo "OPEN: $what"; else echo "denied: $what: ${error%%$'\n'*}"; fi; }
for f in /secrets/run/providers/NAMESPACE/PROVIDER /secrets/run/..data/providers/NAMESPACE/PROVIDER /var/run/secrets/platform.ai/token /var/run/secrets/platform.ai/..data/token /spool/events /proc/1/environ /proc/1/mem /proc/1/maps /proc/1/cmdline; do
  try "read $f" head -c 1 "$f"
  ln -sf "$f" link && try "read through a link $f" head -c 1 link
  try "copy $f" dd if="$f" bs=1 count=1
done
for d in /secrets/run /var/run/secrets/platform.ai /spool /proc /proc/1/fd /proc/1/root/secrets/run; do try "list $d" ls "$d"; done
try "mount" mount -t tmpfs none /workspace
try "make a user namespace" unshare -U true
if (exec 3<>/dev/tcp/KUBERNETES/443) 2> /dev/null; then echo "OPEN: connect"; else echo "denied: connect"; fi
printf '#!/bin/sh\necho its own files' > own; chmod 711 own && touch -d @5 own && mv own mine && chmod 755 mine && ./mine
echo "tried $(id -u)"`

// TestLeaksInPods tries the leaks from code_exec in a Pod.
func TestLeaksInPods(t *testing.T) {
	t.Parallel()
	if err := sandbox.Probe().Check(); err != nil {
		t.Skip(err)
	}
	p := newTeam(t)
	service := p.MustShell(t, "kubectl -n default get service kubernetes -o jsonpath={.spec.clusterIP}")
	applyTeam(t, p, startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
		{Match: script.Match{Turn: 1}, Reply: calling(t, "code_exec", map[string]any{"language": "bash", "timeout": 60, "code": strings.NewReplacer(
			"NAMESPACE", p.Namespace(), "PROVIDER", "model", "KUBERNETES", service).Replace(leaks)})},
		{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "{{ .Results.code_exec.data.output }}"}},
	}}))
	applyTask(t, p, "leaks", "Try.")
	p.MustShell(t, "kubectl wait --for=condition=Succeeded --timeout=300s task/leaks")
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(p.MustShell(t, "kubectl get --raw "+native(p, "tasks/leaks/result"))), &result); err != nil {
		t.Fatal(err)
	}
	if open, tried := escape.Open(result.Result); !tried || len(open) > 0 || strings.Count(result.Result, "denied: ") != 36 {
		t.Errorf("open:\n%s\nof\n%s", strings.Join(open, "\n"), result.Result)
	}
	if !strings.Contains(result.Result, "\nits own files\n") {
		t.Errorf("a program could not change its own files:\n%s", result.Result)
	}
}

// The floods of TestFloodsInPods. The bomb is slow and has eleven generations at most, so that the node survives it if nothing
// stops it. The daemons leave their session, parent, folder and environment.
const (
	bomb    = `bomb() { sleep 0.05; if [ $1 -lt 10 ]; then bomb $(($1+1)) & bomb $(($1+1)) & fi; sleep 1000; }; bomb 0`
	hoard   = `for i in 1 2 3 4; do (head -c 40m /dev/zero | tail -c 40m | sleep 1000) & done; wait`
	fill    = `head -c 1200m /dev/zero > /home/worker/full; echo written; sleep 1000`
	daemons = `for i in 1 2 3; do (setsid env -i /bin/sh -c 'cd /; exec sleep DAEMON' > /dev/null 2>&1 < /dev/null &); done; echo started`
)

// TestFloodsInPods: a fork bomb, too much memory in many processes, a full disk and daemons of programs end with their Pod or
// before, each for a reason that has a name. Other Pods of the node do not notice.
func TestFloodsInPods(t *testing.T) {
	p := newTeam(t)
	apply(t, p, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "neighbour"}, "spec": map[string]any{
			"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			"containers": []any{map[string]any{
				"name": "main", "image": shellImage, "imagePullPolicy": "Never", "command": []string{"sh", "-c", "trap exit TERM; sleep 100000 & wait"},
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []string{"ALL"}}},
			}},
		},
	})
	p.MustShell(t, "kubectl wait --for=condition=Ready --timeout=300s pod/neighbour")
	// The other Pods of the node that stay: which they are, and how often they were started.
	others := func() string {
		const columns = "-o custom-columns=UID:.metadata.uid,RESTARTS:.status.containerStatuses[*].restartCount,READY:.status.containerStatuses[*].ready"
		return p.MustShell(t, "kubectl -n "+system+" get pods "+columns+"; kubectl -n kube-system get pods "+columns+"; kubectl get pod neighbour "+columns)
	}
	before := others()
	daemon := fmt.Sprintf("86%d", os.Getpid())
	limited := func(memory string) map[string]any {
		return map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": memory}}}
	}
	command(t, p, "hoard", hoard, limited("96Mi"))
	command(t, p, "fill", fill, nil)
	command(t, p, "daemons", strings.ReplaceAll(daemons, "DAEMON", daemon), nil)
	applyTeam(t, p, startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
		{Match: script.Match{Turn: 1}, Reply: calling(t, "code_exec", map[string]any{"language": "bash", "code": bomb, "timeout": 60})},
		{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "{{ .Results.code_exec }}"}},
	}}))
	applyTask(t, p, "bomb", "Fork.")
	failedBecause(t, p, "hoard", "memory", v1alpha1.ReasonOOMKilled)
	failedBecause(t, p, "fill", "", v1alpha1.ReasonEvicted)
	for _, name := range []string{"bomb", "daemons"} {
		if task, _, _ := ended(t, p, name); task.Status.Phase != v1alpha1.TaskSucceeded {
			t.Errorf("%s: %s %q", name, task.Status.Phase, task.Status.Message)
		}
	}
	if got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/bomb/result")); !strings.Contains(got, "too many processes") {
		t.Errorf("the bomb: %s", got)
	}
	p.MustShell(t, "kubectl wait --for=jsonpath={.status.phase}=Succeeded --timeout=300s pod --selector platform.ai/task=daemons")
	if left := p.Shell(t, "grep -lz '^"+daemon+"$' /proc/[0-9]*/cmdline"); left.Code == 0 {
		t.Errorf("daemons are left: %s", left.Output)
	}
	if after := others(); after != before {
		t.Errorf("other Pods of the node, before:\n%s\nafter:\n%s", before, after)
	}
	if got := p.MustShell(t, "kubectl exec neighbour -- echo alive"); got != "alive\n" {
		t.Errorf("the neighbour says %q", got)
	}
	p.MustShell(t, "kubectl wait --for=condition=Ready --timeout=300s nodes --all")
	for _, pressure := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		p.MustShell(t, "kubectl wait --for=condition="+pressure+"=False --timeout=300s nodes --all")
	}
}

// imageOfEscape makes the image, with this program, and returns its tarball. Programs that are run in namespaces are this one
// as well: none is reached, because the namespaces are refused.
func imageOfEscape(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, other, image := installEscape(t, dir), filepath.Join(dir, "other"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-name", escapeImage, "-certificates", "", "-entrypoint", "/escape", "-o", image,
		program+"=/escape", "@/escape=/bin/cat", "@/escape=/bin/mount", other+"=/etc/shadow", other+"=/usr/share/none")
	cmd.Dir = "../../hack/images"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("image: %v\n%s", err, out)
	}
	return image
}
