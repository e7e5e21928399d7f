// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles the admission policies of Kubernetes so that evaluating one costs a bounded amount of memory and time.
//
// Kubernetes limits the cost of an expression, but adds most costs up after a call has returned, counts calls whose types
// are unknown (those on members of object) as 1, and does not count what variables keep. A short expression can therefore
// allocate gigabytes: s.replace("", s), or variables that each double the one before. One replace with two arguments of 24 KiB
// allocates 576 MiB, for 0.5 % of the limit. Here every call that can make a value larger than its arguments is charged to an
// account before it is made. The account belongs to one evaluation of one policy, with its conditions, variables and messages,
// or of one mutation. An expression that exceeds it ends with an error that names the limit, so the policy's failurePolicy applies,
// which for calls of tools is always Fail. The limits of Kubernetes apply as well.
//
// It compiles ValidatingAdmissionPolicies, stored ones and those that a dry run tries, and MutatingAdmissionPolicies, which only
// administrators of a cluster write. No cost is estimated when a policy is written, because object has no declared type in
// these policies.
package expression

import (
	"context"
	"fmt"

	"github.com/google/cel-go/interpreter"
)

const (
	// MaxBytes is how much one evaluation of a policy may allocate in all, in bytes.
	MaxBytes = 32 << 20
	// maxSteps is how many values one evaluation may visit in comparisons and searches, which takes less than a second.
	maxSteps = 2_000_000
	// largeBytes is the allocation from which an evaluation is large.
	largeBytes = 1 << 20
	// maxLarge is how many large evaluations the process makes at a time. Others wait.
	maxLarge = 2
)

// large has a place for each large evaluation of the process.
var large = make(chan struct{}, maxLarge)

// account is what one evaluation of a policy has used. It belongs to one goroutine.
type account struct {
	ended   <-chan struct{} // of the request
	bytes   int64
	steps   int64
	isLarge bool
}

type accountKey struct{}

// open returns a context with an account for one evaluation. The caller closes the account.
func open(ctx context.Context) (context.Context, *account) {
	a := &account{ended: ctx.Done()}
	return context.WithValue(ctx, accountKey{}, a), a
}

func (a *account) close() {
	if a.isLarge {
		a.isLarge = false
		<-large
	}
}

// charge adds bytes that are about to be allocated. It does not return if they are too many.
func (a *account) charge(n int64) {
	if n > MaxBytes || a.bytes+n > MaxBytes {
		a.bytes = MaxBytes
		cancel(fmt.Sprintf("the policy needs more than %d MiB of memory for this request", MaxBytes>>20))
	}
	a.bytes += n
	if a.bytes < largeBytes || a.isLarge {
		return
	}
	select {
	case large <- struct{}{}:
		a.isLarge = true
	case <-a.ended:
		cancel("the request ended while the policy waited for memory")
	}
}

// step adds values that are about to be visited. It does not return if they are too many.
func (a *account) step(n int64) {
	if n > maxSteps || a.steps+n > maxSteps {
		a.steps = maxSteps
		cancel(fmt.Sprintf("the policy compares more than %d values for this request", maxSteps))
	}
	a.steps += n
}

// pairs adds n values that are each compared with m others.
func (a *account) pairs(n, m int64) {
	if n > 0 && m > maxSteps/n {
		m = maxSteps + 1
		n = 1
	}
	a.step(n * m)
}

// cancel ends the evaluation of the expression, whatever it does with errors. The program recovers from it, as it does
// from the limits of Kubernetes.
func cancel(message string) {
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: message})
}
