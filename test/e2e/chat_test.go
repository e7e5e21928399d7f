// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/test/kit"
)

const (
	chatRoom   = "room@conference.localhost"
	chatBot    = "bot@localhost"
	chatPerson = "alice@localhost"
	// adapterPort is where testdata/cluster/kustomization.yaml lets the server reach an adapter on this machine.
	adapterPort = "9443"
)

// chatConfig is that of a prosody of its own: its folder and its port. Rooms and their archives stay, and each member is known to the others.
const chatConfig = `
daemonize = false
run_as_root = true
pidfile = "FOLDER/pid"
data_path = "FOLDER/data"
interfaces = { "127.0.0.1" }
c2s_ports = { PORT }
modules_enabled = { "roster", "saslauth", "tls", "disco", "ping" }
modules_disabled = { "s2s" }
authentication = "internal_plain"
c2s_require_encryption = true
certificates = "FOLDER"
log = { warn = "*console" }
VirtualHost "localhost"
	ssl = { key = "FOLDER/key.pem", certificate = "FOLDER/cert.pem" }
Component "conference.localhost" "muc"
	modules_enabled = { "muc_mam" }
	muc_room_locking = false
	muc_room_default_public_jids = true
	muc_room_default_persistent = true
`

// chatManifest connects the room with an agent. Secrets are before what needs them, which is not looked at again for seconds otherwise.
const chatManifest = `
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {api-key: k-1234567890}
---
apiVersion: core.platform.ai/v1alpha1
kind: Provider
metadata: {name: model}
spec: {type: openai, baseURL: MODEL/v1, defaultModel: scripted-1, secretRef: {name: key, key: api-key}}
---
apiVersion: core.platform.ai/v1alpha1
kind: Agent
metadata: {name: talker}
spec: {providerRef: {name: model}, systemPrompt: {inline: Say what you were told.}}
---
apiVersion: core.platform.ai/v1alpha1
kind: GatewayClass
metadata: {name: CLASS}
spec: {contractVersion: platform.gateway.v1, capabilities: {inboundText: true, outboundText: true, senderIdentity: true, idempotentDelivery: true}}
---
apiVersion: v1
kind: Secret
metadata:
  name: inbound
  labels: {gateway.platform.ai/inbound-auth: "true"}
  annotations: {gateway.platform.ai/gateway-name: xmpp}
stringData: {token: INBOUND}
---
apiVersion: v1
kind: Secret
metadata:
  name: outbound
  labels: {gateway.platform.ai/outbound-auth: "true"}
  annotations: {gateway.platform.ai/gateway-name: xmpp, gateway.platform.ai/adapter-endpoint: "https://ADAPTER"}
stringData:
  token: OUTBOUND
  ca.crt: "CERTIFICATE"
---
apiVersion: core.platform.ai/v1alpha1
kind: Gateway
metadata: {name: xmpp}
spec:
  gatewayClassName: CLASS
  adapter: {endpoint: "https://ADAPTER"}
  inboundAuthRef: {name: inbound, key: token}
  outboundAuthRef: {name: outbound, key: token}
---
# What was said while the adapter was away comes from the history of the room, which knows people by their nicks.
apiVersion: core.platform.ai/v1alpha1
kind: GatewayBinding
metadata: {name: room}
spec:
  gatewayRef: {name: xmpp}
  agentRef: {name: talker}
  match: {accountId: bot@localhost, contextId: room@conference.localhost}
  senderPolicy: {allowedSenderIds: [alice@localhost, room@conference.localhost/alice]}
`

// needsChat skips the test without the programs of a chat. "make chat" builds those of this repository; prosody is Debian's.
func needsChat(t *testing.T) {
	t.Helper()
	kit.Needs(t, kit.Chat)
}

// conversation is one between a person and an agent: a chat server, the adapter that connects it with a place, and the person's client.
type conversation struct {
	*testing.T
	place   place
	folder  string
	port    string // of the chat server
	listens string // where the adapter does
	model   *slowModel
	door    string // where the adapter posts events
	says    *os.File
	chat    *kit.Process
	adapter *kit.Process
	client  *kit.Process
	heard   []line // what clients printed that were killed
}

// line is what the client prints.
type line struct{ ID, From, Text string }

// newConversation starts all parts beside the platform, whose server may reach an adapter at an address, and waits until they are ready.
func newConversation(t *testing.T, p place, adapter string) *conversation {
	t.Helper()
	c := &conversation{T: t, place: p, folder: t.TempDir(), port: kit.FreePort(t), listens: adapter, model: newSlowModel(t, p), door: newDoor(t, p, "xmpp")}
	certificate := c.certify()
	inbound, outbound := rand.Text(), rand.Text()
	for name, text := range map[string]string{
		"prosody.cfg.lua": strings.NewReplacer("FOLDER", c.folder, "PORT", c.port).Replace(chatConfig), "inbound": inbound, "outbound": outbound,
		"data/localhost/accounts/bot.dat": `return { ["password"] = "bot's password" };`, "bot": "bot's password",
		"data/localhost/accounts/alice.dat": `return { ["password"] = "alice's password" };`, "alice": "alice's password",
		"objects.yaml": strings.NewReplacer("MODEL", c.model.url, "CLASS", "xmpp-"+p.Namespace(), "INBOUND", inbound, "OUTBOUND", outbound, "ADAPTER", adapter,
			"CERTIFICATE", strings.ReplaceAll(certificate, "\n", `\n`)).Replace(chatManifest),
	} {
		c.write(name, text)
	}
	said := filepath.Join(c.folder, "said") // what the client has not read yet outlives it
	if err := syscall.Mkfifo(said, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.says, err = os.OpenFile(said, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.says.Close() })
	c.startChat()
	c.startClient()
	c.client.Await(t, `"present":true`) // so the adapter can enter the room, too
	c.startAdapter()
	p.MustShell(t, "kubectl create -f "+filepath.Join(c.folder, "objects.yaml"))
	p.MustShell(t, "kubectl wait --for=condition=Ready --timeout=300s gateway/xmpp gatewaybinding/room")
	return c
}

func (c *conversation) startChat() {
	c.Helper()
	program, err := exec.LookPath("prosody")
	if err != nil {
		c.Fatalf("apt-get install prosody: %v", err)
	}
	c.chat = kit.Start(c, nil, program, "-F", "--config", filepath.Join(c.folder, "prosody.cfg.lua"))
}

func (c *conversation) startAdapter() {
	c.Helper()
	in := func(name string) string { return filepath.Join(c.folder, name) }
	c.adapter = kit.Start(c, nil, kit.Bin(c, "xmpp-gateway"), "--listen", c.listens, "--tls-cert-file", in("cert.pem"), "--tls-key-file", in("key.pem"),
		"--token-file", in("outbound"), "--events-url", c.door, "--events-token-file", in("inbound"), "--data", in("adapter"),
		"--account", chatBot, "--password-file", in("bot"), "--server", "127.0.0.1:"+c.port, "--server-ca-file", in("cert.pem"), "--room", chatRoom+"/robot")
}

// startClient starts the person's client, which goes on after what the last one printed.
func (c *conversation) startClient() {
	c.Helper()
	after := ""
	if len(c.heard) > 0 {
		after = c.heard[len(c.heard)-1].ID
	}
	in := func(name string) string { return filepath.Join(c.folder, name) }
	c.client = kit.Start(c, nil, "bash", "-c", `exec "$@" 0<>"$0"`, in("said"), kit.Bin(c, "talk"), "--account", chatPerson, "--password-file", in("alice"),
		"--server", "127.0.0.1:"+c.port, "--server-ca-file", in("cert.pem"), "--room", chatRoom+"/alice", "--after", after)
}

func (c *conversation) killClient() {
	c.Helper()
	c.client.Kill()
	c.heard = append(c.heard, printed(c.client)...)
}

// printed returns the messages that a client has printed. What a killed one printed of a line is none.
func printed(client *kit.Process) (all []line) {
	for text := range strings.Lines(client.Output()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.ID != "" {
			all = append(all, l)
		}
	}
	return all
}

// answers returns what the adapter posted.
func (c *conversation) answers(lines []line) (all []string) {
	for _, l := range lines {
		if l.From == chatRoom+"/robot" {
			all = append(all, l.Text)
		}
	}
	return all
}

func (c *conversation) write(name, text string) {
	c.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// certify writes a certificate for the chat server and the adapter, which is its own authority, and returns it.
func (c *conversation) certify() string {
	c.Helper()
	key := kit.Must[*ecdsa.PrivateKey](c)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	host, _, err := net.SplitHostPort(c.listens)
	if err != nil {
		c.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := kit.Must[[]byte](c)(x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key))
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	c.write("cert.pem", certificate)
	c.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kit.Must[[]byte](c)(x509.MarshalPKCS8PrivateKey(key))})))
	return certificate
}
