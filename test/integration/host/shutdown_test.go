// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A server with many open watches, each on a connection of its own, ends all of them and itself, also those whose clients read
// nothing and would stay for an hour. The next server is started at once on the same folder, waits for the end, and works.
func TestShutdownWithWatches(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const many = 150
	s := standalone.Start(t)
	config := s.Config()
	var watches sync.WaitGroup
	for i := range many {
		body := openWatch(t, config, i%2 == 0)
		if i%5 == 0 {
			continue // a client that reads nothing
		}
		watches.Go(func() {
			_, _ = io.Copy(io.Discard, body) // cut or ended: either is the end of the watch
		})
	}
	fillWatches(t, config)
	var ended sync.WaitGroup
	ended.Go(func() { s.Stop(t) })
	next := standalone.Start(t, func(o *standalone.Options) { o.DataDir, o.LockTimeout = s.DataDir, kit.Patience }) // while the old one ends
	ended.Wait()
	watches.Wait()
	if code, body := host.Get(t, next.Config(), standalone.TasksPath, ""); code != http.StatusOK {
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
