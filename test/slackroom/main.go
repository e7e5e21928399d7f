// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slackroom is a stand-in for Slack, for make demo-gateway: a workspace with one channel, in which one person and a bot write. Each
// line of the standard input is what the person says; /archive closes the channel for messages and /unarchive opens it. What is said
// is printed. It has the methods of Slack's API that the adapter artifacts/gateways/cmd/slack-gateway uses, and sends it events as Slack
// does: signed, one after the other, and again until they are taken.
//
// It writes what the other programs need into a folder: its own address (api-url), two free addresses for the adapter (listen, slack-listen),
// a certificate for both (cert.pem, key.pem), and the secrets of a Slack app (bot-token, signing-secret).
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// The workspace. Only the ids count for the platform.
const (
	team, channel = "T-DEMO", "C-SUPPORT"
	person, bot   = "U-ADA", "U-BOT"
)

func main() {
	dir := pflag.String("dir", "", "folder for addresses, certificate and secrets (required)")
	pflag.Parse()
	if pflag.NArg() > 0 || *dir == "" {
		pflag.Usage()
		os.Exit(2)
	}
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "slackroom:", err)
		os.Exit(1)
	}
}

// run serves the workspace until a signal comes.
func run(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	adapter, events, err := free(ctx)
	if err != nil {
		return err
	}
	w := &workspace{token: "xoxb-" + rand.Text(), secret: rand.Text(), events: "https://" + events + "/", said: make(chan string)}
	cert, key, err := certificate(time.Now())
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(cert))
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	for name, text := range map[string]string{
		"api-url": "http://" + l.Addr().String() + "/", "listen": adapter, "slack-listen": events, "cert.pem": cert, "key.pem": key, "bot-token": w.token, "signing-secret": w.secret,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write what the adapter needs: %w", err)
		}
	}
	go w.read(ctx, os.Stdin)
	go w.send(ctx)
	fmt.Fprintf(os.Stderr, "slackroom: this stands in for Slack; serving http://%s/\n", l.Addr())
	srv := &http.Server{Handler: w.routes(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// free returns two addresses that nobody listens on.
func free(ctx context.Context) (first, second string, err error) {
	var all [2]string
	for i := range all {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", fmt.Errorf("a free address: %w", err)
		}
		defer func() { _ = l.Close() }() // both are held until then, so they differ
		all[i] = l.Addr().String()
	}
	return all[0], all[1], nil
}

// workspace is a workspace with one channel.
type workspace struct {
	token, secret string
	// events is where events are posted, with client, which knows the certificate.
	events string
	client *http.Client
	// said are the messages of the person, in order.
	said chan string

	mu       sync.Mutex
	archived bool
	// messages are those of the bot, as the API shows them.
	messages []map[string]any
	// last is the timestamp of the newest message, in microseconds. A timestamp is the id of its message.
	last int64
}

// routes are the methods of the API.
func (w *workspace) routes() http.Handler {
	mux := http.NewServeMux()
	for name, method := range map[string]func(r *http.Request) (map[string]any, string){
		"auth.test": func(*http.Request) (map[string]any, string) {
			return map[string]any{"team_id": team, "user_id": bot}, ""
		},
		"chat.postMessage": w.post, "conversations.history": w.list, "conversations.replies": w.list,
	} {
		mux.HandleFunc("/"+name, func(rw http.ResponseWriter, r *http.Request) {
			answer, problem := map[string]any(nil), "invalid_auth"
			if r.FormValue("token") == w.token || r.Header.Get("Authorization") == "Bearer "+w.token {
				answer, problem = method(r)
			}
			if problem != "" {
				answer = map[string]any{"error": problem}
			}
			answer["ok"] = problem == ""
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(answer) // whoever asked has gone
		})
	}
	return mux
}

// post puts a message of the bot into the channel.
func (w *workspace) post(r *http.Request) (map[string]any, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.FormValue("channel") != channel:
		return nil, "channel_not_found"
	case w.archived:
		show("(the channel is archived, so the bot cannot post)")
		return nil, "is_archived"
	}
	var metadata any
	if err := json.Unmarshal([]byte(r.FormValue("metadata")), &metadata); err != nil {
		return nil, "invalid_metadata"
	}
	ts, text := w.stamp(), r.FormValue("text")
	w.messages = append(w.messages, map[string]any{"type": "message", "ts": ts, "text": text, "thread_ts": r.FormValue("thread_ts"), "metadata": metadata})
	show("bot: " + strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text))
	return map[string]any{"channel": channel, "ts": ts}, ""
}

// list returns the messages of the bot. There are few, so there is one page.
func (w *workspace) list(*http.Request) (map[string]any, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[string]any{"messages": w.messages, "has_more": false}, ""
}

// stamp returns the timestamp of a new message. The caller has the lock.
func (w *workspace) stamp() string {
	w.last = max(w.last+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", w.last/1e6, w.last%1e6)
}

// read takes what the person says.
func (w *workspace) read(ctx context.Context, from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		switch text {
		case "":
		case "/archive", "/unarchive":
			w.mu.Lock()
			w.archived = text == "/archive"
			w.mu.Unlock()
			show("(" + strings.TrimPrefix(text, "/") + "d)")
		default:
			show("ada: " + text)
			select {
			case w.said <- text:
			case <-ctx.Done():
				return
			}
		}
	}
}

// send posts what the person says as events.
func (w *workspace) send(ctx context.Context) {
	for {
		var text string
		select {
		case text = <-w.said:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		ts := w.stamp()
		w.mu.Unlock()
		body, err := json.Marshal(map[string]any{
			"type": "event_callback", "team_id": team,
			"event": map[string]any{"type": "message", "channel": channel, "channel_type": "channel", "user": person, "text": text, "ts": ts},
		})
		if err != nil {
			show("(" + err.Error() + ")")
			continue
		}
		for tries := 0; w.deliver(ctx, body, tries) != nil; tries++ {
			if tries == 0 {
				show("(the adapter does not answer; the message is sent to it again and again)")
			}
			select {
			case <-time.After(time.Second): // Slack itself waits longer
			case <-ctx.Done():
				return
			}
		}
	}
}

// deliver posts an event, signed as Slack signs.
func (w *workspace) deliver(ctx context.Context, body []byte, tries int) error {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second) // as long as Slack waits
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.events, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(w.secret))
	fmt.Fprintf(mac, "v0:%s:%s", at, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Slack-Request-Timestamp", at)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	if tries > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(tries))
	}
	res, err := w.client.Do(req)
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("event: status %d", res.StatusCode)
	}
	return nil
}

// show prints a line of the channel.
func show(line string) { fmt.Println("  | " + line) }
