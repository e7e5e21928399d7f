// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Tasks are the tasks of a namespace, with their subresources.
type Tasks struct {
	Resource[v1alpha1.Task, *v1alpha1.Task]
}

// List returns the tasks that the options select.
func (r Tasks) List(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.TaskList, error) {
	var l v1alpha1.TaskList
	return &l, r.list(ctx, opts, &l)
}

// minimal asks for an answer without the stored object, which costs the server less (RFC 7240).
const minimal = "return=minimal"

// AppendEvent appends an event to the stream of a task.
func (r Tasks) AppendEvent(ctx context.Context, task string, e *v1alpha1.ExecutionEvent) error {
	return r.request(http.MethodPost).Name(task).SubResource("events").SetHeader("Prefer", minimal).Body(e).Do(ctx).Error()
}

// CallConnector has the server carry out a call of a tool of a ConnectorProvider.
func (r Tasks) CallConnector(ctx context.Context, task string, c *v1alpha1.TaskConnectorCall) (*v1alpha1.TaskConnectorCall, error) {
	var answer v1alpha1.TaskConnectorCall
	err := r.request(http.MethodPost).Name(task).SubResource("connectortool").Body(c).Do(ctx).Into(&answer)
	return &answer, err
}

// AppendEvents appends events to the stream of a task in one commit.
func (r Tasks) AppendEvents(ctx context.Context, task string, l *v1alpha1.ExecutionEventList) error {
	return r.request(http.MethodPost).Name(task).SubResource("events").SetHeader("Prefer", minimal).Body(l).Do(ctx).Error()
}

// EventPage returns events of a task with these types, after a place in its stream.
func (r Tasks) EventPage(ctx context.Context, task string, after int64, types ...v1alpha1.EventType) (*v1alpha1.ExecutionEventPage, error) {
	q := r.request(http.MethodGet).Name(task).SubResource("events").Param("after", strconv.FormatInt(after, 10))
	for _, t := range types {
		q = q.Param("type", string(t))
	}
	var p v1alpha1.ExecutionEventPage
	return &p, q.Do(ctx).Into(&p)
}

// Cancel requests that a task is cancelled.
func (r Tasks) Cancel(ctx context.Context, task string, c *v1alpha1.TaskCancellation, opts metav1.CreateOptions) (*v1alpha1.Task, error) {
	var t v1alpha1.Task
	return &t, r.post(ctx, task, "cancel", opts, c, &t)
}

// Detach separates a task from the one that delegated it.
func (r Tasks) Detach(ctx context.Context, task string, d *v1alpha1.TaskDetachment, opts metav1.CreateOptions) (*v1alpha1.Task, error) {
	var t v1alpha1.Task
	return &t, r.post(ctx, task, "detach", opts, d, &t)
}

// GiveTransactionToken submits the transaction token of a task that waits for it.
func (r Tasks) GiveTransactionToken(ctx context.Context, task, token string) error {
	return r.request(http.MethodPost).Name(task).SubResource("transactiontoken").SetHeader("Content-Type", "text/plain").Body([]byte(token)).Do(ctx).Error()
}

// GetPlan returns the plan of a task.
func (r Tasks) GetPlan(ctx context.Context, task string, opts metav1.GetOptions) (*v1alpha1.TaskPlan, error) {
	var p v1alpha1.TaskPlan
	return &p, r.get(ctx, task, "plan", opts, &p)
}

// UpdatePlan replaces the plan of a task.
func (r Tasks) UpdatePlan(ctx context.Context, task string, p *v1alpha1.TaskPlan, opts metav1.CreateOptions) (*v1alpha1.TaskPlan, error) {
	var stored v1alpha1.TaskPlan
	return &stored, r.post(ctx, task, "plan", opts, p, &stored)
}

// SendMessage sends a message from a task to another one.
func (r Tasks) SendMessage(ctx context.Context, task string, m *v1alpha1.TaskMessage, opts metav1.CreateOptions) (*v1alpha1.TaskMessage, error) {
	var sent v1alpha1.TaskMessage
	return &sent, r.post(ctx, task, "messages", opts, m, &sent)
}

// Reply has something said in the conversation that a task answers.
func (r Tasks) Reply(ctx context.Context, task string, reply *v1alpha1.TaskReply, opts metav1.CreateOptions) (*v1alpha1.TaskReply, error) {
	var made v1alpha1.TaskReply
	return &made, r.post(ctx, task, "reply", opts, reply, &made)
}

// GetInbox returns the unread messages of a task.
func (r Tasks) GetInbox(ctx context.Context, task string, opts metav1.GetOptions) (*v1alpha1.TaskInbox, error) {
	var box v1alpha1.TaskInbox
	return &box, r.get(ctx, task, "inbox", opts, &box)
}

// ReadInbox marks messages of a task as read.
func (r Tasks) ReadInbox(ctx context.Context, task string, mark *v1alpha1.TaskInbox, opts metav1.CreateOptions) (*v1alpha1.TaskInbox, error) {
	var box v1alpha1.TaskInbox
	return &box, r.post(ctx, task, "inbox", opts, mark, &box)
}
