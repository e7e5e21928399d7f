// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/tools/cache"
)

// RESTOptions configure the stores of the generic registry.
type RESTOptions struct {
	DB *DB
	// Scheme and Codecs must know every stored type. Codecs is usually a
	// serializer.CodecFactory over Scheme.
	Scheme *runtime.Scheme
	Codecs runtime.StorageSerializer
	// MediaType is the media type in which objects are stored. Default: application/json. Objects stored in
	// any other type that Codecs knows can be read too.
	MediaType string
	// StorageVersion chooses the version that a resource is stored in. Default: the
	// scheme's first version of the group.
	StorageVersion func(schema.GroupResource) (schema.GroupVersion, bool)
	// Prefix is the prefix of all keys. Default: "/registry".
	Prefix string
	// Transformers encrypt the values of some resources at rest.
	Transformers map[schema.GroupResource]value.Transformer
	// Indexes derive further rows from the objects of some resources.
	Indexes map[schema.GroupResource]Index
	// Cacher puts the API server's watch cache in front of each store. The store works without it: it is
	// consistent, keeps one copy of the data and drops no watch for being slow. The watch cache is a tested
	// alternative. Default: off.
	Cacher bool
	// DeleteCollectionWorkers is how many objects the deletion of a collection removes in parallel.
	// Default: 1.
	DeleteCollectionWorkers int
	// CountMetricPollPeriod is how often the registry counts objects for
	// ObjectCounts. Default: 1 minute.
	CountMetricPollPeriod time.Duration
	// ObjectCounts, if set, receives object counts, from which priority and fairness estimates the cost of lists.
	ObjectCounts flowcontrolrequest.StorageObjectCountTracker
}

// RESTOptionsGetter gives the generic registry a Store for each resource.
type RESTOptionsGetter struct{ o RESTOptions }

var _ generic.RESTOptionsGetter = (*RESTOptionsGetter)(nil)

// NewRESTOptionsGetter returns a getter for the Config.RESTOptionsGetter of a generic server.
func NewRESTOptionsGetter(o RESTOptions) *RESTOptionsGetter {
	if o.MediaType == "" {
		o.MediaType = runtime.ContentTypeJSON
	}
	if o.Prefix == "" {
		o.Prefix = "/registry"
	}
	if o.DeleteCollectionWorkers == 0 {
		o.DeleteCollectionWorkers = 1
	}
	if o.CountMetricPollPeriod == 0 {
		o.CountMetricPollPeriod = time.Minute
	}
	if o.Cacher {
		AnnounceWatchProgress()
	}
	return &RESTOptionsGetter{o: o}
}

// GetRESTOptions returns the options of one resource. Its keys begin with
// Prefix/GROUP/RESOURCE.
func (g *RESTOptionsGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config, err := g.config(resource)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("storage of %s: %w", resource, err)
	}
	prefix := "/" + resource.Resource
	if resource.Group != "" {
		prefix = "/" + resource.Group + prefix
	}
	return generic.RESTOptions{
		StorageConfig:             config.ForResource(resource),
		Decorator:                 g.decorate,
		EnableGarbageCollection:   true,
		DeleteCollectionWorkers:   g.o.DeleteCollectionWorkers,
		ResourcePrefix:            prefix,
		CountMetricPollPeriod:     g.o.CountMetricPollPeriod,
		StorageObjectCountTracker: g.o.ObjectCounts,
	}, nil
}

func (g *RESTOptionsGetter) config(resource schema.GroupResource) (*storagebackend.Config, error) {
	version, ok := schema.GroupVersion{}, false
	if g.o.StorageVersion != nil {
		version, ok = g.o.StorageVersion(resource)
	}
	if !ok {
		versions := g.o.Scheme.PrioritizedVersionsForGroup(resource.Group)
		if len(versions) == 0 {
			return nil, fmt.Errorf("the scheme lacks a version of group %q", resource.Group)
		}
		version = versions[0]
	}
	config := storagebackend.NewDefaultConfig(g.o.Prefix, nil)
	config.Type = "pebble"
	config.Transformer = g.o.Transformers[resource]
	codec, versioner, err := serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  g.o.MediaType,
		StorageSerializer: g.o.Codecs,
		StorageVersion:    version,
		MemoryVersion:     schema.GroupVersion{Group: resource.Group, Version: runtime.APIVersionInternal},
		Config:            *config,
	})
	config.Codec, config.EncodeVersioner = codec, versioner
	return config, err
}

// decorate makes the store of a resource.
func (g *RESTOptionsGetter) decorate(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	keyFunc func(obj runtime.Object) (string, error),
	newFunc func() runtime.Object,
	newListFunc func() runtime.Object,
	getAttrs storage.AttrFunc,
	triggers storage.IndexerFuncs,
	indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s, err := g.o.DB.NewStore(Config{
		Codec:          config.Codec,
		Transformer:    config.Transformer,
		NewFunc:        newFunc,
		Prefix:         config.Prefix,
		ResourcePrefix: resourcePrefix,
		GroupResource:  config.GroupResource,
		MarkCorrupt:    unsafeDeletionAllowed(),
		Index:          g.o.Indexes[config.GroupResource],
		Fields:         triggers,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("storage of %s: %w", config.GroupResource, err)
	}
	if !g.o.Cacher {
		return s, s.Close, nil
	}
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             s,
		Versioner:           s.Versioner(),
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        getAttrs,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		s.Close()
		return nil, nil, fmt.Errorf("watch cache of %s: %w", config.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(c, s)
	return delegator, sync.OnceFunc(func() {
		delegator.Stop()
		c.Stop()
		s.Close()
	}), nil
}

// AnnounceWatchProgress makes the API server's process-wide feature check report that storage supports
// RequestWatchProgress; the check itself knows only etcd clients. Without it the watch cache refuses every
// watch that sends initial events and passes every consistent list on to storage. Call it before a watch
// cache is made. NewRESTOptionsGetter calls it.
func AnnounceWatchProgress() {
	if !feature.DefaultFeatureSupportChecker.Supports(storage.RequestWatchProgress) {
		feature.DefaultFeatureSupportChecker = progressSupported{feature.DefaultFeatureSupportChecker}
	}
}

type progressSupported struct{ feature.FeatureSupportChecker }

// Supports reports whether storage has the feature.
func (p progressSupported) Supports(f storage.Feature) bool {
	return f == storage.RequestWatchProgress || p.FeatureSupportChecker.Supports(f)
}
