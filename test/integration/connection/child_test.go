// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/tokenservice"
)

// What TestHelperServer gets from the environment: its folder, its port, the issuer of people's tokens, and either the address of the
// provider or that of a name server, with which it reaches providers as it does outside of tests. With the last one it has no controllers.
const (
	envFolder, envPort, envIssuer = "PLATFORM_TEST_FOLDER", "PLATFORM_TEST_PORT", "PLATFORM_TEST_ISSUER"
	envProvider, envNames         = "PLATFORM_TEST_PROVIDER", "PLATFORM_TEST_NAMES"
	envIdle                       = "PLATFORM_TEST_IDLE"
)

// TestHelperServer is a server in a process of its own, which tests can kill.
func TestHelperServer(t *testing.T) { //nolint:paralleltest // it is alone in its process
	dir := os.Getenv(envFolder)
	if dir == "" {
		t.Skip("this is the server of other tests")
	}
	o := standalone.NewOptions()
	o.DataDir, o.RESTBindAddress, o.Out, o.WorkerBinary = dir, "127.0.0.1:0", os.Stdout, os.Args[0]
	o.Metrics = legacyregistry.Registerer()
	o.Port = kit.Must[int](t)(strconv.Atoi(os.Getenv(envPort)))
	o.Identity = identity(os.Getenv(envIssuer))
	o.Connectors.Enabled, o.Connectors.CallbackBase = true, base
	if os.Getenv(envIdle) != "" {
		o.Controllers = func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return nil
		}
	}
	if names := os.Getenv(envNames); names != "" {
		net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", names)
		}}
	} else {
		o.Connectors.Transport = oauthprovider.TransportTo(os.Getenv(envProvider))
	}
	if err := server.SetUpLog(t.Context(), true, sparse.New(clock.RealClock{})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	if err := standalone.Run(ctx, *o); err != nil {
		t.Fatal(err)
	}
}

// child is a world whose server is a process of its own. Its methods of world speak with that one.
type child struct {
	*world

	process *kit.Process
	env     []string
}

// newChild starts a server in a process of its own, with namespace team and the Secret of the client. Further variables of the
// environment come last.
func newChild(t *testing.T, env ...string) *child {
	t.Helper()
	c := &child{world: &world{provider: oauthprovider.New(t), tokens: tokenservice.New(t)}}
	dir := t.TempDir()
	c.env = append([]string{envFolder + "=" + dir, envPort + "=" + kit.FreePort(t), envIssuer + "=" + c.tokens.URL, envProvider + "=" + c.provider.Address()}, env...)
	c.Platform = &standalone.Platform{T: t, Server: &standalone.Server{DataDir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}}
	kit.EndRunsAfter(t, dir)
	c.start()
	c.Namespaces(t, "team")
	c.secret()
	return c
}

// start starts the server on its folder.
func (c *child) start() {
	c.T.Helper()
	c.process = kit.Start(c.T, c.env, os.Args[0], "-test.run=^TestHelperServer$", "-test.v")
	c.process.Await(c.T, "is ready after")
	admin := kit.Must[*rest.Config](c.T)(clientcmd.BuildConfigFromFlags("", c.Kubeconfig))
	c.Host, c.URL = host.Of(admin, ""), admin.Host
}

// crash kills the server, and starts it again. Clients have to be made again.
func (c *child) crash() {
	c.T.Helper()
	c.process.Kill()
	c.start()
}

// freeze stops all threads of the server, so that it reads nothing of what is sent to it. It ends when it is killed.
func (c *child) freeze() {
	pid := c.process.Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		c.T.Error(err)
		return
	}
	kit.Await(c.T, "the stop of the server", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			return false
		}
		for _, file := range threads {
			stat, err := os.ReadFile(file)
			_, state, _ := strings.Cut(string(stat), ") ") // after the name of the program
			if err == nil && !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	})
}

// reply is an answer that may not have come.
type reply struct {
	host.Answer
	err error
}

// begin sends a request whose server may be killed. sent is closed once the request is on its way, and answered receives what came of it.
func begin(ctx context.Context, c *standalone.Client, method, path, body string) (sent <-chan struct{}, answered <-chan reply) {
	wrote, out := make(chan struct{}), make(chan reply, 1)
	once := sync.OnceFunc(func() { close(wrote) })
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }})
	go func() {
		defer once()
		out <- try(ctx, c, method, path, body)
	}()
	return wrote, out
}

// try sends a request whose server may be killed.
func try(ctx context.Context, c *standalone.Client, method, path, body string) reply {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header = c.Header.Clone()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{host.Answer{Code: resp.StatusCode, Header: resp.Header, Body: string(text)}, err}
}

// unanswered fails the test if a request was answered although its server was killed before that.
func (c *child) unanswered(answered <-chan reply) {
	c.T.Helper()
	if r := <-answered; r.err == nil {
		c.T.Errorf("the server was killed, and answered %d %s", r.Code, r.Body)
	} else if errors.Is(r.err, context.Canceled) {
		c.T.Errorf("the client gave up: %v", r.err)
	}
}
