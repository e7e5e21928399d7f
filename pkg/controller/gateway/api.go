// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// wire has the requests that a client.Client cannot make.
type wire struct{ group rest.Interface }

func newWire(cfg *rest.Config, scheme *runtime.Scheme) (wire, error) {
	c := rest.CopyConfig(cfg)
	c.GroupVersion, c.APIPath = &v1alpha1.SchemeGroupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentConfig.ContentType = "application/json"
	group, err := rest.RESTClientFor(c)
	if err != nil {
		return wire{}, fmt.Errorf("gateway client: %w", err)
	}
	return wire{group}, nil
}

// appendMessage adds a message to the transcript of a session. A message of the same id that is there is not added again.
func (w wire) appendMessage(ctx context.Context, namespace, session string, m v1alpha1.SessionMessage) error {
	err := w.group.Post().Namespace(namespace).Resource("sessions").Name(session).SubResource("transcript").
		Body(&v1alpha1.SessionTranscript{Items: []v1alpha1.SessionMessage{m}}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("append to session %s: %w", session, err)
	}
	return nil
}

// appendEvent adds an event to the stream of a task. An event of the same key that is there is not added again.
func (w wire) appendEvent(ctx context.Context, namespace, task string, e v1alpha1.ExecutionEvent) error {
	err := w.group.Post().Namespace(namespace).Resource("tasks").Name(task).SubResource("events").
		Body(&v1alpha1.ExecutionEventList{Items: []v1alpha1.ExecutionEvent{e}}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("append to the events of task %s: %w", task, err)
	}
	return nil
}

// makeTask creates a task, and returns it as it is stored. A refusal that tells when to try again is returned at once, so that it does not
// hold other sessions.
func (w wire) makeTask(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	made := &v1alpha1.Task{}
	err := w.group.Post().Namespace(t.Namespace).Resource("tasks").MaxRetries(0).Body(t).Do(ctx).Into(made)
	return made, err
}

// sendDelivery has the server send a delivery, and returns what became of it. Like makeTask it does not wait for another try.
func (w wire) sendDelivery(ctx context.Context, namespace, name string) (*v1alpha1.GatewayDelivery, error) {
	sent := &v1alpha1.GatewayDelivery{}
	err := w.group.Post().Namespace(namespace).Resource("gatewaydeliveries").Name(name).SubResource("send").MaxRetries(0).
		Body(&v1alpha1.GatewayDelivery{}).Do(ctx).Into(sent)
	if err != nil {
		return nil, fmt.Errorf("send %s: %w", name, err)
	}
	if sent.UID == "" || sent.Status.State == "" {
		return nil, fmt.Errorf("send %s: the server does not say what became of it", name)
	}
	return sent, nil
}

// decideApproval has the server decide on an approval as an event says.
func (w wire) decideApproval(ctx context.Context, namespace, name string) error {
	err := w.group.Post().Namespace(namespace).Resource("gatewayevents").Name(name).SubResource("decide").MaxRetries(0).Body(&v1alpha1.GatewayEvent{}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("decide as %s says: %w", name, err)
	}
	return nil
}

// refusedForGood reports whether a request can never succeed as it is.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
		apierrors.IsGone(err) || apierrors.IsRequestEntityTooLargeError(err)
}
