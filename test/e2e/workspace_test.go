// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

const (
	// gitPort is a port of this machine from which the controller in testdata/cluster allows repositories.
	gitPort = ":9418"
	// gitPortOfPublication is another one.
	gitPortOfPublication = ":9419"
	// repositoryToken is the credential of the repository.
	repositoryToken = "rt-4d3c2b1a09f8e7d6c5b4"
)

// searches prints what a command finds: its folder, which files of its container have the credential or the words of the repository,
// whether the environment and the arguments of a process have them, and whether it can write what its worker reads.
const searches = `
pwd; ls -A; cat v; echo "home: $HOME"; ls -A "$HOME"
words='rt-4d3c2b1a[0]9f8e7d6c5b4|first [c]ommit'
find /workspace /prepared /secrets /fetched /tmp /home /spool /artifacts /platform /var /run /etc /dev/shm -type f -exec grep -lsE "$words" {} + 2>/dev/null | sort -u | sed 's/^/has words: /'
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -E "$words" | sed 's/^/a process has words: /'
for f in /secrets/git /fetched; do [ -e $f ] && echo "there is $f"; done
[ -s /prepared/answer.json ] && echo "there is a report"
(: > /prepared/answer.json) 2>/dev/null && echo "the report can be written"
(: > /prepared/more) 2>/dev/null && echo "a file beside it can be written"
echo searched
[ "$PLATFORM_TASK_ATTEMPT" = 2 ]`

// TestWorkspacesOfPods: a command in a Pod finds the files of a commit and nothing else of their repository, and so do its retry, though
// the branch has moved, and a model's program. What cannot be fetched fails the task with a reason. A task that is fetching obeys its
// timeout and a cancellation.
func TestWorkspacesOfPods(t *testing.T) {
	t.Parallel()
	p := newTeam(t)
	h := githost.At(t, p.Address()+gitPort, repositoryToken)
	h.Create(t, "r")
	const branch = "price-$$(HOME)-$(PATH)" // nothing of it is a variable
	first := h.Commit(t, "r", branch, map[string]string{"docs/v": "first commit\n", ".bashrc": "echo pwned"})
	h.CommitTree(t, "r", "evil", h.Tree(t, "r", githost.Entry{Mode: "100644", Name: ".git", Content: "gitdir: /"}))
	h.Git(t, "r", "", "symbolic-ref", "HEAD", "refs/heads/"+branch)
	var opened, refused atomic.Int32
	asked := make(chan struct{}, 10)
	h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow.git/"):
			asked <- struct{}{}
			<-r.Context().Done()
			return true
		case strings.HasPrefix(r.URL.Path, "/away.git/"):
			refused.Add(1)
			http.Error(w, "the words of a server", http.StatusServiceUnavailable)
			return true
		case r.Method == http.MethodGet && r.Header.Get("Authorization") != "" && strings.HasPrefix(r.URL.Path, "/r.git/") && opened.Add(1) == 2:
			h.Commit(t, "r", branch, map[string]string{"docs/v": "second commit\n"})
		}
		return false
	}
	p.MustShell(t, "kubectl create secret generic reader --from-literal=token="+repositoryToken)
	p.MustShell(t, "kubectl create secret generic elsewhere --from-literal=token="+repositoryToken)
	p.MustShell(t, "kubectl annotate secret elsewhere "+v1alpha1.AnnotationAllowedHosts+"=git.example.com")
	of := func(repository, branch, secret string) map[string]any {
		ws := map[string]any{"gitRepo": h.Location(repository), "branch": branch}
		if secret != "" {
			ws["readCredentialRef"] = map[string]any{"name": secret}
		}
		return map[string]any{"workspace": ws, "retryPolicy": map[string]any{"maxRetries": 1, "initialDelay": "1s"}}
	}
	again := of("r", branch, "reader")
	again["workspace"].(map[string]any)["subPath"] = "docs" //nolint:forcetypeassert // see of
	command(t, p, "again", searches, again)
	task, _, _ := ended(t, p, "again")
	if d := task.Status.Delivery; task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Attempts != 2 || d == nil || d.StartingSHA != first || h.Git(t, "r", "", "rev-parse", branch) == first {
		t.Errorf("%s in attempt %d: %s: %+v; want it to have begun with %s", task.Status.Phase, task.Status.Attempts, task.Status.Message, d, first)
	}
	log := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/again/log"))
	const found = "/workspace\nv\nfirst commit\nhome: /home/worker\nhas words: /workspace/v\nthere is a report\nsearched\n"
	if strings.Count(log, found) != 2 {
		t.Errorf("the two attempts found:\n%s\nwant for each:\n%s", log, found)
	}
	var events v1alpha1.ExecutionEventList
	getJSON(t, p, "executionevents --field-selector taskName=again,type="+string(v1alpha1.EventWorkspacePreparationCompleted), &events)
	if len(events.Items) != 2 {
		t.Errorf("%d events of a preparation", len(events.Items))
	}
	for i := range events.Items {
		var content struct {
			Commit string `json:"commit"`
			Files  int    `json:"files"`
		}
		if err := json.Unmarshal(events.Items[i].Content.Raw, &content); err != nil || content.Commit != first || content.Files != 1 {
			t.Errorf("prepared %s: %v", events.Items[i].Content.Raw, err)
		}
	}
	command(t, p, "held", "until [ -e go ]; do sleep 0.1; done; echo done", of("r", branch, "reader"))
	awaitEvent(t, p, "held", v1alpha1.EventWorkspacePreparationCompleted)
	searchWorker(t, strings.TrimSpace(p.MustShell(t, "kubectl get pods --selector platform.ai/task=held -o jsonpath={.items[0].metadata.uid}")))
	if task, _, _ := ended(t, p, "held"); task.Status.Phase != v1alpha1.TaskSucceeded {
		t.Errorf("held: %s: %s", task.Status.Phase, task.Status.Message)
	}
	applyTeam(t, p, startModelWith(t, p, &script.Script{Models: []string{"scripted-1"}, Turns: []script.Turn{
		{Match: script.Match{Turn: 1}, Reply: calling(t, "code_exec", map[string]any{"language": "bash", "timeout": 60, "code": `ls -A; cat docs/v; echo "$HOME"; ls -A "$HOME"`})},
		{Match: script.Match{Turn: 2}, Reply: script.Reply{Text: "{{ .Results.code_exec.data.output }}"}},
	}}))
	model := of("r", branch, "reader")
	maps.Copy(model, map[string]any{"type": "ai", "agentRef": map[string]any{"name": "coder"}, "prompt": "Look."})
	apply(t, p, map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": "model"}, "spec": model})
	if _, result, _ := ended(t, p, "model"); !strings.Contains(result, `docs\nsecond commit\n/tmp/home\n`) {
		t.Errorf("a model's program found %s", result)
	}
	command(t, p, "late", "echo ran", map[string]any{"workspace": of("slow", "main", "")["workspace"], "timeout": "5s"})
	<-asked
	command(t, p, "cancelled", "echo ran", of("slow", "main", ""))
	<-asked
	cancelTask(t, p, "cancelled") // the program obeys SIGTERM, which is followed by SIGKILL long after this wait
	if task, _, _ := ended(t, p, "cancelled"); task.Status.Phase != v1alpha1.TaskCancelled {
		t.Errorf("cancelled: %s: %s", task.Status.Phase, task.Status.Message)
	}
	p.MustShell(t, "kubectl wait --for=delete pods --selector platform.ai/task=cancelled --timeout=120s")
	failedBecause(t, p, "late", "timed out", v1alpha1.ReasonTimedOut)
	command(t, p, "branch", "echo ran", of("r", "none", "reader"))
	command(t, p, "closed", "echo ran", of("r", branch, ""))
	command(t, p, "tree", "echo ran", of("r", "evil", "reader"))
	command(t, p, "away", "echo ran", of("away", branch, "reader"))
	command(t, p, "hosts", "echo ran", of("r", branch, "elsewhere"))
	failedBecause(t, p, "branch", "none", v1alpha1.ReasonRepositoryNotRead)
	failedBecause(t, p, "closed", "credential", v1alpha1.ReasonRepositoryNotRead)
	failedBecause(t, p, "tree", ".git", v1alpha1.ReasonWorkspaceRefused)
	failedBecause(t, p, "away", "does not answer", v1alpha1.ReasonRepositoryUnreachable)
	failedBecause(t, p, "hosts", "git.example.com", v1alpha1.ReasonSecretHostNotAllowed)
	if got, _, _ := ended(t, p, "away"); got.Status.Attempts != 2 || refused.Load() < 2 {
		t.Errorf("a server that is away was asked %d times in %d attempts", refused.Load(), got.Status.Attempts)
	}
	records := p.Records(t)
	records["log of again"] = log
	records["tasks and events"] = p.MustShell(t, "kubectl get tasks,executionevents -o json")
	for where, text := range records {
		for _, word := range []string{repositoryToken, "the words of a server"} {
			if strings.Contains(text, word) {
				t.Errorf("%q is in %s", word, where)
			}
		}
	}
}

// searchWorker looks for the credential, as the node's administrator, in the environment, arguments and mounts of the worker of a Pod and
// in all files of its container. Then it lets its command end.
func searchWorker(t *testing.T, pod string) {
	t.Helper()
	workers := processesOf(t, "platform-worker", []string{pod})
	if len(workers) == 0 {
		t.Fatal("there is no worker")
	}
	process := filepath.Join("/proc", strconv.Itoa(workers[0]))
	searched := map[string]string{}
	for _, name := range []string{"environ", "cmdline", "mountinfo"} {
		raw, err := os.ReadFile(filepath.Join(process, name))
		if err != nil {
			t.Fatal(err)
		}
		searched[name] = string(raw)
	}
	root := filepath.Join(process, "root") + "/"
	eachFile(t, root, func(path string, data []byte) { searched[strings.TrimPrefix(path, root)] = string(data) }, root+"proc", root+"sys")
	if searched["workspace/docs/v"] != "second commit\n" || searched["prepared/answer.json"] == "" {
		t.Errorf("the files of the worker's container were not searched: %q", slices.Sorted(maps.Keys(searched)))
	}
	for where, text := range searched {
		if strings.Contains(text, repositoryToken) || where == "mountinfo" && strings.Contains(text, "git-files") {
			t.Errorf("the credential, or its mount, is in %s of the worker", where)
		}
	}
	if err := os.WriteFile(root+"workspace/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPublicationOfPods: what a command in a Pod changes is published by the controller as one commit, of which neither credential nor
// commit was in the reach of the command.
func TestPublicationOfPods(t *testing.T) {
	t.Parallel()
	p := newTeam(t)
	const pushToken = "pt-5e6f7a8b9c0d1e2f3a4b"
	h := githost.At(t, p.Address()+gitPortOfPublication, repositoryToken)
	h.PushToken = pushToken
	h.Create(t, "r")
	start := h.Commit(t, "r", "main", map[string]string{"docs/v": "first commit\n", "old": "1"})
	p.MustShell(t, "kubectl create secret generic reader --from-literal=token="+repositoryToken)
	p.MustShell(t, "kubectl create secret generic pusher --from-literal=token="+pushToken)
	workspace := map[string]any{
		"gitRepo": h.Location("r"), "intent": "write", "readCredentialRef": map[string]any{"name": "reader"}, "publicationReadCredentialRef": map[string]any{"name": "reader"}, "publicationCredentialRef": map[string]any{"name": "pusher"},
	}
	command(t, p, "change", "ls /baseline | sed 's/^/found in the commit: /'; grep -rls 'pt-5e6f7a[8]b\\|rt-4d3c2b1a[0]9f' /secrets /proc/*/environ /proc/*/cmdline /spool | sed 's/^/found in /'; echo more >> docs/v; rm old; mkdir -p src; echo x > src/new; echo changed", map[string]any{"workspace": workspace})
	task, _, _ := ended(t, p, "change")
	d := task.Status.Delivery
	if task.Status.Phase != v1alpha1.TaskSucceeded || d == nil || d.State != v1alpha1.DeliveryVerifiedExact || d.StartingSHA != start {
		t.Fatalf("%s: %s: %+v", task.Status.Phase, task.Status.Message, d)
	}
	if got := h.Git(t, "r", "", "log", "--format=%H", "main.."+d.Branch); got != d.VerifiedRemoteSHA {
		t.Errorf("the branch has %q, want one commit %s", got, d.VerifiedRemoteSHA)
	}
	if got := h.Git(t, "r", "", "diff", "--name-status", "main", d.Branch); got != "M\tdocs/v\nD\told\nA\tsrc/new" {
		t.Errorf("changed: %q", got)
	}
	h.Commit(t, "r", "main", map[string]string{"docs/v": "second commit\n"})
	delete(workspace, "intent")
	delete(workspace, "publicationReadCredentialRef")
	delete(workspace, "publicationCredentialRef")
	command(t, p, "next", "cat docs/v src/new; ls", map[string]any{"workspace": workspace, "priorTaskRef": map[string]any{"name": "change"}})
	if task, result, _ := ended(t, p, "next"); task.Status.Phase != v1alpha1.TaskSucceeded || !strings.Contains(result, `"first commit\nmore\nx\ndocs\nsrc\n"`) || task.Status.PriorChangesDigest != d.ArtifactDigest {
		t.Errorf("next: %s: %s: %s", task.Status.Phase, task.Status.Message, result)
	}
	if log := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/change/log")); strings.Contains(log, "found in") || !strings.Contains(log, "changed") {
		t.Errorf("the command found:\n%s", log)
	}
}
