// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// fieldManager is the field manager of what the tools create.
const fieldManager = "platform-chat"

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// taskName returns the name of a task that the model calls name: with a prefix that only this session has, so that
// sessions do not take each other's names. A name that has the prefix already is kept.
func (b *Box) taskName(name string) string {
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(name, b.Prefix)), "-"), "-")
	if name == "" {
		name = "task"
	}
	return v1alpha1.ShortName(b.Prefix+name, "", validation.LabelValueMaxLength)
}

// ForSession returns the scope of a chat: what its tools create is named and labelled after its session.
func ForSession(s *v1alpha1.Session) Scope {
	sum := sha256.Sum256([]byte(s.UID))
	return Scope{
		Namespace: s.Namespace, Session: s.Name, In: builtin.Chats,
		Prefix: "chat-" + hex.EncodeToString(sum[:4]) + "-",
		Labels: map[string]string{
			v1alpha1.LabelCreatedBy:   v1alpha1.CreatedByOrchestrator,
			v1alpha1.LabelChatSession: v1alpha1.SessionLabel(s.Name),
		},
	}
}

// createTask creates a task, within the limit of the turn.
func (b *Box) createTask(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	if int(b.created) >= b.o.MaxTasks {
		return nil, tool.Errorf(tool.TypeLimitReached, "this turn has created %d tasks, which is the most that is allowed", b.created).
			Suggest("say what is left to do; the user can ask for it in the next message")
	}
	b.mark(t)
	tasks := b.caller.CoreV1alpha1().Tasks(b.Namespace)
	made, err := tasks.Create(ctx, t, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Task, error) { return tasks.Get(ctx, t.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, Explain(err)
	}
	b.created++
	return made, nil
}

// mark marks an object that is about to be created with the id of the call.
func (b *Box) mark(o metav1.Object) {
	if b.call != "" {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		all[v1alpha1.AnnotationChatCall] = b.call
		o.SetAnnotations(all)
	}
}

// own returns the object that exists already if this same call created it before the server ended, otherwise the refusal.
func own[T metav1.Object](b *Box, refusal error, get func() (T, error)) (T, error) {
	var none T
	found, err := get()
	if err != nil || b.call == "" || found.GetAnnotations()[v1alpha1.AnnotationChatCall] != b.call {
		return none, refusal
	}
	return found, nil
}
