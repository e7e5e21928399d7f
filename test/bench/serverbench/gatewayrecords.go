// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/bench/report"
)

// recordBatch is how many records are stored in one commit, recordPage how many are asked for, and looks how often each page is.
const recordBatch, recordPage, looks = 500, 500, 30

// rareRecords says how many records there are for one that is dead-lettered.
const rareRecords = 100

// records measures pages of the events of a gateway, of which there are many.
func records(ctx context.Context, o Options, r *report.Report) (err error) {
	n := cmp.Or(o.Records, manyObjects)
	pages := []struct{ name, query string }{{"newest", ""}, {"in the middle", ""}, {"of one gateway", "&gateway=chat-3"}, {"of one state", "&state=DeadLettered"}}
	wanted := false
	for i, p := range pages {
		pages[i].name = fmt.Sprintf("%d of %d gateway events, %s", recordPage, n, p.name)
		wanted = wanted || o.wants(pages[i].name)
	}
	if !wanted {
		return nil
	}
	began := time.Now().Add(-time.Duration(n) * time.Millisecond).Truncate(time.Millisecond)
	if pages[1].query, err = after(began.Add(time.Duration(n/2) * time.Millisecond)); err != nil {
		return err
	}
	dir := filepath.Join(o.Dir, "records")
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o700); err != nil {
		return err
	}
	if err := fillRecords(ctx, filepath.Join(dir, "store"), n, began); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	for _, p := range pages {
		if err := s.look(r, p.name, min(recordPage, n/rareRecords), func() (int, error) {
			var page struct{ Items []json.RawMessage }
			err := send(ctx, c, http.MethodGet, fmt.Sprintf("%s/api/v1/gateway-events?namespace=default&limit=%d%s", url, recordPage, p.query), nil, &page)
			return len(page.Items), err
		}); err != nil {
			return err
		}
	}
	query := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"GatewayRecordQuery","spec":{"records":"events","limit":%d}}`, v1alpha1.SchemeGroupVersion.String(), recordPage)
	return s.look(r, fmt.Sprintf("%d of %d gateway events, by a native query", recordPage, n), recordPage, func() (int, error) {
		var page struct {
			Status struct{ Events []json.RawMessage }
		}
		err := send(ctx, c, http.MethodPost, url+base+"gatewayrecordqueries", query, &page)
		return len(page.Status.Events), err
	})
}

// quiet waits until the server has had little to do for some seconds, at most ten minutes: it sorts what was just stored, and its controllers
// read all records once.
func (s *server) quiet(ctx context.Context) error {
	quiet := 0
	for range 600 {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		wait(ctx, time.Second)
		after, err := s.cpu()
		if after-before < 0.05 {
			quiet++
		} else {
			quiet = 0
		}
		if err != nil || quiet == 5 {
			return err
		}
	}
	return ctx.Err()
}

// look measures a page, which must have at least so many records.
func (s *server) look(r *report.Report, name string, least int, ask func() (int, error)) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	var took []float64
	for range looks {
		from := time.Now()
		n, err := ask()
		if err != nil {
			return err
		}
		if n < least {
			return fmt.Errorf("%s: a page of %d", name, n)
		}
		took = append(took, time.Since(from).Seconds()*1000)
	}
	used, err := s.cpu()
	if err != nil {
		return err
	}
	slices.Sort(took)
	return addAll(r,
		report.Row{Name: name, Unit: "ms", Better: report.Lower, Ours: took[looks/2], Other: 30, OtherName: "(aim)"},
		report.Row{Name: "processor time of it", Unit: "ms", Better: report.Lower, Ours: (used - before) * 1000 / looks})
}

// after returns the part of a query that asks for what is older than a time.
func after(t time.Time) (string, error) {
	b, err := json.Marshal(map[string]any{"createdAt": metav1.NewMicroTime(t), "id": "gev-"})
	return "&cursor=" + base64.RawURLEncoding.EncodeToString(b), err
}

// fillRecords stores n events of ten gateways that were answered, one a millisecond, by the server's own kinds.
func fillRecords(ctx context.Context, dir string, n int, began time.Time) (err error) {
	e, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	db, err := object.Open(ctx, e, object.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	scheme, err := apiserver.NewScheme(install.Install)
	if err != nil {
		return err
	}
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: db, Scheme: scheme, Codecs: apiserver.Codecs(scheme)})
	stored := gateway.NewStored()
	for _, kind := range guard.Close(&guard.Workers{}, gateway.Resources(gateway.Options{Stored: stored, Clock: clock.RealClock{}})) {
		if err := kind.Register(scheme); err != nil {
			return err
		}
		paths, err := kind.Storage(ctx, resource.Config{Scheme: scheme, RESTOptions: getter, Clock: clock.RealClock{}})
		if err != nil {
			return err
		}
		defer func() {
			for _, s := range paths {
				s.Destroy()
			}
		}()
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(8)
	for from := 0; from < n; from += recordBatch {
		work.Go(func() error {
			parts := make([]engine.Part, 0, recordBatch)
			for i := from; i < min(from+recordBatch, n); i++ {
				part, err := stored.Events.StageNew(resource.AsServer(ctx, "default"), record(i, began))
				if err != nil {
					return err
				}
				parts = append(parts, part)
			}
			return e.Commit(engine.Join(engine.Grow, parts...))
		})
	}
	return work.Wait()
}

// record returns the ith event.
func record(i int, began time.Time) *v1alpha1.GatewayEvent {
	at := metav1.NewMicroTime(began.Add(time.Duration(i) * time.Millisecond))
	e := &v1alpha1.GatewayEvent{
		Spec: v1alpha1.GatewayEventSpec{
			GatewayOwner:    v1alpha1.GatewayOwner{NamespaceUID: "namespace", GatewayName: fmt.Sprintf("chat-%d", i%10), GatewayUID: "gateway", GatewayGeneration: 1},
			ExternalEventID: fmt.Sprintf("$event-%d", i), PayloadSHA256: fmt.Sprintf("%064x", i), ProtocolVersion: v1alpha1.GatewayContractV1, EventType: "text",
			AccountID: "bot", ContextID: fmt.Sprintf("!room-%d:example.com", i%1000), SenderID: fmt.Sprintf("@person-%d:example.com", i%5000),
			Text: buildLog[:128], ReplyTarget: "!room:example.com", CreatedAt: at,
		},
		Status: v1alpha1.GatewayEventStatus{
			State: v1alpha1.GatewayEventCompleted, BindingName: "room", SessionName: fmt.Sprintf("gateway-session-%040x", i%1000), TaskName: fmt.Sprintf("gw-%040x", i),
			DeliveryID: fmt.Sprintf("gdl-%040x", i), TranscriptOrder: int64(i), UpdatedAt: &at, CompletedAt: &at,
		},
	}
	if i%rareRecords == 0 {
		e.Status.State, e.Status.Reason = v1alpha1.GatewayEventDeadLettered, v1alpha1.ReasonSessionQueueFull
	}
	e.Namespace, e.Name = "default", fmt.Sprintf("gev-%040x", i)
	return e
}
