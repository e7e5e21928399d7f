// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// The credentials of TestCredentialsOfACodingAgent, by who has them. No rule of package redact knows their form.
const (
	readRole   = "read"
	lookRole   = "publication-read"
	pushRole   = "publication"
	forgeRole  = "forge"
	vendorRole = "vendor"
	// shownWord is not secret. It goes where an agent's words and files go, and finding it shows that the search covers these places.
	shownWord = "a-word-that-stays-4f5e"
)

func roles() map[string]string {
	return map[string]string{
		readRole: "rr-41d0c9b8a7f6e5d4c3b2", lookRole: "lr-52e1d0c9b8a7f6e5d4c3", pushRole: "pr-63f2e1d0c9b8a7f6e5d4", forgeRole: "fr-7403f2e1d0c9b8a7f6e5",
		vendorRole: "vr-851403f2e1d0c9b8a7f6",
	}
}

// TestCredentialsOfACodingAgent: a coding agent changes a repository and gets a pull request. While it works, and at the end, the values of
// the four credentials of its workspace and of the key of its model's vendor are searched for: in the memory, the environment and the
// arguments of each process of the run, in all files of the server and of the run, and in all that is shown. They are nowhere, but the
// credential with which the repository was cloned is in the memory of the worker, which removes it from what the run says. Each process
// that speaks with the code host has the credential of its step and no other.
func TestCredentialsOfACodingAgent(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	if os.Geteuid() != 0 {
		t.Skip("only root reads the memory of the worker")
	}
	c := newCredentials(t)
	values := roles()
	task := c.Run("coded", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "coder"}
		s.Env = []corev1.EnvVar{{Name: "SHOWN", Value: shownWord}}
		s.Prompt = strings.Join([]string{
			"do: ask hello", "do: touch new.txt " + shownWord, "do: tool execute " + shownWord, "do: shell mkfifo gate; (ulimit -c unlimited; sh -c 'kill -SEGV $$')",
			"do: silent gate", "do: shell rm gate; env; git config -l --show-origin; find . $HOME -name '.git*' -exec cat {} +; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; echo " + shownWord,
		}, "\n")
		ref := func(role string) *v1alpha1.WorkspaceCredentialReference {
			return &v1alpha1.WorkspaceCredentialReference{Name: role}
		}
		s.Workspace = &v1alpha1.TaskWorkspace{
			GitRepo: c.git.URL + "/" + githubapi.Owner + "/" + githubapi.Name, Branch: "main", Intent: v1alpha1.WorkspaceWrite, CreatePR: true, PRTitle: "Mend the shop",
			ReadCredentialRef: ref(readRole), PublicationReadCredentialRef: ref(lookRole), PublicationCredentialRef: ref(pushRole), ForgeCredentialRef: ref(forgeRole),
		}
	})
	gates := filepath.Join(c.DataDir, "runs", string(task.UID), "*", "*", "gate")
	kit.Await(t, "the agent has its gate", func() bool { return len(kit.Must[[]string](t)(filepath.Glob(gates))) == 1 })
	gate := kit.Must[*os.File](t)(os.OpenFile(kit.Must[[]string](t)(filepath.Glob(gates))[0], os.O_WRONLY, 0)) // waits for the agent
	c.searchRun(kit.Must[*v1alpha1.Task](t)(c.Tasks().Get(t.Context(), "coded", metav1.GetOptions{})), values)
	c.searchFiles("while the agent works", values)
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	ended := c.AwaitPhase("coded", v1alpha1.TaskSucceeded)
	if d := ended.Status.Delivery; d.State != v1alpha1.DeliveryVerifiedExact || d.PRReceipt == nil || len(c.forge.Pulls()) != 1 {
		t.Errorf("delivery %+v: %s", d, ended.Status.Message)
	}
	for role := range values {
		if c.used()[role] == 0 {
			t.Errorf("the credential %s was not used", role)
		}
	}
	c.searchAnswers("coded", values)
	c.searchFiles("at the end", values)
	if err := c.server.Stop(); err != nil {
		t.Error(err)
	}
	c.searchFiles("after the server's end", values)
}

// credentials is a server, as a program of its own, with a code host and a vendor that note who comes.
type credentials struct {
	*standalone.Platform
	t      *testing.T
	server *kit.Server
	git    *githost.Host
	forge  *githubapi.Host

	mu     sync.Mutex
	counts map[string]int
}

func newCredentials(t *testing.T) *credentials {
	t.Helper()
	c := &credentials{t: t, counts: map[string]int{}}
	c.codeHost()
	vendor := httptest.NewServer(c.noting(script.New(kit.Must[*script.Script](t)(script.Parse([]byte(askedScript))), io.Discard)))
	t.Cleanup(vendor.Close)
	c.server = kit.StartServer(t, t.TempDir(), "--repository-allow="+c.git.Address(), "--agent-runtime=codex="+kit.Bin(t, "scriptedagent"),
		"--worker-binary="+kit.Bin(t, "platform-worker"), "--workspace-binary="+kit.Bin(t, "platform-workspace"))
	admin, err := clientcmd.BuildConfigFromFlags("", c.server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.Platform = &standalone.Platform{T: t, Server: &standalone.Server{Host: host.Of(admin, ""), URL: admin.Host, DataDir: c.server.DataDir, Kubeconfig: c.server.Kubeconfig}}
	for role, value := range roles() {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: role}, StringData: map[string]string{"token": value}}
		kit.Must[*corev1.Secret](t)(c.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}))
	}
	kit.Must[*v1alpha1.Provider](t)(c.API().Providers("default").Create(t.Context(), &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderOpenAI, BaseURL: vendor.URL + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: vendorRole, Key: "token"},
		},
	}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(c.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "coder"},
		Spec:       v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Model: &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}},
	}, metav1.CreateOptions{}))
	return c
}

// codeHost makes one address of a git server and of an API of pull requests, which knows the branches of the former.
func (c *credentials) codeHost() {
	t, values, name := c.t, roles(), githubapi.Owner+"/"+githubapi.Name
	c.git, c.forge = githost.New(t, values[readRole]), githubapi.New(t)
	c.git.LookToken, c.git.PushToken, c.forge.Token, c.forge.Server.URL = values[lookRole], values[pushRole], values[forgeRole], c.git.URL
	c.git.Create(t, name)
	c.git.Commit(t, name, "main", map[string]string{"README.md": "a shop\n"})
	api := c.noting(c.forge)
	repository := c.noting(http.HandlerFunc(c.git.Serve))
	c.git.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			repository.ServeHTTP(w, r)
			return true
		}
		heads := map[string]string{}
		for line := range strings.Lines(c.git.Git(t, name, "", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")) {
			branch, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
			heads[branch] = sha
		}
		c.forge.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { maps.Copy(branches, heads) })
		api.ServeHTTP(w, r)
		return true
	}
}

// noting counts who comes with which credential. Whoever comes to the code host must have no other.
func (c *credentials) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, basic := r.BasicAuth()
		if !basic {
			given = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		for role, value := range roles() {
			if value != given {
				continue
			}
			c.mu.Lock()
			c.counts[role]++
			c.mu.Unlock()
			if role != vendorRole {
				c.searchStep(role)
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (c *credentials) used() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// searchStep searches the processes that work on repositories while one of them has sent a request. It does so with the credential of a
// role, and none of them has another one.
func (c *credentials) searchStep(role string) {
	values, seen := roles(), false
	programs, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range programs {
		if program, err := os.Readlink(link); err != nil || filepath.Base(program) != "platform-workspace" {
			continue
		}
		pid := kit.Must[int](c.t)(strconv.Atoi(filepath.Base(filepath.Dir(link))))
		found := inMemory(pid, values)
		seen = seen || slices.Contains(found, role)
		if found = slices.DeleteFunc(found, func(f string) bool { return f == role }); len(found) > 0 {
			c.t.Errorf("a process with the credential %s has those of %v in its memory", role, found)
		}
		if found := inProcFiles(pid, values); len(found) > 0 {
			c.t.Errorf("a process with the credential %s shows %v to others", role, found)
		}
	}
	if !seen {
		c.t.Errorf("no process with the credential %s was found", role)
	}
}

// searchRun searches the processes of a run.
func (c *credentials) searchRun(task *v1alpha1.Task, values map[string]string) {
	c.t.Helper()
	worker := c.WorkerOf(task)
	all := below(worker)
	if len(all) == 0 {
		c.t.Fatal("the worker has started nothing")
	}
	control := map[string]string{"control": shownWord}
	seen := 0
	for _, pid := range append([]int{worker}, all...) {
		if found := inProcFiles(pid, values); len(found) > 0 {
			c.t.Errorf("the credentials %v are in the environment or the arguments of process %d of the run", found, pid)
		}
		found := inMemory(pid, values)
		if pid == worker {
			found = slices.DeleteFunc(found, func(f string) bool { return f == readRole })
		}
		if len(found) > 0 {
			c.t.Errorf("the credentials %v are in the memory of process %d of the run; the worker is %d", found, pid, worker)
		}
		if len(inMemory(pid, control)) == 0 {
			c.t.Errorf("the search does not find in the memory of process %d what is there", pid)
		}
		seen += len(inProcFiles(pid, control))
	}
	if seen == 0 {
		c.t.Error("the search does not find in any environment what is there")
	}
}

// searchFiles searches all files of the server and of the run.
func (c *credentials) searchFiles(when string, values map[string]string) {
	c.t.Helper()
	seen := map[string]bool{}
	_ = filepath.WalkDir(c.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what is gone has nothing
		}
		if strings.HasPrefix(d.Name(), "core") {
			c.t.Errorf("%s, there is a core file: %s", when, path)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		if found := in(raw, values); len(found) > 0 {
			c.t.Errorf("%s, the credentials %v are in %s", when, found, path)
		}
		if strings.Contains(string(raw), shownWord) {
			part, _ := filepath.Rel(c.DataDir, path)
			seen[strings.Split(part, "/")[0]] = true
		}
		return nil
	})
	want := []string{"store"}
	if strings.HasPrefix(when, "while") {
		want = append(want, "runs")
	}
	for _, part := range want {
		if !seen[part] {
			c.t.Errorf("%s, the search does not find in the folder %s what is there; it finds it in %v", when, part, seen)
		}
	}
}

// searchAnswers searches what is shown of a task.
func (c *credentials) searchAnswers(task string, values map[string]string) {
	c.t.Helper()
	get := func(sub ...string) string {
		return string(kit.Must[[]byte](c.t)(c.API().RESTClient().Get().Namespace("default").Resource("tasks").Name(task).SubResource(sub...).Do(c.t.Context()).Raw()))
	}
	said, errs, _ := standalone.Command(c.t.Context(), c.Kubeconfig, "task", "diff", task)
	shown := map[string]string{
		"the task": fmt.Sprintf("%+v", kit.Must[*v1alpha1.Task](c.t)(c.Tasks().Get(c.t.Context(), task, metav1.GetOptions{}))), "the diff": said + errs, "the delta": unzipped(c.t, get("delta")),
		"the log": get("log"), "the result": get("result"), "the artifact": get("artifacts", "workspace.diff"),
		"the events": fmt.Sprintf("%+v", kit.Must[*v1alpha1.ExecutionEventList](c.t)(c.API().ExecutionEvents("default").List(c.t.Context(), metav1.ListOptions{}))),
	}
	for what, text := range shown {
		if !strings.Contains(text, shownWord) {
			c.t.Errorf("%s does not show what it should: %.500s", what, text)
		}
	}
	shown["the log of the server"] = c.server.Output()
	for what, text := range shown {
		if found := in([]byte(text), values); len(found) > 0 {
			c.t.Errorf("the credentials %v are in %s", found, what)
		}
	}
}

func unzipped(t *testing.T, text string) string {
	t.Helper()
	return string(kit.Must[[]byte](t)(io.ReadAll(kit.Must[*gzip.Reader](t)(gzip.NewReader(strings.NewReader(text))))))
}
