// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program xmpp-gateway connects an XMPP account with the platform, by the protocol platform.gateway.v1.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"mellium.im/xmpp/jid"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/artifacts/gateways/internal/xmppchat"
)

func main() {
	f, fs := adapter.NewFlags("xmpp-gateway")
	var account, server, passwordFile, ca string
	var rooms []string
	fs.StringVar(&account, "account", "", "JID of the account, such as bot@example.com")
	fs.StringVar(&server, "server", "", "HOST:PORT of its server; by default it is looked up in the DNS")
	fs.StringVar(&passwordFile, "password-file", "", "file with the password of the account")
	fs.StringVar(&ca, "server-ca-file", "", "certificates of authorities for the server, instead of those of the system")
	fs.Func("room", "room to be in, with the nick: room@conference.example.com/bot; may be repeated", func(s string) error { rooms = append(rooms, s); return nil })
	f.Capabilities.Capabilities.SenderIdentity = true
	os.Exit(adapter.Main(f, func(log *slog.Logger) (adapter.Chat, error) {
		o := xmppchat.Options{Server: server, Password: adapter.Line(passwordFile), Log: log}
		var err error
		if o.Account, err = jid.Parse(account); err != nil || o.Account.Localpart() == "" {
			return nil, fmt.Errorf("--account: %q is not the JID of an account", account)
		}
		o.Account = o.Account.Bare()
		for _, room := range rooms {
			me, err := jid.Parse(room)
			if err != nil || me.Localpart() == "" || me.Resourcepart() == "" {
				return nil, fmt.Errorf("--room: %q is not a room with a nick", room)
			}
			o.Rooms = append(o.Rooms, me)
		}
		if ca != "" {
			if o.Roots, err = adapter.CertPool(ca); err != nil {
				return nil, err
			}
		}
		return xmppchat.New(o), nil
	}))
}
