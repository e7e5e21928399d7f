// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
)

// system is the namespace that the platform is installed in.
const system = "platform-system"

// apiService is where kube-apiserver says whether the server is available.
const apiService = "apiservice/v1alpha1.core.platform.ai"

// installation is the platform in the test cluster. It is made once and shared by
// all tests, just as teams share one.
var installation struct {
	once sync.Once
	data string // the API server's volume, as a folder of this machine
	err  error
}

// team is a namespace of its own in a cluster where the platform is installed.
type team struct {
	cluster    *cluster.Cluster
	namespace  string
	kubeconfig string
	home       string
}

// teamLabel is on the namespaces of teams.
const teamLabel = "test.platform.ai/team"

// teamsAreGone waits, after all tests, until the namespaces of all teams are deleted. Each takes half a minute, mostly of waiting for
// the cluster to look again.
func teamsAreGone() error {
	dir := os.Getenv(cluster.EnvNode)
	if dir == "" {
		return nil
	}
	remove := exec.Command(filepath.Join(os.Getenv("PLATFORM_BIN"), "kubectl"), "--kubeconfig", filepath.Join(dir, "pki", "admin.kubeconfig"),
		"delete", "namespaces", "--selector", teamLabel, "--timeout=300s")
	if out, err := remove.CombinedOutput(); err != nil {
		return fmt.Errorf("namespaces of teams are not deleted: %w: %s", err, out)
	}
	return nil
}

// newTeam makes a namespace for the test's objects, which is deleted once the test has ended. It admits only Pods that meet the
// restricted Pod Security Standard, so each Pod of a run in these tests does.
func newTeam(t *testing.T) team {
	t.Helper()
	c := cluster.Node(t)
	installation.once.Do(func() { installation.data, installation.err = install(t, c) })
	if installation.err != nil {
		t.Fatal(installation.err)
	}
	p := team{cluster: c, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), home: t.TempDir()}
	raw, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.kubeconfig, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(p.MustShell(t, "kubectl create -o jsonpath={.metadata.name} -f - <<< '"+
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"team-","labels":{"`+teamLabel+`":"","pod-security.kubernetes.io/enforce":"restricted"}}}`+"'"))
	p.namespace = name
	p.MustShell(t, "kubectl config set-context --current --namespace="+name)
	t.Cleanup(func() {
		if t.Failed() {
			p.report(t)
		}
		p.MustShell(t, "kubectl delete namespace "+name+" --wait=false") // teamsAreGone waits
	})
	return p
}

// install installs the platform as manifests/README.md describes, and waits until it serves.
func install(t *testing.T, c *cluster.Cluster) (data string, err error) {
	t.Helper()
	p := team{cluster: c, kubeconfig: c.Kubeconfig, home: t.TempDir()}
	for _, line := range []string{
		"kubectl apply -k testdata/cluster",
		"kubectl -n " + system + " set env deployment/platform-controller " + agentImages(t, c),
		"kubectl -n " + system + " rollout status --timeout=300s statefulset/platform-apiserver",
		"kubectl wait --for=condition=Available --timeout=300s " + apiService,
		"kubectl -n " + system + " rollout status --timeout=300s deployment/platform-controller",
		"kubectl -n " + system + " rollout status --timeout=300s deployment/platform-router",
	} {
		if r := p.Shell(t, line); r.Code != 0 {
			return "", fmt.Errorf("%s: exit %d: %s\n%s", line, r.Code, r.Output, p.state(t))
		}
	}
	volume := p.MustShell(t, "kubectl -n "+system+" get pvc data-platform-apiserver-0 -o jsonpath={.spec.volumeName}")
	return p.MustShell(t, "kubectl get pv "+volume+" -o jsonpath={.spec.hostPath.path}"), nil
}

// report keeps, after a failure, what happened in the namespace and in the installation, in a file beside the logs of the cluster. The
// output of the test has a few lines of it, so that what failed is not lost among thousands.
func (p team) report(t *testing.T) {
	t.Helper()
	all := p.Shell(t, "for what in tasks jobs pods events; do kubectl get $what -o wide; done; kubectl describe pods").Output + p.state(t)
	file := strings.ReplaceAll(t.Name(), "/", "-") + ".txt"
	if err := os.WriteFile(filepath.Join(p.cluster.Dir, "log", file), []byte(all), 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("more in %s of the cluster's logs\n%s", file, p.Shell(t, "kubectl get tasks,pods; kubectl -n "+system+" get pods;"+
		" kubectl get "+apiService+" -o jsonpath={.status}").Output)
}

// state is what the installation did.
func (p team) state(t *testing.T) string {
	t.Helper()
	return p.Shell(t, "for what in all events pvc; do kubectl -n "+system+" get $what -o wide; done;"+
		" for of in statefulset/platform-apiserver deployment/platform-controller; do kubectl -n "+system+" logs $of --tail=60; done;"+
		" kubectl get "+apiService+" -o jsonpath={.status}").Output
}

func (p team) Shell(t testing.TB, line string) kit.Result {
	t.Helper()
	return kit.Run(t, p.Env(t), "bash", "-c", "set -o pipefail; "+line)
}

// MustShell is Shell for a line that must succeed; it returns the output.
func (p team) MustShell(t testing.TB, line string) string {
	t.Helper()
	return kit.WhenAvailable(t,
		func() kit.Result { return p.Shell(t, line) },
		func() { p.Shell(t, "kubectl wait --for=condition=Available --timeout=300s "+apiService) },
	).Must(t, line)
}

func (p team) Env(t testing.TB) []string {
	t.Helper()
	return append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "HOME="+p.home,
		"PATH="+filepath.Dir(kit.Bin(t, "kubectl"))+":"+os.Getenv("PATH"))
}

func (p team) Namespace() string { return p.namespace }

func (p team) Config(t testing.TB) *rest.Config {
	t.Helper()
	return configOf(t, p.kubeconfig)
}

// Direct goes to the Service, as a client in the cluster does.
func (p team) Direct(t testing.TB) (string, *http.Client) {
	t.Helper()
	ca, err := base64.StdEncoding.DecodeString(p.MustShell(t, "kubectl get "+apiService+" -o jsonpath={.spec.caBundle}"))
	if err != nil {
		t.Fatal(err)
	}
	address := p.MustShell(t, "kubectl -n "+system+" get service platform-apiserver -o jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
	name := "platform-apiserver." + system + ".svc"
	return "https://" + name, trusting(t, ca, name, address)
}

func (p team) RestartServer(t *testing.T) {
	t.Helper()
	p.MustShell(t, "kubectl -n "+system+" delete pod platform-apiserver-0 --timeout=300s")
	p.awaitServer(t)
}

// awaitServer returns when the API server answers through the cluster's own.
func (p team) awaitServer(t *testing.T) {
	t.Helper()
	p.MustShell(t, "kubectl -n "+system+" rollout status --timeout=300s statefulset/platform-apiserver")
	p.MustShell(t, "kubectl wait --for=condition=Available --timeout=300s "+apiService)
	p.MustShell(t, "timeout 300 bash -c 'until kubectl get tasks; do sleep 0.2; done'")
}

func (p team) RestartController(t *testing.T) {
	t.Helper()
	p.MustShell(t, "kubectl -n "+system+" rollout restart deployment/platform-controller")
	p.MustShell(t, "kubectl -n "+system+" rollout status --timeout=300s deployment/platform-controller")
}

func (p team) KillServer(t *testing.T) {
	t.Helper()
	p.killPod(t, "platform-apiserver")
	p.awaitServer(t)
}

func (p team) KillController(t *testing.T) {
	t.Helper()
	p.MustShell(t, "kubectl -n "+system+" wait --for=condition=Available --timeout=300s deployment/platform-controller") // the kubelet puts off its next start
	p.killPod(t, "platform-controller")
}

// killPod kills the processes of a program's Pods without notice. What was just killed is waited for: the kubelet starts it again
// later than the state of its Pod says on a busy machine.
func (p team) killPod(t *testing.T, program string) {
	t.Helper()
	pods := strings.Fields(p.MustShell(t, "kubectl -n "+system+" get pods -l app.kubernetes.io/name="+program+" -o jsonpath='{.items[*].metadata.uid}'"))
	kit.Await(t, fmt.Sprintf("a process of %s in the Pods %v", program, pods), func() bool { return killProcesses(t, program, pods) > 0 })
}

// replacePods deletes a program's Pods. The kubelet puts off each start of a container that has failed before, those of new Pods it
// does not.
func (p team) replacePods(t *testing.T, program string) {
	t.Helper()
	p.MustShell(t, "kubectl -n "+system+" delete pods -l app.kubernetes.io/name="+program+" --force --grace-period=0 --timeout=300s")
}

// killProcesses kills the processes of a program in some Pods, and returns how many there were.
func killProcesses(t *testing.T, program string, pods []string) (killed int) {
	t.Helper()
	for _, pid := range processesOf(t, program, pods) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	return killed
}

// processesOf returns the processes of a program in some Pods.
func processesOf(t *testing.T, program string, pods []string) (found []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		groups, err := os.ReadFile(file)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm")) // empty if it has ended meanwhile
		if err != nil || !strings.HasPrefix(program, strings.TrimSpace(string(name))) || len(name) < 2 {
			continue
		}
		if !slices.ContainsFunc(pods, func(uid string) bool { return strings.Contains(strings.ReplaceAll(string(groups), "_", "-"), uid) }) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

func (team) Image() string { return shellImage }

func (p team) Address() string { return p.cluster.Address }

func (team) Data() string { return installation.data }

func (p team) Records(t *testing.T) map[string]string {
	t.Helper()
	records := map[string]string{}
	for _, line := range []string{
		"kubectl -n " + system + " logs statefulset/platform-apiserver", "kubectl -n " + system + " logs deployment/platform-controller",
		"kubectl get jobs,pods,events -o yaml", "kubectl logs --prefix --all-containers --ignore-errors --selector platform.ai/task --tail=-1",
		"kubectl get --raw /api/v1/namespaces/" + p.namespace + "/pods",
	} {
		records[line] = p.MustShell(t, line)
	}
	return records
}
