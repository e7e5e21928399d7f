// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/corpus/hostile"
	"github.com/platform-ai/platform/test/kit"
)

const (
	// doorStrangers is how many requests without the right token come at once, in each way, and doorSlow how many with it whose body does not
	// arrive: more than the door answers at a time.
	doorStrangers, doorSlow = 300, 400
	// doorMemory is by how much a server may grow meanwhile, in bytes: the door's share of bodies is 32 MiB.
	doorMemory = 128 << 20
	// noMoreThan is what a client can write to a server that does not read, in bytes: the buffers between them.
	noMoreThan = 16 << 20
)

// TestGatewayFlood: whoever has no token of a gateway is refused before a byte of the body is read, whatever the head says about it, and
// however many come. Bodies of adapters that do not arrive hold a bounded part of the door, and none of what another address needs. No text
// of a body is in the log.
func TestGatewayFlood(t *testing.T) {
	t.Parallel()
	a := chatadapter.New(t)
	s := kit.StartServer(t, t.TempDir(), "--gateway-allow", a.Host())
	x := &talked{T: t, adapter: a, chatClient: newChatClient(t, s.Kubeconfig)}
	x.set("http://127.0.0.1:1") // no model is asked
	f := flood{t, kit.Must[*url.URL](t)(url.Parse(regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`).FindString(s.Output())))}
	before, said := peak(t, s.Pid()), len(s.Output())

	for _, framing := range []string{"Content-Length: 262144", "Content-Length: 99999999999", "Content-Length: 10\r\nExpect: 100-continue", "Transfer-Encoding: chunked"} {
		f.strangers(framing)
	}
	f.endless("wrong", http.StatusUnauthorized)
	f.endless(chatadapter.Inbound, http.StatusRequestEntityTooLarge)
	f.hostile()
	f.lying()
	held := f.slow()
	// Another address is served meanwhile.
	if code, body, err := f.from("127.0.0.3").whole(chatadapter.Inbound, strings.Replace(hostile.Right(), hostile.ID, "meanwhile", 1)); err != nil || code != http.StatusAccepted {
		t.Errorf("another address: %d %s %v", code, body, err)
	}
	for _, c := range held {
		_ = c.Close()
	}
	all := kit.Must[*v1alpha1.GatewayEventList](t)(x.api.CoreV1alpha1().GatewayEvents("").List(t.Context(), metav1.ListOptions{}))
	if len(all.Items) != 1 {
		t.Errorf("%d events are stored", len(all.Items))
	}
	grown := peak(t, s.Pid()) - before
	if grown > doorMemory {
		t.Errorf("the server grew by %d MiB", grown>>20)
	}
	log := s.Output()[said:]
	checkSparse(t, "door", log)
	for _, secret := range []string{hostile.Mark, chatadapter.Inbound, "wrong-token-"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	t.Logf("the server grew by %d MiB; %d bytes of log: %v", grown>>20, len(log), causes(log))
}

// flood sends requests to the door of the gateway chat.
type flood struct {
	*testing.T
	base *url.URL
}

// source is an address of this machine.
type source struct {
	flood
	ip string
}

func (f flood) from(ip string) source { return source{f, ip} }

// begin opens a connection and sends the head of a request, and what follows it.
func (s source) begin(token, framing, rest string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(s.ip)}}
	c, err := d.DialContext(s.Context(), "tcp", s.base.Host)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c, "POST /api/v1/gateways/default/chat/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", token, framing, rest)
	return c, err
}

// answer reads an answer.
func answer(c net.Conn) (code int, body string, closes bool, err error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", false, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), resp.Close, err
}

// whole sends a request with a body and reads the answer.
func (s source) whole(token, body string) (code int, text string, err error) {
	c, err := s.begin(token, fmt.Sprintf("Content-Length: %d", len(body)), body)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	code, text, _, err = answer(c)
	return code, text, err
}

// strangers sends heads with wrong tokens, and no bodies, from several addresses at once.
func (f flood) strangers(framing string) {
	f.Helper()
	var group sync.WaitGroup
	for i := range doorStrangers {
		group.Go(func() {
			c, err := f.from(fmt.Sprintf("127.0.1.%d", i%100+1)).begin(fmt.Sprint("wrong-token-", i), framing, "")
			if err != nil {
				f.Error(err)
				return
			}
			defer c.Close()
			// The door answers so many at a time. Others are told to come again, which is no less cheap.
			code, body, closes, err := answer(c)
			if err != nil || code != http.StatusUnauthorized && code != http.StatusTooManyRequests || !closes || strings.Contains(body, "chat") {
				f.Errorf("%q: %d %s, closes %v, %v", framing, code, body, closes, err)
			}
		})
	}
	group.Wait()
}

// endless sends a chunked body that has no end, and reads the answer meanwhile.
func (f flood) endless(token string, want int) {
	f.Helper()
	c, err := f.from("127.0.0.4").begin(token, "Transfer-Encoding: chunked", "")
	if err != nil {
		f.Fatal(err)
	}
	sent := make(chan int, 1)
	go func() {
		n := 0
		piece := fmt.Sprintf("%x\r\n%s\r\n", 32<<10, strings.Repeat(" ", 32<<10))
		for n < 2*noMoreThan {
			if _, err := io.WriteString(c, piece); err != nil {
				break
			}
			n += len(piece)
		}
		sent <- n
	}()
	code, body, closes, err := answer(c)
	_ = c.Close()
	if n := <-sent; err != nil || code != want || !closes || n > noMoreThan {
		f.Errorf("a body without an end: %d %s, closes %v, after %d bytes, %v", code, body, closes, n, err)
	}
}

// hostile sends all hostile bodies with the right token and another one.
func (f flood) hostile() {
	f.Helper()
	for i, b := range hostile.Events(protocol.MaxEventBody) {
		s := f.from(fmt.Sprintf("127.0.2.%d", i%50+1))
		for token, want := range map[string]int{chatadapter.Inbound: b.Code, fmt.Sprint("wrong-token-", i): http.StatusUnauthorized} {
			// The server ends the connection of a body that it does not read, which may be before the client has sent it.
			if code, text, err := s.whole(token, b.Text); code != want && (err == nil || len(b.Text) < 4<<10) {
				f.Errorf("%s: %d %.300s %v, not %d", b.Name, code, text, err, want)
			}
		}
	}
}

// lying sends bodies of another length than their heads say.
func (f flood) lying() {
	f.Helper()
	right := strings.Replace(hostile.Right(), hostile.ID, "lying", 1)
	for what, sent := range map[string]struct {
		framing, rest string
		want          []int
	}{
		// The rest of the connection is another request, which is none.
		"shorter":         {fmt.Sprintf("Content-Length: %d", len(right)-1), right, []int{400}},
		"negative":        {"Content-Length: -1", right, []int{400}},
		"no number":       {"Content-Length: x", right, []int{400}},
		"two lengths":     {"Content-Length: 1\r\nContent-Length: 2", right, []int{400}},
		"both framings":   {"Content-Length: 1\r\nTransfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", []int{400}},
		"another framing": {"Transfer-Encoding: gzip", right, []int{501, 400}},
		"no chunk":        {"Transfer-Encoding: chunked", "xyz\r\n", []int{400}},
		"a long chunk":    {"Transfer-Encoding: chunked", "fffffffffffffffff\r\n", []int{400}},
		"a compressed body": {
			"Content-Encoding: gzip\r\nContent-Length: 10", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00", []int{415},
		},
		"compressed twice": {"Content-Encoding: identity, gzip\r\nContent-Length: 2", "{}", []int{415}},
	} {
		c, err := f.from("127.0.0.5").begin(chatadapter.Inbound, sent.framing, sent.rest)
		if err != nil {
			f.Fatal(err)
		}
		code, body, _, err := answer(c)
		_ = c.Close()
		fits := false
		for _, want := range sent.want {
			fits = fits || code == want
		}
		if err != nil || !fits {
			f.Errorf("%s: %d %s %v", what, code, body, err)
		}
	}
	// A client that ends early, once it has sent a part of what it said, leaves nothing.
	c, err := f.from("127.0.0.5").begin(chatadapter.Inbound, fmt.Sprintf("Content-Length: %d", len(right)+1), right)
	if err != nil {
		f.Fatal(err)
	}
	_ = c.Close()
}

// slow sends heads with the right token, and the beginning of a body. Those that the door does not take are refused at once. It returns the
// connections of the others.
func (f flood) slow() (held []net.Conn) {
	f.Helper()
	refused := 0
	for range doorSlow {
		c, err := f.from("127.0.0.6").begin(chatadapter.Inbound, "Content-Length: 262144\r\nExpect: 100-continue", "")
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = c.Close() })
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		switch {
		case err != nil:
			f.Fatal(err)
		case resp.StatusCode == http.StatusContinue:
			if _, err := io.WriteString(c, `{"text":"`+hostile.Mark); err != nil {
				f.Fatal(err)
			}
			held = append(held, c)
		case resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "":
			refused++
		default:
			f.Errorf("a slow body: %s", resp.Status)
		}
		_ = resp.Body.Close()
	}
	if len(held) == 0 || refused == 0 {
		f.Errorf("%d slow bodies are held, %d refused", len(held), refused)
	}
	return held
}

// peak is the most memory that a process has had, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	status := kit.Must[[]byte](t)(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return kit.Must[int64](t)(strconv.ParseInt(strings.Fields(rest)[0], 10, 64)) << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
