// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/storage/object"
)

func newLists(t *testing.T, budget int64) *Lists {
	t.Helper()
	l, err := NewLists(budget, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listsOf sends list requests of users to a handler behind the bound. The header From names the user.
func listsOf(lists *Lists, answer func(ctx context.Context, share object.Room)) http.Handler {
	bound := lists.bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		answer(r.Context(), object.RoomOf(r.Context()))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := request.WithRequestInfo(r.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "list", Resource: "tasks"})
		bound.ServeHTTP(w, r.WithContext(request.WithUser(ctx, &user.DefaultInfo{Name: r.Header.Get("From")})))
	})
}

// TestLists: the lists that are answered at the same time take no more than the budget. A request that lists twice does not wait
// for itself, and each gives everything back when it was answered.
func TestLists(t *testing.T) {
	const budget, each = 100, 30
	lists := newLists(t, budget)
	var held, most atomic.Int64
	server := httptest.NewServer(listsOf(lists, func(ctx context.Context, share object.Room) {
		for range 2 {
			if err := share.Take(ctx, each); err != nil {
				t.Error(err)
			}
		}
		for now := held.Add(each); ; {
			if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}
		held.Add(-each)
		share.Keep(each / 2)
	}))
	defer server.Close()
	var clients sync.WaitGroup
	for i := range 50 {
		clients.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("From", fmt.Sprint("user", i%5))
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	clients.Wait()
	if n, waiting := lists.room.Held(); n != 0 || waiting != 0 || most.Load() > budget || most.Load() < each {
		t.Fatalf("%d held, %d wait, at most %d of %d", n, waiting, most.Load(), budget)
	}
}

// TestListsRefused: a list that times out waiting gets 429, and not before its time is over.
func TestListsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := newLists(t, 100)
		if _, err := lists.room.Acquire(t.Context(), "other", 100); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		h := listsOf(lists, func(ctx context.Context, share object.Room) {
			if err := share.Take(ctx, 1); !apierrors.IsTooManyRequests(err) {
				t.Errorf("a list without room: %v", err)
			} else if after, ok := apierrors.SuggestsClientDelay(err); !ok || after != retryList {
				t.Errorf("come again after %d s", after)
			}
		})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if waited := time.Since(began); waited != listWait {
			t.Errorf("waited %v", waited)
		}
		if n := testutil.ToFloat64(lists.refused); n != 1 {
			t.Errorf("%v lists are counted as refused", n)
		}
	})
}
