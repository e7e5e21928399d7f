// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/test/kit"
)

// between starts a proxy before a place's host and returns the address of the repository there. before and after may end the client's
// connection: before the host gets a request, and after it has answered.
func between(t *testing.T, p place, before, after func(r *http.Request) bool) string {
	t.Helper()
	to := kit.Must[*url.URL](t)(url.Parse(p.url))
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	next.ModifyResponse = func(answer *http.Response) error {
		if after(answer.Request) {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before(r) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path
}

func never(*http.Request) bool { return false }

// lostAnswer: the host made the pull request, and its answer did not come. It is found, and no second one is made.
func lostAnswer(t *testing.T, p place) {
	o := p.order(t, "work")
	posts := 0
	through := between(t, p, never, func(r *http.Request) bool {
		if r.Method == http.MethodPost {
			posts++
		}
		return r.Method == http.MethodPost
	})
	a := kit.Must[pullrequest.Answer](t)(pullrequest.Reconcile(t.Context(), p.open(t, through, p.token), o))
	if a.Outcome != pullrequest.Open || a.How != pullrequest.Found || posts != 1 {
		t.Errorf("%+v after %d", a, posts)
	}
	reconcile(t, p, o, pullrequest.Open, pullrequest.Found)
	if all := p.list(t); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// cutAnywhere: whichever answer of the host does not come, and none after it, the next call leaves exactly one pull request.
func cutAnywhere(t *testing.T, p place) {
	made := 0
	for at := int32(1); ; at++ {
		var n atomic.Int32
		away := func(*http.Request) bool { return n.Load() > at }
		through := between(t, p, func(r *http.Request) bool { n.Add(1); return away(r) }, func(*http.Request) bool { return n.Load() >= at })
		o := p.order(t, fmt.Sprint("work-", at))
		_, _, err := pullrequest.ReconcileAtOnce(t.Context(), p.open(t, through, p.token), o)
		reconcileOnce(t, p, o)
		if made++; err == nil {
			break
		}
	}
	requests := map[string]int{}
	for _, is := range p.list(t) {
		requests[is.head]++
	}
	for head, n := range requests {
		if n != 1 {
			t.Errorf("%d pull requests of %s", n, head)
		}
	}
	if len(requests) != made || made < 8 {
		t.Errorf("pull requests of %d branches, want %d", len(requests), made)
	}
}

// reconcileOnce carries an order out after a call that was cut off.
func reconcileOnce(t *testing.T, p place, o pullrequest.Order) {
	t.Helper()
	if a := kit.Must[pullrequest.Answer](t)(pullrequest.Reconcile(t.Context(), p.host(t), o)); a.Outcome != pullrequest.Open || a.Receipt.HeadSHA != o.HeadSHA {
		t.Fatalf("%+v", a)
	}
}

// atOnce: several calls with one key ask for the pull request at the same time. One stays open, and all of them name it once they have
// looked again.
func atOnce(t *testing.T, p place) {
	const callers = 4
	o := p.order(t, "work")
	var arrived, done sync.WaitGroup
	arrived.Add(callers)
	through := between(t, p, func(r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pulls") {
			arrived.Done()
			arrived.Wait() // all of them have looked and seen nothing
		}
		return false
	}, never)
	var faults [callers]error
	for i := range callers {
		host := p.open(t, through, p.token)
		done.Go(func() {
			a, err := pullrequest.Reconcile(t.Context(), host, o)
			if err == nil && a.Receipt == nil {
				err = errors.New(string(a.Outcome))
			}
			faults[i] = err
		})
	}
	done.Wait()
	if err := errors.Join(faults[:]...); err != nil {
		t.Fatal(err)
	}
	a := reconcile(t, p, o, pullrequest.Open, pullrequest.Found)
	open := 0
	all := p.list(t)
	for _, is := range all {
		if is.open {
			open++
			if is.number != a.Receipt.Number {
				t.Errorf("%d is open, and the receipt says %d", is.number, a.Receipt.Number)
			}
		}
	}
	if open != 1 {
		t.Errorf("%d of %d are open", open, len(all))
	}
	t.Logf("the host made %d", len(all))
}
