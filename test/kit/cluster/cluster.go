// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster gives tests a real Kubernetes: its own programs, built and started by the scripts of test/cluster. Most tests need
// only the control plane (Control: kube-apiserver on loopback, without root). Tests that run pods need a node (Node), which make e2e
// starts before the tests.
package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// EnvNode is the environment variable with the folder of a running cluster that
// has a node (CLUSTER_DIR of cluster.sh). It is for tests that run in that
// cluster's network namespace.
const EnvNode = "PLATFORM_TEST_CLUSTER"

// nodeAddress is where pods and kube-apiserver reach the test in the cluster's
// network namespace; cluster.sh gives it to the namespace.
const nodeAddress = "10.99.0.1"

// Cluster is a running Kubernetes cluster.
type Cluster struct {
	host.Host
	Dir        string // its folder; logs are in Dir/log
	Kubeconfig string // of an administrator, in system:masters
	CAFile     string // the authority of kube-apiserver's certificate
	Address    string // where the cluster reaches servers that the test runs
	home       string // of kubectl: its discovery cache
}

// shared is the control plane of this test binary.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs the tests of a package that uses Control, and takes the control plane down after them.
func Main(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		if err := script(shared.cluster.Dir, "delete").Run(); err != nil {
			fmt.Fprintln(os.Stderr, "cluster.sh delete:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Control returns a control plane on loopback, one for all tests of the binary;
// TestMain has to call Main. Pods can be made but do not run, as there is no node.
func Control(t testing.TB) *Cluster {
	t.Helper()
	kit.Needs(t, kit.ControlPlane)
	if _, err := os.Stat(filepath.Join(binaries(), "kube-apiserver")); err != nil {
		t.Fatalf("make control builds the control plane: %v", err)
	}
	shared.once.Do(func() { shared.cluster, shared.err = startControl() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func startControl() (*Cluster, error) {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return nil, err
	}
	// The cluster ends with this process, even if that is killed.
	follow := script(dir, "follow", strconv.Itoa(os.Getpid()))
	follow.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	follow.Stdout, follow.Stderr = nil, nil
	if err := follow.Start(); err != nil {
		return nil, err
	}
	port, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	up := script(dir, "up")
	up.Env = append(up.Env, fmt.Sprint("PORT=", port), fmt.Sprint("KCM_PORT=", port+1), fmt.Sprint("SCHED_PORT=", port+2),
		fmt.Sprint("ETCD_PORT=", port+3)) // and port+4
	if err := up.Run(); err != nil {
		return nil, fmt.Errorf("cluster.sh up: %w", err)
	}
	return open(dir, "127.0.0.1")
}

// Node returns the running cluster with a node that EnvNode names; make e2e starts it, as root.
func Node(t testing.TB) *Cluster {
	t.Helper()
	kit.Needs(t, kit.Node)
	dir := os.Getenv(EnvNode)
	if dir == "" {
		t.Fatal(EnvNode + " is not set: run through make e2e, as root")
	}
	c, err := open(dir, nodeAddress)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open reads what is needed to use a cluster that is up.
func open(dir, address string) (*Cluster, error) {
	c := &Cluster{
		Dir: dir, Kubeconfig: filepath.Join(dir, "pki", "admin.kubeconfig"), CAFile: filepath.Join(dir, "pki", "ca.crt"),
		Address: address, home: filepath.Join(dir, "home"),
	}
	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	c.Host = host.Of(admin, "")
	return c, os.MkdirAll(c.home, 0o700)
}

// Namespace makes a namespace of the test's own, waits until pods can be made
// in it, and deletes it after the test.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	client := c.Kubernetes(t)
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	c.Kubectl(t, "-n", ns.Name, "wait", "--for=create", "serviceaccount/default", "--timeout=300s")
	return ns.Name
}

// Env is the environment of a client program: the cluster's own kubectl comes
// first on the PATH, then the built programs.
func (c *Cluster) Env() []string {
	return append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.home,
		"PATH="+binaries()+":"+os.Getenv("PLATFORM_BIN")+":"+os.Getenv("PATH"))
}

// Shell runs a line of shell as the administrator, in the environment Env.
func (c *Cluster) Shell(t testing.TB, line string) kit.Result {
	t.Helper()
	return kit.Run(t, c.Env(), "bash", "-c", line)
}

// MustShell is Shell for a line that must succeed; it returns the output.
func (c *Cluster) MustShell(t testing.TB, line string) string {
	t.Helper()
	return c.must(t, "bash", "-c", line)
}

// must runs a program that must succeed; it returns the output.
func (c *Cluster) must(t testing.TB, program string, args ...string) string {
	t.Helper()
	return kit.WhenAvailable(t,
		func() kit.Result { return kit.Run(t, c.Env(), program, args...) },
		func() { c.Shell(t, "kubectl wait --for=condition=Available --timeout=300s apiservices --all") },
	).Must(t, fmt.Sprintf("%s %q", filepath.Base(program), args))
}

// Kubectl runs kubectl as the administrator; it must succeed. It returns the output.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.must(t, filepath.Join(binaries(), "kubectl"), args...)
}

// LoadImages loads images from tarballs into the node, as there is no registry.
func (c *Cluster) LoadImages(t testing.TB, tarballs ...string) {
	t.Helper()
	c.run(t, append([]string{"load"}, tarballs...)...)
}

// Pin gives an image of the node the name that it would have in a registry, by its digest, and returns that name.
func (c *Cluster) Pin(t testing.TB, image string) string {
	t.Helper()
	cmd := script(c.Dir, "pin", image)
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cluster.sh pin %s: %v", image, err)
	}
	return strings.TrimSpace(string(out))
}

// StopNode ends the node as if its machine died: none of its processes and
// containers is left, and nothing notifies the control plane.
func (c *Cluster) StopNode(t testing.TB) {
	t.Helper()
	c.run(t, "node-down")
}

// StartNode starts the node again and waits until it is ready.
func (c *Cluster) StartNode(t testing.TB) {
	t.Helper()
	c.run(t, "node")
}

func (c *Cluster) run(t testing.TB, args ...string) {
	t.Helper()
	cmd := script(c.Dir, args...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatalf("cluster.sh %v: %v", args, err)
	}
}

// script returns a command of cluster.sh for the cluster in dir, whatever cluster
// this process's environment names.
func script(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root(), "test", "cluster", "cluster.sh"), args...)
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+dir, "NETNS=", "CGROUP=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// binaries is the folder of the cluster's programs.
func binaries() string { return filepath.Join(root(), "_output", "cluster", "bin") }

// root is the folder of the repository: tests run in the folder of their package.
func root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err) // without a working directory no test runs
	}
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "test", "cluster", "cluster.sh")); err == nil {
			return d
		}
	}
	return dir
}

// freePorts finds n consecutive free ports, below the range that the system assigns to clients.
func freePorts(n int) (int, error) {
	for range 100 {
		if first := 12000 + rand.IntN(8000); allFree(first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	return true
}
