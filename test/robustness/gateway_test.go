// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

const (
	// gatewayKills is how often the server is killed at least; ROUNDS raises it. gatewayThreads is how many conversations there are meanwhile.
	gatewayKills, gatewayThreads = 40, 3
	// waiting is how many messages of a conversation may wait for their answer.
	waiting = 4
	// lostAnswers is one of how many answers of the adapter are lost.
	lostAnswers = 5
)

// TestGatewayKilled kills the server again and again, while people write and are answered, and some answers of the adapter are lost. Whatever
// was answered with 202 is answered once, in order; what was not is repeated, and is answered once, too.
func TestGatewayKilled(t *testing.T) {
	t.Parallel()
	kills := max(gatewayKills, rounds(t))
	a := chatadapter.New(t)
	var deliveries atomic.Int64
	arrived := make(chan struct{}, 1)
	a.Misbehave(func(_ http.ResponseWriter, d *protocol.Delivery) bool {
		select {
		case arrived <- struct{}{}:
		default:
		}
		if deliveries.Add(1)%lostAnswers == 0 {
			a.Post(d)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	vendor := httptest.NewServer(script.New(kit.Must[*script.Script](t)(script.Parse([]byte(chatadapter.Echo))), io.Discard))
	t.Cleanup(vendor.Close)
	s := kit.StartServer(t, t.TempDir(), "--gateway-allow", a.Host(), "--gateway-delivery-timeout=1s", "--gateway-claim-lease=2s", "--gateway-delivery-max-attempts=1000")
	x := &talked{T: t, adapter: a, chatClient: newChatClient(t, s.Kubeconfig)}
	x.set(vendor.URL)

	var over atomic.Bool
	var people sync.WaitGroup
	said := make([]int, gatewayThreads)
	for thread := range gatewayThreads {
		people.Go(func() {
			for !over.Load() {
				// Some wait for their answer, and not too many.
				if len(a.Said(fmt.Sprint("t-", thread))) < said[thread]-waiting {
					pause(t.Context(), retryPause)
					continue
				}
				x.say(thread, said[thread])
				said[thread]++
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for kill := range kills {
		for range random.IntN(3) { // at an arrival, or at any other moment
			<-arrived
		}
		s.Kill()
		if kill == kills-1 {
			over.Store(true)
		}
		s.Restart(t)
	}
	people.Wait()
	for thread := range gatewayThreads {
		name := fmt.Sprint("t-", thread)
		var want []string
		for n := range said[thread] {
			want = append(want, fmt.Sprintf("You said: message %d", n))
		}
		kit.Await(t, "the answers in "+name, func() bool { return len(a.Said(name)) >= len(want) })
		got := a.Said(name)
		for i, text := range got { // an answer that took long says so
			if strings.HasPrefix(text, "[late: ") {
				_, got[i], _ = strings.Cut(text, "\n")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	all := kit.Must[*v1alpha1.GatewayEventList](t)(x.api.CoreV1alpha1().GatewayEvents("default").List(t.Context(), metav1.ListOptions{}))
	total := 0
	for _, n := range said {
		total += n
	}
	if len(all.Items) != total {
		t.Errorf("%d events, not %d", len(all.Items), total)
	}
	t.Logf("%d kills, %d events, %d deliveries arrived", kills, total, deliveries.Load())
}

// talked is a server with a gateway.
type talked struct {
	*testing.T
	*chatClient
	adapter *chatadapter.Adapter
	door    *http.Client
	url     string
}

// set makes the gateway and what belongs to it.
func (x *talked) set(vendor string) {
	x.Helper()
	ctx := x.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vendor"}, StringData: map[string]string{"token": "vendor-key-0123456789"}}
	for _, s := range append(x.adapter.Secrets(), secret) {
		kit.Must[*corev1.Secret](x)(x.core.CoreV1().Secrets("default").Create(ctx, s, metav1.CreateOptions{}))
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: vendor + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: "vendor", Key: "token"},
	}}
	api := x.api.CoreV1alpha1()
	kit.Must[*v1alpha1.Provider](x)(api.Providers("default").Create(ctx, provider, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](x)(api.Agents("default").Create(ctx, x.adapter.Talker(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.GatewayClass](x)(api.GatewayClasses().Create(ctx, x.adapter.Class(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Gateway](x)(api.Gateways("default").Create(ctx, x.adapter.Gateway(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.GatewayBinding](x)(api.GatewayBindings("default").Create(ctx, x.adapter.Binding("room"), metav1.CreateOptions{}))
	kit.Await(x, "the binding", func() bool {
		return kit.Must[*v1alpha1.GatewayBinding](x)(api.GatewayBindings("default").Get(ctx, "room", metav1.GetOptions{})).Status.Ready
	})
	anonymous := rest.AnonymousClientConfig(x.config)
	x.door, x.url = kit.Must[*http.Client](x)(rest.HTTPClientFor(anonymous)), anonymous.Host+"/api/v1/gateways/default/chat/events"
}

// say sends an event as the adapter does: again and again, until it is accepted.
func (x *talked) say(thread, n int) {
	body, err := json.Marshal(chatadapter.Event(fmt.Sprintf("e-%d-%d", thread, n), fmt.Sprint("t-", thread), fmt.Sprintf("message %d", n)))
	if err != nil {
		x.Error(err)
		return
	}
	for ; ; pause(x.Context(), retryPause) {
		r := kit.Must[*http.Request](x)(http.NewRequestWithContext(x.Context(), http.MethodPost, x.url, bytes.NewReader(body)))
		r.Header.Set("Authorization", "Bearer "+chatadapter.Inbound)
		r.Header.Set("Content-Type", "application/json")
		answer, err := x.door.Do(r)
		if err != nil {
			continue // the server is away, and may have stored it
		}
		var reply protocol.Reply
		decoded := json.NewDecoder(answer.Body).Decode(&reply)
		_ = answer.Body.Close()
		switch {
		case answer.StatusCode == http.StatusAccepted && decoded == nil && (reply.Status == protocol.ReplyAccepted || reply.Status == protocol.ReplyDuplicate):
			return
		case answer.StatusCode == http.StatusAccepted && decoded == nil, answer.StatusCode == http.StatusBadRequest, answer.StatusCode == http.StatusConflict:
			x.Errorf("event %d of %d: %d %+v", n, thread, answer.StatusCode, reply)
			return
		}
	}
}
