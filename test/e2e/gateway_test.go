// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// TestChatConversation: a person talks with an agent in a room of a chat server, while each part of the way between them is killed in turn,
// at different moments of a turn. The person reads each answer once, and in order, and the records say so. 20 turns, or 200.
func TestChatConversation(t *testing.T) {
	needsChat(t)
	t.Parallel()
	adapter := net.JoinHostPort("127.0.0.1", kit.FreePort(t))
	p := local{kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--gateway-allow", adapter,
		"--gateway-delivery-timeout=2s", "--gateway-claim-lease=4s")} // which is how long an answer waits that a killed server was sending
	turns := 20
	if kit.Offered(kit.Minutes) {
		turns = 200
	}
	newConversation(t, p, adapter).hold(turns,
		victim{"server", func() { p.Kill() }, func() { p.Restart(t) }},
		victim{"controller", func() { p.Kill() }, func() { p.Restart(t) }}, // the same process
	)
}

// TestChatConversationInCluster is the same conversation with the server, the controller and the tasks in a cluster. 10 turns, or 200.
func TestChatConversationInCluster(t *testing.T) {
	needsChat(t)
	p := newTeam(t)
	t.Cleanup(func() { p.MustShell(t, "kubectl delete gatewayclass xmpp-"+p.namespace) }) // which is in no namespace
	turns := 10
	if kit.Offered(kit.Minutes) {
		turns = 200
	}
	newConversation(t, p, net.JoinHostPort(p.Address(), adapterPort)).hold(turns,
		victim{"server", func() { p.killPod(t, "platform-apiserver") }, func() { p.replacePods(t, "platform-apiserver"); p.awaitServer(t) }},
		victim{"controller", func() { p.killPod(t, "platform-controller") }, func() { p.replacePods(t, "platform-controller") }},
	)
}

// victim is a part of the way between a person and an agent.
type victim struct {
	name        string
	kill, start func()
}

// Parts that are on this machine wherever the platform is.
const (
	partAdapter = "adapter"
	partChat    = "chat server"
	partClient  = "client"
)

// moment is when a part is killed.
type moment int

// The moments of a turn.
const (
	unasked  moment = iota // it is away while the person asks
	asked                  // when the room has the question
	thinking               // while the model answers; it is away until the answer is written, if others can write it
	answered               // when the person has read the answer
	moments
)

func (m moment) String() string {
	return [...]string{"before the question", "after the question", "before the answer", "after the answer"}[m]
}

// strike is one part that is killed in one turn.
type strike struct {
	victim
	moment
}

// strikes is how often something is killed in a long conversation, so that each of five parts is killed at each moment, and how often in a
// short one, so that each part is killed once.
const strikes, fewStrikes = 5 * int(moments), 5

// schedule says what is killed in which turn, from 1. The number of parts and that of moments have no common divisor.
func schedule(turns int, parts []victim) map[int]strike {
	n := fewStrikes
	if turns >= 5*strikes {
		n = strikes
	}
	plan := map[int]strike{}
	for i := range n {
		plan[(i+1)*turns/n] = strike{parts[i%len(parts)], moment(i % int(moments))}
	}
	return plan
}

// hold holds a conversation, and checks what the person and the platform have of it.
func (c *conversation) hold(turns int, server, controller victim) {
	c.Helper()
	plan := schedule(turns, []victim{
		{partAdapter, func() { c.adapter.Kill() }, c.startAdapter},
		{partChat, func() { c.chat.Kill() }, c.startChat},
		server,
		controller,
		{partClient, c.killClient, c.startClient},
	})
	var want []string
	unsure := map[string]bool{} // answers that may have been on their way into the room when something was killed
	for n := 1; n <= turns; n++ {
		if s, struck := plan[n]; struck {
			c.Logf("turn %d: the %s is killed %s", n, s.name, s.moment)
			c.turn(n, &s)
			if s.name == partAdapter || s.name == partChat {
				unsure[answer(n-1)], unsure[answer(n)] = true, true
			}
		} else {
			c.turn(n, nil)
		}
		want = append(want, answer(n))
	}
	c.killClient()
	if got := c.answers(c.heard); !slices.Equal(got, want) {
		c.Errorf("the person has read %q, not %q", got, want)
	}
	c.heard = nil
	c.startClient()
	c.client.Await(c, `"present":true`)
	if got := c.answers(printed(c.client)); !slices.Equal(got, want) {
		c.Errorf("the room has %q, not %q", got, want)
	}
	c.checkRecords(turns, unsure)
}

// question and answer are what is said in a turn.
func question(n int) string { return fmt.Sprint("turn ", n) }
func answer(n int) string   { return "You said: " + question(n) }

// turn has the person say something and read the answer, while a part is killed, if there is a strike.
func (c *conversation) turn(n int, s *strike) {
	c.Helper()
	at := func(m moment) bool { return s != nil && s.moment == m }
	of := func(names ...string) bool { return s != nil && slices.Contains(names, s.name) }
	if at(unasked) {
		s.kill()
	}
	var begun <-chan struct{}
	if at(thinking) {
		begun = c.model.hold()
	}
	if _, err := c.says.WriteString(question(n) + "\n"); err != nil {
		c.Fatal(err)
	}
	if at(unasked) && of(partChat, partClient) {
		s.start() // without it the question does not reach the room
	}
	c.awaitText(question(n))
	switch {
	case at(unasked) && !of(partChat, partClient):
		s.start()
	case at(asked):
		s.kill()
		s.start()
	case at(thinking):
		select {
		case <-begun:
		case <-time.After(kit.Patience): // it never is
			c.Fatal("the model is not asked")
		}
		s.kill()
		c.model.goOn()
		if of(partAdapter, partChat, partClient) {
			c.awaitDeliveries(n, of(partClient)) // which nobody posts, or nobody reads
		}
		s.start()
	}
	c.awaitText(answer(n))
	if at(answered) {
		s.kill()
		s.start()
	}
}

// awaitText waits until the client prints a text, or has done so before it was killed.
func (c *conversation) awaitText(text string) {
	c.Helper()
	if !slices.ContainsFunc(c.heard, func(l line) bool { return l.Text == text }) {
		c.client.Await(c, `,"text":"`+text+`"}`)
	}
}

// awaitDeliveries waits until there are n deliveries, and if they have to be finished, until nothing more becomes of them.
func (c *conversation) awaitDeliveries(n int, finished bool) {
	c.Helper()
	so := fmt.Sprintf(`[ $(wc -w <<<"$states") = %d ]`, n)
	if finished {
		so += ` && ! grep -Eq "Pending|Sending|RetryScheduled" <<<"$states"`
	}
	c.place.MustShell(c, `timeout 300 bash -c 'until states=$(kubectl get gatewaydeliveries -o jsonpath="{.items[*].status.state}") && `+so+`; do sleep 0.2; done'`)
}

// checkRecords checks that the platform has each question and its answer once. Of those that are unsure, the adapter may not know whether it
// has posted them: with XMPP nothing can tell, and it does not post them twice.
func (c *conversation) checkRecords(turns int, unsure map[string]bool) {
	c.Helper()
	// What the client has read the platform may not know yet.
	c.awaitDeliveries(turns, true)
	var events v1alpha1.GatewayEventList
	var deliveries v1alpha1.GatewayDeliveryList
	var tasks v1alpha1.TaskList
	getJSON(c.T, c.place, "gatewayevents", &events)
	getJSON(c.T, c.place, "gatewaydeliveries", &deliveries)
	getJSON(c.T, c.place, "tasks", &tasks)
	slices.SortFunc(events.Items, func(a, b v1alpha1.GatewayEvent) int { return int(a.Status.TranscriptOrder - b.Status.TranscriptOrder) })
	slices.SortFunc(deliveries.Items, func(a, b v1alpha1.GatewayDelivery) int { return int(a.Spec.Sequence - b.Spec.Sequence) })
	if len(events.Items) != turns || len(deliveries.Items) != turns || len(tasks.Items) != turns || c.model.requests() != turns {
		c.Fatalf("%d events, %d deliveries, %d tasks and %d requests to the model in %d turns", len(events.Items), len(deliveries.Items), len(tasks.Items), c.model.requests(), turns)
	}
	unknown := 0
	for i := range turns {
		e, d := &events.Items[i], &deliveries.Items[i]
		if e.Spec.Text != question(i+1) || e.Status.State != v1alpha1.GatewayEventCompleted {
			c.Errorf("event %d: %q is %s %s %s", i+1, e.Spec.Text, e.Status.State, e.Status.Reason, e.Status.StateMessage)
		}
		if d.Spec.Text != answer(i+1) || d.Spec.EventID != e.Name || d.Spec.Kind != v1alpha1.GatewayDeliveryFinal {
			c.Errorf("delivery %d: %s %q, an answer to %s, not to %s", i+1, d.Spec.Kind, d.Spec.Text, d.Spec.EventID, e.Name)
		}
		switch {
		case d.Status.State == v1alpha1.GatewayDeliveryDelivered:
		case d.Status.State == v1alpha1.GatewayDeliveryDeadLettered && unsure[d.Spec.Text]:
			unknown++
			c.Logf("delivery %d: %s", i+1, d.Status.LastError)
		default:
			c.Errorf("delivery %d is %s %s %s", i+1, d.Status.State, d.Status.Reason, d.Status.LastError)
		}
	}
	c.Logf("%d turns; of %d deliveries the adapter does not know that they were posted", turns, unknown)
}
