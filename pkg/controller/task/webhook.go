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
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	webhookTimeout = 30 * time.Second
	webhookRetry   = 30 * time.Second
	webhookAgent   = "Platform-Controller/1.0"
)

// errWebhookAddress: the address rules forbid this callback. Trying again is
// still right, a name may come to point elsewhere.
var errWebhookAddress = errors.New("task: webhook address is not allowed")

// webhookBody is what a completion callback says.
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

// webhook delivers completion callbacks. Addresses are judged when they are
// dialled, after the name was resolved, so that a name cannot be one address
// for the check and another for the connection.
type webhook struct {
	// allowed are address ranges that the operator opened, in spite of the rules.
	allowed []netip.Prefix
	client  *http.Client
}

func newWebhook(allowed []netip.Prefix) *webhook {
	w := &webhook{allowed: allowed}
	dialer := &net.Dialer{Timeout: webhookTimeout, Control: func(_, address string, _ syscall.RawConn) error { return w.check(address) }}
	w.client = &http.Client{
		Timeout: webhookTimeout,
		// No proxy: it would dial for us, unchecked.
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: webhookTimeout, DisableKeepAlives: true},
		// A redirect is not a delivery.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w
}

// check judges a resolved address, host:port.
func (w *webhook) check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", errWebhookAddress, address)
	}
	ip := ap.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(w.allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(reserved(), func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return fmt.Errorf("%w: %s", errWebhookAddress, ip)
	}
	return nil
}

// reserved are ranges beyond RFC 1918 and loopback that are not the internet.
// Link-local, with the metadata address 169.254.169.254, is not global unicast.
func reserved() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"),    // carrier NAT, and metadata of some clouds
		netip.MustParsePrefix("168.63.129.16/32"), // metadata of one cloud
		netip.MustParsePrefix("192.0.0.0/24"),     // IETF, and metadata of some clouds
		netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
		netip.MustParsePrefix("240.0.0.0/4"),      // reserved
		netip.MustParsePrefix("64:ff9b::/96"),     // an IPv4 address in disguise
		netip.MustParsePrefix("64:ff9b:1::/48"),   // same
		netip.MustParsePrefix("2002::/16"),        // same
		netip.MustParsePrefix("2001::/32"),        // same
		netip.MustParsePrefix("fec0::/10"),        // site-local
	}
}

// post delivers once. Any 2xx is a delivery.
func (w *webhook) post(ctx context.Context, target string, body webhookBody) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: not an http or https URL", errWebhookAddress)
	}
	if host := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")); host == "metadata" || host == "metadata.google.internal" {
		return fmt.Errorf("%w: %s", errWebhookAddress, host)
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
		// Not the URL: it may hold a token of the receiver.
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return fmt.Errorf("webhook: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("webhook: receiver answered %d", resp.StatusCode)
	}
	return nil
}
