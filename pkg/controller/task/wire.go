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

// wire holds the clients for the API server, apart from the status patch. There is one file and one type for each
// kind of object: wire_tasks.go, wire_events.go and so on. Core Events, which are for people, are in wire_notices.go.
type wire struct {
	client.Client
	// live reads from the server, never from a cache.
	live client.Reader
	// group requests the subresources that a client.Client does not support.
	group rest.Interface
	// own holds, by UID, the last change that this process made to the metadata of a task.
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

// newWireConfig returns a copy of a client configuration for the platform's API group.
func newWireConfig(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.GroupVersion = &v1alpha1.SchemeGroupVersion
	c.APIPath = "/apis"
	return c
}
