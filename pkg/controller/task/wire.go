// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// wire is the way to the API server, beyond the status patch. What is asked there is in one file a noun: wire_tasks.go,
// wire_events.go and so on, each with a type of its own.
type wire struct {
	client.Client
	// live reads from the server, never from a cache.
	live client.Reader
	// group speaks the subresources that a client.Client does not know.
	group rest.Interface
	// own has, by UID, the last change that this process made to the metadata of a task.
	own *lru.Cache
}

func newWire(cfg *rest.Config, c client.Client, live client.Reader) (*wire, error) {
	gc := newWireConfig(cfg)
	gc.NegotiatedSerializer = serializer.NewCodecFactory(c.Scheme()).WithoutConversion()
	gc.ContentConfig.ContentType = "application/json"
	group, err := rest.RESTClientFor(gc)
	if err != nil {
		return nil, fmt.Errorf("task client: %w", err)
	}
	return &wire{Client: c, live: live, group: group, own: lru.New(maxOwnChanges)}, nil
}

// newWireConfig is a copy of a client configuration for our own group.
func newWireConfig(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.GroupVersion = &v1alpha1.SchemeGroupVersion
	c.APIPath = "/apis"
	return c
}
