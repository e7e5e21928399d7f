// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the door for code hosts: they deliver what happens to pull requests and issues, signed with a secret. A delivery makes
// a task if a label asks for one (task.go), and tells the repository monitors of its repository (monitor.go).
//
// # Once
//
// Each delivery is stored before it is answered (CodeHostDelivery), under a name made of its hook and its id, so a delivery that is
// repeated is recognised. It is decided right after that. If the server is interrupted, the row is still Received, and the server decides
// it when it runs again. All that a decision makes has a name that is derived from the delivery, so to decide twice makes nothing twice:
//
//   - A task is named after the digest of the body. The same body under another id makes no second task, and neither does the same event by
//     another hook, which has the same id: the id that a code host gives identifies the event, not the delivery.
//   - A run of a monitor is named after the head that it is about, a command after the id of the event.
//
// A code host does not deliver again what got no answer. What is lost is found by the next run of a monitor. A person can have a delivery
// decided again (codehostdeliveries/replay), and then it makes what it asks for once more.
//
// # What is not believed
//
// The signature says who sends a delivery, not that its contents are good: titles, labels and branches are written by anybody. Labels can be
// set by those whom the code host permits that. Who may give a command to a monitor is looked up when the command is obeyed.
package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/webhook"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/server/registry/core/repositorymonitor"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// User is the name of the user in whose name deliveries make tasks, and Group the group that is permitted that.
const (
	User  = "platform:code-host"
	Group = "platform:code-hosts"
)

func groups() []string { return []string{Group, user.AllAuthenticated} }

const (
	// maxBody is the maximum length of a delivery, in bytes. GitHub sends at most 25 MB.
	maxBody = 25 << 20
	// patience is how long a delivery may take to be decided, after which the server tries again.
	patience = 30 * time.Second
	// look is how often the server looks for deliveries whose decision was interrupted.
	look = time.Minute
	// atOnce is how many of those are decided at a time.
	atOnce = 100
)

// Options are what the door needs. All fields are required except those of Triggers.
type Options struct {
	// Secret signs deliveries. Without it they are refused (503).
	Secret string
	// Triggers are the labels that make tasks.
	Triggers   Triggers
	Deliveries *resource.Stored[*v1alpha1.CodeHostDelivery]
	Monitors   repositorymonitor.Stored
	// Loopback is the configuration of the server's client of itself.
	Loopback *restclient.Config
	Clock    clock.WithTicker
}

// Hook is the door. All methods may be called concurrently.
type Hook struct {
	o     Options
	tasks versioned.Interface
	wake  chan struct{}
	// events has the ids of the events that make a task, so that of two hooks that deliver one event, one makes it.
	events keymutex.KeyMutex
}

// New returns the door of a server.
func New(o Options) (*Hook, error) {
	if err := o.Triggers.check(); err != nil {
		return nil, err
	}
	c := restclient.CopyConfig(o.Loopback)
	c.QPS = -1 // deliveries are limited where they arrive
	c.Impersonate = restclient.ImpersonationConfig{UserName: User, Groups: groups()}
	tasks, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	return &Hook{o: o, tasks: tasks, wake: make(chan struct{}, 1), events: keymutex.NewHashed(0)}, nil
}

// Door returns the door.
func (h *Hook) Door() door.Door {
	signature := door.Signature{Header: "X-Hub-Signature-256", Prefix: "sha256="}
	return door.Door{
		Name: "github", Paths: []string{"/webhooks/github", "/webhooks/github-style"}, Bounds: door.Bounds{Body: maxBody, Bytes: 4 * maxBody},
		Verify: func(r *http.Request, body []byte) (user.Info, error) {
			return &user.DefaultInfo{Name: User, Groups: groups()}, signature.Check(r, body, []byte(h.o.Secret))
		},
		Handle: h.handle,
	}
}

// Wake has the server look for deliveries that are to be decided.
func (h *Hook) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run decides the deliveries whose decision was interrupted or asked for, until ctx ends.
func (h *Hook) Run(ctx context.Context) {
	ticker := h.o.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		due, err := h.o.Deliveries.Due(ctx, h.o.Clock.Now(), atOnce)
		for _, d := range due {
			if _, err = h.decide(ctx, d); err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Deliveries of code hosts wait for their decision")
		}
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-ticker.C():
		}
	}
}

// answer is the body of a reply.
type answer struct {
	Status     string `json:"status"`
	Message    string `json:"message,omitempty"`
	Reason     string `json:"reason,omitempty"`
	DeliveryID string `json:"deliveryID,omitempty"`
	TaskName   string `json:"taskName,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Action     string `json:"action,omitempty"`
	Label      string `json:"label,omitempty"`

	MonitorRunsQueued  int32    `json:"monitorRunsQueued"`
	MonitorRunsCached  int32    `json:"monitorRunsCached"`
	MonitorRunsSkipped int32    `json:"monitorRunsSkipped"`
	MatchedMonitors    int32    `json:"matchedMonitors"`
	RunIDs             []string `json:"runIDs,omitempty"`
	CommandIDs         []string `json:"commandIDs,omitempty"`
}

func (h *Hook) handle(w http.ResponseWriter, r *http.Request, body []byte) {
	ctx := r.Context()
	e, err := webhook.Parse(r.Header, body)
	if err != nil {
		reply(w, http.StatusBadRequest, answer{Status: "error", Message: err.Error()})
		return
	}
	if e.Name == "ping" {
		reply(w, http.StatusAccepted, answer{Status: "ok", Message: "the signature is right"})
		return
	}
	d, again, err := h.store(ctx, h.row(&e, body))
	if err != nil {
		klog.FromContext(ctx).Error(err, "A delivery of a code host is not stored")
		reply(w, http.StatusServiceUnavailable, answer{Status: "error", Message: "the delivery is not stored; deliver it again"})
		return
	}
	if d.Status.State == v1alpha1.DeliveryReceived {
		decided, err := h.decide(ctx, d)
		if err != nil {
			klog.FromContext(ctx).Error(err, "A delivery of a code host waits for its decision", "delivery", klog.KObj(d))
			reply(w, http.StatusAccepted, answer{Status: "accepted", Message: "the delivery is stored, and decided later", DeliveryID: d.Name})
			return
		}
		d = decided
	}
	code, a := h.replyTo(d, again)
	reply(w, code, a)
}

func reply(w http.ResponseWriter, code int, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(a); err != nil {
		return // the client has gone
	}
}

// row returns the row of a delivery. Its name is made of the hook and the id that the code host gives; without an id, of the body.
func (h *Hook) row(e *webhook.Event, body []byte) *v1alpha1.CodeHostDelivery {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	id := cmp.Or(e.Delivery, digest)
	hook := e.Hook
	if e.Gitea {
		hook = hookOfGitea
	}
	name := sha256.Sum256([]byte(hook + "\x00" + id))
	title, _ := redact.Text(e.Title)
	text, _ := redact.Text(e.Body)
	return &v1alpha1.CodeHostDelivery{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.o.Triggers.Namespace, Name: "delivery-" + hex.EncodeToString(name[:12])},
		Spec: v1alpha1.CodeHostDeliverySpec{
			DeliveryID: id, Hook: hook, BodySHA256: digest, Event: e.Name, Action: e.Action, Repository: e.Repository, RepositoryURL: e.RepositoryURL,
			DefaultBranch: e.DefaultBranch, TargetKind: v1alpha1.MonitorTargetKind(e.Kind), Number: e.Number, Title: title, Body: text, URL: e.URL,
			Labels: e.Labels, AllLabels: e.AllLabels, Sender: e.Sender, HeadSHA: e.HeadSHA, HeadBranch: e.HeadRef, HeadRepository: e.HeadRepository,
			BaseBranch: e.BaseRef, Draft: e.Draft, PullRequestIssue: e.IsPullRequest, ReceivedAt: metav1.NewMicroTime(h.o.Clock.Now()),
		},
	}
}

// store appends a row, or returns the one that is there for the same delivery.
func (h *Hook) store(ctx context.Context, d *v1alpha1.CodeHostDelivery) (row *v1alpha1.CodeHostDelivery, again bool, err error) {
	row, made, err := h.o.Deliveries.Ensure(ctx, d, false)
	if made || err != nil {
		return row, false, err
	}
	row, err = h.o.Deliveries.UpdateStored(resource.AsServer(ctx, d.Namespace), d.Name, func(now *v1alpha1.CodeHostDelivery) error {
		now.Status.Redeliveries++
		return nil
	})
	return row, true, err
}

// decide makes what a delivery asks for, and stores what that was. After an error it is tried again later.
func (h *Hook) decide(ctx context.Context, d *v1alpha1.CodeHostDelivery) (*v1alpha1.CodeHostDelivery, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := d.Status.DeepCopy()
	failed := h.make(ctx, d, out)
	again := failed != nil
	ctx = resource.AsServer(context.WithoutCancel(ctx), d.Namespace)
	now := metav1.NewMicroTime(h.o.Clock.Now())
	row, stored := h.o.Deliveries.UpdateStored(ctx, d.Name, func(row *v1alpha1.CodeHostDelivery) error {
		if row.Status.State != v1alpha1.DeliveryReceived || row.Status.Replays != d.Status.Replays {
			return nil // decided meanwhile
		}
		if again {
			next := metav1.NewTime(now.Add(patience)).Rfc3339Copy() // what is due is found by the stored time
			row.Status.NextAttemptAt = &next
			return nil
		}
		out.Redeliveries = row.Status.Redeliveries
		row.Status = *out
		row.Status.NextAttemptAt, row.Status.DecidedAt = nil, &now
		return nil
	})
	return row, errors.Join(failed, stored)
}

// make makes what a delivery asks for, and says in a status what that was.
func (h *Hook) make(ctx context.Context, d *v1alpha1.CodeHostDelivery, out *v1alpha1.CodeHostDeliveryStatus) error {
	out.State, out.Reason, out.Message = v1alpha1.DeliveryIgnored, v1alpha1.ReasonDeliveryEvent, fmt.Sprintf("events of the kind %s cause nothing", d.Spec.Event)
	if d.Spec.TargetKind == "" {
		return nil
	}
	labels, err := h.relabeling(ctx, d)
	if err != nil {
		return err
	}
	out.Reason, out.Message = v1alpha1.ReasonDeliveryNothingAsked, "no monitor looks after the repository, and no label asks for a task"
	told, err := h.tell(ctx, d, labels, out)
	if err != nil {
		return err
	}
	if told {
		out.State, out.Reason, out.Message = v1alpha1.DeliveryProcessed, v1alpha1.ReasonDeliveryQueued, "monitors were told"
	}
	return h.obey(ctx, d, labels.added, out)
}

// replyTo returns the answer to a delivery that was decided. again is set if it was delivered before.
func (h *Hook) replyTo(d *v1alpha1.CodeHostDelivery, again bool) (int, answer) {
	s := &d.Status
	a := answer{
		Status: "ignored", Reason: s.Message, DeliveryID: d.Name, MonitorRunsQueued: s.MonitorRunsQueued, MonitorRunsCached: s.MonitorRunsCached,
		MonitorRunsSkipped: s.MonitorRunsSkipped, MatchedMonitors: s.MatchedMonitors, RunIDs: s.Runs, CommandIDs: s.Commands,
	}
	if len(s.Tasks) > 0 {
		a.TaskName, a.Namespace, a.Action, a.Label = s.Tasks[0], d.Namespace, s.Action, h.labelOf(d, s.Action)
	}
	switch {
	case s.State == v1alpha1.DeliveryFailed:
		a.Status, a.Message, a.Reason = "error", s.Message, ""
		if s.Reason == v1alpha1.ReasonDeliveryNoAgent {
			return http.StatusServiceUnavailable, a
		}
		return http.StatusBadRequest, a
	case s.State == v1alpha1.DeliveryDuplicate || again && len(s.Tasks) > 0:
		a.Status, a.Message, a.Reason = "duplicate", "the task exists already", ""
		return http.StatusAccepted, a
	case len(s.Tasks) > 0:
		a.Status, a.Reason = "created", ""
		return http.StatusCreated, a
	case again && s.State == v1alpha1.DeliveryProcessed:
		a.Status, a.Message, a.Reason = "duplicate", "the delivery was decided before", ""
		return http.StatusAccepted, a
	case s.State == v1alpha1.DeliveryProcessed && (s.MonitorRunsCached == 0 || s.MonitorRunsQueued > 0 || len(s.Commands) > 0):
		a.Status, a.Reason = "queued", ""
		return http.StatusCreated, a
	case s.MonitorRunsCached > 0:
		a.Status, a.Reason = "cached", ""
	}
	return http.StatusAccepted, a
}
