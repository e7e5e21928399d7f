// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publisher runs the steps of publications (package workspace) for the controller: each is a process of its own, which gets the
// one credential that it needs on its standard input and ends with this process. A step takes as long as a server takes, so a caller
// starts it, is woken when it is over, and takes the answer. Nothing is remembered across a restart: every step may be repeated.
package publisher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/program"
)

// maxSteps is how many processes run at once. Each has in memory what a task changed.
const maxSteps = 4

// ErrWorking means that a step is not over; its end wakes the task.
var ErrWorking = errors.New("the step is being carried out")

// Step is one step of the publication of a task.
type Step struct {
	// Task is whose publication it is.
	Task types.NamespacedName
	UID  types.UID
	// ID distinguishes the step from others of the same task.
	ID string
	// Name is one of package workspace, and Order what it reads.
	Name  string
	Order any
}

// Publisher runs steps.
type Publisher struct {
	program, dir string
	ctx          context.Context //nolint:containedctx // the end of the controller ends all steps
	room         chan struct{}

	mu    sync.Mutex
	steps map[types.UID]*running
	wake  []func(types.NamespacedName)
}

// running is a step that was begun and whose answer was not taken.
type running struct {
	id     string
	cancel context.CancelFunc
	over   bool
	answer *workspace.Answer
	err    error
}

// New returns a publisher that starts a program, until ctx ends. The folder is emptied and gets what publications need.
func New(ctx context.Context, path, dir string) (*Publisher, error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("the folder of publications: %w", err)
	}
	return &Publisher{program: path, dir: dir, ctx: ctx, room: make(chan struct{}, maxSteps), steps: map[types.UID]*running{}}, nil
}

// OnEnd calls f with the task of each step that is over.
func (p *Publisher) OnEnd(f func(types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = append(p.wake, f)
}

// Folder returns a folder for the files of a task's publication. It exists until Forget.
func (p *Publisher) Folder(uid types.UID) (string, error) {
	if uid == "" || strings.ContainsAny(string(uid), "/.") {
		return "", fmt.Errorf("%q is not a UID", uid)
	}
	dir := filepath.Join(p.dir, string(uid))
	return dir, os.MkdirAll(dir, 0o700)
}

// Do returns the answer of a step. It begins the step if it was not begun, and returns ErrWorking until it is over. A failure that the
// step reports is a *workspace.FailedError. An answer is given once.
func (p *Publisher) Do(s Step) (*workspace.Answer, error) {
	dir, err := p.Folder(s.UID)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.steps[s.UID]; r != nil {
		if !r.over {
			return nil, ErrWorking
		}
		delete(p.steps, s.UID)
		if r.id == s.ID {
			return r.answer, r.err
		}
	}
	ctx, cancel := context.WithCancel(p.ctx)
	r := &running{id: s.ID, cancel: cancel}
	p.steps[s.UID] = r
	go p.run(ctx, r, s, dir) // ends with the step
	return nil, ErrWorking
}

func (p *Publisher) run(ctx context.Context, r *running, s Step, dir string) {
	defer r.cancel()
	var answer *workspace.Answer
	var err error
	select {
	case p.room <- struct{}{}:
		answer, err = program.Run(ctx, p.program, dir, s.Name, s.Order)
		<-p.room
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	r.over, r.answer, r.err = true, answer, err
	wake := p.wake
	p.mu.Unlock()
	for _, f := range wake {
		f(s.Task)
	}
}

// Forget ends the step of a task and removes its files.
func (p *Publisher) Forget(uid types.UID) error {
	p.mu.Lock()
	r := p.steps[uid]
	delete(p.steps, uid)
	p.mu.Unlock()
	if r != nil {
		r.cancel()
	}
	dir, err := p.Folder(uid)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
