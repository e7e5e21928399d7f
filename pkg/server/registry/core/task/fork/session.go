// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// ownSession gives a fork a session of its own, with what the source's session held at the fork's point, so that the fork
// neither reads what came later nor writes into the conversation that it leaves. The server copies it, so the caller must be
// allowed to read it. The session is made before the task,
// which might otherwise begin without the messages; undo removes it if there will be no task. A repeated request finds
// and completes it, since copied messages keep their ids.
func (r Forks) ownSession(ctx context.Context, source, t *v1alpha1.Task, f *v1alpha1.TaskForkSpec, seq int64, dryRun bool) (undo func(), err error) {
	undo = func() {}
	ref := t.Spec.SessionRef
	if ref == nil || f.Session == v1alpha1.ForkSessionShared {
		return undo, nil
	}
	from := ref.Name
	if err := r.mayCopySession(ctx, source.Namespace, from); err != nil {
		return nil, err
	}
	ref.Name, ref.Create, ref.ThroughMessageID = t.Name, true, ""
	if dryRun {
		return undo, nil
	}
	client, err := r.client(nil)
	if err != nil {
		return nil, err
	}
	sessions := client.CoreV1alpha1().Sessions(t.Namespace)
	s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: t.Name, Annotations: map[string]string{}}, Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeTask}}
	for _, name := range []string{v1alpha1.AnnotationForkSourceTask, v1alpha1.AnnotationForkSourceUID, v1alpha1.AnnotationForkSourceSeq, v1alpha1.AnnotationForkKeyDigest} {
		if v := t.Annotations[name]; v != "" {
			s.Annotations[name] = v
		}
	}
	made, err := sessions.Create(ctx, s, metav1.CreateOptions{FieldManager: fieldManager})
	again := apierrors.IsAlreadyExists(err)
	if again {
		made, err = sessions.Get(ctx, s.Name, metav1.GetOptions{})
		if err == nil && !sameFork(made.Annotations, s.Annotations) {
			err = apierrors.NewConflict(v1alpha1.Resource("sessions"), s.Name, errors.New("a session has the name of the fork, whose own session would get it; choose another newTaskName, or session: Shared"))
		}
	}
	if err != nil {
		return nil, err
	}
	undo = func() {
		if again {
			return
		}
		err := sessions.Delete(context.WithoutCancel(ctx), made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "The session of a fork that was not made is left over", "session", klog.KObj(made))
		}
	}
	if err := r.copySession(ctx, client.CoreV1alpha1(), source, from, made.Name, seq); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// sameFork reports whether a session was made by the same request.
func sameFork(have, want map[string]string) bool {
	for name, v := range want {
		if have[name] != v {
			return false
		}
	}
	return want[v1alpha1.AnnotationForkKeyDigest] != ""
}

// copyPage is how many messages are copied at once. A message has at most 64 KiB, and a request 15 MiB.
const copyPage = 100

// copySession copies the messages of a session up to a point of the history of one of its tasks.
func (r Forks) copySession(ctx context.Context, client typed.CoreV1alpha1Interface, source *v1alpha1.Task, from, to string, seq int64) error {
	until, err := r.sessionPoint(ctx, source, seq)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		page := &v1alpha1.SessionTranscript{}
		err := client.RESTClient().Get().Namespace(source.Namespace).Resource("sessions").Name(from).SubResource("transcript").
			Param("after", strconv.FormatInt(after, 10)).Param("limit", strconv.Itoa(copyPage)).Do(ctx).Into(page)
		if err != nil {
			return fmt.Errorf("session of the source: %w", err)
		}
		copied := &v1alpha1.SessionTranscript{}
		for _, m := range page.Items {
			if !until.holds(&m) {
				break
			}
			after, m.Order = m.Order, 0
			copied.Items = append(copied.Items, m)
		}
		if len(copied.Items) > 0 {
			if _, err := client.Sessions(source.Namespace).AppendMessages(ctx, to, copied, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("session of the fork: %w", err)
			}
		}
		if len(copied.Items) < len(page.Items) || page.Continue == "" {
			return nil
		}
	}
}

// sessionPoint is a point of a task's history as its session shows it. Tasks hold a session one after the other, and add
// their messages when they succeed, before their last event.
type sessionPoint struct {
	own   string // the beginning of the ids of the task's own messages
	ended bool   // the task's last event is not after the point
	at    time.Time
	seen  bool // one of the task's own messages was seen
}

func (r Forks) sessionPoint(ctx context.Context, t *v1alpha1.Task, seq int64) (*sessionPoint, error) {
	p := &sessionPoint{own: "task:" + string(t.UID) + ":", at: t.CreationTimestamp.Time}
	if seq == 0 {
		return p, nil
	}
	e, err := r.Log.Get(ctx, t.Namespace, event.Name(t.Name, seq))
	if err != nil {
		return nil, err
	}
	p.at = e.CreatedAt.Time
	head, err := r.Log.Head(ctx, stored.Stream(t))
	if err != nil || !head.Closed {
		return p, err
	}
	later, err := r.Log.TaskPage(ctx, stored.Stream(t), seq, 1, []v1alpha1.EventType{head.Terminal})
	if err != nil {
		return nil, err
	}
	p.ended = len(later.Events) == 0
	return p, nil
}

// holds reports whether the session held a message at that point. It is called with the messages in their order, up to
// the first that is later. Times of messages are whole seconds.
func (p *sessionPoint) holds(m *v1alpha1.SessionMessage) bool {
	if strings.HasPrefix(m.ID, p.own) {
		p.seen = true
		return p.ended
	}
	return !p.seen && !m.Timestamp.After(p.at)
}
