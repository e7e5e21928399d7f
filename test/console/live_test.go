// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// liveRate is how many events a second a run appends, in batches of liveBatch.
const liveRate, liveBatch = 500, 10

// A page that follows a run shows every event once, however often the server is killed meanwhile, and takes no more memory the
// longer it does. CONSOLE_LIVE is how long it follows, and CONSOLE_KILLS how many kills there are meanwhile:
//
//	CONSOLE_LIVE=10m CONSOLE_KILLS=20 go test ./test/console -run TestLive -v -timeout 1h
func TestLive(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("CONSOLE_KILLS"), "3"))
	if err != nil {
		t.Fatalf("CONSOLE_KILLS: %v", err)
	}
	follow, err := time.ParseDuration(cmp.Or(os.Getenv("CONSOLE_LIVE"), "4s"))
	if err != nil {
		t.Fatalf("CONSOLE_LIVE: %v", err)
	}
	l := newLive(t)
	cli := &server{t: t, Server: &standalone.Server{}}
	cli.Kubeconfig = l.Kubeconfig
	base, secret := cli.local("-n", "default")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	written := make(chan int, 1)
	go func() { written <- l.write(ctx) }()
	cmd := exec.CommandContext(t.Context(), "node", "page/live.mjs")
	cmd.Env = append(os.Environ(), "BASE="+base, "LINK="+base+"/console/login#once="+secret, "FOLLOW="+strconv.Itoa(int(follow.Milliseconds())), "KILLS="+strconv.Itoa(kills), "HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ok := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); line {
		case "kill": // the page is live
			l.Kill()
			l.Restart(t)
			_, _ = io.WriteString(in, "killed\n")
		case "stop":
			cancel()
			_, _ = fmt.Fprintf(in, "%d\n", <-written)
		default:
			ok += strings.Count(line, "ok: ")
			t.Log(line)
		}
	}
	if err := cmd.Wait(); err != nil || ok != 1 {
		t.Errorf("live.mjs: %v", err)
	}
}

// live is a server in a process of its own, with a task that never begins.
type live struct {
	*kit.Server
	t   *testing.T
	api *versioned.Clientset
}

func newLive(t *testing.T) *live {
	t.Helper()
	l := &live{t: t, Server: kit.StartServer(t, t.TempDir(), "--allow-host-commands")}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if l.api, err = versioned.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "live"},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Schedule: "0 0 1 1 *", Suspend: true},
	}
	if _, err := l.api.CoreV1alpha1().Tasks("default").Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return l
}

// write appends events until ctx ends, and returns how many. What is not answered is sent again; its key makes the server store
// it once. The summary of an event has its number and the time at which it is sent, in ms.
func (l *live) write(ctx context.Context) int {
	n := 0
	for tick := time.NewTicker(time.Second * liveBatch / liveRate); ; { // the rate is what is measured
		select {
		case <-ctx.Done():
			tick.Stop()
			return n
		case <-tick.C:
		}
		var batch v1alpha1.ExecutionEventList
		for i := range liveBatch {
			batch.Items = append(batch.Items, v1alpha1.ExecutionEvent{
				Type: v1alpha1.EventModelMessage, DedupKey: "event-" + strconv.Itoa(n+i), Summary: fmt.Sprintf("event %d at %d", n+i, time.Now().UnixMilli()),
			})
		}
		for {
			_, err := l.api.CoreV1alpha1().Tasks("default").AppendEvents(context.WithoutCancel(ctx), "live", &batch, metav1.CreateOptions{})
			if err == nil {
				break
			}
			select {
			case <-l.t.Context().Done():
				return n
			case <-time.After(50 * time.Millisecond): // the server is away, which no event ends
			}
		}
		n += liveBatch
	}
}
