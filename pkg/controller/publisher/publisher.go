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
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/program"
)

const (
	// maxSteps is how many processes run at once, and maxOfNamespace how many of one namespace, whose git server may be slow.
	maxSteps, maxOfNamespace = 16, 4
	// maxBuilds is how many of them make a commit. Each has in memory what a task changed.
	maxBuilds = 2
	// stepTime ends a step whose server neither answers to the end nor stops. Another try may follow.
	stepTime = 10 * time.Minute
)

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
	room, builds chan struct{}

	mu sync.Mutex
	// ofNamespace are the slots of each namespace, with the number of steps that hold or await one.
	ofNamespace map[string]*slots
	steps       map[types.UID]*running
	wake        []func(types.NamespacedName)
}

// running is a step that was begun and whose answer was not taken.
type running struct {
	id     string
	cancel context.CancelFunc
	over   bool
	answer *workspace.Answer
	err    error
}

// New returns a publisher that starts a program, until ctx ends. The folder gets what publications need, and exists while there is one;
// what an earlier process left in it is removed.
func New(ctx context.Context, path, dir string) (*Publisher, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("the folder of publications: %w", err)
	}
	return &Publisher{program: path, dir: dir, ctx: ctx, room: make(chan struct{}, maxSteps), builds: make(chan struct{}, maxBuilds), ofNamespace: map[string]*slots{}, steps: map[types.UID]*running{}}, nil
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
	answer, err := p.carryOut(ctx, s, dir)
	p.mu.Lock()
	r.over, r.answer, r.err = true, answer, err
	wake := p.wake
	p.mu.Unlock()
	for _, f := range wake {
		f(s.Task)
	}
}

// carryOut has a step carried out when there is room for it: in its namespace first, so that those of one that wait take no room of others.
func (p *Publisher) carryOut(ctx context.Context, s Step, dir string) (*workspace.Answer, error) {
	own := p.slotsOf(s.Task.Namespace)
	defer p.leave(s.Task.Namespace)
	rooms := []chan struct{}{own, p.room}
	if s.Name == workspace.Build {
		rooms = append(rooms, p.builds)
	}
	for _, room := range rooms {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stepTime, &workspace.FailedError{
		Reason: v1alpha1.ReasonRepositoryUnreachable, Message: fmt.Sprintf("the server did not answer to the end within %s", stepTime), Temporary: true,
	})
	defer cancel()
	return program.Run(ctx, p.program, dir, s.Name, s.Order)
}

// slots are the slots of a namespace.
type slots struct {
	room  chan struct{}
	users int
}

func (p *Publisher) slotsOf(namespace string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.ofNamespace[namespace]
	if own == nil {
		own = &slots{room: make(chan struct{}, maxOfNamespace)}
		p.ofNamespace[namespace] = own
	}
	own.users++
	return own.room
}

// leave forgets the slots of a namespace that nobody uses.
func (p *Publisher) leave(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.ofNamespace[namespace]; own != nil {
		if own.users--; own.users == 0 {
			delete(p.ofNamespace, namespace)
		}
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
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_ = os.Remove(p.dir) // fails while other publications have a folder in it
	return nil
}
