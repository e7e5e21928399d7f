// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A server with 40 open watches, each on a connection of its own, ends all of them and itself after SIGTERM, also
// those whose clients read nothing; "make bench" has how soon. The next server is started at once on the same folder and works.
func TestShutdownWithWatches(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var watches sync.WaitGroup
	for i := range 40 {
		body := openWatch(t, config, i%2 == 0)
		if i%10 == 0 {
			continue // a client that reads nothing
		}
		watches.Go(func() {
			_, _ = io.Copy(io.Discard, body) // cut or ended: either is the end of the watch
		})
	}
	fillWatches(t, config)
	old := s.Process
	if err := syscall.Kill(old.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- old.Wait() }() // its clients stay, so it ends by itself
	s.Restart(t)                        // while the old one ends
	if err := <-ended; err != nil {
		t.Error("the server ended with", err)
	}
	watches.Wait()
	if code, body := host.Get(t, config, standalone.TasksPath, ""); code != http.StatusOK {
		t.Errorf("tasks of the next server: %d %s", code, body)
	}
}

// fillWatches makes changes that do not fit into the buffers of a connection, so that the server waits for clients that read nothing.
func fillWatches(t *testing.T, config *rest.Config) {
	t.Helper()
	c := kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(config)).CoreV1alpha1().Tasks("default")
	for range 24 {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, Prompt: strings.Repeat("words ", 80_000), Schedule: "0 0 29 2 *", Suspend: true,
		}}
		kit.Must[*v1alpha1.Task](t)(c.Create(t.Context(), task, metav1.CreateOptions{}))
	}
}

// openWatch opens a watch of tasks on a connection of its own.
func openWatch(t *testing.T, config *rest.Config, http2 bool) io.Reader {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: http2, DialContext: (&net.Dialer{}).DialContext}
	resp, err := (&http.Client{Transport: transport}).Get(config.Host + standalone.TasksPath + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.Body
}
