// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

type sendArguments struct {
	ToTask  string `json:"to_task"`
	Content string `json:"content"`
}

type sendTool struct{ *family }

var _ tool.Tool = sendTool{}

// Definition describes the tool.
func (sendTool) Definition() tool.Definition { return builtin.SendMessage.Definition() }

// Call sends the message. If the request has to be repeated, the message is delivered once.
func (t sendTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[sendArguments](raw)
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.TaskMessage{Spec: v1alpha1.TaskMessageSpec{ToTask: a.ToTask, Content: a.Content, MessageID: t.messageID()}}
	var sent *v1alpha1.TaskMessage
	err = t.persist(ctx, func() (err error) {
		sent, err = t.api.CoreV1alpha1().Tasks(t.task.Namespace).SendMessage(ctx, t.task.Name, m, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsConflict(err) && ctx.Err() == nil { // the recipient has ended, or its inbox is full
		return nil, tool.Errorf(tool.TypeUnavailable, "%s", toolkit.MessageOf(err))
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	text := "no task got the message: none with the same parent as yours is left"
	if to := sent.Status.Recipients; len(to) > 0 {
		text = "the message was sent to " + strings.Join(to, ", ")
	}
	if full := sent.Status.Full; len(full) > 0 {
		text += "; these have too many messages and did not get it: " + strings.Join(full, ", ")
	}
	return text, nil
}

// messageID returns what the next message of the run is recognised by.
func (f *family) messageID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s/%d", f.task.Status.JobUID, f.attempt, f.kind, f.calls.Add(1)))
	return hex.EncodeToString(sum[:16])
}

type replyArguments struct {
	Text string `json:"text"`
}

type replyTool struct{ *family }

var _ tool.Tool = replyTool{}

// Definition describes the tool.
func (replyTool) Definition() tool.Definition { return builtin.ReplyInConversation.Definition() }

// Call has the text posted. Whether the chat system takes it is not waited for: the delivery is repeated until it does.
func (t replyTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[replyArguments](raw)
	if err != nil {
		return nil, err
	}
	r := &v1alpha1.TaskReply{Spec: v1alpha1.TaskReplySpec{Text: a.Text, MessageID: t.messageID()}}
	err = t.persist(ctx, func() error {
		_, err := t.api.CoreV1alpha1().Tasks(t.task.Namespace).Reply(ctx, t.task.Name, r, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsConflict(err) && ctx.Err() == nil { // nothing is posted before the answer, or not any more
		return nil, tool.Errorf(tool.TypeUnavailable, "%s", toolkit.MessageOf(err))
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return "the text is queued and will be posted; do not send it again", nil
}

type checkArguments struct {
	MarkRead *bool `json:"mark_read"`
}

type checkTool struct {
	*family
	// one makes calls one after the other, so that each message is returned by one of them.
	one *sync.Mutex
}

var _ tool.Tool = checkTool{}

// Definition describes the tool.
func (checkTool) Definition() tool.Definition { return builtin.CheckMessages.Definition() }

// Call reads the messages, and then marks exactly these as read. Both requests can be repeated.
func (t checkTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[checkArguments](raw)
	if err != nil {
		return nil, err
	}
	t.one.Lock()
	defer t.one.Unlock()
	tasks := t.api.CoreV1alpha1().Tasks(t.task.Namespace)
	var box *v1alpha1.TaskInbox
	err = t.persist(ctx, func() (err error) {
		box, err = tasks.GetInbox(ctx, t.task.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	messages := box.Status.Messages
	if len(messages) == 0 {
		return "no new messages", nil
	}
	if a.MarkRead != nil && !*a.MarkRead {
		return messages, nil
	}
	mark := &v1alpha1.TaskInbox{Spec: v1alpha1.TaskInboxSpec{Through: messages[len(messages)-1].Number}}
	err = t.persist(ctx, func() error {
		_, err := tasks.ReadInbox(ctx, t.task.Name, mark, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	for i := range messages {
		messages[i].Read = true
	}
	return messages, nil
}
