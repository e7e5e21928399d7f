// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowCompatSmall   = "chat completions, 64 connections"
	rowCompatFirst   = "first event of a streamed completion, median"
	rowCompatStreams = "200 parallel streams of 50 events"

	compatClients, compatStreams, compatEvents = 64, 200, 50
	// compatFirsts is how many first events are timed.
	compatFirsts = 200

	compatBody = `{"model":"m","stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Say hello."}]}`
)

// compat measures the OpenAI API of the server, used with a ServiceAccount token, beside a bare httputil.ReverseProxy with TLS,
// which authenticates nobody, reads nothing and counts nothing. The vendor behind both is in this process, and so is the proxy.
func compat(ctx context.Context, o Options, dir string, r *report.Report) (err error) {
	if !o.wants(rowCompatSmall) && !o.wants(rowCompatFirst) && !o.wants(rowCompatStreams) {
		return nil
	}
	vendor := httptest.NewServer(http.HandlerFunc(answerCompat))
	defer vendor.Close()
	s, err := start(ctx, o.Bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	admin, base, err := s.client("")
	if err != nil {
		return err
	}
	if err := makeProvider(ctx, admin, base, vendor.URL); err != nil {
		return err
	}
	token, err := accountToken(ctx, admin, base, "chats", `{"apiGroups":["core.platform.ai"],"resources":["chats"],"verbs":["create"]},{"apiGroups":["core.platform.ai"],"resources":["providers"],"verbs":["list"]}`)
	if err != nil {
		return err
	}
	ours := target{url: base + "/openai/v1/chat/completions"}
	other, stop, err := proxyTo(vendor.URL)
	if err != nil {
		return err
	}
	defer stop()
	for range compatClients {
		c, _, err := s.client(token)
		if err != nil {
			return err
		}
		ours.clients = append(ours.clients, c)
	}
	for _, row := range []struct {
		report.Row

		measure func(context.Context, target, time.Duration) (float64, error)
	}{
		{report.Row{Name: rowCompatSmall, Unit: "requests/s", Better: report.Higher}, smallRequests},
		{report.Row{Name: rowCompatFirst, Unit: "ms", Better: report.Lower}, firstEvents},
		{report.Row{Name: rowCompatStreams, Unit: "ms", Better: report.Lower}, parallelStreams},
	} {
		if !o.wants(row.Name) {
			continue
		}
		row.OtherName = "ReverseProxy"
		if row.Ours, err = row.measure(ctx, ours, o.Window); err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		if row.Other, err = row.measure(ctx, other, o.Window); err != nil {
			return fmt.Errorf("%s: proxy: %w", row.Name, err)
		}
		if err := r.Add(row.Row); err != nil {
			return err
		}
	}
	return nil
}

// target is a server with a client for each connection.
type target struct {
	url     string
	clients []*http.Client
}

// answerCompat is the vendor.
func answerCompat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if bytes.Contains(body, []byte(`"stream":false`)) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range compatEvents {
		_, _ = io.WriteString(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hello. "}}],"usage":null}`+"\n\n")
		_ = http.NewResponseController(w).Flush() // the client reads to the end
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func makeProvider(ctx context.Context, c *http.Client, base, vendor string) error {
	secret := corev1.Secret{StringData: map[string]string{"api-key": "key"}}
	secret.APIVersion, secret.Kind, secret.Name = "v1", "Secret", "vendor"
	p := v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, BaseURL: vendor, SecretRef: v1alpha1.ProviderSecretReference{Name: "vendor"}}}
	p.APIVersion, p.Kind, p.Name = v1alpha1.SchemeGroupVersion.String(), "Provider", "default"
	for path, o := range map[string]any{"/api/v1/namespaces/default/secrets": secret, "/apis/" + p.APIVersion + "/namespaces/default/providers": p} {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if err := send(ctx, c, http.MethodPost, base+path, body, nil); err != nil {
			return err
		}
	}
	return nil
}

func proxyTo(vendor string) (target, func(), error) {
	to, err := url.Parse(vendor)
	if err != nil {
		return target{}, nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // that of net/http
	transport.MaxIdleConnsPerHost = compatStreams
	proxy.Transport = transport
	p := httptest.NewUnstartedServer(proxy)
	p.EnableHTTP2 = true
	p.StartTLS()
	t := target{url: p.URL}
	for range compatClients {
		own := p.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // that of httptest
		t.clients = append(t.clients, &http.Client{Transport: own})
	}
	return t, func() {
		for _, c := range t.clients {
			c.CloseIdleConnections()
		}
		p.Close()
	}, nil
}

// ask sends a completion and returns when its first line arrived, in ms, after it read the whole answer.
func (t target) ask(ctx context.Context, i int, stream bool) (float64, error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(fmt.Appendf(nil, compatBody, stream)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Platform-Tools", "disabled")
	resp, err := t.clients[i%len(t.clients)].Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	line, err := in.ReadString('\n')
	first := float64(time.Since(began).Microseconds()) / 1000
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", resp.Status, line)
	}
	rest, err := io.ReadAll(in)
	if err == nil && stream && !bytes.Contains(rest, []byte("[DONE]")) {
		err = errors.New("the stream broke off")
	}
	return first, err
}

// all runs n functions at the same time and returns their errors.
func all(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func smallRequests(ctx context.Context, t target, window time.Duration) (float64, error) {
	var answered atomic.Int64
	began := time.Now()
	err := all(compatClients, func(i int) error {
		for time.Since(began) < window {
			if _, err := t.ask(ctx, i, false); err != nil {
				return err
			}
			answered.Add(1)
		}
		return nil
	})
	return float64(answered.Load()) / time.Since(began).Seconds(), err
}

func firstEvents(ctx context.Context, t target, _ time.Duration) (float64, error) {
	var took []float64
	for range compatFirsts {
		ms, err := t.ask(ctx, 0, true)
		if err != nil {
			return 0, err
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func parallelStreams(ctx context.Context, t target, _ time.Duration) (float64, error) {
	began := time.Now()
	err := all(compatStreams, func(i int) error {
		_, err := t.ask(ctx, i, true)
		return err
	})
	return float64(time.Since(began).Microseconds()) / 1000, err
}
