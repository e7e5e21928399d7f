// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
	scripted "github.com/platform-ai/platform/test/scriptedmodel/script"
)

// waiting is a model for chats. The task that it waits for does not run.
const waiting = `
models: [scripted-1]
turns:
- match: {lastRole: user, contains: wait for it}
  reply: {text: I wait., toolCalls: [{name: wait_for_task, arguments: {name: plain, timeout: 60}}]}
- match: {lastRole: user, contains: hello}
  reply: {text: Hello to you.}
`

// answers gives the namespace a Provider "default" on a model that follows a script.
func (f *filled) answers(text string) {
	f.t.Helper()
	parsed, err := scripted.Parse([]byte(text))
	if err != nil {
		f.t.Fatal(err)
	}
	model := httptest.NewServer(scripted.New(parsed, io.Discard))
	f.t.Cleanup(model.Close)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	if _, err := f.Kubernetes(f.t).CoreV1().Secrets("team").Create(f.t.Context(), key, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	_, err = f.API.CoreV1alpha1().Providers("team").Create(f.t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: model.URL + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// wire passes connections on to a server, until it cuts all of them.
type wire struct {
	to    string
	mu    sync.Mutex
	conns map[net.Conn]bool
}

// between returns the address of a wire to a server, and one that cuts it with each request.
func between(t testing.TB, base string) (address, cut string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &wire{to: strings.TrimPrefix(base, "http://"), conns: map[net.Conn]bool{}}
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	scissors := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.cut() }))
	t.Cleanup(scissors.Close)
	return "http://" + l.Addr().String(), scissors.URL
}

func (w *wire) pass(in net.Conn) {
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = in.Close()
		return
	}
	w.mu.Lock()
	w.conns[in], w.conns[out] = true, true
	w.mu.Unlock()
	for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
		go func() {
			_, _ = io.Copy(to, from)
			_, _ = in.Close(), out.Close()
		}()
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}

// A turn in the background is followed after its connection was cut, and never sent twice. One in the foreground ends with its
// connection, and the page says so.
func TestChatIsCut(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.answers(waiting)
	base, cut := between(t, f.RESTURL)
	scene.Drive(t, root, "cut.mjs", 2, "BASE="+base, "CUT="+cut, "TOKEN="+f.token("ann", "platform-operator"), "SHOTS="+pictures(t))
}
