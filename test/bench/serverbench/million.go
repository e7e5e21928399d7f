// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/host"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/bench/report"
)

// manyObjects is the number of objects in the large store. fillers is the number of
// concurrent writers that make them, so that they share syncs.
const manyObjects, fillers = 1_000_000, 256

// startLarge measures the start on a store of many objects.
func startLarge(ctx context.Context, o Options, r *report.Report) error {
	name := fmt.Sprintf("start to ready, %d objects", manyObjects)
	if !o.wants(name) {
		return nil
	}
	dir := filepath.Join(o.Dir, "large")
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o700); err != nil {
		return err
	}
	if err := fill(ctx, filepath.Join(dir, "store"), manyObjects); err != nil {
		return err
	}
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	err = s.serves(ctx, manyObjects)
	if err == nil {
		err = r.Add(report.Row{Name: name, Unit: "s", Better: report.Lower, Ours: s.ready.Seconds(), Other: 2, OtherName: "(aim)"})
	}
	return errors.Join(err, s.stop())
}

// serves checks that the server knows all n objects at once.
func (s *server) serves(ctx context.Context, n int64) error {
	c, url, err := s.client("")
	if err != nil {
		return err
	}
	var list corev1.ConfigMapList
	if err := send(ctx, c, http.MethodGet, url+"/api/v1/namespaces/large/configmaps?limit=1", nil, &list); err != nil {
		return err
	}
	if list.RemainingItemCount == nil || int64(len(list.Items))+*list.RemainingItemCount != n {
		return fmt.Errorf("the server does not serve %d objects: %v after %d", n, list.RemainingItemCount, len(list.Items))
	}
	return nil
}

// fill makes n ConfigMaps of half a KiB, as the server stores them.
func fill(ctx context.Context, dir string, n int) (err error) {
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
	scheme, err := apiserver.NewScheme(host.Install)
	if err != nil {
		return err
	}
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: db, Scheme: scheme, Codecs: apiserver.Codecs(scheme)})
	options, err := getter.GetRESTOptions(schema.GroupResource{Resource: "configmaps"}, nil)
	if err != nil {
		return err
	}
	store, closeStore, err := options.Decorator(options.StorageConfig, options.ResourcePrefix, nil,
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} }, nil, nil, nil)
	if err != nil {
		return err
	}
	defer closeStore()
	return createAll(ctx, store, options.ResourcePrefix, n)
}

func createAll(ctx context.Context, store storage.Interface, prefix string, n int) error {
	data := map[string]string{"text": buildLog[:512]}
	work, ctx := errgroup.WithContext(ctx)
	for w := range fillers {
		work.Go(func() error {
			for i := w; i < n; i += fillers {
				m := &corev1.ConfigMap{Data: data}
				m.Namespace, m.Name = "large", fmt.Sprintf("object-%07d", i)
				if err := store.Create(ctx, prefix+"/"+m.Namespace+"/"+m.Name, m, nil, 0); err != nil {
					return fmt.Errorf("fill the store: %w", err)
				}
			}
			return nil
		})
	}
	return work.Wait()
}
