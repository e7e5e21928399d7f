// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program matrix-gateway connects a Matrix user with the platform, by the protocol platform.gateway.v1.
package main

import (
	"errors"
	"log/slog"
	"net/http"
	"os"

	"maunium.net/go/mautrix/id"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/artifacts/gateways/internal/matrixchat"
)

func main() {
	f, fs := adapter.NewFlags("matrix-gateway")
	o := matrixchat.Options{Client: http.DefaultClient}
	var user, tokenFile string
	fs.StringVar(&o.Homeserver, "homeserver", "", "address of the homeserver, such as https://matrix.example.com")
	fs.StringVar(&user, "user", "", "Matrix id of the user, such as @bot:example.com")
	fs.StringVar(&tokenFile, "access-token-file", "", "file with the access token of the user")
	fs.Func("room", "id of a room to be in; may be repeated", func(s string) error { o.Rooms = append(o.Rooms, id.RoomID(s)); return nil })
	fs.BoolVar(&o.Invite, "accept-invitations", false, "accept invitations to all rooms")
	f.Capabilities.Capabilities.SenderIdentity = true
	f.Capabilities.Capabilities.Threads = true
	os.Exit(adapter.Main(f, func(log *slog.Logger) (adapter.Chat, error) {
		if o.Homeserver == "" || user == "" || tokenFile == "" {
			return nil, errors.New("--homeserver, --user and --access-token-file are required")
		}
		o.User, o.Token, o.Log = id.UserID(user), adapter.Secret(tokenFile), log
		return matrixchat.New(o), nil
	}))
}
