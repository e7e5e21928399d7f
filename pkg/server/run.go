// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/sparse"
)

// readyPoll is how often a starting server is asked whether it is ready.
const readyPoll = 5 * time.Millisecond

// Process is a server that is built and does not answer yet.
type Process struct {
	// API is the API server.
	API *apiserver.Server
	// Listeners are its ports.
	Listeners *Listeners
	// Loopback is the client with which the server calls itself.
	Loopback *rest.Config
	// Healthy tells whether the store works.
	Healthy func() error
	// Sparse gets what clients of the plain listener can cause at will.
	Sparse *sparse.Log
	// Clock is the time.
	Clock clock.WithTicker
	// Parts run beside the API server, each until its context ends, which is when the server stops.
	Parts []Part
	// Work runs once the server is ready. The server outlives it, and stops when it returns; its context ends first.
	Work func(context.Context) error
}

// Part is one of the things that a process does all its life. One that ends early ends the process.
type Part struct {
	// Name is for the error that tells what ended.
	Name string
	// Run returns after its context has ended.
	Run func(context.Context) error
}

// Run builds a server over open stores, serves until ctx ends or a part fails, and closes the stores. Hooks, watches
// and parts live in the context that build gets, which outlives ctx by the time that Process.Work takes to stop.
//
// The stores are closed as soon as nothing needs them, which is before the last connection has ended: a successor may
// be waiting for their lock.
func Run(ctx context.Context, st *Stores, build func(context.Context) (*Process, error)) error {
	return errors.Join(serve(ctx, st, build), st.Close())
}

func serve(ctx context.Context, st *Stores, build func(context.Context) (*Process, error)) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	interrupt := context.AfterFunc(ctx, stopServing)
	p, err := build(serving)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil
	case err != nil:
		return err
	case ctx.Err() != nil:
		return p.Listeners.Close()
	}
	interrupt()
	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var inside, outside sync.WaitGroup
	run := func(group *sync.WaitGroup, part Part) {
		group.Go(func() {
			if err := part.Run(serving); serving.Err() == nil {
				fail(fmt.Errorf("%s ended: %w", part.Name, err))
			}
		})
	}
	run(&outside, Part{"API server", p.API.Run})
	if p.Listeners.Plain != nil {
		run(&outside, Part{"REST", p.serveREST})
	}
	for _, part := range p.Parts {
		run(&inside, part)
	}
	if err = p.awaitReady(working); err == nil {
		err = p.Work(working)
	}
	stopServing()
	inside.Wait()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		outside.Wait()
	}()
	select {
	case <-p.API.Drained:
		_ = st.Close() // Run tells its error
	case <-ended:
	}
	<-ended
	if ctx.Err() != nil {
		return nil
	}
	if cause := context.Cause(working); cause != nil {
		return cause
	}
	return err
}

// awaitReady returns once /readyz answers yes.
func (p *Process) awaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Loopback)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	defer client.CloseIdleConnections()
	return wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		return p.readyOnce(ctx, client) == nil, nil
	})
}

// readyOnce asks once; the error says why not.
func (p *Process) readyOnce(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Loopback.Host+"/readyz", nil)
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
