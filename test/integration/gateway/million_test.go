// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/inbound"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
)

// TestMillion: a gateway with a million accepted events has them listed page by page, the newest first, and watched, while its door accepts
// and answers more and recognises the old ones.
func TestMillion(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const n, pages = 1_000_000, 20
	x := newConnected(t, chatadapter.Echo)
	like := x.awaitEvent(x.accept(chatadapter.Event("first", "t", "hello")), v1alpha1.GatewayEventCompleted)
	x.Stop(t)
	if err := fill(t.Context(), filepath.Join(x.DataDir, "store"), like, n); err != nil {
		t.Fatal(err)
	}
	x.StartAgain(t)
	x.awaitGateway(func(g *v1alpha1.Gateway) bool { return g.Status.Ready })

	total := n + 1
	events := x.API().GatewayEvents("default")
	page := kit.Must[*v1alpha1.GatewayEventList](t)(events.List(t.Context(), metav1.ListOptions{Limit: 500}))
	if left := page.RemainingItemCount; left == nil || int(*left)+len(page.Items) != total {
		t.Errorf("%d events and %v more, not %d", len(page.Items), left, total)
	}
	watched := kit.Must[watch.Interface](t)(events.Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion, FieldSelector: "spec.gatewayName=chat"}))
	defer watched.Stop()

	// What arrives while pages are read is accepted and answered.
	var others sync.WaitGroup
	var arrived []string
	others.Go(func() {
		for i := range 20 {
			if r := x.post(chatadapter.Event(fmt.Sprint("new-", i), fmt.Sprint("n-", i%5), "hello")); r.Status == protocol.ReplyAccepted {
				arrived = append(arrived, r.EventID)
			} else {
				t.Errorf("event %d: %+v", i, r)
			}
		}
	})
	x.checkPages(pages, total)
	x.checkSelected(pages, total)
	others.Wait()
	for _, name := range arrived {
		x.delivery(name, delivered)
	}
	waiting := map[string]bool{}
	for _, name := range arrived {
		waiting[name] = true
	}
	for e := range watched.ResultChan() {
		o, ok := e.Object.(*v1alpha1.GatewayEvent)
		if !ok {
			t.Fatalf("watch: %+v", e)
		}
		if delete(waiting, o.Name); len(waiting) == 0 {
			break
		}
	}
	if len(waiting) > 0 {
		t.Errorf("the watch ended before it showed %v", waiting)
	}
	for _, i := range []int{0, n / 2, n - 1} {
		old := filled(i)
		if r := x.post(old); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate || r.State != string(v1alpha1.GatewayEventCompleted) || r.EventID != gateway.EventID(like.Spec.GatewayUID, old.ExternalEventID) {
			t.Errorf("event %d again: %+v", i, r)
		}
		if old.Text += "!"; x.post(old).Code != http.StatusConflict {
			t.Errorf("event %d with another text is accepted", i)
		}
	}
}

// checkPages reads pages of REST, which begin with the newest.
func (x *connected) checkPages(pages, total int) {
	x.t.Helper()
	viewer := x.REST(x.t, "default", "viewer", "platform-viewer")
	seen, last, token := map[string]bool{}, "", ""
	for range pages {
		a := viewer.Open(x.t.Context(), http.MethodGet, "/api/v1/gateway-events?gateway=chat&limit=500&continue="+token, "") // Get also compares it with its schema
		raw := kit.Must[[]byte](x.t)(io.ReadAll(a.Body))
		_ = a.Body.Close()
		var page struct {
			Items []struct {
				ID, CreatedAt string
			}
			Metadata struct{ Continue string }
		}
		if err := json.Unmarshal(raw, &page); err != nil || a.StatusCode != http.StatusOK {
			x.t.Fatalf("%s %.300s: %v", a.Status, raw, err)
		}
		for _, e := range page.Items {
			if seen[e.ID] || last != "" && e.CreatedAt > last {
				x.t.Fatalf("%s of %s, after %s", e.ID, e.CreatedAt, last)
			}
			seen[e.ID], last = true, e.CreatedAt
		}
		if token = page.Metadata.Continue; token == "" {
			break
		}
	}
	if want := min(pages*500, total); len(seen) < want {
		x.t.Errorf("%d of %d events are in %d pages", len(seen), want, pages)
	}
}

// checkSelected reads pages as kubectl does, with a field selector.
func (x *connected) checkSelected(pages, total int) {
	x.t.Helper()
	seen, o := map[string]bool{}, metav1.ListOptions{Limit: 500, FieldSelector: "status.state=Completed,spec.gatewayName=chat"}
	for range pages {
		page := kit.Must[*v1alpha1.GatewayEventList](x.t)(x.API().GatewayEvents("default").List(x.t.Context(), o))
		for i := range page.Items {
			seen[page.Items[i].Name] = true
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	if want := min(pages*500, total); len(seen) < want {
		x.t.Errorf("%d of %d events are in %d pages of a selection", len(seen), want, pages)
	}
}

// filled returns an event as fill stores it.
func filled(i int) *protocol.Event {
	return chatadapter.Event(fmt.Sprint("filled-", i), fmt.Sprint("t-", i%1000), fmt.Sprint("message ", i))
}

// rowsOfACommit is how many events fill stores in one commit, and fillers how many commits are on their way at once.
const rowsOfACommit, fillers = 100, 8

// fill stores events that were accepted and answered in the folder of a server that is stopped, by the commit that the door makes, without
// their messages. like is one of them.
func fill(ctx context.Context, dir string, like *v1alpha1.GatewayEvent, n int) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	objects, err := object.Open(ctx, e, object.Options{})
	if err != nil {
		return err
	}
	defer objects.Close()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := install.Install(scheme); err != nil {
		return err
	}
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: objects, Scheme: scheme, Codecs: apiserver.Codecs(scheme)})
	stored := kinds.NewStored()
	for _, r := range guard.Close(&guard.Workers{}, kinds.Resources(kinds.Options{Stored: stored, Clock: clock.RealClock{}})) {
		if err := r.Register(scheme); err != nil {
			return err
		}
		paths, err := r.Storage(ctx, resource.Config{Scheme: scheme, RESTOptions: getter, Clock: clock.RealClock{}})
		if err != nil {
			return err
		}
		defer func() {
			for _, s := range paths {
				s.Destroy()
			}
		}()
	}
	work, ctx := errgroup.WithContext(resource.AsServer(ctx, like.Namespace))
	work.SetLimit(fillers)
	seen := inbound.New(e)
	for from := 0; from < n; from += rowsOfACommit {
		work.Go(func() error {
			var parts []engine.Part
			for i := from; i < min(from+rowsOfACommit, n); i++ {
				more, err := rows(ctx, stored, seen, like, i)
				if err != nil {
					return err
				}
				parts = append(parts, more...)
			}
			return e.Commit(engine.Join(engine.Grow, parts...))
		})
	}
	return work.Wait()
}

// rows returns what is stored of one event.
func rows(ctx context.Context, stored kinds.Stored, seen *inbound.Store, like *v1alpha1.GatewayEvent, i int) ([]engine.Part, error) {
	said := filled(i)
	digest, err := gateway.Digest(said)
	if err != nil {
		return nil, err
	}
	row := like.DeepCopy()
	row.ObjectMeta = metav1.ObjectMeta{Namespace: like.Namespace, Name: gateway.EventID(like.Spec.GatewayUID, said.ExternalEventID)}
	row.Spec.ExternalEventID, row.Spec.PayloadSHA256, row.Spec.ThreadID, row.Spec.Text = said.ExternalEventID, digest, said.ThreadID, said.Text
	row.Spec.CreatedAt = metav1.NewMicroTime(like.Spec.CreatedAt.Add(-time.Duration(i) * time.Millisecond))
	row.Status.TranscriptOrder, row.Status.SessionName = int64(i), gateway.EventID("session", said.ThreadID)
	record, err := stored.Events.StageNew(ctx, row)
	if err != nil {
		return nil, err
	}
	known, err := seen.Stage(like.Spec.GatewayUID, said.ExternalEventID, inbound.Seen{Digest: digest, At: like.Spec.CreatedAt.Time})
	return []engine.Part{record, known}, err
}
