// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// bench is what one row runs on: an etcd process and an engine of ours, both new.
type bench struct {
	endpoint string
	stop     func() error
	engine   engine.Engine
	db       *object.DB
	codec    runtime.Codec
}

func open(ctx context.Context, o Options, dir string) (_ *bench, err error) {
	b := &bench{}
	if b.codec, err = newCodec(o.JSON); err != nil {
		return nil, err
	}
	if b.endpoint, b.stop, err = startEtcd(ctx, o.Etcd, filepath.Join(dir, "etcd")); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "ours"), 0o700); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	if b.engine, err = local.Open(ctx, local.Options{Dir: filepath.Join(dir, "ours"), Mark: filepath.Join(dir, local.MarkFile)}); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	if b.db, err = object.Open(ctx, b.engine, object.Options{}); err != nil {
		return nil, errors.Join(err, b.engine.Close(), b.stop())
	}
	return b, nil
}

func (b *bench) close() error {
	b.db.Close()
	return errors.Join(b.engine.Close(), b.stop())
}

// newCodec encodes pods as the API server does by default for kinds that support
// protobuf, or as JSON. All subjects use the same codec.
func newCodec(json bool) (runtime.Codec, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(scheme), examplev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mediaType := runtime.ContentTypeProtobuf
	if json {
		mediaType = runtime.ContentTypeJSON
	}
	codec, _, err := serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  mediaType,
		StorageSerializer: serializer.NewCodecFactory(scheme),
		StorageVersion:    examplev1.SchemeGroupVersion,
		MemoryVersion:     example.SchemeGroupVersion,
	})
	return codec, err
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

var pods = schema.GroupResource{Resource: "pods"}

// ours opens the resource in our store.
func (b *bench) ours() (*object.Store, error) {
	return b.db.NewStore(object.Config{
		Codec: b.codec, NewFunc: newPod, Prefix: "/registry", ResourcePrefix: "/pods/", GroupResource: pods,
	})
}

// etcd opens the resource in the stock store.
func (b *bench) etcd() (storage.Interface, factory.DestroyFunc, error) {
	config := storagebackend.NewDefaultConfig("/registry", b.codec)
	config.Transport.ServerList = []string{b.endpoint}
	return factory.Create(*config.ForResource(pods), newPod, newPodList, "/pods/")
}

// withCache puts the watch cache in front of a store, as the API server does.
func withCache(ctx context.Context, s storage.Interface, codec runtime.Codec) (storage.Interface, func(), error) {
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: s, Versioner: storage.APIObjectVersioner{}, GroupResource: pods,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: "/pods/",
		KeyFunc:      func(obj runtime.Object) (string, error) { return storage.NamespaceKeyFunc("/pods/", obj) },
		GetAttrsFunc: podAttrs, NewFunc: newPod, NewListFunc: newPodList, Codec: codec,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := c.Wait(ctx); err != nil {
		c.Stop()
		return nil, nil, err
	}
	d := cacher.NewCacheDelegator(c, s)
	return d, func() { d.Stop(); c.Stop() }, nil
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	p, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no pod", obj)
	}
	return p.Labels, fields.Set{"metadata.name": p.Name, "metadata.namespace": p.Namespace}, nil
}

const namespace = "default"

// pod is about 1 KiB, in either encoding.
func pod(name string) *example.Pod {
	return &example.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: "5f0c5ad4-0d0b-4a52-9e24-3f3a3b0fbd0e", Generation: 1,
			Labels:      map[string]string{"app": "bench", "tier": "backend", "team": "storage"},
			Annotations: map[string]string{"description": strings.Repeat("what an object says about itself. ", 18)},
		},
		Spec: example.PodSpec{NodeName: "node-1", ServiceAccountName: "default", Hostname: name},
	}
}

func key(name string) string { return "/pods/" + namespace + "/" + name }
