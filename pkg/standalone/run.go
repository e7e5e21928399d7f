// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// readyPoll is how often a starting server is asked whether it is ready.
const readyPoll = 5 * time.Millisecond

// Run runs a server until ctx ends; then it returns nil after everything has stopped.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	began := o.Clock.Now()
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	st, err := o.openStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(o.serve(ctx, st, began), st.close())
}

// serve runs everything above the store until ctx ends or a part of it fails.
func (o *Options) serve(ctx context.Context, st *store, began time.Time) error {
	// The server outlives ctx by the time that the controllers take to stop.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	interrupt := context.AfterFunc(ctx, stopServing)
	a, err := o.assemble(serving, st)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	interrupt()
	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var parts sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(serving); serving.Err() == nil {
				fail(fmt.Errorf("%s ended: %w", name, err))
			}
		})
	}
	part("API server", a.server.Run)
	if a.restListener != nil {
		part("REST", a.serveREST)
	}
	part("host", func(ctx context.Context) error { return a.host.Run(ctx, a.writeKubeconfig) })

	if err = a.awaitReady(working); err == nil {
		err = announce(o.Out, a.info, o.Clock.Since(began))
	}
	if err == nil && o.Ready != nil {
		err = o.Ready(working, a.info)
	}
	if err == nil {
		err = o.control(working, a)
	}
	stopServing()
	parts.Wait()
	if ctx.Err() != nil {
		return nil
	}
	if cause := context.Cause(working); cause != nil {
		return cause
	}
	return err
}

// awaitReady returns once /readyz answers yes.
func (a *assembly) awaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(a.loopback)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	defer client.CloseIdleConnections()
	return wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		return a.readyOnce(ctx, client) == nil, nil
	})
}

// readyOnce asks once; the error says why not.
func (a *assembly) readyOnce(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.loopback.Host+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the API server is not ready: %s", resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
