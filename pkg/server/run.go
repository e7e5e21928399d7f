// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/sparse"
)

// readyPoll and readyPollMax are the least and the most time between two checks of whether a starting server is ready. It grows slowly,
// so that it adds little to a start, and a server that stays unready does not work.
const readyPoll, readyPollMax = 5 * time.Millisecond, 250 * time.Millisecond

// cutAfter is how long connections may stay open after everything that the server waits for is done. It is time to send
// what was answered.
const cutAfter = 250 * time.Millisecond

// answerGrace is how long requests to models may take to end when the server stops, and cancelGrace how long their ends may take to
// be recorded once they are cancelled.
const answerGrace, cancelGrace = 5 * time.Second, 5 * time.Second

// Process is a server that is built but does not answer yet.
type Process struct {
	// API is the API server.
	API *apiserver.Server
	// Listeners are the server's ports.
	Listeners *Listeners
	// Loopback is the client configuration with which the server calls itself.
	Loopback *rest.Config
	// Ready returns an error if the store does not work or its disk does not answer.
	Ready func() error
	// Requests are the requests to models. Their ends are recorded before the stores are closed.
	Requests *models.Requests
	// Sparse receives the log lines that clients of the plain listener can trigger repeatedly.
	Sparse *sparse.Log
	// Clock is the clock of the process.
	Clock clock.WithTicker
	// Parts run alongside the API server, each until its context ends when the server stops.
	Parts []Part
	// Work runs once the server is ready. When Work returns, the server stops. On shutdown the context of Work ends
	// first, so the server outlives it.
	Work func(context.Context) error
}

// Part is something that a process does as long as it runs. A part that ends early ends the process.
type Part struct {
	// Name is used in the error that says which part ended.
	Name string
	// Run must return only after its context has ended.
	Run func(context.Context) error
}

// Run builds a server over open stores, serves until ctx ends or a part fails, and closes the stores. Hooks, watches
// and parts use the context that is passed to build. It outlives ctx by the time that Process.Work takes to stop.
//
// The doors are closed first; then requests end, those to models within a grace; then the stores are closed. That is before the
// last connection has ended, because a successor may be waiting for their lock.
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
	p.Requests.Refuse()
	stopServing()
	inside.Wait()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		outside.Wait()
	}()
	select {
	case <-p.API.Drained:
		p.Requests.Settle(p.Clock, answerGrace)
		cut := p.Clock.NewTimer(cutAfter)
		defer cut.Stop()
		go func() {
			select {
			case <-cut.C(): // clients that read nothing, whose watches may hold on to the store
				p.Listeners.Cut()
			case <-ended:
			}
		}()
		p.awaitRequests(ctx)
		_ = st.Close() // Run returns its error
	case <-ended:
	}
	<-ended
	p.Listeners.Cut()
	if ctx.Err() != nil {
		return nil
	}
	if cause := context.Cause(working); cause != nil {
		return cause
	}
	return err
}

// awaitRequests waits until the ends of requests to models are recorded.
func (p *Process) awaitRequests(ctx context.Context) {
	late := p.Clock.NewTimer(cancelGrace)
	defer late.Stop()
	select {
	case <-p.Requests.Ended():
	case <-late.C():
		klog.FromContext(ctx).Error(nil, "Requests to models do not end; the next start charges what was reserved for them")
	}
	p.Requests.Drain()
}

// awaitReady returns nil once /readyz succeeds.
func (p *Process) awaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Loopback)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	defer client.CloseIdleConnections()
	pauses := wait.Backoff{Duration: readyPoll, Factor: 1.05, Steps: math.MaxInt, Cap: readyPollMax}
	return pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		return readyOnce(ctx, p.Loopback, client) == nil, nil
	})
}

// readyOnce checks once; the error says why the server is not ready.
func readyOnce(ctx context.Context, loopback *rest.Config, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, loopback.Host+"/readyz", nil)
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
