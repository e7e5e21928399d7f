// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// A server with many open watches, each on a connection of its own, stops, ends all of them, and leaves its store to the next one.
func TestShutdownWithWatches(t *testing.T) {
	t.Parallel()
	s := Start(t)
	var watches sync.WaitGroup
	for range 150 {
		config := s.client()
		tlsConfig, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
		resp, err := (&http.Client{Transport: transport}).Get(config.Host + tasksPath + "?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // cut or ended: either is the end of the watch
		})
	}
	s.Restart(t)
	watches.Wait()
}
