// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// TestTreeLocks: creations share the lock of their tree, a cancellation has it alone and comes before later creations, whoever waits
// may give up, and no tree waits for another.
func TestTreeLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locks{}
		ctx, stop := context.WithCancel(t.Context())
		var order []string
		release := map[string]func(){}
		lock := func(ctx context.Context, name string, root types.UID, alone bool) {
			go func() {
				unlock, err := l.lock(ctx, root, alone)
				switch {
				case err == nil:
					order, release[name] = append(order, name), unlock
				case apierrors.IsServiceUnavailable(err):
					order = append(order, name+" gave up")
				default:
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		lock(t.Context(), "one", "a", false)
		lock(t.Context(), "two", "a", false)
		lock(ctx, "impatient cancel", "a", true)
		lock(t.Context(), "cancel", "a", true)
		lock(t.Context(), "late", "a", false)
		for i := range 100 {
			lock(t.Context(), fmt.Sprint("other ", i), types.UID(fmt.Sprint(i)), true)
			release[fmt.Sprint("other ", i)]()
		}
		order = order[:2]
		stop()
		synctest.Wait()
		for _, name := range []string{"one", "two", "cancel", "late"} {
			release[name]()
			synctest.Wait()
		}
		if got := fmt.Sprint(order); got != "[one two impatient cancel gave up cancel late]" || len(l.trees) != 0 {
			t.Errorf("%s, %d locks are left", got, len(l.trees))
		}
	})
}

// TestGivingUpLetsOthersGo: creations that wait for a cancellation which gives up go on.
func TestGivingUpLetsOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locks{}
		unlock, err := l.lock(t.Context(), "a", false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var gone, went bool
		go func() { _, err := l.lock(ctx, "a", true); gone = err != nil }()
		synctest.Wait()
		go func() { _, err := l.lock(t.Context(), "a", false); went = err == nil }()
		synctest.Wait()
		stop()
		synctest.Wait()
		if !gone || !went {
			t.Errorf("gave up: %v, went on: %v", gone, went)
		}
		unlock()
	})
}
