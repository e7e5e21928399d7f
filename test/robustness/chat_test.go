// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

const (
	chatKills = 20
	chatTools = 5 // that the turn creates
)

// chatScript creates a tool with each answer, slowly, and then says what it did.
func chatScript() string {
	b := &strings.Builder{}
	_, _ = fmt.Fprintln(b, "models: [scripted-1]\nturns:\n- match: {contains: wait for it}\n  reply: {text: I wait.}\n  fault: {stall: true}")
	for i := 1; i <= chatTools; i++ {
		_, _ = fmt.Fprintf(b, "- match: {turn: %d}\n  reply:\n    text: \"Now I create number %d, as you asked me to do it in this message, and then go on. \"\n"+
			"    toolCalls: [{name: create_tool, arguments: {name: tool-%d, description: d, url: \"https://example.com/\"}}]\n  fault: {chunkDelay: 8ms}\n", i, i, i)
	}
	_, _ = fmt.Fprintf(b, "- match: {turn: %d}\n  reply: {text: All of them are there.}\n  fault: {chunkDelay: 8ms}\n", chatTools+1)
	return b.String()
}

// chatClient is a client of a server that comes and goes.
type chatClient struct {
	api    *versioned.Clientset
	core   kubernetes.Interface
	config *rest.Config
}

func newChatClient(t *testing.T, kubeconfig string) *chatClient {
	t.Helper()
	cfg := config(t, "", kubeconfig)
	api, err := versioned.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &chatClient{api, core, cfg}
}

// follow reads the frames of a session's turn until the last one, however often the connection ends meanwhile.
func (c *chatClient) follow(ctx context.Context, session string) (frames []sse.Event, err error) {
	for ctx.Err() == nil {
		after := "0"
		if n := len(frames); n > 0 {
			after = frames[n-1].ID
		}
		stream, err := c.api.CoreV1alpha1().RESTClient().Get().Namespace("default").Resource("sessions").Name(session).SubResource("turn").
			Param("after", after).Stream(ctx)
		if apierrors.IsNotFound(err) {
			return frames, err
		}
		if err != nil {
			pause(ctx, retryPause) // the server is away
			continue
		}
		in := sse.NewReader(stream, sse.Options{})
		for {
			e, err := in.Next()
			if err != nil {
				break
			}
			frames = append(frames, *e)
			if e.Type == "done" || e.Type == "error" {
				return frames, stream.Close()
			}
		}
		_ = stream.Close()
	}
	return frames, ctx.Err()
}

// start begins a background turn and returns its session.
func (c *chatClient) start(t *testing.T, message string) string {
	t.Helper()
	turn, err := c.api.CoreV1alpha1().Chats("default").Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: message, Background: true}}, metav1.CreateOptions{})
	if err != nil || turn.Status.Outcome != v1alpha1.ChatRunning || turn.Status.SessionID == "" {
		t.Fatalf("background turn: %+v, %v", turn.Status, err)
	}
	return turn.Status.SessionID
}

// answers gives the namespace a Provider.
func (c *chatClient) answers(t *testing.T, url string) {
	t.Helper()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	if _, err := c.core.CoreV1().Secrets("default").Create(t.Context(), key, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: url + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}
	if _, err := c.api.CoreV1alpha1().Providers("default").Create(t.Context(), provider, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// finalText returns the text after the last call, as a client shows it that follows the rule of restarts.
func finalText(t *testing.T, frames []sse.Event) string {
	t.Helper()
	var text string
	for i, f := range frames {
		if f.ID != strconv.Itoa(i+1) {
			t.Errorf("frame %d has id %s", i+1, f.ID)
		}
		var e struct {
			Content string
			Restart bool
		}
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			t.Error(err)
		}
		if e.Restart || f.Type == "tool_result" {
			text = ""
		}
		text += e.Content
	}
	return text
}

// TestBackgroundTurnKilled kills the server again and again while a background turn runs. Each client gets the same frames,
// whenever it came, each object is created once, and the session has the turn once. Then another client cancels a turn.
func TestBackgroundTurnKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	parsed, err := script.Parse([]byte(chatScript()))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script.New(parsed, io.Discard))
	defer func() {
		model.CloseClientConnections() // the server still reads what is left of the cancelled turn's answer, for its usage
		model.Close()
	}()
	s := kit.StartServer(t, t.TempDir())
	one, two := newChatClient(t, s.Kubeconfig), newChatClient(t, s.Kubeconfig)
	one.answers(t, model.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	session := one.start(t, "create the tools")
	type reading struct {
		frames []sse.Event
		err    error
	}
	read := make([]chan reading, 2)
	for i, c := range []*chatClient{one, two} {
		read[i] = make(chan reading, 1)
		go func() {
			frames, err := c.follow(ctx, session)
			read[i] <- reading{frames, err}
		}()
	}
	var shown bytes.Buffer
	attached := make(chan int, 1)
	go func() {
		attached <- cli.Main(ctx, "platform", []string{"--kubeconfig", s.Kubeconfig, "chat", "attach", session}, cli.Streams{Out: &shown, Err: io.Discard})
	}()
	for range chatKills {
		pause(ctx, time.Duration(random.Int64N(int64(200*time.Millisecond))))
		s.Kill()
		s.Restart(t)
	}
	first, second := <-read[0], <-read[1]
	if code := <-attached; code != 0 || !strings.HasSuffix(shown.String(), "All of them are there.\n") {
		t.Errorf("platform chat attach: exit %d, %q", code, shown.String())
	}
	late, err := one.follow(ctx, session)
	if first.err != nil || second.err != nil || err != nil {
		t.Fatal(first.err, second.err, err)
	}
	if d := cmp.Diff(first.frames, second.frames); d != "" {
		t.Errorf("two clients differ: %s", d)
	}
	if d := cmp.Diff(first.frames, late); d != "" {
		t.Errorf("a client that came late differs: %s", d)
	}
	if got := finalText(t, late); got != "All of them are there." {
		t.Errorf("the text is %q", got)
	}
	one.checkTurn(t, session, late)
	t.Logf("seed %d: %d kills, %d frames", seed, chatKills, len(late))

	waiting := one.start(t, "wait for it")
	ended := make(chan reading, 1)
	go func() {
		frames, err := one.follow(ctx, waiting)
		ended <- reading{frames, err}
	}()
	s.Kill()
	s.Restart(t)
	if err := two.api.CoreV1alpha1().Sessions("default").Delete(ctx, waiting, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := <-ended
	if n := len(got.frames); !apierrors.IsNotFound(got.err) && (n == 0 || got.frames[n-1].Type != "error" || !strings.Contains(got.frames[n-1].Data, "cancelled")) {
		t.Errorf("a turn that another client cancelled: %v %v", got.frames, got.err)
	}
	if _, err := two.follow(ctx, waiting); !apierrors.IsNotFound(err) {
		t.Errorf("its stream afterwards: %v", err)
	}
}

// checkTurn checks what the turn did, and what its session has.
func (c *chatClient) checkTurn(t *testing.T, session string, frames []sse.Event) {
	t.Helper()
	tools, err := c.api.CoreV1alpha1().Tools("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(tools.Items) != chatTools {
		t.Errorf("%d tools, %v", len(tools.Items), err)
	}
	results := slices.DeleteFunc(slices.Clone(frames), func(e sse.Event) bool { return e.Type != "tool_result" })
	for _, r := range results {
		if !strings.Contains(r.Data, `"success":true`) {
			t.Errorf("result %s", r.Data)
		}
	}
	calls := slices.DeleteFunc(slices.Clone(frames), func(e sse.Event) bool { return e.Type != "tool_call" })
	if len(results) != chatTools || len(calls) != chatTools {
		t.Errorf("%d calls, %d results are shown", len(calls), len(results))
	}
	page := &v1alpha1.SessionTranscript{}
	err = c.api.CoreV1alpha1().RESTClient().Get().Namespace("default").Resource("sessions").Name(session).SubResource("transcript").Do(t.Context()).Into(page)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[v1alpha1.MessageRole]int{}
	for _, m := range page.Items {
		roles[m.Role]++
	}
	want := map[v1alpha1.MessageRole]int{v1alpha1.RoleUser: 1, v1alpha1.RoleAssistant: chatTools + 1, v1alpha1.RoleTool: chatTools}
	if d := cmp.Diff(want, roles); d != "" || page.Items[len(page.Items)-1].Content != "All of them are there." {
		t.Errorf("the session has %+v: %s", page.Items, d)
	}
}
