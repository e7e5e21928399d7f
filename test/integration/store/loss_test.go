// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A server whose store is gone, while its keys are there, does not start as a new one. It names what is missing. It starts when the
// store is back, and without the store once the operator accepts the loss.
func TestStoreIsGone(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	s.RESTTask(t, "a")
	s.Stop(t)
	store, aside := filepath.Join(s.DataDir, "store"), filepath.Join(s.DataDir, "aside")
	if err := os.Rename(store, aside); err != nil {
		t.Fatal(err)
	}
	run := func(accept ...string) error {
		o := standalone.NewOptions()
		o.DataDir, o.Port, o.RESTBindAddress, o.AcceptDataLoss = s.DataDir, 0, "", accept
		o.Controllers = func(ctx context.Context, _ *rest.Config) error { <-ctx.Done(); return nil }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		o.Ready = func(context.Context, standalone.Info) error { stop(); return nil }
		return standalone.Run(ctx, *o)
	}
	err := run()
	var lost *local.LossError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), store) || !strings.Contains(err.Error(), "--accept-data-loss=store:") {
		t.Fatalf("a server without its store: %v", err)
	}
	if _, err := os.Stat(store); err == nil {
		t.Fatal("the refused start made a store")
	}
	if err := os.Rename(aside, store); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	if code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a", ""); code != http.StatusOK {
		t.Errorf("the task of a store that is back: %d %s", code, body)
	}
	s.Stop(t)
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	if err := run(lost.Losses[0].Name); err != nil {
		t.Errorf("with the loss accepted: %v", err)
	}
	if err := run(); err != nil {
		t.Errorf("after a start with the loss accepted: %v", err)
	}
}
