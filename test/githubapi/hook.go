// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Hook is a webhook of the repository.
type Hook struct {
	ID          int64
	URL, Secret string
	// Client sends to it; nil for http.DefaultClient.
	Client *http.Client
}

// Delivery is an event as the hook gets it.
type Delivery struct {
	// GUID tells deliveries apart. One that is sent again keeps it, as it does its payload.
	GUID, Event string
	Payload     []byte
	// Number is the number of the issue or pull request.
	Number int64
	// Status is the status that the receiver answered with, and Answer the body; 0 if nothing was sent.
	Status int
	Answer []byte
}

// Ping sends what GitHub sends when a hook is made.
func (h *Host) Ping(ctx context.Context, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		return "ping", map[string]any{"zen": "Design for failure.", "hook_id": h.state.Hook.ID}
	})
}

// Label gives an issue or a pull request a label.
func (h *Host) Label(ctx context.Context, number int64, label, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		h.relabel(number, label, true, Account(sender))
		return h.event(number, "labeled", map[string]any{"label": Label{Name: label}})
	})
}

// Unlabel takes a label away.
func (h *Host) Unlabel(ctx context.Context, number int64, label, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		h.relabel(number, label, false, Account(sender))
		return h.event(number, "unlabeled", map[string]any{"label": Label{Name: label}})
	})
}

// OpenIssue makes an issue.
func (h *Host) OpenIssue(ctx context.Context, title, body, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		return h.event(h.report(sender, title, body).Number, "opened", nil)
	})
}

// OpenPull makes a pull request: Title, Body, Draft, Labels, Head and Base of p are taken, and a Base that is not named is main.
func (h *Host) OpenPull(ctx context.Context, p Pull, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		if p.User = Account(sender); p.Base.Ref == "" {
			p.Base.Ref = "main"
		}
		return h.event(h.open(p).Number, "opened", nil)
	})
}

// Push moves the head of a pull request to another commit.
func (h *Host) Push(ctx context.Context, number int64, sha, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		p := h.numbered(number)
		before := p.Head.SHA
		if p.Head.SHA, p.UpdatedAt = sha, time.Now().UTC(); !p.Head.Repo.Fork {
			h.branches[p.Head.Ref] = sha
		}
		return h.event(number, "synchronize", map[string]any{"before": before, "after": sha})
	})
}

// ClosePull closes a pull request, and sends the same of one that was merged.
func (h *Host) ClosePull(ctx context.Context, number int64, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		h.turn(h.numbered(number), "closed")
		return h.event(number, "closed", nil)
	})
}

// ReopenPull opens a pull request again.
func (h *Host) ReopenPull(ctx context.Context, number int64, sender string) (Delivery, error) {
	return h.cause(ctx, sender, func() (string, map[string]any) {
		h.turn(h.numbered(number), "open")
		return h.event(number, "reopened", nil)
	})
}

// numbered returns the pull request with a number.
func (h *Host) numbered(n int64) *Pull {
	return h.pulls[slices.IndexFunc(h.pulls, func(p *Pull) bool { return p.Number == n })]
}

// event returns the name and the payload of what happened to an issue or a pull request.
func (h *Host) event(n int64, action string, more map[string]any) (string, map[string]any) {
	payload := map[string]any{"action": action}
	maps.Copy(payload, more)
	all := h.all()
	if i := all[slices.IndexFunc(all, func(i *Issue) bool { return i.Number == n })]; i.PullRequest == nil {
		payload["issue"] = i
		return "issues", payload
	}
	payload["number"], payload["pull_request"] = n, h.whole(h.numbered(n))
	return "pull_request", payload
}

// cause lets something happen, and sends it. Nothing is locked while the receiver answers, because it may ask the host.
func (h *Host) cause(ctx context.Context, sender string, happen func() (event string, payload map[string]any)) (Delivery, error) {
	d, lost, err := h.note(sender, happen)
	if lost || err != nil {
		return d, err
	}
	return h.Redeliver(ctx, d)
}

func (h *Host) note(sender string, happen func() (event string, payload map[string]any)) (d Delivery, lost bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	event, payload := happen()
	payload["repository"], payload["sender"] = h.repo(), Account(sender)
	d = Delivery{GUID: string(uuid.NewUUID()), Event: event}
	switch about := payload["issue"].(type) {
	case *Issue:
		d.Number = about.Number
	default:
		d.Number, _ = payload["number"].(int64)
	}
	if lost = h.state.Hook.URL == "" || h.state.Lost > 0; h.state.Lost > 0 {
		h.state.Lost--
	}
	d.Payload, err = json.Marshal(payload)
	return d, lost, err
}

// Redeliver sends an event once more, or for the first time if it was lost.
func (h *Host) Redeliver(ctx context.Context, d Delivery) (Delivery, error) {
	h.mu.Lock()
	hook, repository := h.state.Hook, h.id
	h.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(d.Payload))
	if err != nil {
		return d, err
	}
	sum := hmac.New(sha256.New, []byte(hook.Secret))
	sum.Write(d.Payload)
	for name, value := range map[string]string{
		"Accept": "*/*", "Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/044aadd",
		"X-GitHub-Delivery": d.GUID, "X-GitHub-Event": d.Event, "X-GitHub-Hook-ID": strconv.FormatInt(hook.ID, 10),
		"X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(repository, 10), "X-GitHub-Hook-Installation-Target-Type": "repository",
	} {
		r.Header.Set(name, value)
	}
	if hook.Secret != "" {
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	}
	client := http.DefaultClient
	if hook.Client != nil {
		client = hook.Client
	}
	answer, err := client.Do(r)
	if err != nil {
		return d, fmt.Errorf("deliver %s: %w", d.Event, err)
	}
	defer func() { _ = answer.Body.Close() }()
	d.Status = answer.StatusCode
	d.Answer, err = io.ReadAll(answer.Body)
	return d, err
}
