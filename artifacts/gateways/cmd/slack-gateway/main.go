// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program slack-gateway connects a Slack app with the platform, by the protocol platform.gateway.v1. Slack reaches --slack-listen, for
// example through an Ingress; the platform reaches --listen.
package main

import (
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/artifacts/gateways/internal/slackchat"
)

func main() {
	f, fs := adapter.NewFlags("slack-gateway")
	o := slackchat.Options{Client: http.DefaultClient}
	var listen, tokenFile, secretFile string
	fs.StringVar(&listen, "slack-listen", "127.0.0.1:8080", "address at which Slack's events arrive")
	fs.StringVar(&tokenFile, "bot-token-file", "", "file with the token of the bot (xoxb-…)")
	fs.StringVar(&secretFile, "signing-secret-file", "", "file with the signing secret of the app")
	fs.StringVar(&o.APIURL, "api-url", "", "address of Slack's API, for tests")
	fs.BoolVar(&o.MentionsOnly, "mentions-only", false, "in channels, take only messages that mention the bot (app_mention); otherwise all messages")
	fs.BoolVar(&o.InThreads, "answer-in-threads", false, "begin a thread with the answer to a message that is in none")
	f.Capabilities.Capabilities.SenderIdentity = true
	f.Capabilities.Capabilities.Threads = true
	os.Exit(adapter.Main(f, func(log *slog.Logger) (adapter.Chat, error) {
		if tokenFile == "" || secretFile == "" {
			return nil, errors.New("--bot-token-file and --signing-secret-file are required")
		}
		o.BotToken, o.SigningSecret, o.Log = adapter.Secret(tokenFile), adapter.Secret(secretFile), log
		chat := slackchat.New(o)
		f.Handlers[listen] = chat
		return chat, nil
	}))
}
