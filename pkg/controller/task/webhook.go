// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/egress"
)

const (
	webhookTimeout = 30 * time.Second
	webhookRetry   = 30 * time.Second
	// webhookRefusedRetry is longer, because only the operator or a change of names lets a refused destination be reached.
	webhookRefusedRetry = time.Hour
	webhookAgent        = "Platform-Controller/1.0"
)

// webhookBody is the body of a completion callback.
type webhookBody struct {
	TaskName       string        `json:"taskName"`
	TaskNamespace  string        `json:"taskNamespace"`
	Phase          string        `json:"phase"`
	Message        string        `json:"message"`
	StartTime      *metav1.Time  `json:"startTime,omitempty"`
	CompletionTime *metav1.Time  `json:"completionTime,omitempty"`
	Attempts       int32         `json:"attempts"`
	ResultRef      webhookResult `json:"resultRef"`
	// RuntimeType is "agent" for agent tasks.
	RuntimeType string `json:"runtimeType,omitempty"`
}

type webhookResult struct {
	Available bool `json:"available"`
}

// errWebhookURL means that the callback's address is not an http or https URL.
var errWebhookURL = errors.New("must be an http or https URL")

// webhook delivers completion callbacks, to public addresses and to those that the operator allowed.
type webhook struct {
	client *http.Client
}

// newWebhook returns a webhook that may also reach the given destinations, as host:port, although they are not
// public.
func newWebhook(allow []string) *webhook {
	transport := egress.Guard{Allow: allow}.Transport()
	transport.DisableKeepAlives = true // callbacks are rare, and go to many places
	return &webhook{client: &http.Client{
		Timeout: webhookTimeout, Transport: transport,
		// A redirect does not count as a delivery.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// post sends the body once. Any 2xx status counts as delivered.
func (w *webhook) post(ctx context.Context, target string, body webhookBody) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errWebhookURL
	}
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("webhook body: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", webhookAgent)
	req.Header.Set("X-Platform-Task", body.TaskName)
	req.Header.Set("X-Platform-Namespace", body.TaskNamespace)
	resp, err := w.client.Do(req)
	if err != nil {
		// Leave out the URL: it may hold a token of the receiver.
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answered with status %d", resp.StatusCode)
	}
	return nil
}
