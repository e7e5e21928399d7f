// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token gives tasks transaction tokens of their own. Such a task is created with a mark that it waits for its token. Then the
// token is stored in a Secret that the task owns, and the mark is replaced by the name of the Secret in one commit, after which the
// task may start. A crash in between leaves a task that never starts, which its controller ends. The token is never part of a task,
// and no object is decoded that has it, so it does not reach the audit log.
package token

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

// MaxBytes is the maximum length of a token, in bytes.
const MaxBytes = tokenexchange.MaxToken

// Service obtains the transaction tokens of tasks and checks them.
type Service interface {
	// ForTask returns a token for a task that the caller of the request creates in its transaction; empty if it gets none.
	ForTask(ctx context.Context, transaction *v1alpha1.TaskTransaction) (string, error)
	// Check requires that a token is valid and one of the transaction.
	Check(ctx context.Context, token string, transaction *v1alpha1.TaskTransaction) error
}

// Tokens obtains and stores the tokens of tasks. All fields are required except Service, without which tasks get none, and Secrets,
// which only Service needs.
type Tokens struct {
	Tasks   stored.Tasks
	Log     *eventlog.Log
	Clock   clock.PassiveClock
	Service Service
	// Secrets is a client of the server that has the Secrets.
	Secrets kubernetes.Interface
}

// Obtain gets a token for the task of a caller, and since when the task waits for it. A schedule gets none, because its runs begin
// when it has expired.
func (r Tokens) Obtain(ctx context.Context, t *v1alpha1.Task, transaction *v1alpha1.TaskTransaction) (token string, pending time.Time, err error) {
	if r.Service == nil || transaction == nil || t.Spec.Schedule != "" {
		return "", time.Time{}, nil
	}
	token, err = r.Service.ForTask(ctx, transaction)
	if failed, ok := errors.AsType[*tokenexchange.Error](err); ok && failed.Refused() {
		return "", time.Time{}, apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, err)
	}
	if err != nil {
		return "", time.Time{}, apierrors.NewServiceUnavailable("there is no transaction token for the task: " + err.Error())
	}
	if token != "" {
		pending = r.Clock.Now()
	}
	return token, pending, nil
}

// Awaited reports whether the worker that creates the child will hand in a token for it, and removes the request for that
// from the child. The stamp sets it again.
func (r Tokens) Awaited(t, parent *v1alpha1.Task) bool {
	if r.Service == nil || parent.Spec.Transaction == nil || t.Annotations[v1alpha1.AnnotationTransactionTokenPending] != "true" {
		return false
	}
	delete(t.Annotations, v1alpha1.AnnotationTransactionTokenPending)
	return true
}

// HandOut gives a task its token once it is created; nil if it gets none. If that fails, the task never starts, and its
// controller ends it.
func (r Tokens) HandOut(ctx context.Context, t *v1alpha1.Task, token string) func(created bool) {
	if token == "" {
		return nil
	}
	return func(created bool) {
		if !created {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveTimeout)
		defer cancel()
		var err error
		_ = wait.ExponentialBackoffWithContext(ctx, giveTries, func(ctx context.Context) (bool, error) {
			err = r.give(ctx, t, token)
			return err == nil, nil
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot store the transaction token of a task, which therefore will not start", "task", klog.KObj(t))
		}
	}
}

// giveTimeout limits all tries to store a token while its request waits.
const giveTimeout = 10 * time.Second

var giveTries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 5}

// Receive serves POST of the token of a child, from the worker that delegated it.
func (r Tokens) Receive(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token, err := resource.ReadBody(w, req, MaxBytes)
		if err == nil {
			err = r.accept(req.Context(), p, strings.TrimSpace(string(token)))
		}
		if err != nil {
			respond.Error(err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}), nil
}

// accept checks a token and stores it. A repeated request changes nothing.
func (r Tokens) accept(ctx context.Context, p stored.Parent, token string) error {
	t, err := p.Reload(ctx)
	if err != nil {
		return err
	}
	conflict := func(why string) error {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New(why))
	}
	switch {
	case t.Annotations[v1alpha1.AnnotationTransactionTokenSecret] != "":
		return nil
	case r.Service == nil:
		return conflict("this server exchanges no transaction tokens (--context-token-tts-endpoint)")
	case t.Status.Delegation == nil || t.Spec.Transaction == nil || t.Annotations[v1alpha1.AnnotationTransactionTokenPending] == "":
		return conflict("the task does not wait for a transaction token")
	case t.Status.Phase.Terminal():
		return refusal.Ended(t)
	}
	if err := r.Service.Check(ctx, token, t.Spec.Transaction); err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, err)
	}
	return r.give(ctx, t, token)
}

// give stores the token and lets the task start.
func (r Tokens) give(ctx context.Context, t *v1alpha1.Task, token string) error {
	ctx = request.WithNamespace(ctx, t.Namespace)
	secret := secretWith(t, token)
	_, err := r.Secrets.CoreV1().Secrets(t.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // from an earlier try, unless somebody else made it
		var found *corev1.Secret
		found, err = r.Secrets.CoreV1().Secrets(t.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
		if err == nil && (found.Type != secret.Type || !metav1.IsControlledBy(found, t) || !bytes.Equal(found.Data[v1alpha1.TransactionTokenKey], []byte(token))) {
			err = errors.New("there is another Secret " + secret.Name)
		}
	}
	if err != nil {
		return apierrors.NewServiceUnavailable("the transaction token of the task cannot be stored: " + err.Error())
	}
	return r.release(ctx, t, secret.Name)
}

// release replaces the mark of a waiting task by the name of its Secret.
func (r Tokens) release(ctx context.Context, t *v1alpha1.Task, secret string) error {
	for {
		part, err := r.Tasks.Stage(ctx, t.Name, func(now *v1alpha1.Task) error {
			if now.UID != t.UID {
				return refusal.Deleted(t)
			}
			if now.Status.Phase.Terminal() {
				return refusal.Ended(now)
			}
			delete(now.Annotations, v1alpha1.AnnotationTransactionTokenPending)
			delete(now.Annotations, v1alpha1.AnnotationTransactionTokenPendingSince)
			metav1.SetMetaDataAnnotation(&now.ObjectMeta, v1alpha1.AnnotationTransactionTokenSecret, secret)
			return nil
		})
		if err == nil && part != nil {
			err = r.Log.Commit(engine.Upkeep, part)
		}
		if err == nil {
			return nil
		}
		if !object.IsConflict(err) || ctx.Err() != nil {
			return resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
		}
	}
}

// secretWith returns the Secret of a task's token. Its name depends on the UID, so that nobody can make it before there is
// the task.
func secretWith(t *v1alpha1.Task, token string) *corev1.Secret {
	sum := sha256.Sum256([]byte(t.UID))
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: v1alpha1.ShortName(t.Name, "-txn-"+hex.EncodeToString(sum[:8]), validation.DNS1123SubdomainMaxLength),
			Labels: map[string]string{v1alpha1.LabelTask: v1alpha1.LabelValue(t.Name)},
			// Without blockOwnerDeletion, as for the Jobs of tasks.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Name: t.Name, UID: t.UID, Controller: new(true),
			}},
		},
		Type: v1alpha1.SecretTypeTransactionToken, Immutable: new(true), Data: map[string][]byte{v1alpha1.TransactionTokenKey: []byte(token)},
	}
}
