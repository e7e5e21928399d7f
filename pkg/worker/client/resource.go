// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned/scheme"
)

// object is a pointer to an API type.
type object[T any] interface {
	*T
	runtime.Object
}

// Resource reads and writes the objects of one resource in a namespace. Its methods are those of a generated client. The
// generated clients are not used: with server-side apply they link, and initialize at each start, client-go's scheme and
// the machinery of managed fields, which takes longer than the run of a small program.
type Resource[T any, P object[T]] struct {
	client          rest.Interface
	name, namespace string
}

// request begins a request to the resource.
func (r Resource[T, P]) request(verb string) *rest.Request {
	return r.client.Verb(verb).Namespace(r.namespace).Resource(r.name)
}

// Get returns one object.
func (r Resource[T, P]) Get(ctx context.Context, name string, opts metav1.GetOptions) (*T, error) {
	var t T
	err := r.request(http.MethodGet).Name(name).VersionedParams(&opts, scheme.ParameterCodec).Do(ctx).Into(P(&t))
	return &t, err
}

// Create stores an object and returns it as stored.
func (r Resource[T, P]) Create(ctx context.Context, o *T, opts metav1.CreateOptions) (*T, error) {
	var t T
	err := r.request(http.MethodPost).VersionedParams(&opts, scheme.ParameterCodec).Body(P(o)).Do(ctx).Into(P(&t))
	return &t, err
}

// Delete deletes one object.
func (r Resource[T, P]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return r.request(http.MethodDelete).Name(name).Body(&opts).Do(ctx).Error()
}

// Watch reports the changes of objects.
func (r Resource[T, P]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return r.request(http.MethodGet).VersionedParams(&opts, scheme.ParameterCodec).Timeout(limit(opts)).Watch(ctx)
}

// list reads a list of objects into an object.
func (r Resource[T, P]) list(ctx context.Context, opts metav1.ListOptions, into runtime.Object) error {
	return r.request(http.MethodGet).VersionedParams(&opts, scheme.ParameterCodec).Timeout(limit(opts)).Do(ctx).Into(into)
}

// get reads a subresource into an object.
func (r Resource[T, P]) get(ctx context.Context, name, subresource string, opts metav1.GetOptions, into runtime.Object) error {
	return r.request(http.MethodGet).Name(name).SubResource(subresource).VersionedParams(&opts, scheme.ParameterCodec).Do(ctx).Into(into)
}

// post sends an object to a subresource, and reads the answer into another one.
func (r Resource[T, P]) post(ctx context.Context, name, subresource string, opts metav1.CreateOptions, body, into runtime.Object) error {
	return r.request(http.MethodPost).Name(name).SubResource(subresource).VersionedParams(&opts, scheme.ParameterCodec).Body(body).Do(ctx).Into(into)
}

func limit(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}
